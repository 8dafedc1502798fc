/** An account that becomes another mailbox: read like a new one, knowing the messages that it has seen. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { AccountPatch } from '../../../engine/store/port.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { watchingWing, type Wing } from './wing.ts'

const start = (t: TestContext): Promise<Wing> =>
  watchingWing(t, { settings: { MAILROOM_SYNC_BATCH: '5' } }, ({ server }) => {
    fill(server, 'INBOX', 12)
    fill(server, 'Archive', 3, 'a')
  })

/** What an edit does: nobody at work, the store's step, a new actor. */
async function replace(wing: Wing, patch: AccountPatch): Promise<void> {
  await wing.accounts.stop(accountId)
  const account = await wing.store.sync.replaceMailbox(accountId, patch, Date.now())
  assert(account)
  assert.deepEqual(await wing.store.messages.older(accountId, null, 100), [])
  wing.accounts.start(account)
  await wing.settled()
}

/** New mail is told, and so was all that came before it. */
async function tellsOnly(wing: Wing, user: string, subjects: readonly string[] = []): Promise<void> {
  wing.server.append(user, 'INBOX', letter('the end'))
  const held = performance.now()
  await until('the hold is over', () => performance.now() - held > 800)
  await wing.tells([...subjects.map((subject) => `received ${subject} INBOX`), 'received the end INBOX'])
}

test('the same mailbox under new settings, or after a step that was cut short: every message is known, nothing is told', async (t) => {
  const wing = await start(t)
  const [inbox, archive] = [await wing.subjects('INBOX'), await wing.subjects('Archive')]
  const { id } = await wing.message('m3')
  await wing.accounts.stop(accountId)
  wing.server.append('ann', 'INBOX', letter('meanwhile'))
  wing.server.expunge('ann', 'INBOX', 1)
  await replace(wing, {})
  await until('all of it', async () => (await wing.subjects('INBOX')).length === 12)
  const left = new Set(['meanwhile', ...inbox.filter((subject) => subject !== 'm1')])
  assert.deepEqual(new Set(await wing.subjects('INBOX')), left)
  assert.deepEqual(await wing.subjects('Archive'), archive)
  assert.equal((await wing.message('m3')).id, id)
  await tellsOnly(wing, 'ann', ['meanwhile'])
})

test('another mailbox: its mail is history, that of the former one is gone without a word', async (t) => {
  const wing = await start(t)
  wing.server.addUser('bob', { folders: { INBOX: [], Work: [] } })
  const old = new Date(Date.now() - 3_600_000)
  for (let n = 1; n <= 7; n += 1) wing.server.append('bob', 'INBOX', letter(`b${n}`), [], old)
  wing.server.folder('bob', 'INBOX').uidValidity = wing.server.folder('ann', 'INBOX').uidValidity
  // moved over by a migration, which gave it a new INTERNALDATE: known all the same
  const moved = wing.server.folder('ann', 'Archive').messages[0]
  assert(moved)
  const known = await wing.message('a1')
  wing.server.append('bob', 'Work', moved.raw)
  await replace(wing, { username: 'bob' })
  assert.deepEqual(await wing.subjects('INBOX'), ['b1', 'b2', 'b3', 'b4', 'b5', 'b6', 'b7'])
  assert.deepEqual(await wing.subjects('Work'), ['a1'])
  assert.equal((await wing.message('a1')).id, known.id)
  assert.deepEqual(
    (await wing.store.folders.list(accountId)).map(({ path }) => path),
    ['INBOX', 'Work'],
  )
  await tellsOnly(wing, 'bob')
})
