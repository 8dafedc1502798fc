/**
 * What we write ourselves is in the index when the command answers, and told like anybody's change: once, at once,
 * whatever the server says of it.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { isAppError } from '../../../engine/errors.ts'
import type { MessageRecord, Placement } from '../../../engine/store/records.ts'
import { fullCapabilities, plainCapabilities, type Hooks } from '../../support/imap-server/index.ts'
import { letterOf } from '../../support/mail.ts'
import { replaced } from '../../support/imap-server/play.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, moveOnServer } from './stage.ts'
import { openAccounts, watchingAccounts, type Running } from './running.ts'

const servers: readonly (readonly [string, readonly string[]])[] = [
  ['everything', fullCapabilities],
  ['no UIDPLUS', fullCapabilities.filter((name) => name !== 'UIDPLUS')],
  ['neither MOVE nor UIDPLUS', fullCapabilities.filter((name) => name !== 'UIDPLUS' && name !== 'MOVE')],
  ['plain RFC 3501', plainCapabilities],
]

async function placed(
  running: Running,
  subject: string,
  path: string,
): Promise<{ message: MessageRecord; at: Placement }> {
  const message = await running.message(subject)
  const at = message.placements.find((one) => one.path === path)
  assert(at, `${subject} lies in ${message.placements.map((one) => one.path).join(', ')}`)
  return { message, at }
}

function start(
  t: TestContext,
  capabilities: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Running> {
  return watchingAccounts(
    t,
    { capabilities, settings: { MAILROOM_FLAG_COMPARE: '300ms', MAILROOM_GONE_HOLD: '1s', ...settings } },
    ({ server }) => {
      fill(server, 'INBOX', 4)
      fill(server, 'Archive', 2, 'a')
    },
  )
}

/** A move that the sync has to make out by itself, on a slow machine. */
const patient = { MAILROOM_GONE_HOLD: '4s' }

/** Several polls, and the hold: whatever was to be told has been. */
async function quiet(running: Running): Promise<void> {
  running.server.append('ann', 'INBOX', letter('the end'))
  await until('the end', async () => (await running.story()).includes('received the end INBOX'))
  const from = performance.now()
  await until('the hold is over', () => performance.now() - from > 1300)
}

/** Where the mail of this subject lies by the index, and by the server. */
async function uids(running: Running, subject: string, path: string): Promise<readonly [number[], number[]]> {
  const { placements } = await running.message(subject)
  const { messages } = running.server.folder('ann', path)
  return [
    placements.filter((one) => one.path === path).map(({ uid }) => uid),
    messages.filter(({ raw }) => raw.includes(`Subject: ${subject}\r\n`)).map(({ uid }) => uid),
  ]
}

