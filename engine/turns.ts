/**
 * Places for work of which only so much may go on at once, in fair turns. The developer who holds the fewest places is
 * next; of several the one who has waited longest. Within a developer urgent work goes first, then its keys (accounts,
 * hosts) take turns. A developer who holds none may have one of the spare places, half as many as there are: so no
 * developer waits only for another one's work.
 *
 * Places may be lent. Who takes longer than a place is lent for gives it back and goes on without; too many of those at
 * once, and one of them is ended. The next work of the same key waits in turns of their own, with few places, until one
 * of its works has ended in time. So slow work delays only slow work, and how much goes on at once is bounded all the
 * same.
 */
import { AppError } from './errors.ts'

export interface Asked {
  readonly developerId: string
  /** An account, a host … */
  readonly key: string
  readonly urgent: boolean
}

export type GiveBack = () => void

export type Turns = ReturnType<typeof createTurns>

type Settle = (giveBack: GiveBack | null) => void

interface Line {
  readonly urgent: Ring<Settle>
  readonly usual: Ring<Settle>
  held: number
}

interface Room {
  readonly places: number
  readonly spare: number
  /** By developer; of those who hold equally many the first is next. */
  readonly lines: Map<string, Line>
  held: number
}

function createLine(): Line {
  return { urgent: createRing(), usual: createRing(), held: 0 }
}

function waitingIn({ urgent, usual }: Line): number {
  return urgent.size + usual.size
}

function nextDeveloper({ lines, held, places, spare }: Room): readonly [string, Line] | null {
  let best: readonly [string, Line] | null = null
  for (const entry of lines) {
    if (waitingIn(entry[1]) > 0 && (best === null || entry[1].held < best[1].held)) best = entry
  }
  if (best === null || held < places) return best
  return best[1].held === 0 && held < places + spare ? best : null
}

function tidy({ lines }: Room, developerId: string): void {
  const line = lines.get(developerId)
  if (line !== undefined && line.held + waitingIn(line) === 0) lines.delete(developerId)
}

function advance(room: Room): void {
  for (let next = nextDeveloper(room); next !== null; next = nextDeveloper(room)) {
    const [developerId, line] = next
    const settle = line.urgent.take() ?? line.usual.take()
    room.lines.delete(developerId)
    room.lines.set(developerId, line)
    room.held += 1
    line.held += 1
    settle?.(giveBackOf(room, developerId, line))
  }
}

/** Once; a second call does nothing. */
function giveBackOf(room: Room, developerId: string, line: Line): GiveBack {
  let given = false
  return () => {
    if (given) return
    given = true
    room.held -= 1
    line.held -= 1
    tidy(room, developerId)
    advance(room)
  }
}

