/**
 * Retention removes rows that are old enough, and rows of removed records, in small steps every ten minutes. Nonces and
 * connect tokens are not here: each store removes them by their own date.
 */
import { removeOrphans } from './accounts/pool.ts'
import type { Config } from './config.ts'
import type { Logger } from './observe/log.ts'
import { keptNames, retentionKeys } from './settings.ts'
import type { Store } from './store/port.ts'

const everyMs = 10 * 60_000
const step = 1000
const stepsPerRun = 50

interface Deps {
  readonly store: Store
  readonly config: Config
  readonly log: Logger
}

/** Starts the retention. Returns a function that stops it, and resolves when the current run has ended. */
export function startRetention(deps: Deps): () => Promise<void> {
  const stop = new AbortController()
  let orphansAfter: string | null = null
  let running: Promise<void> | null = null
  async function run(): Promise<void> {
    await sweep(deps, stop.signal)
    if (!stop.signal.aborted) orphansAfter = await tidyUp(deps, orphansAfter)
    running = null
  }
  // One node does it for all.
  const isOurs = (): boolean => deps.store.nodes.ownsSlot(0)
  const timer = setInterval(() => void (isOurs() && (running ??= run())), everyMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    stop.abort()
    await running
  }
}

/** Removes rows that are too old, in steps. Never rejects. */
async function sweep({ store, config, log }: Deps, signal: AbortSignal): Promise<void> {
  const { changes, outbox: deliveries, calls, audit } = store
  const kept = { changes, deliveries, calls, audit }
  try {
    for (const what of keptNames) {
      let rows = 0
      for (let run = 0; run < stepsPerRun && !signal.aborted; run += 1) {
        const count = await kept[what].expire(Date.now() - config[retentionKeys[what]], step)
        rows += count
        if (count < step) break
      }
      if (rows > 0) log.info({ what, rows }, 'retention')
    }
  } catch (error) {
    log.warn({ err: error }, 'retention stopped early; it goes on at the next round')
  }
}

/** Never rejects. Looks at one page of accounts, and returns the start of the next one. */
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