for (const [name, capabilities] of servers) {
  suite(`own writes, ${name}`, () => {
    test('flags, move, copy, append, remove: told when they answer, and once', async (t) => {
      const running = await start(t, capabilities)
      const { accounts } = running
      const archive = await running.folder('Archive')
      const told: string[] = []
      const tells = async (...story: string[]): Promise<void> => {
        told.push(...story)
        assert.deepEqual(await running.story(), told)
      }
      const one = await placed(running, 'm1', 'INBOX')
      const flags = await accounts.setFlags(one.message, one.at, { add: ['\\Seen', 'work'], remove: [] })
      assert.deepEqual(flags, ['\\Seen', 'work'])
      assert.deepEqual((await placed(running, 'm1', 'INBOX')).at.flags, ['\\Seen', 'work'])
      await tells('flags_changed m1 INBOX')
      const two = await placed(running, 'm2', 'INBOX')
      await accounts.move(two.message, two.at, archive)
      assert.deepEqual(
        (await running.message('m2')).placements.map((at) => at.path),
        ['Archive'],
      )
      await tells('folder_added m2 Archive', 'folder_removed m2 INBOX')
      const three = await placed(running, 'm3', 'INBOX')
      await accounts.copy(three.message, three.at, archive)
      assert.deepEqual((await running.message('m3')).placements.map((at) => at.path).sort(), ['Archive', 'INBOX'])
      await tells('folder_added m3 Archive')
      await accounts.append(archive, letterOf(letter('ours'), ['\\Seen']))
      assert.deepEqual(await running.subjects('Archive'), ['a1', 'a2', 'm2', 'm3', 'ours'])
      await tells('received ours Archive')
      await accounts.append(await running.folder('INBOX'), letterOf(letter('ours too')))
      assert.deepEqual(await running.subjects('INBOX'), ['m1', 'm3', 'm4', 'ours too'])
      await tells('received ours too INBOX')
      const four = await placed(running, 'm4', 'INBOX')
      await accounts.remove(four.message, null)
      assert.deepEqual((await running.store.messages.get(accountId, four.message.id))?.placements, [])
      await tells('deleted m4 INBOX')
      await quiet(running)
      await tells('received the end INBOX')
      assert.deepEqual(await running.subjects('INBOX'), ['m1', 'm3', 'ours too', 'the end'])
      assert.equal((await running.folder('INBOX')).counts.messages, 4)
      assert.equal(running.listener.changes.length, told.length, 'as many went to the streams')
    })

    test('the same flags again are no change; back and forth is told each time', async (t) => {
      const running = await start(t, capabilities)
      const set = async (add: string[], remove: string[]): Promise<readonly string[]> => {
        const { message, at } = await placed(running, 'm1', 'INBOX')
        return running.accounts.setFlags(message, at, { add, remove })
      }
      assert.deepEqual(await set([], ['\\Flagged']), [])
      for (let n = 0; n < 2; n += 1) assert.deepEqual(await set(['\\Flagged'], []), ['\\Flagged'])
      for (let n = 0; n < 2; n += 1) assert.deepEqual(await set([], ['\\Flagged']), [])
      await set(['\\Flagged'], [])
      await quiet(running)
      const flags = (await running.told()).filter(({ kind }) => kind === 'flags_changed').map((change) => change.flags)
      assert.deepEqual(flags, [['\\Flagged'], [], ['\\Flagged']])
      assert.equal((await running.told()).length, 4)
    })

    test('what others do to the same messages afterwards is told', async (t) => {
      const running = await start(t, capabilities)
      const { accounts, server } = running
      const archive = await running.folder('Archive')
      const one = await placed(running, 'm1', 'INBOX')
      const story = ['flags_changed m1 INBOX']
      await accounts.setFlags(one.message, one.at, { add: ['\\Seen'], remove: [] })
      for (const flags of [[], ['\\Seen']]) {
        server.setFlags('ann', 'INBOX', 1, flags)
        await running.tells((story.push('flags_changed m1 INBOX'), story))
      }
      const two = await placed(running, 'm2', 'INBOX')
      await accounts.move(two.message, two.at, archive)
      await quiet(running)
      story.push('folder_added m2 Archive', 'folder_removed m2 INBOX', 'received the end INBOX')
      const uid = server.folder('ann', 'Archive').messages.at(-1)?.uid ?? 0
      const back = moveOnServer(server, uid, 'Archive', 'INBOX')
      await running.tells((story.push('folder_added m2 INBOX', 'folder_removed m2 Archive'), story))
      moveOnServer(server, back, 'INBOX', 'Archive')
      await running.tells((story.push('folder_added m2 Archive', 'folder_removed m2 INBOX'), story))
    })
  })
}

test('a refusal is told to the caller alone; what others do then is told', async (t) => {
  const running = await start(t, fullCapabilities, patient)
  const { accounts, server } = running
  const one = await placed(running, 'm1', 'INBOX')
  server.hooks = { command: ({ name }) => (/STORE|MOVE|EXPUNGE/.test(name) ? { tagged: 'NO not today' } : undefined) }
  const refused = (error: unknown) => isAppError(error, 'server_refused') && error.message.includes('not today')
  await assert.rejects(accounts.setFlags(one.message, one.at, { add: ['\\Flagged'], remove: [] }), refused)
  await assert.rejects(accounts.move(one.message, one.at, await running.folder('Archive')), refused)
  await assert.rejects(accounts.remove(one.message, null), refused)
  server.hooks = {}
  assert.deepEqual((await running.message('m1')).placements, one.message.placements)
  assert.deepEqual(await running.story(), [])
  server.setFlags('ann', 'INBOX', 1, ['\\Flagged'])
  await running.tells(['flags_changed m1 INBOX'])
  moveOnServer(server, 1, 'INBOX', 'Archive')
  await running.tells(['flags_changed m1 INBOX', 'folder_added m1 Archive', 'folder_removed m1 INBOX'])
})

test('a removal that is refused half-way: the \\Deleted that stays is told', async (t) => {
  const running = await start(t, fullCapabilities)
  const { message } = await placed(running, 'm1', 'INBOX')
  running.server.hooks = { command: ({ name }) => (name === 'UID EXPUNGE' ? { tagged: 'NO not today' } : undefined) }
  await assert.rejects(running.accounts.remove(message, null), { code: 'server_refused' })
  await running.tells(['flags_changed m1 INBOX'])
  assert.deepEqual((await placed(running, 'm1', 'INBOX')).at.flags, ['\\Deleted'])
})

