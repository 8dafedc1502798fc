/**
 * Places that are lent (see turns.ts). Who takes longer than a place is lent for gives it back and goes on without; too
 * many of those at once, and one of them is ended. The next work of the same key (account, host) waits in turns of
 * their own, with few places, until one of its works has ended in time. So slow work delays only slow work, and how
 * much goes on at once is bounded all the same.
 */
import { AppError } from './errors.ts'
import { createTurns, type Asked, type GiveBack, type Turns } from './turns.ts'

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

export type Loans = ReturnType<typeof createLoans>

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

interface Late {
  readonly developerId: string
  readonly over: AbortController
}

/** What goes on without a place, oldest first. */
function createLate(most: number, why: string) {
  const late = new Set<Late>()
  return {
    add(one: Late): void {
      late.add(one)
      if (late.size <= most) return
      const counts = new Map<string, number>()
      for (const { developerId } of late) counts.set(developerId, (counts.get(developerId) ?? 0) + 1)
      const highest = Math.max(...counts.values())
      const first = [...late].find(({ developerId }) => counts.get(developerId) === highest)
      if (first === undefined) return
      late.delete(first)
      first.over.abort(new AppError('timeout', why))
    },
    delete: (one: Late) => late.delete(one),
  }
}

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

interface Lender {
  readonly options: LoanOptions
  readonly usual: Turns
  readonly slow: Turns
  readonly late: ReturnType<typeof createLate>
  readonly slowKeys: Set<string>
}

function idOf({ developerId, key }: Asked): string {
  return `${developerId} ${key}`
}

/** Who waits in the wrong turns since asks anew. */
function mark({ usual, slow, slowKeys }: Lender, asked: Asked, isSlow: boolean): void {
  const id = idOf(asked)
  if (slowKeys.has(id) === isSlow) return
  if (isSlow) slowKeys.add(id)
  else slowKeys.delete(id)
  const [oldest] = slowKeys
  if (slowKeys.size > mostSlowKeys && oldest !== undefined) slowKeys.delete(oldest)
  const left = isSlow ? usual : slow
  left.dismiss(asked)
}

function turnsOf({ slowKeys, slow, usual }: Lender, asked: Asked): Turns {
  return slowKeys.has(idOf(asked)) ? slow : usual
}

/** A place, in the turns that the key has to wait in now. */
async function placeFor(lender: Lender, asked: Asked, signal: AbortSignal): Promise<GiveBack> {
  for (;;) {
    const giveBack = await turnsOf(lender, asked).take(asked, signal)
    if (giveBack !== null) return giveBack
  }
}

interface Held {
  readonly asked: Asked
  readonly signal: AbortSignal
  giveBack: GiveBack
  inTime: boolean
}

/** The place is not kept for long: work that comes back gets one again before other work of the developer. */
async function untimed<T>(lender: Lender, held: Held, work: () => Promise<T>): Promise<T> {
  const late = new AbortController()
  const timer = setTimeout(() => {
    late.abort()
    held.giveBack()
  }, lender.options.lendMs)
  const answer = await work().finally(() => clearTimeout(timer))
  if (late.signal.aborted && held.inTime)
    held.giveBack = await placeFor(lender, { ...held.asked, urgent: true }, held.signal)
  return answer
}

async function lend<T>(lender: Lender, held: Held, work: (loan: Loan) => Promise<T>): Promise<T> {
  const { asked, signal } = held
  const late: Late = { developerId: asked.developerId, over: new AbortController() }
  const timer = createTimer(lender.options, () => {
    held.inTime = false
    mark(lender, asked, true)
    lender.late.add(late)
    held.giveBack()
  })
  const loan: Loan = {
    progress: timer.progress,
    async untimed(other) {
      timer.stop()
      return untimed(lender, held, other).finally(timer.start)
    },
    signal: late.over.signal,
  }
  timer.start()
  try {
    return await work(loan)
  } finally {
    timer.stop()
    lender.late.delete(late)
    // What was given up says nothing.
    if (held.inTime && !signal.aborted) mark(lender, asked, false)
    held.giveBack()
  }
}

async function run<T>(
  lender: Lender,
  asked: Asked,
  work: (loan: Loan) => Promise<T>,
  { signal, before = () => Promise.resolve() }: Wanted,
): Promise<T> {
  const id = idOf(asked)
  for (;;) {
    const isSlow = lender.slowKeys.has(id)
    if (!isSlow) await before()
    if (lender.slowKeys.has(id) !== isSlow) continue
    const giveBack = await turnsOf(lender, asked).take(asked, signal)
    if (giveBack === null) continue
    return lend(lender, { asked, signal, giveBack, inTime: true }, async (loan) => {
      if (isSlow) await loan.untimed(before)
      return work(loan)
    })
  }
}

export function createLoans(options: LoanOptions) {
  const usual = createTurns(options.places)
  const slow = createTurns(Math.ceil(options.places / slowShare))
  const late = createLate(options.places * mostLate, options.ended)
  const lender: Lender = { options, usual, slow, late, slowKeys: new Set() }
  return {
    run: <T>(asked: Asked, work: (loan: Loan) => Promise<T>, wanted: Wanted): Promise<T> =>
      run(lender, asked, work, wanted),
    get waiting(): number {
      return usual.waiting + slow.waiting
    },
  }
}