export function createTurns(places: number) {
  const room: Room = { places, spare: Math.ceil(places / 2), lines: new Map(), held: 0 }
  return {
    /** A place, when its turn has come; null = it was sent away. Rejects with the signal's reason. */
    async take({ developerId, key, urgent }: Asked, signal: AbortSignal): Promise<GiveBack | null> {
      signal.throwIfAborted()
      const { promise, resolve, reject } = Promise.withResolvers<GiveBack | null>()
      const line = room.lines.get(developerId) ?? createLine()
      room.lines.set(developerId, line)
      const ring = urgent ? line.urgent : line.usual
      const giveUp = (): void => {
        if (!ring.remove(key, resolve)) return
        tidy(room, developerId)
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', giveUp, { once: true })
      ring.add(key, resolve)
      advance(room)
      return promise.finally(() => signal.removeEventListener('abort', giveUp))
    },
    dismiss({ developerId, key }: Pick<Asked, 'developerId' | 'key'>): void {
      const line = room.lines.get(developerId)
      if (line === undefined) return
      const away = [...line.urgent.removeAll(key), ...line.usual.removeAll(key)]
      tidy(room, developerId)
      for (const settle of away) settle(null)
    },
    get waiting(): number {
      return room.lines.values().reduce((sum, line) => sum + waitingIn(line), 0)
    },
  }
}

export type Ring<T> = ReturnType<typeof createRing<T>>

/** What waits, by key (an address, an account, a developer): the keys take turns, and of each key the first is next. */
export function createRing<T>() {
  const lines = new Map<string, T[]>()
  let size = 0
  return {
    get size(): number {
      return size
    },
    add(key: string, one: T): void {
      size += 1
      const line = lines.get(key)
      if (line === undefined) lines.set(key, [one])
      else line.push(one)
    },
    /** The first of the next key that `may`, if any; what else waits with that key goes to the end. */
    take(may: (key: string) => boolean = () => true): T | undefined {
      const key = lines.keys().find((one) => may(one))
      if (key === undefined) return undefined
      const line = lines.get(key) ?? []
      lines.delete(key)
      if (line.length > 1) lines.set(key, line)
      size -= 1
      return line.shift()
    },
    /** false = it does not wait. */
    remove(key: string, one: T): boolean {
      const line = lines.get(key) ?? []
      const index = line.indexOf(one)
      if (index < 0) return false
      size -= 1
      line.splice(index, 1)
      if (line.length === 0) lines.delete(key)
      return true
    },
    removeAll(key: string): readonly T[] {
      const line = lines.get(key) ?? []
      size -= line.length
      lines.delete(key)
      return line
    },
  }
}

export interface Loan {
  /** Something was achieved: the place is lent for a little longer. */
  readonly progress: () => void
  /**
   * Runs what is no part of the work; the time begins anew afterwards. What takes long gives the place back meanwhile.
   */
  untimed<T>(work: () => Promise<T>): Promise<T>
  /** Aborts when the work has to end: see `LoanOptions.ended`. */
  readonly signal: AbortSignal
}

interface Wanted {
  readonly signal: AbortSignal
  /** To be waited for besides: before a place is asked for, or, by a slow one, while it has its place. */
  readonly before?: () => Promise<void>
}

interface LoanOptions {
  readonly places: number
  /** A place is lent for so long … */
  readonly lendMs: number
  /** … and this much longer for each progress. */
  readonly progressMs: number
  /** Why work that takes too long was ended, for people. */
  readonly ended: string
}

/** Of what goes on without a place, this many times the places at most. */
const mostLate = 2
/** One in so many places is there for slow keys besides. */
const slowShare = 5
/** Callers choose hosts: of more than this the oldest are forgotten. */
const mostSlowKeys = 10_000

/** The time of one loan; `over` is called once at most. */
function createTimer({ lendMs, progressMs }: LoanOptions, over: () => void) {
  let timer: NodeJS.Timeout | undefined
  let more = 0
  let ended = false
  const arm = (ms: number): void => {
    timer = setTimeout(() => {
      const left = more
      more = 0
      if (left > 0) {
        arm(left)
        return
      }
      ended = true
      over()
    }, ms)
  }
  return {
    start: (): void => {
      more = 0
      if (!ended) arm(lendMs)
    },
    stop: (): void => clearTimeout(timer),
    progress: (): void => void (more += progressMs),
  }
}

interface Held {
  readonly asked: Asked
  readonly signal: AbortSignal
  giveBack: GiveBack
  inTime: boolean
  /** Ends the work. */
  readonly over: AbortController
}

export type Loans = Pick<Lender, 'run' | 'waiting'>

export function createLoans(options: LoanOptions): Loans {
  return new Lender(options)
}

class Lender {
  readonly #options: LoanOptions
  readonly #usual: Turns
  readonly #slow: Turns
  readonly #slowKeys = new Set<string>()
  /** What goes on without a place, oldest first. */
  readonly #late = new Set<Held>()

  constructor(options: LoanOptions) {
    this.#options = options
    this.#usual = createTurns(options.places)
    this.#slow = createTurns(Math.ceil(options.places / slowShare))
  }

  get waiting(): number {
    return this.#usual.waiting + this.#slow.waiting
  }

  async run<T>(
    asked: Asked,
    work: (loan: Loan) => Promise<T>,
    { signal, before = () => Promise.resolve() }: Wanted,
  ): Promise<T> {
    for (;;) {
      const turns = this.#turnsOf(asked)
      const isSlow = turns === this.#slow
      if (!isSlow) await before()
      if (this.#turnsOf(asked) !== turns) continue
      const giveBack = await turns.take(asked, signal)
      if (giveBack === null) continue
      return this.#lend({ asked, signal, giveBack, inTime: true, over: new AbortController() }, async (loan) => {
        if (isSlow) await loan.untimed(before)
        return work(loan)
      })
    }
  }

  async #lend<T>(held: Held, work: (loan: Loan) => Promise<T>): Promise<T> {
    const timer = createTimer(this.#options, () => this.#tooLong(held))
    const loan: Loan = {
      progress: timer.progress,
      untimed: (other) => {
        timer.stop()
        return this.#untimed(held, other).finally(timer.start)
      },
      signal: held.over.signal,
    }
    timer.start()
    try {
      return await work(loan)
    } finally {
      timer.stop()
      this.#late.delete(held)
      // What was given up says nothing.
      if (held.inTime && !held.signal.aborted) this.#mark(held.asked, false)
      held.giveBack()
    }
  }

  #tooLong(held: Held): void {
    held.inTime = false
    this.#mark(held.asked, true)
    this.#late.add(held)
    if (this.#late.size > this.#options.places * mostLate) this.#endOldest()
    held.giveBack()
  }

  /** Of the developer who has the most without a place. */
  #endOldest(): void {
    const counts = new Map<string, number>()
    for (const { asked } of this.#late) counts.set(asked.developerId, (counts.get(asked.developerId) ?? 0) + 1)
    const highest = Math.max(...counts.values())
    const oldest = [...this.#late].find(({ asked }) => counts.get(asked.developerId) === highest)
    if (oldest === undefined) return
    this.#late.delete(oldest)
    oldest.over.abort(new AppError('timeout', this.#options.ended))
  }

  /** The place is not kept for long: work that comes back gets one again before other work of the developer. */
  async #untimed<T>(held: Held, work: () => Promise<T>): Promise<T> {
    const late = new AbortController()
    const timer = setTimeout(() => {
      late.abort()
      held.giveBack()
    }, this.#options.lendMs)
    const answer = await work().finally(() => clearTimeout(timer))
    if (late.signal.aborted && held.inTime) held.giveBack = await this.#placeFor(held)
    return answer
  }

  /** In the turns that the key has to wait in now. */
  async #placeFor({ asked, signal }: Held): Promise<GiveBack> {
    for (;;) {
      const giveBack = await this.#turnsOf(asked).take({ ...asked, urgent: true }, signal)
      if (giveBack !== null) return giveBack
    }
  }

  #turnsOf(asked: Asked): Turns {
    return this.#slowKeys.has(idOf(asked)) ? this.#slow : this.#usual
  }

  /** Who waits in the wrong turns since asks anew. */
  #mark(asked: Asked, isSlow: boolean): void {
    const id = idOf(asked)
    if (this.#slowKeys.has(id) === isSlow) return
    if (isSlow) this.#slowKeys.add(id)
    else this.#slowKeys.delete(id)
    const [oldest] = this.#slowKeys
    if (this.#slowKeys.size > mostSlowKeys && oldest !== undefined) this.#slowKeys.delete(oldest)
    const left = isSlow ? this.#usual : this.#slow
    left.dismiss(asked)
  }
}

function idOf({ developerId, key }: Asked): string {
  return `${developerId} ${key}`
}
