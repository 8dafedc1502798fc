/**
 * A lane is the queue before one connection of an account: API calls before live sync before back-fill. The turns of logins are
 * in login-limiter.ts.
 */
import PQueue from 'p-queue'
import type { AppError } from '../errors.ts'

/** `stream`: the next piece of a long answer, which takes turns with live mail so that neither waits for the other's end. */
export type Priority = 'api' | 'stream' | 'live' | 'backfill'

const rank: Record<Priority, number> = { api: 2, stream: 1, live: 1, backfill: 0 }

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
  const waiting: Counts = { api: 0, stream: 0, live: 0, backfill: 0 }
  const active = { count: 0 }
  const ended = new AbortController()
  return {
    async run(priority, work, signal) {
      const given = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
      given.throwIfAborted()
      return enlist(queue, waiting, active, { priority, work, given })
    },
    get pending() {
      return active.count + waiting.api + waiting.stream + waiting.live + waiting.backfill
    },
    wanted: (least) => (Object.keys(rank) as Priority[]).some((p) => rank[p] >= rank[least] && waiting[p] > 0),
    end(reason) {
      if (!ended.signal.aborted) ended.abort(reason)
    },
  }
}
