/**
 * Who may use what, and when. A lane is the queue before one connection of an account: API calls before live sync before
 * back-fill. The login limiter spreads new logins over time, host by host, so that a restart with a thousand accounts does not
 * look like an attack, and a host that rejects logins is asked less often, but never not at all.
 */
import PQueue from 'p-queue'
import type { AppError } from '../errors.ts'

export type Priority = 'api' | 'live' | 'backfill'

const rank: Record<Priority, number> = { api: 2, live: 1, backfill: 0 }

export interface Lane {
  /**
   * Runs work when its turn comes and answers what it answers. `signal` gives up waiting (work under way goes on: it has its own
   * deadlines). Rejects with the signal's reason, or with the lane's end.
   */
  run<T>(priority: Priority, work: () => Promise<T>, signal?: AbortSignal): Promise<T>
  /** Tasks under way and waiting. */
  readonly pending: number
  /** true when a task of at least this priority waits: back-fill asks this to step aside. */
  wanted(least: Priority): boolean
  /** Waiting tasks and all later ones reject with `reason`. */
  end(reason: AppError): void
}

type Counts = Record<Priority, number>

interface Queued<T> {
  readonly priority: Priority
  readonly work: () => Promise<T>
  readonly given: AbortSignal
}

/** Waits in the queue until its turn or until given up; settles the answer's promise itself, so the queue's task never rejects. */
function enlist<T>(queue: PQueue, waiting: Counts, active: { count: number }, task: Queued<T>): Promise<T> {
  const { priority, work, given } = task
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const leave = (): void => {
    given.removeEventListener('abort', giveUp)
    waiting[priority] -= 1
  }
  const giveUp = (): void => {
    leave()
    reject(given.reason)
  }
  waiting[priority] += 1
  given.addEventListener('abort', giveUp, { once: true })
  void queue.add(
    async () => {
      if (given.aborted) return
      leave()
      active.count += 1
      const settled = await Promise.allSettled([Promise.try(work)])
      active.count -= 1
      const [outcome] = settled
      if (outcome.status === 'fulfilled') resolve(outcome.value)
      else reject(outcome.reason)
    },
    { priority: rank[priority] },
  )
  return promise
}

/** At most `concurrency` tasks at once; 1 for one connection. */
export function createLane(concurrency = 1): Lane {
  const queue = new PQueue({ concurrency })
  const waiting: Counts = { api: 0, live: 0, backfill: 0 }
  const active = { count: 0 }
  const ended = new AbortController()
  return {
    async run(priority, work, signal) {
      const given = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
      given.throwIfAborted()
      return enlist(queue, waiting, active, { priority, work, given })
    },
    get pending() {
      return active.count + waiting.api + waiting.live + waiting.backfill
    },
    wanted: (least) => (Object.keys(rank) as Priority[]).some((p) => rank[p] >= rank[least] && waiting[p] > 0),
    end(reason) {
      if (!ended.signal.aborted) ended.abort(reason)
    },
  }
}

/** Failed logins of one host within this time count … */
const failureWindowMs = 600_000
/** … and from this many on the host is slowed … */
const failureBudget = 5
/** … by this factor. */
const slowFactor = 10
const minuteMs = 60_000
/** The ramp: logins of a host are this many times closer together than an even spread, until the minute's number is used. */
const rampFactor = 4

export interface LoginLimiter {
  /** Resolves when a login to the host may begin. An `urgent` one (an API call waits for it) goes before the others. */
  enter(host: string, options: { readonly urgent: boolean; readonly signal: AbortSignal }): Promise<void>
  /** The server rejected the login that was let in. */
  failed(host: string): void
  /** Logins waiting, over all hosts. */
  readonly waiting: number
}

interface Entrant {
  readonly urgent: boolean
  readonly admit: () => void
}

interface Gate {
  /** Times of the logins of the last minute, oldest first. */
  starts: number[]
  failures: number[]
  queue: Entrant[]
  timer: NodeJS.Timeout | null
}

/** When the next login may start: the minute's number is kept over any 60 s, and two logins keep their distance. */
function nextStart(gate: Gate, perMinute: number, now: number, urgent: boolean): number {
  const slowed = gate.failures.length >= failureBudget
  const limit = slowed ? Math.max(1, Math.floor(perMinute / slowFactor)) : perMinute
  const first = gate.starts[gate.starts.length - limit]
  const byNumber = first === undefined ? now : first + minuteMs
  const last = gate.starts.at(-1)
  const distance = slowed ? minuteMs / limit : minuteMs / limit / rampFactor
  const byDistance = last === undefined || (urgent && !slowed) ? now : last + distance
  return Math.max(now, byNumber, byDistance)
}

function forget(gate: Gate, at: number): void {
  gate.starts = gate.starts.filter((time) => time > at - minuteMs)
  gate.failures = gate.failures.filter((time) => time > at - failureWindowMs)
}

/** Lets in who may, and sets the timer for who may not yet. */
function advance(gate: Gate, perMinute: number, now: () => number): void {
  if (gate.timer) clearTimeout(gate.timer)
  gate.timer = null
  for (;;) {
    const at = now()
    forget(gate, at)
    const next = gate.queue[0]
    if (!next) return
    const start = nextStart(gate, perMinute, at, next.urgent)
    if (start > at) {
      gate.timer = setTimeout(() => advance(gate, perMinute, now), Math.ceil(start - at))
      return
    }
    gate.queue.shift()
    gate.starts.push(at)
    next.admit()
  }
}

/** Behind the urgent ones when urgent, else at the end. */
function enqueue(gate: Gate, entrant: Entrant): void {
  const behind = entrant.urgent ? gate.queue.findIndex((other) => !other.urgent) : -1
  if (behind < 0) gate.queue.push(entrant)
  else gate.queue.splice(behind, 0, entrant)
}

/** `perMinute` 0 = no limit. */
export function createLoginLimiter(options: { readonly perMinute: number; readonly now?: () => number }): LoginLimiter {
  const { perMinute, now = Date.now } = options
  const gates = new Map<string, Gate>()

  function gateOf(host: string): Gate {
    const key = host.toLowerCase()
    const gate = gates.get(key) ?? { starts: [], failures: [], queue: [], timer: null }
    gates.set(key, gate)
    return gate
  }

  async function enter(host: string, urgent: boolean, signal: AbortSignal): Promise<void> {
    const gate = gateOf(host)
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        gate.queue = gate.queue.filter((other) => other !== entrant)
        reject(signal.reason as Error)
        advance(gate, perMinute, now)
      }
      const admit = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const entrant: Entrant = { urgent, admit }
      signal.addEventListener('abort', giveUp, { once: true })
      enqueue(gate, entrant)
      advance(gate, perMinute, now)
    })
  }

  return {
    async enter(host, { urgent, signal }) {
      signal.throwIfAborted()
      if (perMinute > 0) await enter(host, urgent, signal)
    },
    failed(host) {
      if (perMinute > 0) gateOf(host).failures.push(now())
    },
    get waiting() {
      return [...gates.values()].reduce((sum, gate) => sum + gate.queue.length, 0)
    },
  }
}