for (const [what, name] of [
  ['flags', 'UID STORE'],
  ['a move', 'UID MOVE'],
] as const) {
  test(`${what}: done, but the connection breaks before the answer: the sync tells, once`, async (t) => {
    const running = await start(t, fullCapabilities, patient)
    const { message, at } = await placed(running, 'm1', 'INBOX')
    const archive = await running.folder('Archive')
    running.server.hooks = {
      send(response, call) {
        if (call?.name !== name) return response
        setImmediate(() => running.server.dropConnections())
        return null
      },
    }
    const change = { add: ['\\Seen'], remove: [] }
    const { accounts } = running
    const written = what === 'flags' ? accounts.setFlags(message, at, change) : accounts.move(message, at, archive)
    await assert.rejects(written)
    running.server.hooks = {}
    const moved = ['folder_added m1 Archive', 'folder_removed m1 INBOX']
    const story = what === 'flags' ? ['flags_changed m1 INBOX'] : moved
    await running.tells(story)
    await quiet(running)
    await running.tells([...story, 'received the end INBOX'])
  })
}

test('a folder that was never opened: what we put there is told, and is not its history', async (t) => {
  const running = await openAccounts(t)
  const { accounts, server } = running
  fill(server, 'INBOX', 2)
  fill(server, 'Archive', 2, 'a')
  const isRefused = /SELECT "?Archive/
  server.hooks = { command: ({ text }) => (isRefused.test(text) ? { tagged: 'NO not now' } : undefined) }
  accounts.start(running.account)
  await until('refused', async () => (await running.folder('Archive')).failures >= 1)
  // As after the third refusal. The next session tries it once more.
  await running.store.folders.setParked((await running.folder('Archive')).id, 3, Date.now() + 3_600_000)
  server.dropConnections()
  await running.settled()
  assert.equal((await running.folder('Archive')).cursor, null)
  server.hooks = {}
  const { message, at } = await placed(running, 'm1', 'INBOX')
  await accounts.move(message, at, await running.folder('Archive'))
  assert.deepEqual(await running.story(), ['folder_added m1 Archive', 'folder_removed m1 INBOX'])
})

test('a folder that cannot be read after the move: held until the mail turns up there, and told as a move', async (t) => {
  const running = await start(t, servers[1]?.[1] ?? [], patient)
  const { accounts, server } = running
  const { message, at } = await placed(running, 'm1', 'INBOX')
  let refused = 0
  server.hooks = {
    // Once: a poll that is refused too would put the folder off.
    command: ({ text }) =>
      /SELECT "?Archive/.test(text) && (refused += 1) === 1 ? { tagged: 'NO not now' } : undefined,
  }
  await accounts.move(message, at, await running.folder('Archive'))
  assert.deepEqual(await running.subjects('INBOX'), ['m2', 'm3', 'm4'])
  assert(refused >= 1)
  const story = ['folder_added m1 Archive', 'folder_removed m1 INBOX']
  await running.tells(story)
  assert.deepEqual(await running.story(), story, 'its departure was held')
})

test('a mail that lies in the folder twice comes twice and leaves once', async (t) => {
  const running = await start(t, fullCapabilities)
  const { server, accounts } = running
  const [twin] = server.folder('ann', 'INBOX').messages
  assert(twin)
  server.append('ann', 'INBOX', twin.raw, [], new Date(twin.internalDate))
  await running.tells(['folder_added m1 INBOX'])
  const { message, at } = await placed(running, 'm1', 'INBOX')
  await accounts.move(message, at, await running.folder('Archive'))
  const moved = ['folder_added m1 Archive', 'folder_added m1 Archive', 'folder_removed m1 INBOX']
  assert.deepEqual((await running.story()).sort(), ['folder_added m1 INBOX', ...moved].sort())
  await quiet(running)
  assert.equal((await running.story()).length, 5)
  assert.deepEqual(...(await uids(running, 'm1', 'Archive')))
})

test('flags to add and flags to remove: two commands, and what is seen between them is not told', async (t) => {
  const running = await start(t, fullCapabilities)
  const { server, accounts } = running
  const { message, at } = await placed(running, 'm1', 'INBOX')
  await accounts.setFlags(message, at, { add: ['\\Flagged'], remove: [] })
  const [watcher] = server.connections
  const asked = () => server.log.filter(({ connection, line }) => connection === watcher?.id && line.startsWith('C: '))
  await until('it listens again', () => asked().at(-1)?.line.endsWith(' IDLE') === true)
  const before = asked().length
  let stores = 0
  server.hooks = {
    async send(response, call) {
      const isFirst = call?.name === 'UID STORE' && response.toString().startsWith(call.tag) && (stores += 1) === 1
      if (isFirst) await until('the watching connection hears of it', () => asked().length > before)
      return response
    },
  }
  assert.deepEqual(await accounts.setFlags(message, at, { add: ['\\Answered'], remove: ['\\Flagged'] }), ['\\Answered'])
  assert.equal(stores, 2)
  await quiet(running)
  const flags = (await running.told()).filter(({ kind }) => kind === 'flags_changed').map((change) => change.flags)
  assert.deepEqual(flags, [['\\Flagged'], ['\\Answered']])
})

