/**
 * Wrong keys, secrets and signatures: after some of them an address has to wait before it may try the same key again,
 * twice as long after each further one. Ten times as many with whatever keys, and it has to wait with every key that
 * never fitted from there. No address waits for what another one did. Counted in this process, for a bounded number of
 * addresses and keys.
 */
import { LRUCache } from 'lru-cache'
import { AppError, isAppError, type Logger } from '../engine/index.ts'

export interface Tries {
  /**
   * Runs one try of a key: `check` compares, and rejects with a 401 when the key is unknown or does not fit. Rejects
   * with `rate_limited` while the address has to wait; the answer then shows nothing of what the check found.
   */
  run<T>(address: string, key: string, check: () => Promise<T>): Promise<T>
}

interface Options {
  /** Failures in a row without a wait. 0 = never a wait. */
  readonly free: number
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: Logger
}

interface Failures {
  readonly count: number
  /** No try before. */
  readonly until: number
}

const firstWaitMs = 1000
const longestWaitMs = 300_000
/** So long after the last wait a failure is forgotten. */
const rememberMs = 900_000
/** How many times as many failures an address has with all keys together. */
const keysFactor = 10
/** Of failures, and of keys that fitted; the oldest are forgotten. About 40 MB when full. */
const remembered = 100_000
/** Longer keys count as the same when they begin the same. */
const keyLength = 64

export function createTries({ free, now, log }: Options): Tries {
  if (free === 0) return { run: (_address, _key, check) => check() }
  const failures = new LRUCache<string, Failures>({ max: remembered })
  const fitted = new LRUCache<string, true>({ max: remembered })

  const known = (id: string): Failures | null => {
    const found = failures.get(id)
    return found === undefined || found.until + rememberMs <= now() ? null : found
  }
  const mayTry = (address: string, pair: string): void => {
    const own = known(pair)
    const all = fitted.get(pair) === true ? null : known(address)
    const waitMs = Math.max(own?.until ?? 0, all?.until ?? 0) - now()
    if (waitMs > 0) throw tooMany(waitMs)
  }
  /** true = the first wait begins. */
  const fail = (id: string, most: number): boolean => {
    const count = (known(id)?.count ?? 0) + 1
    const waitMs = count < most ? 0 : Math.min(longestWaitMs, firstWaitMs * 2 ** (count - most))
    failures.set(id, { count, until: now() + waitMs })
    return count === most
  }

  return {
    async run(address, key, check) {
      const pair = `${address} ${key.slice(0, keyLength)}`
      mayTry(address, pair)
      const outcome = await settle(check)
      // Others may have failed while this one was looked up: a right guess among many at once must not show.
      mayTry(address, pair)
      if ('value' in outcome) {
        failures.delete(pair)
        if (fitted.get(pair) === undefined) fitted.set(pair, true)
        return outcome.value
      }
      if (isAppError(outcome.error) && outcome.error.status === 401) {
        const waits = [fail(pair, free), fail(address, keysFactor * free)].includes(true)
        if (waits) log.warn({ address }, 'too many wrong keys or signatures: this address has to wait')
      }
      throw outcome.error
    },
  }
}

async function settle<T>(work: () => Promise<T>): Promise<{ readonly value: T } | { readonly error: unknown }> {
  try {
    return { value: await work() }
  } catch (error) {
    return { error }
  }
}

function tooMany(retryAfterMs: number): AppError {
  const seconds = Math.ceil(retryAfterMs / 1000)
  return new AppError(
    'rate_limited',
    `Authorization: too many wrong keys or signatures from this address; try again in ${seconds} s`,
    { retryAfterMs, details: { parameter: 'Authorization' } },
  )
}
