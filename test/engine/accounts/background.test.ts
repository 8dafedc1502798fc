/** Back-fill in turns: what an account asks for, what counts as progress, and when its turn is over. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createBackground } from '../../../engine/accounts/background.ts'
import { createLink } from '../../../engine/accounts/link.ts'
import { createLoans, type Loans } from '../../../engine/loans.ts'
import type { Asked } from '../../../engine/turns.ts'
import { mail } from '../../support/mail.ts'
import { openTest } from '../../support/imap-server/session.ts'
import { accountId, openStage } from './stage.ts'

const count = 5

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
  let progress = 0
  const loans = createLoans({ places: 1, lendMs: 5000, progressMs: 0, ended: 'too slow' })
  const watched: Loans = {
    waiting,
    async run(who, work, wanted) {
      asked.push(who)
      const counted = loans.run(who, (loan) => work({ ...loan, progress: () => void (progress += 1) }), wanted)
      return counted.finally(() => (now += batchMs))
    },
  }
  const link = createLink({
    login: () => openTest(t, stage.server, { auth: { password: 'secret' } }),
    idleCloseMs: 5000,
    waitMs: 2000,
  })
  const done = Promise.withResolvers<undefined>()
  const stop = new AbortController()
  const onComplete = (): Promise<void> => {
    done.resolve(undefined)
    return Promise.resolve()
  }
  const background = createBackground({ sync: stage.deps, state, link, backfilling: watched, onComplete })
  const running = background.run(stop.signal)
  await Promise.race([done.promise, running])
  stop.abort()
  await Promise.all([running, link.close()])
  assert.deepEqual(await stage.subjects('Archive'), ['old 1', 'old 2', 'old 3', 'old 4', 'old 5'])
  return { asked, progress, searches: stage.server.log.filter(({ line }) => /^C: .*UID SEARCH/.test(line)).length }
}

suite('back-fill in turns', () => {
  test('an account asks in its own name, goes on before others during its turn, and each message is progress', async (t) => {
    const { asked, progress } = await backfilled(t, { batchMs: 100, waiting: 1 })
    assert(asked.every(({ key, developerId }) => key === accountId && developerId === 'c'.repeat(24)))
    assert.deepEqual(
      asked.map(({ urgent }) => urgent),
      [false, ...Array.from({ length: asked.length - 1 }, () => true)],
    )
    assert.equal(progress, count)
  })

  test('its turn is over after 30 s while others wait, and only then', async (t) => {
    const shared = await backfilled(t, { batchMs: 16_000, waiting: 1 })
    assert(shared.asked.filter(({ urgent }) => !urgent).length >= 3, JSON.stringify(shared.asked))
    const alone = await backfilled(t, { batchMs: 16_000, waiting: 0 })
    assert(alone.searches < shared.searches, `${alone.searches} searches alone, ${shared.searches} with others`)
  })
})
