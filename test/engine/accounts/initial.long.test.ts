/** The initial sync: INBOX first, newest first, in bounded batches, resumable, and nothing told of what is history. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { backfillFirst, backfillOpened } from '../../../engine/accounts/background.ts'
import { fullCapabilities } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { fill, letter, openStage, writing } from './stage.ts'
import { openAccounts, watchingAccounts } from './running.ts'

test('history is read whole, newest first, in batches, and told to nobody', async (t) => {
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '10' } })
  fill(stage.server, 'INBOX', 35)
  fill(stage.server, 'Archive', 5, 'a')
  const worker = await stage.work()
  await worker.readAll()
  assert.equal((await stage.subjects('INBOX')).length, 35)
  assert.equal((await stage.subjects('Archive')).length, 5)
  assert.deepEqual(await stage.told(), [])
  const inbox = await stage.folder('INBOX')
  assert.equal(inbox.cursor?.backfillBelow, 0)
  assert.equal(inbox.messages, 35)
  const fetched = stage.server.log.flatMap(
    ({ line }) => /UID FETCH (\S+) \(UID FLAGS INTERNALDATE/.exec(line)?.[1] ?? [],
  )
  const inboxFetches = fetched.filter((range) => /^\d+:\d+$/.test(range)).slice(0, 3)
  assert.deepEqual(inboxFetches, ['26:35', '16:25', '6:15'])
})

test('the first page is the newest and there before the rest', async (t) => {
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '10' } })
  fill(stage.server, 'INBOX', 25)
  const { context, catchUp } = await stage.work()
  await catchUp('INBOX')
  await backfillFirst({ ...context, folderId: (await stage.folder('INBOX')).id })
  assert.deepEqual(await stage.subjects('INBOX'), [
    'm16',
    'm17',
    'm18',
    'm19',
    'm20',
    'm21',
    'm22',
    'm23',
    'm24',
    'm25',
  ])
  assert.equal((await stage.folder('INBOX')).cursor?.backfillBelow, 16)
})

test('after a page of INBOX that took long the next ones are shorter, for all accounts of the host', async (t) => {
  let now = Date.now()
  const running = await openAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '100' }, now: () => now })
  fill(running.server, 'INBOX', 400)
  const asked: number[] = []
  running.server.hooks = {
    command: ({ text }) => {
      const [, from, to] = /UID FETCH (\d+):(\d+) \(UID FLAGS INTERNALDATE/.exec(text) ?? []
      if (to === undefined) return undefined
      asked.push(Number(to) - Number(from) + 1)
      now += asked.length < 4 ? 1500 : 100
      return undefined
    },
  }
  running.accounts.start(running.account)
  await running.settled()
  // The first page comes before the account is watched.
  assert.deepEqual(asked, [100, 100, 50, 25, 50, 75])
  assert.equal((await running.subjects('INBOX')).length, 400)
})

test('dropped in the middle, it goes on where it was; live mail meanwhile is told once, history never', async (t) => {
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '10' } })
  fill(stage.server, 'INBOX', 45)
  const first = await stage.work()
  await first.catchUp('INBOX')
  const inbox = { ...first.context, folderId: (await stage.folder('INBOX')).id }
  for (let pages = 0; pages < 2; pages += 1) await backfillOpened(inbox, 10)
  stage.server.dropConnections()
  await assert.rejects(backfillOpened(inbox, 10))
  assert.equal((await stage.subjects('INBOX')).length, 20)
  stage.server.append('ann', 'INBOX', letter('live1'))
  const second = await stage.work()
  stage.server.append('ann', 'INBOX', letter('live2'))
  await second.readAll()
  assert.equal((await stage.subjects('INBOX')).length, 47)
  assert.deepEqual(await stage.story(), ['received live1 INBOX', 'received live2 INBOX'])
  const asked = stage.server.log.filter(({ line }) => /UID FETCH \d+:\d+ \(UID FLAGS INTERNALDATE/.test(line))
  assert.equal(new Set(asked.map(({ line }) => /UID FETCH (\S+)/.exec(line)?.[1])).size, asked.length, 'no page twice')
})

test('an empty mailbox, then its first message', async (t) => {
  const stage = await openStage(t)
  const worker = await stage.work()
  await worker.readAll()
  stage.server.append('ann', 'INBOX', letter('first'))
  await worker.catchUp('INBOX')
  assert.deepEqual(await stage.story(), ['received first INBOX'])
})

test('10,000 messages: bounded batches, all of them once', async (t) => {
  const sizes: number[] = []
  const stage = await openStage(t, {
    settings: { MAILROOM_SYNC_BATCH: '500' },
    wrap: writing((batch, write) => {
      sizes.push(batch.added.length)
      return write()
    }),
  })
  fill(stage.server, 'INBOX', 10_000)
  const worker = await stage.work()
  await worker.readAll()
  assert.equal(await stage.store.messages.count(stage.account.id), 10_000)
  assert.equal(Math.max(...sizes), 500)
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    10_000,
  )
  assert.deepEqual(await stage.told(), [])
})

test('a long absence: 700 new messages are read page by page, each told once, in order', async (t) => {
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '100' } })
  fill(stage.server, 'INBOX', 3)
  await (await stage.work()).readAll()
  fill(stage.server, 'INBOX', 700, 'n')
  await (await stage.work()).readAll()
  const story = await stage.story()
  assert.deepEqual(
    story,
    Array.from({ length: 700 }, (_, index) => `received n${index + 1} INBOX`),
  )
  assert.equal((await stage.folder('INBOX')).cursor?.exists, 703)
})

test('the account answers with the newest page while the rest is still being read', async (t) => {
  const running = await openAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '10', MAILROOM_BACKFILL_PAUSE: '10s' } })
  fill(running.server, 'INBOX', 45)
  running.accounts.start(running.account)
  await running.tagged('watching')
  const subjects = await running.subjects('INBOX')
  assert.deepEqual(subjects.slice(-10), ['m36', 'm37', 'm38', 'm39', 'm40', 'm41', 'm42', 'm43', 'm44', 'm45'])
  assert.equal((await running.record()).resume.initialSyncAt, null)
  running.server.append('ann', 'INBOX', letter('live'))
  await running.tells(['received live INBOX'])
  assert((await running.subjects('INBOX')).length < 45)
})

test('an account is read over one connection', async (t) => {
  const settings = { MAILROOM_SYNC_BATCH: '5' }
  const { server, subjects } = await watchingAccounts(t, { settings }, (stage) => {
    fill(stage.server, 'INBOX', 30)
    fill(stage.server, 'Archive', 30)
  })
  for (const path of ['INBOX', 'Archive']) assert.equal((await subjects(path)).length, 30)
  assert.equal(new Set(server.log.map(({ connection }) => connection)).size, 1)
  const idles = server.log.filter(({ line }) => /^C: \S+ IDLE/.test(line)).length
  assert(idles < 3, `IDLE was entered ${idles} times between pages`)
})

test('new mail that a server tells of only when asked is read between pages of old mail', async (t) => {
  const polls = { MAILROOM_INBOX_POLL: '1h', MAILROOM_FOLDER_POLL: '1h' }
  const running = await openAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '2', ...polls } })
  const { server } = running
  fill(server, 'INBOX', 40)
  let last = ''
  server.hooks = {
    command({ name }) {
      last = name
      return undefined
    },
    deaf: () => last.startsWith('UID ') || last === 'IDLE',
    async send(response, call) {
      if (call?.name === 'UID FETCH' && response.includes(`${call.tag} OK`)) await pause(100)
      return response
    },
  }
  running.accounts.start(running.account)
  await running.tagged('watching')
  server.append('ann', 'INBOX', letter('live'))
  await running.tells(['received live INBOX'])
  await running.settled()
  const read = server.log.flatMap(({ line }) => /UID FETCH (\S+) \(UID FLAGS INTERNALDATE/.exec(line)?.[1] ?? [])
  assert(read.indexOf('40:*') < read.indexOf('1:2'), read.join(' '))
})

for (const [name, capabilities] of [
  ['NOTIFY', [...fullCapabilities, 'NOTIFY']],
  ['IDLE and CONDSTORE', fullCapabilities],
  ['IDLE alone', ['IMAP4rev1', 'IDLE']],
] as const)
  test(`mail and flags of INBOX while another folder is back-filled, where there is ${name}`, async (t) => {
    const polls = { MAILROOM_INBOX_POLL: '1h', MAILROOM_FOLDER_POLL: '1h' }
    const running = await openAccounts(t, { capabilities, settings: { MAILROOM_SYNC_BATCH: '2', ...polls } })
    const { server, subjects, story } = running
    fill(server, 'INBOX', 1)
    fill(server, 'Archive', 200, 'a')
    server.hooks = {
      async send(response, call) {
        if (call?.name === 'UID FETCH' && call.folder?.name === 'Archive' && response.includes(`${call.tag} OK`))
          await pause(50)
        return response
      },
    }
    running.accounts.start(running.account)
    await until('it is under way', async () => (await subjects('Archive')).length > 2)
    server.append('ann', 'INBOX', letter('live'))
    server.setFlags('ann', 'INBOX', 1, ['\\Seen'])
    await until('both are told', async () => (await story()).length === 2)
    assert.deepEqual((await story()).sort(), ['flags_changed m1 INBOX', 'received live INBOX'])
    assert((await subjects('Archive')).length < 200)
    await running.settled()
    assert.equal((await subjects('Archive')).length, 200)
    assert.equal((await story()).length, 2)
  })

test('a page of old mail that takes too long ends the session, and the account says so', async (t) => {
  const settings = { MAILROOM_SYNC_BATCH: '20', MAILROOM_COMMAND_TIMEOUT: '1s', MAILROOM_BACKOFF_FIRST: '100ms' }
  const running = await openAccounts(t, { settings })
  fill(running.server, 'INBOX', 40)
  running.server.hooks = {
    async send(response, call) {
      if (call?.text.includes('UID FETCH 1:20 ') === true) await pause(150)
      return response
    },
  }
  running.accounts.start(running.account)
  const failure = () => running.accounts.view(running.account.id)?.lastError?.message ?? ''
  await until('the reason', () => failure().includes('gives old mail too slowly'), { explain: failure })
})
