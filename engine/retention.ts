/** Retention: what has been kept long enough goes, in small steps, now and then. Stores with TTL indexes have less to do here. */
import type { Config } from './config.ts'
import type { Logger } from './observe/log.ts'
import type { Store } from './store/port.ts'

const everyMs = 10 * 60_000
const step = 1000
const stepsPerRun = 50

/** Starts the sweeps; answers the way to stop them. */
export function startRetention({
  store,
  config,
  log,
}: {
  readonly store: Store
  readonly config: Config
  readonly log: Logger
}): () => void {
  let running = false

  async function sweep(
    name: string,
    expire: (before: number, limit: number) => Promise<number>,
    keepMs: number,
  ): Promise<void> {
    let gone = 0
    for (let run = 0; run < stepsPerRun; run += 1) {
      const count = await expire(Date.now() - keepMs, step)
      gone += count
      if (count < step) break
    }
    if (gone > 0) log.info({ what: name, rows: gone }, 'retention')
  }

  async function run(): Promise<void> {
    if (running) return
    running = true
    try {
      await sweep('changes', (before, limit) => store.changes.expire(before, limit), config.MAILROOM_CHANGE_RETENTION)
      await sweep(
        'deliveries',
        (before, limit) => store.outbox.expire(before, limit),
        config.MAILROOM_DELIVERY_RETENTION,
      )
      await sweep('calls', (before, limit) => store.calls.expire(before, limit), config.MAILROOM_CALL_LOG_RETENTION)
    } catch (error) {
      log.warn({ err: error }, 'retention stopped early; it goes on at the next round')
    } finally {
      running = false
    }
  }

  const timer = setInterval(() => void run(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
