/**
 * The command connection of one account: opened on demand, closed after MAILROOM_COMMAND_IDLE_CLOSE without work.
 * Everything but the watching of INBOX runs here, one task at a time: API calls before live mail before back-fill.
 */
import PQueue from 'p-queue'
import { AppError, isAppError } from '../errors.ts'
import { withinTime } from '../waits.ts'
import type { Session } from './session-types.ts'

/** `stream`: the next piece of a long answer. It takes turns with live mail, so that neither waits for long. */
export type Priority = 'api' | 'stream' | 'live' | 'backfill'

const rank: Record<Priority, number> = { api: 2, stream: 1, live: 1, backfill: 0 }

export type Lane = ReturnType<typeof createLane>

export function createLane(concurrency = 1) {
  const queue = new PQueue({ concurrency })
  return {
    /** Runs work when its turn comes. `signal` ends the wait for the turn: work under way has deadlines of its own. */
    run: <T>(priority: Priority, work: () => Promise<T>, signal?: AbortSignal): Promise<T> =>
      queue.add(work, { priority: rank[priority], ...(signal && { signal }) }),
    get pending() {
      return queue.size + queue.pending
    },
    depth: () => ({ waiting: queue.size, running: queue.pending }),
  }
}

/** The link was closed before the work began: it may be done over the link that follows. */
export function notBegun(error: unknown): boolean {
  return isAppError(error, 'account_unavailable') && error.details['begun'] === false
}

export function renewed(begun: boolean, cause?: unknown): AppError {
  return new AppError('account_unavailable', 'the connection to the mail server is being renewed; try again', {
    retryAfterMs: 1000,
    details: { begun },
    cause,
  })
}

interface LinkDeps {
  /** Logs in; an API call's login goes before others. `hurried`: an API call has come to wait for it. */
  readonly login: (priority: Priority, signal: AbortSignal, hurried: AbortSignal) => Promise<Session>
  readonly idleCloseMs: number
  /** How long an API call may wait for its turn and its answer. */
  readonly waitMs: number
}

type Work<T> = (session: Session) => Promise<T>

export type Link = ReturnType<typeof createLink>

/** An API call waits for the answer. */
export function isAwaited(priority: Priority): boolean {
  return priority === 'api' || priority === 'stream'
}

export function createLink({ login, idleCloseMs, waitMs }: LinkDeps) {
  const lane = createLane()
  const ended = new AbortController()
  let session: Session | null = null
  let timer: NodeJS.Timeout | undefined
  let hurry = new AbortController()

  async function drop(): Promise<void> {
    const old = session
    session = null
    await old?.close()
  }

  async function ready(priority: Priority): Promise<Session> {
    if (session !== null && !session.closed) return session
    session = null
    hurry = new AbortController()
    const fresh = await login(priority, ended.signal, hurry.signal)
    if (ended.signal.aborted) await fresh.close()
    ended.signal.throwIfAborted()
    session = fresh
    return fresh
  }

  function rest(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (lane.pending === 0) void drop()
    }, idleCloseMs)
    timer.unref()
  }

  async function turn<T>(priority: Priority, work: Work<T>, begun: () => void): Promise<T> {
    begun()
    ended.signal.throwIfAborted()
    clearTimeout(timer)
    try {
      return await work(await ready(priority))
    } catch (error) {
      // A session that we closed ourselves was not lost.
      if (ended.signal.aborted && isAppError(error, 'network')) throw renewed(true, error)
      throw error
    } finally {
      rest()
    }
  }

  /** `moreMs`: work that has begun is waited for so much longer. */
  const run = <T>(priority: Priority, work: Work<T>, moreMs = 0): Promise<T> => {
    const begin: Begin<T> = (begun, signal) => lane.run(priority, () => turn(priority, work, begun), signal)
    if (!isAwaited(priority)) return begin(() => undefined)
    hurry.abort('hurry')
    return inTime(waitMs, moreMs, begin)
  }

  return {
    ...{ run, depth: lane.depth },
    get open(): boolean {
      return session !== null && !session.closed
    },
    /** Work under way or waiting rejects with `account_unavailable`: another link follows this one. See `notBegun`. */
    async close(): Promise<void> {
      ended.abort(renewed(false))
      clearTimeout(timer)
      await drop()
    },
  }
}

type Begin<T> = (begun: () => void, signal?: AbortSignal) => Promise<T>

/**
 * The answer, or `timeout`. Work whose turn has not come by then is not begun any more; other work goes on, only no
 * longer waited for.
 */
async function inTime<T>(waitMs: number, moreMs: number, begin: Begin<T>): Promise<T> {
  const unbegun = new AbortController()
  let waiting = true
  const answer = begin(() => {
    waiting = false
  }, unbegun.signal)
  return withinTime(waitMs, answer, () => {
    if (waiting) {
      const busy = late('the connection to the mail server is busy with other work of this account')
      unbegun.abort(busy)
      throw busy
    }
    return withinTime(moreMs, answer, () => {
      throw late(`the mail server did not answer within ${Math.round((waitMs + moreMs) / 1000)} s`)
    })
  })
}

function late(why: string): AppError {
  return new AppError('timeout', why, { retryAfterMs: 5000 })
}
