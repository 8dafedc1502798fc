/** What the watching session reads besides INBOX: in whose name, what holds it up, and what is read before a poll. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { backfillFirst, createBackground, createTraffic, type Traffic } from '../../../engine/accounts/background.ts'
import { createHosts } from '../../../engine/accounts/hosts.ts'
import type { SyncContext } from '../../../engine/accounts/write.ts'
import { type Asked, createFairQueue, type FairQueue } from '../../../engine/fair-queue.ts'
import { silentLogger } from '../../../engine/observe/log.ts'
import { pause } from '../../../engine/scheduling.ts'
import { fullCapabilities, type Hooks } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { watchingAccounts } from './running.ts'
import { accountId, fill, letter, openStage } from './stage.ts'

const count = 5
const host = createHosts(Date.now).of('mail.example.com')

type Queue = Pick<FairQueue, 'run'>

interface Options {
  readonly backfilling?: Queue
  readonly onComplete?: () => Promise<void>
  readonly traffic?: Traffic
}

/** What the watching session does, but for INBOX. Answers how to stop. */
function reading(context: SyncContext, options: Options = {}) {
  const { backfilling, onComplete = () => Promise.resolve(), traffic = createTraffic(Date.now) } = options
  const places = backfilling ?? createFairQueue({ places: 1, deadlineMs: 5000, late: 'too slow' })
  const stop = new AbortController()
  const wanted = { host, backfilling: places, onComplete, traffic }
  const background = createBackground(context, wanted, () => undefined, stop.signal)
  const loop = async (): Promise<void> => {
    while (!stop.signal.aborted) if (!(await background.work())) await pause(10, stop.signal)
  }
  const running = loop()
  return async (): Promise<void> => {
    stop.abort()
    await running
  }
}

test('each page of old mail has a place, which the account asks for in its own name', async (t) => {
  const user = { folders: { INBOX: [], Archive: [] } }
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '1' }, user })
  for (let n = 1; n <= count; n += 1) stage.server.append('ann', 'Archive', letter(`old ${n}`))
  const { context, catchUp } = await stage.work()
  for (const path of ['INBOX', 'Archive']) await catchUp(path)
  const asked: Asked[] = []
  const queue = createFairQueue({ places: 1, deadlineMs: 5000, late: 'too slow' })
  const backfilling: Queue = {
    run(who, work, signal) {
      asked.push(who)
      return queue.run(who, work, signal)
    },
  }
  const done = Promise.withResolvers<null>()
  const onComplete = (): Promise<void> => {
    done.resolve(null)
    return Promise.resolve()
  }
  const stop = reading(context, { backfilling, onComplete })
  await done.promise
  await stop()
  assert.deepEqual(await stage.subjects('Archive'), ['old 1', 'old 2', 'old 3', 'old 4', 'old 5'])
  const own = { developerId: 'c'.repeat(24), key: accountId, urgent: false }
  assert.deepEqual(
    asked,
    Array.from({ length: count }, () => own),
  )
})

test('a place that comes when nothing is left to read is given back', async (t) => {
  const stage = await openStage(t)
  fill(stage.server, 'Archive', 1)
  const { context, state, catchUp, readAll } = await stage.work()
  for (const path of state.folders.values().map((folder) => folder.path)) await catchUp(path)
  const given = Promise.withResolvers<unknown>()
  const backfilling: Queue = {
    async run(_who, work) {
      await readAll()
      const answer = await work(new AbortController().signal)
      given.resolve(null)
      return answer
    },
  }
  const stop = reading(context, { backfilling })
  await given.promise
  await stop()
})

test('how far the old mail is read stands in the log, once a minute', async (t) => {
  let late = 0
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '1' }, now: () => Date.now() + late })
  fill(stage.server, 'INBOX', count)
  const { context, catchUp } = await stage.work()
  await catchUp('INBOX')
  const lines: object[] = []
  const log = { ...silentLogger, info: (fields: object) => void lines.push(fields) }
  const queue = createFairQueue({ places: 1, deadlineMs: 5000, late: 'too slow' })
  const backfilling: Queue = {
    run(who, work, signal) {
      late += 40_000
      return queue.run(who, work, signal)
    },
  }
  const stop = reading({ ...context, deps: { ...context.deps, log } }, { backfilling })
  await until('all is read', async () => (await stage.folder('INBOX')).completeAt !== null)
  await stop()
  assert.deepEqual(
    lines.map((line) => ({ ...line, secondsLeft: 0 })),
    [
      { accountId, read: 2, total: count, perSecond: 0.05, secondsLeft: 0 },
      { accountId, read: 4, total: count, perSecond: 0.033, secondsLeft: 0 },
    ],
  )
})

