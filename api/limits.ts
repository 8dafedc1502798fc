/**
 * Rate limits: calls per hour and key, calls to IMAP per minute and user, waits after wrong keys. Answers show the rest
 * of the first two. Each count that is not about one user is shared by all nodes.
 */
import type { Context } from 'koa'
import { LRUCache } from 'lru-cache'
import { AppError, type Config, isAppError, type Logger, ownUses, type UseKind, type Uses } from '../engine/index.ts'

interface Window {
  readonly count: number
  readonly endsAt: number
}

/** Keys, users and addresses in one map; far more than are active at once. */
const remembered = 100_000

/** A map that forgets the least recently used names when it holds more than `most`. */
export function boundedMap<T extends object | number | true>(most = remembered): LRUCache<string, T> {
  return new LRUCache({ maxSize: most, sizeCalculation: () => 1 })
}

/** Counts by name. A count of 0 takes no memory. */
export function createCounts() {
  const counts = new Map<string, number>()
  return {
    of: (name: string): number => counts.get(name) ?? 0,
    change(name: string, by: 1 | -1): void {
      const now = (counts.get(name) ?? 0) + by
      if (now === 0) counts.delete(name)
      else counts.set(name, now)
    },
  }
}

/** Counts by id within a window of time; `shared`: together with other nodes. */
export function createCounter(windowMs: number, now: () => number, shared?: { uses: Uses; kind: UseKind }) {
  const windows = boundedMap<{ count: number; readonly endsAt: number }>()
  const windowOf = (id: string) => {
    const window = windows.get(id)
    return window === undefined || window.endsAt <= now() ? { count: 0, endsAt: now() + windowMs } : window
  }
  const add = (id: string, by: number): Window => {
    const window = windowOf(id)
    if (window.count === 0) windows.set(id, window)
    window.count += by
    return window
  }
  shared?.uses.hear(shared.kind, add)
  return {
    windowOf: (id: string): Window => windowOf(id),
    count(id: string): Window {
      shared?.uses.tell(shared.kind, id)
      return add(id, 1)
    },
  }
}

type Answer = Pick<Context, 'set'>

type Settings = Pick<Config, 'MAILROOM_RATE_CALLS_PER_HOUR' | 'MAILROOM_RATE_IMAP_PER_MINUTE'>

export type Limits = ReturnType<typeof createLimits>

export function createLimits(config: Settings, now: () => number, uses: Uses) {
  /**
   * A `limit` of 0 = no limit, and no headers. `header`: 'X-RateLimit' gives X-RateLimit-Limit, -Remaining and -Reset
   * (Unix timestamp in seconds).
   */
  const createRate = (limit: number, header: string, words: string, counter: ReturnType<typeof createCounter>) => {
    const show = (answer: Answer, { count, endsAt }: Window): void => {
      if (limit === 0) return
      answer.set(`${header}-Limit`, String(limit))
      answer.set(`${header}-Remaining`, String(Math.max(0, limit - count)))
      answer.set(`${header}-Reset`, String(Math.ceil(endsAt / 1000)))
    }
    return {
      /** Counts one call and sets the headers; throws `rate_limited` over the limit. */
      count(id: string, answer: Answer): void {
        if (limit === 0) return
        const window = counter.count(id)
        show(answer, window)
        const retryAfterMs = window.endsAt - now()
        if (window.count > limit)
          throw new AppError('rate_limited', `over the limit of ${limit} ${words}`, { retryAfterMs })
      },
      /** Sets the headers without counting a call. */
      show: (id: string, answer: Answer) => show(answer, counter.windowOf(id)),
    }
  }
  const { MAILROOM_RATE_CALLS_PER_HOUR: perHour, MAILROOM_RATE_IMAP_PER_MINUTE: perMinute } = config
  const ofDeveloper = createCounter(3_600_000, now, { uses, kind: 'calls' })
  // One node answers all calls of a user.
  const ofUser = createCounter(60_000, now)
  return {
    /** By developer. */
    calls: createRate(perHour, 'X-RateLimit', 'calls an hour for one API key', ofDeveloper),
    /** By user. */
    imap: createRate(perMinute, 'X-RateLimit-IMAP', 'calls a minute to the mail servers of one user', ofUser),
  }
}

