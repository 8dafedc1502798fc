/**
 * What a caller may do how often: calls per hour and key, calls to IMAP per minute and user, wrong keys. Answers show
 * what is left of the first two. What is not of one user is counted over all nodes.
 */
import { AppError, type Config, isAppError, type Logger, ownUses, type UseKind, type Uses } from '../engine/index.ts'

interface Window {
  readonly count: number
  readonly endsAt: number
}

/** Keys, users and addresses of whom something is remembered; far more than are active at once. */
const remembered = 100_000

/** The names that were set last; what is over the bound is forgotten, the oldest first. */
export class BoundedMap<T> extends Map<string, T> {
  readonly #most: number
  constructor(most = remembered) {
    super()
    this.#most = most
  }
  override set(name: string, value: T): this {
    this.delete(name)
    super.set(name, value)
    const [oldest] = this.size > this.#most ? this.keys() : []
    if (oldest !== undefined) this.delete(oldest)
    return this
  }
}

/** How many there are of each name; nothing is kept of a name that has none. */
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

interface Shared {
  readonly uses: Uses
  readonly kind: UseKind
}

/** How often something was counted since its window began, also by other nodes when it is `shared`. */
export function createCounter(windowMs: number, now: () => number, shared?: Shared) {
  const windows = new BoundedMap<{ count: number; readonly endsAt: number }>()
  const windowOf = (id: string) => {
    const window = windows.get(id)
    return window === undefined || window.endsAt <= now() ? { count: 0, endsAt: now() + windowMs } : window
  }
  const add = (id: string, by: number): Window => {
    const window = windowOf(id)
    // A window is set when it begins: the one that ends first is forgotten first.
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

/** What the headers of an answer are set on. */
interface Answer {
  set(header: string, value: string): void
}

interface RateOptions {
  /** 0 = no limit, and no headers. */
  readonly limit: number
  readonly windowMs: number
  /** 'X-RateLimit' gives X-RateLimit-Limit, -Remaining and -Reset (Unix timestamp in seconds). */
  readonly header: string
  /** 'calls an hour for one API key' */
  readonly words: string
  readonly now: () => number
  readonly shared?: Shared
}

function createRate({ limit, windowMs, header, words, now, shared }: RateOptions) {
  const counter = createCounter(windowMs, now, shared)
  const show = (answer: Answer, { count, endsAt }: Window): void => {
    if (limit === 0) return
    answer.set(`${header}-Limit`, String(limit))
    answer.set(`${header}-Remaining`, String(Math.max(0, limit - count)))
    answer.set(`${header}-Reset`, String(Math.ceil(endsAt / 1000)))
  }
  return {
    /** Counts one call and says what is left, in these headers; throws `rate_limited` over the limit. */
    count(id: string, answer: Answer): void {
      if (limit === 0) return
      const window = counter.count(id)
      show(answer, window)
      if (window.count <= limit) return
      throw new AppError('rate_limited', `over the limit of ${limit} ${words}`, {
        retryAfterMs: window.endsAt - now(),
      })
    },
    /** Says what is left, and counts nothing. */
    show: (id: string, answer: Answer) => show(answer, counter.windowOf(id)),
  }
}

export type Limits = ReturnType<typeof createLimits>

type Settings = Pick<Config, 'MAILROOM_RATE_CALLS_PER_HOUR' | 'MAILROOM_RATE_IMAP_PER_MINUTE'>

export function createLimits(config: Settings, now: () => number, uses = ownUses) {
  return {
    /** By developer. */
    calls: createRate({
      limit: config.MAILROOM_RATE_CALLS_PER_HOUR,
      windowMs: 3_600_000,
      header: 'X-RateLimit',
      words: 'calls an hour for one API key',
      now,
      shared: { uses, kind: 'calls' },
    }),
    /** By user, whose calls one node answers. */
    imap: createRate({
      limit: config.MAILROOM_RATE_IMAP_PER_MINUTE,
      windowMs: 60_000,
      header: 'X-RateLimit-IMAP',
      words: 'calls a minute to the mail servers of one user',
      now,
    }),
  }
}

export type Tries = ReturnType<typeof createTries>

interface TriesOptions {
  /** Failures in a row without a wait. 0 = never a wait. */
  readonly free: number
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: Logger
  readonly uses?: Uses
  /** The parameter that a try comes in, and what there were too many of. */
  readonly words?: readonly [parameter: string, wrong: string]
}

const usualWords = ['Authorization', 'wrong keys or signatures'] as const

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
/** Longer keys count as the same when they begin the same. */
const keyLength = 64

/**
 * Wrong keys, secrets and signatures: after some of them an address has to wait before it may try the same key again,
 * twice as long after each further one. Ten times as many with whatever keys, and it has to wait with every key that
 * never fitted from there. No address waits for what another one did. Counted over all nodes, for a bounded number of
 * addresses and keys.
 */
export function createTries({ free, now, log, uses = ownUses, words = usualWords }: TriesOptions) {
  const failures = new BoundedMap<Failures>()
  const fitted = new BoundedMap<true>()

  const known = (id: string): Failures | null => {
    const found = failures.get(id)
    return found === undefined || found.until + rememberMs <= now() ? null : found
  }
  const mayTry = (address: string, pair: string): void => {
    const own = known(pair)
    const all = fitted.get(pair) === true ? null : known(address)
    const waitMs = Math.max(own?.until ?? 0, all?.until ?? 0) - now()
    if (waitMs > 0) throw tooMany(waitMs, words)
  }
  /** true = the first wait begins. */
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
     * Runs one try of a key: `check` compares, and rejects with a 401 when the key is unknown or does not fit. Rejects
     * with `rate_limited` while the address has to wait; the answer then shows nothing of what the check found.
     */
    async run<T>(address: string, key: string, check: () => Promise<T>): Promise<T> {
      if (free === 0) return check()
      const pair = `${address} ${key.slice(0, keyLength)}`
      mayTry(address, pair)
      try {
        const found = await check()
        // Others may have failed while this one was looked up: a right guess among many at once must not show.
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

function tooMany(retryAfterMs: number, [parameter, wrong]: NonNullable<TriesOptions['words']>): AppError {
  const words = `${parameter}: too many ${wrong} from this address; try again in ${Math.ceil(retryAfterMs / 1000)} s`
  return new AppError('rate_limited', words, { retryAfterMs, details: { parameter } })
}