suite('on Gmail, whose messages lie in All Mail and under each label', () => {
  const capabilities = [...fullCapabilities, 'X-GM-EXT-1']
  const user = { folders: { INBOX: [], All: ['\\All'], Work: [] } }

  test('the headers of a message are read once', async (t) => {
    const stage = await openStage(t, { capabilities, user })
    fill(stage.server, 'All', count)
    for (const path of ['INBOX', 'Work'])
      for (let uid = 1; uid <= count; uid += 1) stage.server.copy('ann', 'All', uid, path)
    fill(stage.server, 'Work', 1, 'own')
    const headers: string[] = []
    stage.server.hooks = {
      send(response) {
        headers.push(...(response.toString().match(/^Subject: .*$/gm) ?? []))
        return response
      },
    }
    await (await stage.work()).readAll()
    assert.equal(headers.length, count + 1)
    for (const path of ['INBOX', 'All']) assert.equal((await stage.subjects(path)).length, count)
    assert.equal((await stage.subjects('Work')).length, count + 1)
    assert.equal((await stage.message('m1')).placements.length, 3)
    assert.deepEqual(await stage.story(), [])
  })

  for (const status of ['NO', 'BAD'])
    test(`a server that refuses to tell the ids (${status}): each folder is read whole`, async (t) => {
      const command: Hooks['command'] = ({ text }) =>
        / UID FETCH \S+ \(UID FLAGS MODSEQ X-GM-MSGID\)/.test(text) ? { tagged: `${status} no ids` } : undefined
      const stage = await openStage(t, { capabilities, user, hooks: { command } })
      for (const path of ['All', 'Work']) fill(stage.server, path, count)
      const { session, readAll } = await stage.work()
      await readAll()
      assert.equal((await stage.subjects('Work')).length, count)
      assert.equal(session.capabilities.condstore, true)
    })

  test('a connection that was closed still tells how many bytes came', async (t) => {
    const stage = await openStage(t, { capabilities, user })
    const { session } = await stage.work()
    session.end(null)
    assert(session.received > 100)
  })

  test('no more bytes of old mail are read in a day than Gmail gives', async (t) => {
    let now = 1_700_000_000_000
    const settings = { MAILROOM_SYNC_BATCH: '1' }
    const stage = await openStage(t, { capabilities, user, settings, now: () => now })
    fill(stage.server, 'All', count)
    const { context, catchUp } = await stage.work()
    for (const path of ['INBOX', 'All', 'Work']) await catchUp(path)
    const traffic = createTraffic(() => now)
    assert.equal(traffic.count(999_999_000), 0)
    const stop = reading(context, { traffic })
    const read = () => stage.subjects('All')
    await until('a page', async () => (await read()).length > 0)
    await pause(100, new AbortController().signal)
    const first = (await read()).length
    now += 86_400_000
    await until('the next day', async () => (await read()).length === count)
    await stop()
    assert(first < count)
  })
})

