/**
 * The command connection of one account: opened on demand, closed after MAILROOM_COMMAND_IDLE_CLOSE without work. Everything that
 * is not the watching of INBOX runs here, one task at a time, API calls before live sync before back-fill.
 */
import { AppError, isAppError } from '../errors.ts'
import type { Lane, Priority } from './lanes.ts'
import type { Session } from './session-types.ts'

export interface Link {
  /**
   * Runs work on the connection. An API call, and a piece of its stream, that has no answer within `waitMs` rejects with `timeout`;
   * one whose turn had not come by then is not begun any more.
   */
  run<T>(priority: Priority, work: (session: Session) => Promise<T>): Promise<T>
  /** The same with the folder selected. */
  onFolder<T>(priority: Priority, path: string, work: (session: Session) => Promise<T>): Promise<T>
  /** true while a connection is open. */
  readonly open: boolean
  /** Work under way or waiting rejects with `account_unavailable`: another link follows this one. See `notBegun`. */
  close(): Promise<void>
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

export interface LinkDeps {
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

export function createLink(deps: LinkDeps): Link {
  const line: Line = { deps, ended: new AbortController(), session: null, timer: null }

  function bounded<T>(priority: Priority, work: (session: Session) => Promise<T>): Promise<T> {
    return priority === 'api' || priority === 'stream' ? inTime(line, priority, work) : run(line, { priority, work })
  }

  return {
    run: bounded,
    onFolder: (priority, path, work) =>
      bounded(priority, async (session) => {
        await session.select(path)
        return work(session)
      }),
    get open() {
      return line.session !== null && !line.session.closed
    },
    async close() {
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
