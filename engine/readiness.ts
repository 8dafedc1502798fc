/**
 * Whether the store takes writes. Any call of it that fails for want of the database makes that doubtful at once; a
 * write on trial decides, at most one a second, and only when somebody asks. In doubt it is as large as a batch of new
 * mail: a few bytes still fit on a disk that is full.
 */
import { isAppError } from './errors.ts'
import type { Logger } from './observe/log.ts'
import type { Store } from './store/port.ts'

export type Readiness = ReturnType<typeof createReadiness>

const everyMs = 1000
const roomBytes = 1_048_576

export function createReadiness(opened: Store, log: Logger) {
  let doubtful = false
  let last = { ok: true, at: -Infinity }
  let trial: Promise<boolean> | null = null

  async function tryWrite(): Promise<boolean> {
    const room = doubtful ? roomBytes : 0
    // What fails from here on is news.
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
    /** The same store; what fails there is noticed. */
    store: noticing(opened, () => (doubtful = true)),
    /** Never rejects; answers within 5 s. */
    writable: async (): Promise<boolean> =>
      performance.now() - last.at < everyMs && trial === null ? last.ok && !doubtful : await (trial ??= tryWrite()),
  }
}

type Method = (...args: never[]) => Promise<unknown>

function noticing(store: Store, failed: () => void): Store {
  const note = (error: unknown): void => {
    if (isAppError(error, 'store_unavailable')) failed()
  }
  const noted =
    (method: Method): Method =>
    (...args) => {
      const answer = method(...args)
      answer.catch(note)
      return answer
    }
  const parts = Object.entries(store).map(([name, part]: readonly [string, unknown]) => {
    if (typeof part !== 'object' || part === null) return [name, part]
    const methods = Object.entries(part as Readonly<Record<string, Method>>)
    return [name, Object.fromEntries(methods.map(([own, method]) => [own, noted(method)]))]
  })
  return Object.fromEntries(parts) as Store
}
