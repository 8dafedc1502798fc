/**
 * The command connection of one account: opened on demand, closed after MAILROOM_COMMAND_IDLE_CLOSE without work.
 * Everything but the watching of INBOX runs here, one task at a time: API calls before live mail before back-fill.
 */
import PQueue from 'p-queue'
import { AppError, isAppError } from '../errors.ts'
import type { Session } from './session-types.ts'

/** `stream`: the next piece of a long answer. It takes turns with live mail, so that neither waits for long. */
export type Priority = 'api' | 'stream' | 'live' | 'backfill'

const rank: Record<Priority, number> = { api: 2, stream: 1, live: 1, backfill: 0 }

export type Lane = ReturnType<typeof createLane>

/** A queue of tasks, at most `concurrency` of them at once. */
export function createLane(concurrency = 1) {
  const queue = new PQueue({ concurrency })
  return {
    /** Runs work when its turn comes. `signal` ends the wait for the turn: work under way has deadlines of its own. */
    run: <T>(priority: Priority, work: () => Promise<T>, signal?: AbortSignal): Promise<T> =>
      queue.add(work, { priority: rank[priority], ...(signal && { signal }) }),
    /** Tasks under way and waiting. */
    get pending() {
      return queue.size + queue.pending
    },
  }
}

/** The link was closed before the work began: it may be done over the link that follows. */
export function notBegun(error: unknown): boolean {
  return isAppError(error, 'account_unavailable') && error.details['begun'] === false
}

function renewed(begun: boolean, cause?: unknown): AppError {
  return new AppError('account_unavailable', 'the connection to the mail server is being renewed; try again', {
    retryAfterMs: 1000,
    details: { begun },
    cause,
  })
}

interface LinkDeps {
  readonly lane: Lane
  /** Logs in; an API call's login goes before others. */
  readonly open: (priority: Priority, signal: AbortSignal) => Promise<Session>
  readonly idleCloseMs: number
  /** How long an API call may wait for its turn and its answer. */
  readonly waitMs: number
}

/** The connection while it is open, and the timer that closes it. */
interface Line {
  readonly deps: LinkDeps
  readonly ended: AbortController
  session: Session | null
  timer: NodeJS.Timeout | null
}

export type Link = ReturnType<typeof createLink>

export function createLink(deps: LinkDeps) {
  const line: Line = { deps, ended: new AbortController(), session: null, timer: null }

  /**
   * Runs work on the connection. An API call, and a piece of its stream, that has no answer within `waitMs` rejects
   * with `timeout`; one whose turn had not come by then is not begun any more.
   */
  function runOn<T>(priority: Priority, work: (session: Session) => Promise<T>): Promise<T> {
    return priority === 'api' || priority === 'stream' ? inTime(line, priority, work) : run(line, { priority, work })
  }

  return {
    run: runOn,
    /** The same with the folder selected. */
    onFolder: <T>(priority: Priority, path: string, work: (session: Session) => Promise<T>): Promise<T> =>
      runOn(priority, async (session) => {
        await session.select(path)
        return work(session)
      }),
    /** true while a connection is open. */
    get open(): boolean {
      return line.session !== null && !line.session.closed
    },
    /** Work under way or waiting rejects with `account_unavailable`: another link follows this one. See `notBegun`. */
    async close(): Promise<void> {
      line.ended.abort(renewed(false))
      if (line.timer !== null) clearTimeout(line.timer)
      await drop(line)
    },
  }
}

interface Task<T> {
  readonly priority: Priority
  readonly work: (session: Session) => Promise<T>
  /** Its turn has come. */
  readonly begun?: () => void
  /** Gives up waiting for the turn. */
  readonly signal?: AbortSignal
}

function run<T>(line: Line, { priority, work, begun, signal }: Task<T>): Promise<T> {
  const turn = async (): Promise<T> => {
    begun?.()
    line.ended.signal.throwIfAborted()
    if (line.timer !== null) clearTimeout(line.timer)
    try {
      const session = await ready(line, priority)
      return await working(line, () => work(session))
    } finally {
      rest(line)
    }
  }
  return line.deps.lane.run(priority, turn, signal)
}

/** Work whose session we closed ourselves did not lose the connection: that is told apart. */
async function working<T>(line: Line, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (line.ended.signal.aborted && isAppError(error, 'network')) throw renewed(true, error)
    throw error
  }
}

async function ready(line: Line, priority: Priority): Promise<Session> {
  if (line.session !== null && !line.session.closed) return line.session
  line.session = null
  const session = await line.deps.open(priority, line.ended.signal)
  if (line.ended.signal.aborted) await session.close()
  line.ended.signal.throwIfAborted()
  line.session = session
  return session
}

/** Closes the connection unless there is work again before. */
function rest(line: Line): void {
  if (line.timer !== null) clearTimeout(line.timer)
  line.timer = setTimeout(() => {
    line.timer = null
    if (line.deps.lane.pending === 0) void drop(line)
  }, line.deps.idleCloseMs)
  line.timer.unref()
}

async function drop(line: Line): Promise<void> {
  const old = line.session
  line.session = null
  await old?.close()
}

/** The answer, or `timeout`; work that goes on in the background is not lost, only no longer waited for. */
async function inTime<T>(line: Line, priority: Priority, work: (session: Session) => Promise<T>): Promise<T> {
  const { waitMs } = line.deps
  const unbegun = new AbortController()
  const late = Promise.withResolvers<never>()
  let waiting = true
  const timer = setTimeout(() => {
    if (waiting) unbegun.abort(tooLate('the connection to the mail server is busy with other work of this account'))
    else late.reject(tooLate(`the mail server did not answer within ${Math.round(waitMs / 1000)} s`))
  }, waitMs)
  const begun = (): void => {
    waiting = false
  }
  const answer = run(line, { priority, work, begun, signal: unbegun.signal })
  answer.catch(() => undefined)
  return Promise.race([answer, late.promise]).finally(() => clearTimeout(timer))
}

function tooLate(message: string): AppError {
  return new AppError('timeout', message, { retryAfterMs: 5000 })
}
