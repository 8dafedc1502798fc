/**
 * What goes by itself, in small steps, now and then: rows that have been kept long enough, and what is left of things
 * that are gone. Nonces and connect tokens are not here: each store lets them go by their own date.
 */
import { removeOrphans } from './accounts/start.ts'
import type { Config } from './config.ts'
import type { Logger } from './observe/log.ts'
import type { Store } from './store/port.ts'

const everyMs = 10 * 60_000
const step = 1000
const stepsPerRun = 50

interface Deps {
  readonly store: Store
  readonly config: Config
  readonly log: Logger
}

export function startRetention(deps: Deps): () => void {
  let running = false
  let orphansAfter: string | null = null
  async function run(): Promise<void> {
    if (running) return
    running = true
    await sweepAll(deps)
    orphansAfter = await tidyUp(deps, orphansAfter)
    running = false
  }
  const timer = setInterval(() => void run(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** Never rejects. */
async function sweepAll({ store, config, log }: Deps): Promise<void> {
  const kept = [
    ['changes', store.changes, config.MAILROOM_CHANGE_RETENTION],
    ['deliveries', store.outbox, config.MAILROOM_DELIVERY_RETENTION],
    ['calls', store.calls, config.MAILROOM_CALL_LOG_RETENTION],
  ] as const
  try {
    for (const [what, { expire }, keepMs] of kept) {
      const rows = await sweep(expire, keepMs)
      if (rows > 0) log.info({ what, rows }, 'retention')
    }
  } catch (error) {
    log.warn({ err: error }, 'retention stopped early; it goes on at the next round')
  }
}

/** Never rejects. Answers where it goes on with the accounts, a page at a time. */
async function tidyUp({ store, log }: Deps, after: string | null): Promise<string | null> {
  try {
    const rows = await store.tidy()
    const { orphans, next } = await removeOrphans(store, after, Date.now())
    if (rows + orphans > 0) log.info({ rows, accounts: orphans }, 'tidied up')
    return next
  } catch (error) {
    log.warn({ err: error }, 'tidying up stopped early; it goes on at the next round')
    return after
  }
}

/** `expire` removes rows from before a time, at most `limit`, and answers how many. */
async function sweep(expire: (before: number, limit: number) => Promise<number>, keepMs: number): Promise<number> {
  let gone = 0
  for (let run = 0; run < stepsPerRun; run += 1) {
    const count = await expire(Date.now() - keepMs, step)
    gone += count
    if (count < step) break
  }
  return gone
}