suite('a folder that is refused, and whether completion waits for it', () => {
  const start = 1_700_000_000_000

  /**
   * One message of Archive is read; to search for the others is refused, as often as this. `opening`: nothing is read,
   * and the first opening is refused.
   */
  async function openRefused(t: TestContext, refusals: number, opening = false) {
    let now = start
    const user = { folders: { INBOX: [], Archive: [] } }
    const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '1' }, user, now: () => now })
    fill(stage.server, 'Archive', count)
    const { state, context, catchUp } = await stage.work()
    await catchUp('INBOX')
    if (!opening) {
      await catchUp('Archive')
      await backfillFirst({ ...context, folderId: (await stage.folder('Archive')).id })
    }
    assert.equal((await stage.subjects('Archive')).length, opening ? 0 : 1)
    let left = refusals
    const refused = opening ? /SELECT "?Archive/ : /UID SEARCH/
    stage.server.hooks = {
      command: ({ text }) => (refused.test(text) && left-- > 0 ? { tagged: 'NO [INUSE] later' } : undefined),
    }
    return {
      state,
      folder: () => stage.folder('Archive'),
      /** Waits for this refusal, and until it is due again. */
      async refused(failures: number) {
        await until('refused', async () => (await stage.folder('Archive')).failures === failures)
        now = start + failures * 20_000
        state.moved.found([])
      },
      /** Answers how many messages were read when it was complete. */
      async complete(meanwhile: () => Promise<void>): Promise<number> {
        const done = Promise.withResolvers<number>()
        const onComplete = async (): Promise<void> => done.resolve((await stage.subjects('Archive')).length)
        const stop = reading(context, { onComplete })
        await meanwhile()
        const read = await done.promise
        await stop()
        return read
      },
    }
  }

  for (const opening of [false, true])
    test(`it does when the folder is refused for a moment${opening ? ', also at its first opening' : ''}`, async (t) => {
      const { complete, refused } = await openRefused(t, 1, opening)
      assert.equal(await complete(() => refused(1)), count)
    })

  test('it does not once the folder is parked: at the third refusal, or where the server asks us to slow down', async (t) => {
    for (const opening of [false, true]) {
      const { complete, refused } = await openRefused(t, Number.POSITIVE_INFINITY, opening)
      const thrice = async (): Promise<void> => {
        for (const failures of [1, 2, 3]) await refused(failures)
      }
      assert.equal(await complete(thrice), opening ? 0 : 1)
    }
    const slowed = await openRefused(t, 0)
    slowed.state.change((await slowed.folder()).id, { failures: 1, parkedUntil: start + 6 * 3_600_000 })
    assert.equal(await slowed.complete(() => Promise.resolve()), 1)
  })
})

suite('what is read at once, not at the next poll', () => {
  test('a folder that moved, while the back-fill of another waits for its place', async (t) => {
    const stage = await openStage(t, { user: { folders: { INBOX: [], Archive: [], Old: [] } } })
    fill(stage.server, 'Old', 3)
    const { state, context, catchUp } = await stage.work()
    for (const path of ['INBOX', 'Archive', 'Old']) await catchUp(path)
    const asked = Promise.withResolvers<undefined>()
    const taken: Queue = {
      run: (_who, _work, signal) =>
        new Promise((_resolve, reject) => {
          asked.resolve(undefined)
          signal?.addEventListener('abort', () => reject(new Error('ended')))
        }),
    }
    const stop = reading(context, { backfilling: taken })
    await asked.promise
    stage.server.append('ann', 'Archive', letter('new'))
    state.moved.found(['Archive'])
    await until('read', async () => (await stage.subjects('Archive')).length === 1)
    await stop()
  })

  const noPoll = { MAILROOM_FOLDER_POLL: '1h', MAILROOM_FOLDER_LIST: '1h' }

  test('a folder of another program that a command finds in the list', async (t) => {
    const running = await watchingAccounts(t, { settings: noPoll })
    running.server.createFolder('ann', '`')
    running.server.append('ann', '`', letter('from before'))
    await running.accounts.refreshFolders(accountId)
    await until('read to its end', async () => (await running.folder('`')).cursor?.backfillBelow === 0)
    assert.deepEqual(await running.subjects('`'), ['from before'])
  })

  test('flags that only the count of unread mail shows, of which a command learns', async (t) => {
    const capabilities = fullCapabilities.filter((name) => name !== 'CONDSTORE')
    const running = await watchingAccounts(t, { settings: noPoll, capabilities }, ({ server }) =>
      fill(server, 'Archive', 1),
    )
    running.server.setFlags('ann', 'Archive', 1, ['\\Seen'])
    await running.accounts.refreshFolders(accountId)
    await until('seen', async () => (await running.message('m1')).placements[0]?.flags.includes('\\Seen'))
  })

  test('the mail of a folder that a command finds numbered anew', async (t) => {
    const running = await watchingAccounts(t, { settings: noPoll }, ({ server }) => fill(server, 'Archive', 3))
    running.server.renumber('ann', 'Archive')
    await running.accounts.syncFolder(accountId, 'Archive')
    await until('read to its end', async () => (await running.folder('Archive')).cursor?.backfillBelow === 0)
  })

  test('a folder that was refused, when the wait is over', async (t) => {
    const stage = await openStage(t, { user: { folders: { INBOX: [], Archive: [] } } })
    stage.server.append('ann', 'Archive', letter('old'))
    const { state, context, catchUp } = await stage.work()
    await catchUp('INBOX')
    state.change((await stage.folder('Archive')).id, { failures: 1, parkedUntil: Date.now() + 300 })
    const stop = reading(context)
    await until('read', async () => (await stage.subjects('Archive')).length === 1)
    await stop()
  })
})
