/**
 * A fair queue for a limited number of places, or of bytes of memory. The next place goes to the developer with the
 * fewest places, of several to the one who has waited longest; work that waits for room is not overtaken. Of one
 * developer urgent work goes first; then its keys (accounts, hosts) take turns. A developer without a place may have
 * spare ones: so no developer waits only for the work of another. Work has a deadline that begins with its place: after
 * it the work's signal aborts, the call rejects with `timeout`, and the place is free.
 *
 * p-queue fixes the order when work is added. Here the order depends on the places that each developer holds.
 */
import { AppError } from './errors.ts'
import { withinTime } from './scheduling.ts'

export interface Asked {
  readonly developerId: string
  /** The account, host … that the work is for; '' = none, without the bound of a key. */
  readonly key: string
  readonly urgent: boolean
  /** Places that the work needs. Default 1. */
  readonly places?: number
}

/** Gives the places back, or all of them but `keep`. */
export type Release = (keep?: number) => void

export type FairQueue = Pick<Queue, 'run' | 'take' | 'takeNow' | 'ahead' | 'waiting' | 'developers'>

interface FairQueueOptions {
  readonly places: number
  /** Default: half as many as places. */
  readonly spare?: number
  /** Most places of one developer, unless one piece of work needs more. Default: all. */
  readonly perDeveloper?: number
  /** Most places of one key, unless one piece of work needs more. Default: all. */
  readonly perKey?: number
  /** Default: none. */
  readonly deadlineMs?: number
  /** Message of the `timeout` error. */
  readonly late?: string
}

/** As long as a timer can be. */
const never = 2 ** 31 - 1

interface Work {
  readonly key: string
  readonly places: number
  readonly begin: () => void
}

/** Work by key, in the order in which it came. */
type Keys = Map<string, Set<Work>>

/** The work of one developer. Keys take turns: a key moves to the end when work of it is taken. */
interface DeveloperWork {
  readonly id: string
  readonly urgent: Keys
  readonly usual: Keys
  waiting: number
  held: number
  /** Held places by key. */
  readonly heldBy: Map<string, number>
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
    this.#options = { spare, perDeveloper: Infinity, perKey: Infinity, deadlineMs: never, late: '', ...options }
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
    const release = await this.take(asked, signal)
    try {
      return await this.#timed(work, signal)
    } finally {
      release()
    }
  }

  /** Waits for places that the caller gives back. Rejects with the reason of `signal` when it aborts first. */
  async take(asked: Asked, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted()
    const own = this.#workOf(asked.developerId)
    const release = this.#takeNow(own, asked)
    if (release !== null) return release
    await this.#turn(own, asked, signal)
    return this.#releaseOf(own, asked)
  }

  /** Takes the places if nobody waits and they are free; null = not so. */
  takeNow(asked: Asked): Release | null {
    const own = this.#workOf(asked.developerId)
    const release = this.#takeNow(own, asked)
    this.#tidy(own)
    return release
  }

  #takeNow(own: DeveloperWork, asked: Asked): Release | null {
    const { key, places = 1 } = asked
    if (this.#waiting > 0 || !this.#isAllowed(own, key, places) || !this.#hasRoom(own, places)) return null
    this.#hold(own, key, places)
    return this.#releaseOf(own, asked)
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

  #workOf(id: string): DeveloperWork {
    const known = this.#developers.get(id)
    if (known !== undefined) return known
    const own = { id, urgent: new Map(), usual: new Map(), waiting: 0, held: 0, heldBy: new Map() }
    this.#developers.set(id, own)
    return own
  }

  /** Whether the bounds of the developer and of the key allow the work. */
  #isAllowed({ held, heldBy }: DeveloperWork, key: string, places: number): boolean {
    const { perDeveloper, perKey } = this.#options
    const ofKey = key === '' ? 0 : (heldBy.get(key) ?? 0)
    return (held === 0 || held + places <= perDeveloper) && (ofKey === 0 || ofKey + places <= perKey)
  }

  #hasRoom({ held }: DeveloperWork, needed: number): boolean {
    const { places, spare } = this.#options
    return this.#held + needed <= (held === 0 ? places + spare : places)
  }

  #hold(own: DeveloperWork, key: string, places: number): void {
    this.#held += places
    own.held += places
    const ofKey = (own.heldBy.get(key) ?? 0) + places
    if (ofKey === 0) own.heldBy.delete(key)
    else own.heldBy.set(key, ofKey)
  }

  #releaseOf(own: DeveloperWork, { key, places = 1 }: Asked): Release {
    let held = places
    return (keep = 0) => {
      const given = held - Math.min(held, keep)
      if (given === 0) return
      held -= given
      this.#hold(own, key, -given)
      this.#tidy(own)
      this.#advance()
    }
  }

  /** Resolves when the work has its places; rejects when the signal aborts first. */
  async #turn(own: DeveloperWork, { key, urgent, places = 1 }: Asked, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const keys = urgent ? own.urgent : own.usual
    const work: Work = { key, places, begin: () => resolve(undefined) }
    const ofKey = keys.get(key) ?? new Set()
    keys.set(key, ofKey.add(work))
    this.#count(own, 1)
    const leave = (): void => {
      if (!ofKey.delete(work)) return
      if (ofKey.size === 0) keys.delete(key)
      this.#count(own, -1)
      this.#tidy(own)
      reject(signal?.reason as Error)
      // The work behind may fit where this work waited for room.
      this.#advance()
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
      const { own, keys, work } = next
      this.#developers.delete(own.id)
      this.#developers.set(own.id, own)
      this.#hold(own, work.key, work.places)
      this.#count(own, -1)
      take(keys, work)
      work.begin()
    }
  }

  /** null = no work waits that its developer's bounds allow, or the first such work waits for room. */
  #next(): Next | null {
    if (this.#waiting === 0) return null
    let best: Next | null = null
    for (const own of this.#developers.values())
      if (own.waiting > 0 && (best === null || own.held < best.own.held)) best = this.#firstOf(own) ?? best
    return best !== null && this.#hasRoom(best.own, best.work.places) ? best : null
  }

  /** The developer's next work within the bounds. */
  #firstOf(own: DeveloperWork): Next | null {
    for (const keys of [own.urgent, own.usual])
      for (const [work] of keys.values())
        if (work !== undefined && this.#isAllowed(own, work.key, work.places)) return { own, keys, work }
    return null
  }

  /** Forgets a developer without work. */
  #tidy(own: DeveloperWork): void {
    if (own.held + own.waiting === 0 && this.#developers.get(own.id) === own) this.#developers.delete(own.id)
  }
}

interface Next {
  readonly own: DeveloperWork
  readonly keys: Keys
  readonly work: Work
}

function waitingIn(keys: Keys): number {
  return keys.values().reduce((sum, { size }) => sum + size, 0)
}

/** Takes the work, and moves its key to the end. */
function take(keys: Keys, work: Work): void {
  const ofKey = keys.get(work.key)
  keys.delete(work.key)
  ofKey?.delete(work)
  if (ofKey !== undefined && ofKey.size > 0) keys.set(work.key, ofKey)
}
