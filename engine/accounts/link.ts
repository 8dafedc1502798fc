/**
 * The command connection of one account: opened on demand, closed after MAILROOM_COMMAND_IDLE_CLOSE without work. API
 * calls run here, one at a time; the index is never written from it.
 */
import PQueue from 'p-queue'
import { AppError, isAppError } from '../errors.ts'
import { withinTime } from '../scheduling.ts'
import type { Session } from './session/index.ts'

/** `stream`: the next piece of a long answer, behind other calls. */
export type Priority = 'api' | 'stream'

export type Lane = ReturnType<typeof createLane>

export function createLane(concurrency = 1) {
  const queue = new PQueue({ concurrency })
  return {
    /** Runs work when its turn comes. `signal` ends the wait for the turn, not the work. */
    run: <T>(work: () => Promise<T>, priority: Priority = 'api', signal?: AbortSignal): Promise<T> =>
      queue.add(work, { priority: priority === 'api' ? 1 : 0, ...(signal && { signal }) }),
    get pending() {
      return queue.size + queue.pending
    },
    depth: () => ({ waiting: queue.size, running: queue.pending }),
    idle: () => queue.onIdle(),
  }
}

/** Whether the link was closed before the work began: the next link may do the work. */
export function notBegun(error: unknown): boolean {
  return isAppError(error, 'account_unavailable') && error.details['begun'] === false
}

/** Whether the link was closed before or during the work. */
export function wasRenewed(error: unknown): boolean {
  return isAppError(error, 'account_unavailable') && 'begun' in error.details
}

export function renewed(begun: boolean, cause?: unknown): AppError {
  return new AppError('account_unavailable', 'the connection to the mail server is being renewed; try again', {
    retryAfterMs: 1000,
    details: { begun },
    cause,
  })
}

interface LinkDeps {
  readonly login: (signal: AbortSignal) => Promise<Session>
  readonly idleCloseMs: number
  /** The longest wait of an API call for its turn and its answer. */
  readonly waitMs: number
}

/** Time for the answer to a command under way: the mail server may have done it already. */
const endsMs = 1000

type Work<T> = (session: Session) => Promise<T>

export type Link = ReturnType<typeof createLink>

export function createLink({ login, idleCloseMs, waitMs }: LinkDeps) {
  const lane = createLane()
  const ended = new AbortController()
  let session: Session | null = null
  let timer: NodeJS.Timeout | undefined

  async function drop(): Promise<void> {
    const old = session
    session = null
    await old?.close()
  }

  async function ready(): Promise<Session> {
    if (session !== null && !session.closed) return session
    session = null
    const fresh = await login(ended.signal)
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

  async function turn<T>(work: Work<T>, begun: () => void): Promise<T> {
    begun()
    ended.signal.throwIfAborted()
    clearTimeout(timer)
    try {
      return await work(await ready())
    } catch (error) {
      // Our own closing of the session is no network failure.
      if (ended.signal.aborted && isAppError(error, 'network')) throw renewed(true, error)
      throw error
    } finally {
      rest()
    }
  }

  /** `moreMs`: further time for work that has begun. */
  const run = <T>(work: Work<T>, priority: Priority = 'api', moreMs = 0): Promise<T> =>
    inTime(waitMs, moreMs, (begun, signal) => lane.run(() => turn(work, begun), priority, signal))

  return {
    ...{ run, depth: lane.depth },
    /** Work under way has `endsMs` to end. Work that lasts longer, or waits, is rejected: see `notBegun`. */
    async close(): Promise<void> {
      ended.abort(renewed(false))
      clearTimeout(timer)
      if (session !== null) await withinTime(endsMs, lane.idle())
      await drop()
    },
  }
}

type Begin<T> = (begun: () => void, signal?: AbortSignal) => Promise<T>

/** The work's result, or `timeout`. Late work that is still waiting never begins; late work under way goes on. */
async function inTime<T>(waitMs: number, moreMs: number, begin: Begin<T>): Promise<T> {
  const unbegun = new AbortController()
  let waiting = true
  const begun = (): void => void (waiting = false)
  const answer = begin(begun, unbegun.signal)
  return withinTime(waitMs, answer, () => {
    if (!waiting)
      return withinTime(moreMs, answer, () => {
        throw late(`the mail server did not answer within ${Math.round((waitMs + moreMs) / 1000)} s`)
      })
    unbegun.abort(busy())
    throw unbegun.signal.reason as AppError
  })
}

export function busy(): AppError {
  return late('the connection to the mail server is busy with other work of this account')
}

function late(why: string): AppError {
  return new AppError('timeout', why, { retryAfterMs: 5000 })
}
