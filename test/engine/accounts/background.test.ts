/**
 * Back-fill in turns: what an account asks for, what counts as progress, and when its turn is over. And what is read
 * before the next poll.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { backfillFirst, createBackground } from '../../../engine/accounts/background.ts'
import { createHosts } from '../../../engine/accounts/hosts.ts'
import { createLink, type Link } from '../../../engine/accounts/link.ts'
import { type Asked, createFairQueue, type FairQueue } from '../../../engine/fair-queue.ts'
import { mail } from '../../support/mail.ts'
import { fullCapabilities } from '../../support/imap-server/index.ts'
import { openTest } from '../../support/imap-server/session.ts'
import { until } from '../../support/until.ts'
import { watchingAccounts } from './running.ts'
import { accountId, fill, letter, openStage, type Stage } from './stage.ts'

const count = 5
const host = createHosts().of('mail.example.com')

/** The connection for commands. */
function linkTo(t: TestContext, { server }: Stage): Link {
  return createLink({
    login: () => openTest(t, server, { auth: { password: 'secret' } }),
    idleCloseMs: 5000,
    waitMs: 2000,
  })
}

/** Reads the old mail of a folder in batches of one; `batchMs` pass on the clock with each. */
async function backfilled(
  t: TestContext,
  { batchMs, waiting }: { readonly batchMs: number; readonly waiting: number },
) {
  let now = Date.now()
  const user = { folders: { INBOX: [], Archive: [] } }
  const stage = await openStage(t, { settings: { MAILROOM_SYNC_BATCH: '1' }, user, now: () => now })
  for (let n = 1; n <= count; n += 1) stage.server.append('ann', 'Archive', mail({ to: 'ann', subject: `old ${n}` }))
  const { state, catchUp } = await stage.work()
  await catchUp('INBOX')
  await catchUp('Archive')
  const asked: Asked[] = []
  const queue = createFairQueue({ places: 1, deadlineMs: 5000, late: 'too slow' })
  const watched: FairQueue = {
    waiting,
    developers: 1,
    async run(who, work, signal) {
      asked.push(who)
      return queue.run(who, work, signal).finally(() => (now += batchMs))
    },
  }
  const link = linkTo(t, stage)
  const done = Promise.withResolvers<undefined>()
  const stop = new AbortController()
  const onComplete = (): Promise<void> => {
    done.resolve(undefined)
    return Promise.resolve()
  }
  const background = createBackground({ sync: stage.deps, state, link, host, backfilling: watched, onComplete })
  const running = background(stop.signal)
  await Promise.race([done.promise, running])
  stop.abort()
  await Promise.all([running, link.close()])
  assert.deepEqual(await stage.subjects('Archive'), ['old 1', 'old 2', 'old 3', 'old 4', 'old 5'])
  return { asked, searches: stage.server.log.filter(({ line }) => /^C: .*UID SEARCH/.test(line)).length }
}

suite('back-fill in turns', () => {
  test('an account asks in its own name, and goes on before others during its turn', async (t) => {
    const { asked } = await backfilled(t, { batchMs: 100, waiting: 1 })
    assert(asked.every(({ key, developerId }) => key === accountId && developerId === 'c'.repeat(24)))
    assert.deepEqual(
      asked.map(({ urgent }) => urgent),
      [false, ...Array.from({ length: asked.length - 1 }, () => true)],
    )
  })

  test('its turn is over after 30 s while others wait, and only then', async (t) => {
    const shared = await backfilled(t, { batchMs: 16_000, waiting: 1 })
    assert(shared.asked.filter(({ urgent }) => !urgent).length >= 3, JSON.stringify(shared.asked))
    const alone = await backfilled(t, { batchMs: 16_000, waiting: 0 })
    assert(alone.searches < shared.searches, `${alone.searches} searches alone, ${shared.searches} with others`)
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
        const link = linkTo(t, stage)
        const backfilling = createFairQueue({ places: 1, deadlineMs: 5000, late: 'too slow' })
        const done = Promise.withResolvers<number>()
        const onComplete = async (): Promise<void> => done.resolve((await stage.subjects('Archive')).length)
        const stop = new AbortController()
        const running = createBackground({ sync: stage.deps, state, link, host, backfilling, onComplete })(stop.signal)
        await meanwhile()
        const read = await done.promise
        stop.abort()
        await Promise.all([running, link.close()])
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
    const { state, catchUp } = await stage.work()
    for (const path of ['INBOX', 'Archive', 'Old']) await catchUp(path)
    const link = linkTo(t, stage)
    const asked = Promise.withResolvers<undefined>()
    const taken: FairQueue = {
      waiting: 1,
      developers: 1,
      run: (_who, _work, signal) =>
        new Promise((_resolve, reject) => {
          asked.resolve(undefined)
          signal?.addEventListener('abort', () => reject(new Error('ended')))
        }),
    }
    const onComplete = (): Promise<void> => Promise.resolve()
    const stop = new AbortController()
    const running = createBackground({ sync: stage.deps, state, link, host, backfilling: taken, onComplete })(
      stop.signal,
    )
    await asked.promise
    stage.server.append('ann', 'Archive', letter('new'))
    state.moved.found(['Archive'])
    await until('read', async () => (await stage.subjects('Archive')).length === 1)
    stop.abort()
    await Promise.all([running, link.close()])
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
    const { state, catchUp } = await stage.work()
    await catchUp('INBOX')
    state.change((await stage.folder('Archive')).id, { failures: 1, parkedUntil: Date.now() + 300 })
    const link = linkTo(t, stage)
    const backfilling = createFairQueue({ places: 1, deadlineMs: 5000, late: 'too slow' })
    const onComplete = (): Promise<void> => Promise.resolve()
    const stop = new AbortController()
    const running = createBackground({ sync: stage.deps, state, link, host, backfilling, onComplete })(stop.signal)
    await until('read', async () => (await stage.subjects('Archive')).length === 1)
    stop.abort()
    await Promise.all([running, link.close()])
  })
})

test('a batch that is being stored when all is read is stored before that is told', async (t) => {
  const stage = await openStage(t)
  const { state, readAll } = await stage.work()
  await readAll()
  const steps: string[] = []
  const stored = state.exclusive(async () => {
    await turn()
    steps.push('stored')
  })
  const told = Promise.withResolvers<null>()
  const onComplete = (): Promise<void> => {
    steps.push('told')
    told.resolve(null)
    return Promise.resolve()
  }
  const link = linkTo(t, stage)
  const backfilling = createFairQueue({ places: 1, deadlineMs: 5000, late: 'too slow' })
  const stop = new AbortController()
  const running = createBackground({ sync: stage.deps, state, link, host, backfilling, onComplete })(stop.signal)
  await Promise.all([stored, told.promise])
  stop.abort()
  await Promise.all([running, link.close()])
  assert.deepEqual(steps, ['stored', 'told'])
})