suite('a server that names the wrong UID of a copy', () => {
  const copyUid = /COPYUID (\d+) (\d+) (\d+)/
  const names = (by: (validity: string, from: string, to: number) => string): Hooks => ({
    send: (response) =>
      response.toString('latin1').replace(copyUid, (_, validity: string, from: string, to: string) => {
        return `COPYUID ${by(validity, from, Number(to))}`
      }),
  })
  const wrong: readonly (readonly [string, Hooks])[] = [
    ['one that is never given', names((validity, from, to) => `${validity} ${from} ${to + 7}`)],
    ['that of older mail', names((validity, from) => `${validity} ${from} 1`)],
    ['that of the mail after it', names((validity, from, to) => `${validity} ${from} ${to + 1}`)],
    ['of another UIDVALIDITY', names((validity, from, to) => `${Number(validity) + 1} ${from} ${to}`)],
    ['zero', { send: replaced(copyUid, 'COPYUID $1 $2 0') }],
  ]
  for (const [what, hooks] of wrong) {
    test(`${what}: told once, and found where it is`, async (t) => {
      const running = await start(t, fullCapabilities)
      const { server, accounts } = running
      server.hooks = hooks
      const there = [
        ['m1', 'INBOX', 'Archive'],
        ['a1', 'Archive', 'INBOX'],
      ] as const
      const story: string[] = []
      for (const [subject, from, to] of there) {
        const { message, at } = await placed(running, subject, from)
        await accounts.move(message, at, await running.folder(to))
        server.append('ann', to, letter(`after ${subject}`))
        story.push(
          `folder_added ${subject} ${to}`,
          `folder_removed ${subject} ${from}`,
          `received after ${subject} ${to}`,
        )
      }
      await running.tells(story)
      await quiet(running)
      await running.tells([...story, 'received the end INBOX'])
      for (const [subject, , to] of there) {
        assert.deepEqual(...(await uids(running, subject, to)), subject)
        assert.deepEqual(...(await uids(running, `after ${subject}`, to)), `after ${subject}`)
      }
      assert.deepEqual(...(await uids(running, 'a2', 'Archive')))
      assert.deepEqual(...(await uids(running, 'm2', 'INBOX')))
      // a copy by another hand, later: news
      const [, [uid]] = await uids(running, 'm1', 'Archive')
      moveOnServer(server, uid ?? 0, 'Archive', 'Archive')
      await running.tells([...story, 'received the end INBOX', 'folder_added m1 Archive'])
    })
  }
})

test('a UID of another UIDVALIDITY is not believed: when the move answers, the message is where the server has it', async (t) => {
  const running = await start(t, fullCapabilities, { MAILROOM_FOLDER_POLL: '1h', MAILROOM_FOLDER_POLL_COLD: '1h' })
  running.server.hooks = {
    send: (response) =>
      response
        .toString('latin1')
        .replace(/COPYUID (\d+) (\d+) (\d+)/, (_, validity: string, from: string, to: string) => {
          return `COPYUID ${Number(validity) + 1} ${from} ${Number(to) + 7}`
        }),
  }
  const { message, at } = await placed(running, 'm1', 'INBOX')
  await running.accounts.move(message, at, await running.folder('Archive'))
  const [mine, theirs] = await uids(running, 'm1', 'Archive')
  assert.deepEqual([mine, theirs], [[3], [3]])
  assert.deepEqual(await running.story(), ['folder_added m1 Archive', 'folder_removed m1 INBOX'])
})

test('an answer to STORE without MODSEQ: counts of unread mail follow all the same', async (t) => {
  const running = await start(t, fullCapabilities)
  running.server.hooks = {
    send: (response, call) =>
      call?.name === 'UID STORE' ? response.toString().replace(/ MODSEQ \(\d+\)/, '') : response,
  }
  for (const [add, remove, unseen] of [
    [['\\Seen'], [], 3],
    [[], ['\\Seen'], 4],
  ] as const) {
    const { message, at } = await placed(running, 'm1', 'INBOX')
    await running.accounts.setFlags(message, at, { add, remove })
    assert.equal((await running.folder('INBOX')).counts.unseen, unseen)
  }
})
