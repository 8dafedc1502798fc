/**
 * Places for work of which only so much may go on at once, in fair turns. The developer who holds the fewest places is
 * next; of several the one who has waited longest. Within a developer urgent work goes first, then its keys (accounts,
 * hosts) take turns. A developer who holds none may have one of the spare places, half as many as there are: so no
 * developer waits only for another one's work. Work has a deadline, which begins with its place: after it the work's
 * signal aborts, the caller hears `timeout`, and the place is free again.
 *
 * p-queue has one order for all, fixed when work is added. Here the next one depends on what each developer holds by
 * then, and work of equal keys is passed over in turn.
 */
import { AppError } from './errors.ts'

export interface Asked {
  readonly developerId: string
  /** An account, a host … */
  readonly key: string
  readonly urgent: boolean
}

export interface FairQueue {
  /**
   * Runs `work` when its turn has come; its signal aborts at the deadline and when `signal` does. Rejects as the work
   * does, with `timeout` at the deadline, and with the reason of `signal` while it waits.
   */
  run<T>(asked: Asked, work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T>
  /** Work that has no place yet. */
  readonly waiting: number
  /** Developers of whom anything is remembered: those with work. */
  readonly developers: number
}

export interface FairQueueOptions {
  readonly places: number
  /** Of these one developer has so many at most. Default: all. */
  readonly perDeveloper?: number
  readonly deadlineMs: number
  /** Why work was ended at its deadline, for people. */
  readonly late: string
}

interface Waiting {
  readonly key: string
  readonly begin: () => void
}

interface DeveloperLine {
  /** In the order of asking; the keys take turns when one is taken. */
  readonly urgent: Map<string, Waiting[]>
  readonly usual: Map<string, Waiting[]>
  waiting: number
  held: number
}

export function createFairQueue(options: FairQueueOptions): FairQueue {
  return new Queue(options)
}

class Queue implements FairQueue {
  readonly #options: Required<FairQueueOptions>
  readonly #spare: number
  /** By developer; of those who hold equally many the first is next. */
  readonly #lines = new Map<string, DeveloperLine>()
  #held = 0
  #waiting = 0

  constructor(options: FairQueueOptions) {
    this.#options = { perDeveloper: Infinity, ...options }
    this.#spare = Math.ceil(options.places / 2)
  }

  get waiting(): number {
    return this.#waiting
  }

  get developers(): number {
    return this.#lines.size
  }

  async run<T>(asked: Asked, work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    const line = this.#lineOf(asked.developerId)
    if (this.#waiting === 0 && this.#mayBegin(line)) this.#hold(line)
    else await this.#turn(line, asked, signal)
    try {
      return await this.#timed(work, signal)
    } finally {
      this.#held -= 1
      line.held -= 1
      this.#tidy(asked.developerId, line)
      this.#advance()
    }
  }

  async #timed<T>(work: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { deadlineMs, late } = this.#options
    const over = new AbortController()
    const { promise: ended, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      const error = new AppError('timeout', late)
      over.abort(error)
      reject(error)
    }, deadlineMs)
    const stop = (): void => over.abort(signal?.reason)
    signal?.addEventListener('abort', stop, { once: true })
    try {
      return await Promise.race([work(over.signal), ended])
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  #lineOf(developerId: string): DeveloperLine {
    const known = this.#lines.get(developerId)
    if (known !== undefined) return known
    const line: DeveloperLine = { urgent: new Map(), usual: new Map(), waiting: 0, held: 0 }
    this.#lines.set(developerId, line)
    return line
  }

  #mayBegin({ held }: DeveloperLine): boolean {
    const { places, perDeveloper } = this.#options
    if (held >= perDeveloper) return false
    return this.#held < places || (held === 0 && this.#held < places + this.#spare)
  }

  #hold(line: DeveloperLine): void {
    this.#held += 1
    line.held += 1
  }

  /** Resolves with a place; rejects when the signal aborts first. */
  async #turn(line: DeveloperLine, { developerId, key, urgent }: Asked, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    const keys = urgent ? line.urgent : line.usual
    const waiting: Waiting = { key, begin: () => resolve(undefined) }
    const ofKey = keys.get(key) ?? []
    ofKey.push(waiting)
    keys.set(key, ofKey)
    this.#count(line, 1)
    const leave = (): void => {
      const index = keys.get(key)?.indexOf(waiting) ?? -1
      if (index < 0) return
      remove(keys, key, index)
      this.#count(line, -1)
      this.#tidy(developerId, line)
      reject(signal?.reason as Error)
    }
    signal?.addEventListener('abort', leave, { once: true })
    this.#advance()
    await promise.finally(() => signal?.removeEventListener('abort', leave))
  }

  #count(line: DeveloperLine, change: number): void {
    line.waiting += change
    this.#waiting += change
  }

  #advance(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const [developerId, line] = next
      this.#lines.delete(developerId)
      this.#lines.set(developerId, line)
      this.#hold(line)
      this.#count(line, -1)
      ;(takeFirst(line.urgent) ?? takeFirst(line.usual))?.begin()
    }
  }

  #next(): readonly [string, DeveloperLine] | null {
    if (this.#waiting === 0) return null
    let best: readonly [string, DeveloperLine] | null = null
    for (const entry of this.#lines) {
      if (entry[1].waiting > 0 && (best === null || entry[1].held < best[1].held)) best = entry
    }
    return best !== null && this.#mayBegin(best[1]) ? best : null
  }

  /** Nothing is kept of a developer without work. */
  #tidy(developerId: string, line: DeveloperLine): void {
    if (line.held + line.waiting === 0 && this.#lines.get(developerId) === line) this.#lines.delete(developerId)
  }
}

/** The first of the next key; what else waits with that key goes to the end. */
function takeFirst(keys: Map<string, Waiting[]>): Waiting | undefined {
  const [key] = keys.keys()
  return key === undefined ? undefined : remove(keys, key, 0)
}

function remove(keys: Map<string, Waiting[]>, key: string, index: number): Waiting | undefined {
  const ofKey = keys.get(key) ?? []
  const [taken] = ofKey.splice(index, 1)
  if (index === 0) keys.delete(key)
  if (index === 0 && ofKey.length > 0) keys.set(key, ofKey)
  else if (ofKey.length === 0) keys.delete(key)
  return taken
}
