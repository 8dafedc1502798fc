/**
 * Whether the store takes writes. A store call that fails with `store_unavailable` makes it doubtful; a trial write
 * decides, at most once a second, when a caller asks. In doubt the trial is as large as a batch of new mail, because a
 * few bytes still fit on a full disk.
 */
import { AppError, isAppError } from './errors.ts'
import type { Logger } from './observe/log.ts'
import type { Metrics } from './observe/metrics.ts'
import type { Store } from './store/port.ts'

export type Readiness = ReturnType<typeof createReadiness>

const everyMs = 1000
const roomBytes = 1_048_576
const damageEveryMs = 60_000

type StoreMetrics = Pick<Metrics, 'storeSeconds'>

/** Wraps the store: measures each call, and notices failed ones. */
export function createReadiness(opened: Store, log: Logger, metrics: StoreMetrics) {
  let doubtful = false
  let last = { ok: true, at: -Infinity }
  let trial: Promise<boolean> | null = null
  let toldOfDamage = -Infinity

  function failed(error: AppError): void {
    doubtful = true
    if (error.details.damaged !== true || performance.now() - toldOfDamage < damageEveryMs) return
    toldOfDamage = performance.now()
    // The trial write may pass on a damaged file, so the damage is logged here.
    log.error({ err: error.cause ?? error }, 'the database file is damaged: a backup has to take its place')
  }

  async function tryWrite(): Promise<boolean> {
    const room = doubtful ? roomBytes : 0
    // A call that fails during the trial makes the store doubtful again.
    doubtful = false
    const failure: unknown = await opened.ping(room).then(
      () => null,
      (error: unknown) => error,
    )
    const ok = failure === null
    if (!ok) doubtful = true
    if (ok !== last.ok)
      log.warn(ok ? {} : { err: failure }, ok ? 'the store takes writes again' : 'the store takes no writes')
    last = { ok, at: performance.now() }
    trial = null
    return ok && !doubtful
  }

  return {
    /** The wrapped store. */
    store: noticing(opened, metrics, failed),
    /** Never rejects; resolves within 5 s. */
    async writable(): Promise<boolean> {
      if (!opened.nodes.mayWrite()) return false
      const isKnown = performance.now() - last.at < everyMs && trial === null
      return isKnown ? last.ok && !doubtful : (trial ??= tryWrite())
    },
  }
}

type Method = (...args: never[]) => Promise<unknown>

/** Names of methods that only read. */
const reading =
  /^(?:get|find|findAll|first|list|listBy\w+|by[A-Z]\w*|page|count|counts|totals|version|existing|gone|older|picked|everywhere|known\w+|since|ofMessage|lastSeq|channels|pending|waiting|backlog|late|search|scan|places|several)$/

export function kindOf(method: string): 'read' | 'write' {
  return reading.test(method) ? 'read' : 'write'
}

/** The answer to a write while other nodes may have taken this process for dead. */
const refused = (): Promise<never> =>
  Promise.reject(
    new AppError('store_unavailable', 'the database has not answered for too long', { retryAfterMs: 1000 }),
  )

function noticing(store: Store, { storeSeconds }: StoreMetrics, failed: (error: AppError) => void): Store {
  const note = (error: unknown): void => {
    if (isAppError(error, 'store_unavailable')) failed(error)
  }
  const noted = (method: Method, kind: 'read' | 'write'): Method => {
    return (...args) => {
      const started = performance.now()
      const answer = kind === 'write' && !store.nodes.mayWrite() ? refused() : method(...args)
      const measure = () => storeSeconds.observe({ kind }, (performance.now() - started) / 1000)
      void answer.then(measure, (error: unknown) => {
        note(error)
        measure()
      })
      return answer
    }
  }
  const parts = Object.entries(store).map(([name, part]: readonly [string, unknown]) => {
    if (typeof part !== 'object' || part === null || name === 'nodes') return [name, part]
    const methods = Object.entries(part as Readonly<Record<string, Method>>)
    return [name, Object.fromEntries(methods.map(([own, method]) => [own, noted(method, kindOf(own))]))]
  })
  return Object.fromEntries(parts) as Store
}
