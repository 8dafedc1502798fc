/** Retention: what has been kept long enough goes, in small steps, now and then. Stores with TTL indexes have less to do here. */
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

/** One kind of row with its term. `expire` removes rows from before a time, at most `limit`, and answers how many. */
interface Kept {
  readonly what: string
  readonly keepMs: number
  readonly expire: (before: number, limit: number) => Promise<number>
}

/** Starts the sweeps; answers the way to stop them. */
export function startRetention(deps: Deps): () => void {
  let running = false
  async function run(): Promise<void> {
    if (running) return
    running = true
    await sweepAll(deps)
    running = false
  }
  const timer = setInterval(() => void run(), everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

function keptIn({ store, config }: Deps): readonly Kept[] {
  return [
    {
      what: 'changes',
      keepMs: config.MAILROOM_CHANGE_RETENTION,
      expire: (before, limit) => store.changes.expire(before, limit),
    },
    {
      what: 'deliveries',
      keepMs: config.MAILROOM_DELIVERY_RETENTION,
      expire: (before, limit) => store.outbox.expire(before, limit),
    },
    {
      what: 'calls',
      keepMs: config.MAILROOM_CALL_LOG_RETENTION,
      expire: (before, limit) => store.calls.expire(before, limit),
    },
  ]
}

/** Never rejects. */
async function sweepAll(deps: Deps): Promise<void> {
  try {
    for (const kept of keptIn(deps)) {
      const rows = await sweep(kept)
      if (rows > 0) deps.log.info({ what: kept.what, rows }, 'retention')
    }
  } catch (error) {
    deps.log.warn({ err: error }, 'retention stopped early; it goes on at the next round')
  }
}

async function sweep({ keepMs, expire }: Kept): Promise<number> {
  let gone = 0
  for (let run = 0; run < stepsPerRun; run += 1) {
    const count = await expire(Date.now() - keepMs, step)
    gone += count
    if (count < step) break
  }
  return gone
}