export type Tries = ReturnType<typeof createTries>

interface TriesOptions {
  /** Failures in a row before the first wait. 0 = never a wait. */
  readonly free: number
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: Logger
  readonly uses?: Uses
  /** For the error text: the parameter with the key, and the failures in the plural. */
  readonly words?: readonly [parameter: string, wrong: string]
}

const usualWords = ['Authorization', 'wrong keys or signatures'] as const

const firstWaitMs = 1000
const longestWaitMs = 300_000
/** A failure is forgotten this long after the last wait. */
const rememberMs = 900_000
/** An address may fail `keysFactor * free` times with all keys together. */
const keysFactor = 10
/** Keys with the same first characters count as one key. */
const keyLength = 64

/**
 * Slows down guesses of keys, secrets and signatures. After `free` failures with one key an address waits before its
 * next try of that key, and each further failure doubles the wait. After ten times as many failures with any keys, the
 * address waits with every key that never succeeded from there. No address waits because of another address. Counted
 * over all nodes, for a bounded number of addresses and keys.
 */
export function createTries({ free, now, log, uses = ownUses, words: [parameter, wrong] = usualWords }: TriesOptions) {
  /** `until`: the end of the wait, milliseconds since 1970. */
  const failures = boundedMap<{ readonly count: number; readonly until: number }>()
  /** Pairs of address and key that succeeded. */
  const fitted = boundedMap<true>()

  const known = (id: string) => {
    const found = failures.get(id)
    return found === undefined || found.until + rememberMs <= now() ? null : found
  }
  const mayTry = (address: string, pair: string): void => {
    const own = known(pair)
    const all = fitted.get(pair) === true ? null : known(address)
    const waitMs = Math.max(own?.until ?? 0, all?.until ?? 0) - now()
    if (waitMs <= 0) return
    const text = `${parameter}: too many ${wrong} from this address; try again in ${Math.ceil(waitMs / 1000)} s`
    throw new AppError('rate_limited', text, { retryAfterMs: waitMs, details: { parameter } })
  }
  /** Returns true when the first wait begins. */
  const fail = (id: string, most: number, times: number): boolean => {
    const before = known(id)?.count ?? 0
    const count = before + times
    const waitMs = count < most ? 0 : Math.min(longestWaitMs, firstWaitMs * 2 ** (count - most))
    failures.set(id, { count, until: now() + waitMs })
    return before < most && count >= most
  }
  const failBoth = (pair: string, times = 1): boolean => {
    const address = pair.slice(0, pair.indexOf(' '))
    return [fail(pair, free, times), fail(address, keysFactor * free, times)].includes(true)
  }
  uses.hear('wrong key', failBoth)
  uses.hear('right key', (pair) => failures.delete(pair))

  return {
    /**
     * Runs one try of a key. `check` rejects with a 401 when the key or its secret is wrong. Rejects with
     * `rate_limited` during a wait, whatever the check found.
     */
    async run<T>(address: string, key: string, check: () => Promise<T>): Promise<T> {
      if (free === 0) return check()
      const pair = `${address} ${key.slice(0, keyLength)}`
      mayTry(address, pair)
      try {
        const found = await check()
        // Other tries may have failed meanwhile: a right guess among many at once must not show.
        mayTry(address, pair)
        if (failures.delete(pair)) uses.tell('right key', pair)
        if (!fitted.has(pair)) fitted.set(pair, true)
        return found
      } catch (error) {
        mayTry(address, pair)
        if (isAppError(error) && error.status === 401) {
          uses.tell('wrong key', pair)
          if (failBoth(pair)) log.warn({ address }, 'too many wrong keys or signatures: this address has to wait')
        }
        throw error
      }
    },
  }
}
