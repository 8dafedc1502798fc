/**
 * A fair queue for a limited number of places. The next place goes to the developer with the fewest places, of several
 * to the one who has waited longest. Of one developer urgent work goes first; then its keys (accounts, hosts) take
 * turns. A developer without a place may have a spare one, of which there are half as many as places: so no developer
 * waits only for the work of another. Work has a deadline that begins with its place: after it the work's signal
 * aborts, the call rejects with `timeout`, and the place is free.
 *
 * p-queue fixes the order when work is added. Here the order depends on the places that each developer holds.
 */
import { AppError } from './errors.ts'
import { withinTime } from './waits.ts'

export interface Asked {
  readonly developerId: string
  /** The account, host … that the work is for. */
  readonly key: string
  readonly urgent: boolean
}

export type FairQueue = Pick<Queue, 'run' | 'ahead' | 'waiting' | 'developers'>

interface FairQueueOptions {
  readonly places: number
  /** Default: half as many as places. */
  readonly spare?: number
  /** Most places of one developer. Default: all. */
  readonly perDeveloper?: number
  /** Default: none. */
  readonly deadlineMs?: number
  /** Message of the `timeout` error. */
  readonly late?: string
}

/** As long as a timer can be. */
const never = 2 ** 31 - 1

type Begin = () => void

/** Work by key, in the order in which it came. */
type Keys = Map<string, Set<Begin>>

/** The work of one developer. Keys take turns: a key moves to the end when work of it is taken. */
interface DeveloperWork {
  readonly urgent: Keys
  readonly usual: Keys
  waiting: number
  held: number
}

export function createFairQueue(options: FairQueueOptions): FairQueue {
  return new Queue(options)
}

class Queue {
  readonly #options: Required<FairQueueOptions>
  /** By developer. Of developers with equally many places the first is next. */
  readonly #developers = new Map<string, DeveloperWork>()
  #held = 0
  #waiting = 0

  constructor(options: FairQueueOptions) {
    const spare = Math.ceil(options.places / 2)
    this.#options = { spare, perDeveloper: Infinity, deadlineMs: never, late: '', ...options }
  }

  /** Work without a place. */
  get waiting(): number {
    return this.#waiting
  }

  /** Developers with work. */
  get developers(): number {
    return this.#developers.size
  }

  /**
   * Runs `work` when it has a place. Its signal aborts at the deadline and when `signal` does. Rejects as the work
   * does, with `timeout` at the deadline, and with the reason of `signal` while it waits for a place.
   */
  async run<T>(asked: Asked, work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    const own = this.#workOf(asked.developerId)
    if (this.#waiting === 0 && this.#mayBegin(own)) this.#hold(own)
    else await this.#turn(own, asked, signal)
    try {
      return await this.#timed(work, signal)
    } finally {
      this.#held -= 1
      own.held -= 1
      this.#tidy(asked.developerId, own)
      this.#advance()
    }
  }

  /** Work that has a place, or will have one before this if all ends one by one: as many at most. */
  ahead({ developerId, urgent }: Pick<Asked, 'developerId' | 'urgent'>): number {
    const own = this.#developers.get(developerId)
    const before = own === undefined ? 0 : urgent ? waitingIn(own.urgent) : own.waiting
    const others = this.#developers.values().filter((one) => one !== own)
    return this.#held + before + others.reduce((sum, { waiting }) => sum + Math.min(waiting, before + 1), 0)
  }

  async #timed<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { deadlineMs, late } = this.#options
    const over = new AbortController()
    const stop = (): void => over.abort(signal?.reason)
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted === true) stop()
    try {
      return await withinTime(deadlineMs, work(over.signal), () => {
        const error = new AppError('timeout', late)
        over.abort(error)
        throw error
      })
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }

  #workOf(developerId: string): DeveloperWork {
    const known = this.#developers.get(developerId)
    if (known !== undefined) return known
    const own: DeveloperWork = { urgent: new Map(), usual: new Map(), waiting: 0, held: 0 }
    this.#developers.set(developerId, own)
    return own
  }

  #mayBegin({ held }: DeveloperWork): boolean {
    const { places, spare, perDeveloper } = this.#options
    if (held >= perDeveloper) return false
    return this.#held < places || (held === 0 && this.#held < places + spare)
  }

  #hold(own: DeveloperWork): void {
    this.#held += 1
    own.held += 1
  }

  /** Resolves when the work has a place; rejects when the signal aborts first. */
  async #turn(own: DeveloperWork, { developerId, key, urgent }: Asked, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const keys = urgent ? own.urgent : own.usual
    const begin: Begin = () => resolve(undefined)
    const ofKey = keys.get(key) ?? new Set()
    keys.set(key, ofKey.add(begin))
    this.#count(own, 1)
    const leave = (): void => {
      if (!ofKey.delete(begin)) return
      if (ofKey.size === 0) keys.delete(key)
      this.#count(own, -1)
      this.#tidy(developerId, own)
      reject(signal?.reason as Error)
    }
    signal?.addEventListener('abort', leave, { once: true })
    this.#advance()
    await promise.finally(() => signal?.removeEventListener('abort', leave))
  }

  #count(own: DeveloperWork, change: number): void {
    own.waiting += change
    this.#waiting += change
  }

  #advance(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const [developerId, own] = next
      this.#developers.delete(developerId)
      this.#developers.set(developerId, own)
      this.#hold(own)
      this.#count(own, -1)
      const begin = takeFirst(own.urgent) ?? takeFirst(own.usual)
      begin?.()
    }
  }

  #next(): readonly [string, DeveloperWork] | null {
    if (this.#waiting === 0) return null
    let best: readonly [string, DeveloperWork] | null = null
    for (const entry of this.#developers) {
      if (entry[1].waiting > 0 && (best === null || entry[1].held < best[1].held)) best = entry
    }
    return best !== null && this.#mayBegin(best[1]) ? best : null
  }

  /** Forgets a developer without work. */
  #tidy(developerId: string, own: DeveloperWork): void {
    if (own.held + own.waiting === 0 && this.#developers.get(developerId) === own) this.#developers.delete(developerId)
  }
}

function waitingIn(keys: Keys): number {
  return keys.values().reduce((sum, { size }) => sum + size, 0)
}

/** Takes the first work of the next key, and moves the key to the end. */
function takeFirst(keys: Keys): Begin | undefined {
  const [next] = keys
  if (next === undefined) return undefined
  const [key, ofKey] = next
  const [begin] = ofKey
  keys.delete(key)
  if (begin !== undefined) ofKey.delete(begin)
  if (ofKey.size > 0) keys.set(key, ofKey)
  return begin
}
