/** What we write ourselves is in the index when the command answers, and told to nobody; what others do afterwards is. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createOwnWrites } from '../../../engine/accounts/own-writes.ts'
import { isAppError } from '../../../engine/errors.ts'
import type { MessageRecord, Placement } from '../../../engine/store/records.ts'
import { fullCapabilities, plainCapabilities } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, moveOnServer } from './stage.ts'
import { watchingWing, type Wing } from './wing.ts'

const servers: readonly (readonly [string, readonly string[]])[] = [
  ['everything', fullCapabilities],
  ['no UIDPLUS', fullCapabilities.filter((name) => name !== 'UIDPLUS')],
  ['neither MOVE nor UIDPLUS', fullCapabilities.filter((name) => name !== 'UIDPLUS' && name !== 'MOVE')],
  ['plain RFC 3501', plainCapabilities],
]

async function placed(wing: Wing, subject: string, path: string): Promise<{ message: MessageRecord; at: Placement }> {
  const message = await wing.message(subject)
  const at = message.placements.find((one) => one.path === path)
  assert(at, `${subject} lies in ${message.placements.map((one) => one.path).join(', ')}`)
  return { message, at }
}

function start(t: TestContext, capabilities: readonly string[]): Promise<Wing> {
  return watchingWing(t, { capabilities, settings: { MAILROOM_FLAG_COMPARE: '300ms' } }, ({ server }) => {
    fill(server, 'INBOX', 4)
    fill(server, 'Archive', 2, 'a')
  })
}

/** Several polls, and the hold: whatever was to be told has been. */
async function quiet(wing: Wing): Promise<void> {
  wing.server.append('ann', 'INBOX', letter('the end'))
  await until('the end', async () => (await wing.story()).includes('received the end INBOX'))
  const from = performance.now()
  await until('the hold is over', () => performance.now() - from > 800)
}

for (const [name, capabilities] of servers) {
  suite(`own writes, ${name}`, () => {
    test('flags, move, copy, append, remove', async (t) => {
      const wing = await start(t, capabilities)
      const { accounts } = wing
      const archive = await wing.folder('Archive')
      const one = await placed(wing, 'm1', 'INBOX')
      const flags = await accounts.setFlags(accountId, one.message, one.at, { add: ['\\Seen', 'work'], remove: [] })
      assert.deepEqual(flags, ['\\Seen', 'work'])
      assert.deepEqual((await placed(wing, 'm1', 'INBOX')).at.flags, ['\\Seen', 'work'])
      const two = await placed(wing, 'm2', 'INBOX')
      await accounts.move(accountId, two.message, two.at, archive)
      assert.deepEqual(
        (await wing.message('m2')).placements.map((at) => at.path),
        ['Archive'],
      )
      const three = await placed(wing, 'm3', 'INBOX')
      await accounts.copy(accountId, three.message, three.at, archive)
      assert.deepEqual((await wing.message('m3')).placements.map((at) => at.path).sort(), ['Archive', 'INBOX'])
      await accounts.append(accountId, archive, Buffer.from(letter('ours')), ['\\Seen'], Date.now())
      assert.deepEqual(await wing.subjects('Archive'), ['a1', 'a2', 'm2', 'm3', 'ours'])
      await accounts.append(accountId, await wing.folder('INBOX'), Buffer.from(letter('ours too')), [], Date.now())
      assert.deepEqual(await wing.subjects('INBOX'), ['m1', 'm3', 'm4', 'ours too'])
      const four = await placed(wing, 'm4', 'INBOX')
      await accounts.remove(accountId, four.message, four.at)
      assert.deepEqual((await wing.store.messages.get(accountId, four.message.id))?.placements, [])
      await quiet(wing)
      assert.deepEqual(await wing.story(), ['received the end INBOX'])
      assert.deepEqual(await wing.subjects('INBOX'), ['m1', 'm3', 'ours too', 'the end'])
      assert.equal((await wing.folder('INBOX')).messages, 4)
    })

    test('what others do to the same messages afterwards is told', async (t) => {
      const wing = await start(t, capabilities)
      const { accounts, server } = wing
      const archive = await wing.folder('Archive')
      const one = await placed(wing, 'm1', 'INBOX')
      await accounts.setFlags(accountId, one.message, one.at, { add: ['\\Seen'], remove: [] })
      server.setFlags('ann', 'INBOX', 1, [])
      await wing.tells(['flags_changed m1 INBOX'])
      server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
      await wing.tells(['flags_changed m1 INBOX', 'flags_changed m1 INBOX'])
      const two = await placed(wing, 'm2', 'INBOX')
      await accounts.move(accountId, two.message, two.at, archive)
      await quiet(wing)
      const uid = server.folder('ann', 'Archive').messages.at(-1)?.uid ?? 0
      const back = moveOnServer(server, uid, 'Archive', 'INBOX')
      const before = ['flags_changed m1 INBOX', 'flags_changed m1 INBOX', 'received the end INBOX']
      await wing.tells([...before, 'folder_added m2 INBOX', 'folder_removed m2 Archive'])
      moveOnServer(server, back, 'INBOX', 'Archive')
      const then = [...before, 'folder_added m2 INBOX', 'folder_removed m2 Archive']
      await wing.tells([...then, 'folder_added m2 Archive', 'folder_removed m2 INBOX'])
    })
  })
}

test('a refusal is told to the caller, and leaves nothing expected', async (t) => {
  const wing = await start(t, fullCapabilities)
  const { accounts, server } = wing
  const one = await placed(wing, 'm1', 'INBOX')
  server.hooks = { command: ({ name }) => (/STORE|MOVE|EXPUNGE/.test(name) ? { tagged: 'NO not today' } : undefined) }
  const refused = (error: unknown) => isAppError(error, 'server_refused') && error.message.includes('not today')
  await assert.rejects(accounts.setFlags(accountId, one.message, one.at, { add: ['\\Flagged'], remove: [] }), refused)
  await assert.rejects(accounts.move(accountId, one.message, one.at, await wing.folder('Archive')), refused)
  await assert.rejects(accounts.remove(accountId, one.message, one.at), refused)
  server.hooks = {}
  assert.deepEqual((await wing.message('m1')).placements, one.message.placements)
  server.setFlags('ann', 'INBOX', 1, ['\\Flagged'])
  await wing.tells(['flags_changed m1 INBOX'])
  moveOnServer(server, 1, 'INBOX', 'Archive')
  await wing.tells(['flags_changed m1 INBOX', 'folder_added m1 Archive', 'folder_removed m1 INBOX'])
})

test('an arrival stands for one UID; flags for one write', () => {
  let now = 1000
  const own = createOwnWrites(() => now)
  own.expectArrival('f', 'm')
  assert.equal(own.isArrival('f', 'm', 7), true)
  assert.equal(own.isArrival('f', 'm', 7), true, 'a repeated batch')
  assert.equal(own.isArrival('f', 'm', 8), false)
  const asked = own.mark()
  own.expectFlags('f', 1, ['b', 'a', '\\Recent'])
  assert.equal(own.isFlags('f', 1, ['a', 'b']), true)
  assert.equal(own.isWrittenSince('f', 1, asked), true)
  own.settleFlags('f', 1)
  assert.equal(own.isFlags('f', 1, ['a', 'b']), false)
  assert.equal(own.isWrittenSince('f', 1, own.mark()), false)
  own.expectDeparture('f', 3)
  assert.equal(own.isDeparture('f', 3), true)
  now += 3_600_000
  assert.equal(own.isDeparture('f', 3), false)
  assert.equal(own.isArrival('f', 'm', 7), false)
})
