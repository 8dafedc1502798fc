/**
 * The command connection of one account: opened on demand, closed after MAILROOM_COMMAND_IDLE_CLOSE without work. Everything that
 * is not the watching of INBOX runs here, one task at a time, API calls before live sync before back-fill.
 */
import { AppError } from '../errors.ts'
import type { Lane, Priority } from './lanes.ts'
import type { Session } from './session-types.ts'

export interface Link {
  /** Runs work on the connection. A task that waits longer than `waitMs` for its turn rejects with `timeout`. */
  run<T>(priority: Priority, work: (session: Session) => Promise<T>): Promise<T>
  /** The same with the folder selected. */
  onFolder<T>(priority: Priority, path: string, work: (session: Session) => Promise<T>): Promise<T>
  /** An API call that may take as long as its stream is read: bounded by the stream's own progress. */
  hold<T>(work: (session: Session) => Promise<T>): Promise<T>
  /** true while a connection is open. */
  readonly open: boolean
  close(): Promise<void>
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
    return priority === 'api' ? inTime(run(line, priority, work), deps.waitMs) : run(line, priority, work)
  }

  return {
    run: bounded,
    hold: (work) => run(line, 'api', work),
    onFolder: (priority, path, work) =>
      bounded(priority, async (session) => {
        await session.select(path)
        return work(session)
      }),
    get open() {
      return line.session !== null && !line.session.closed
    },
    async close() {
      line.ended.abort(new AppError('shutting_down', 'the account is being stopped'))
      if (line.timer !== null) clearTimeout(line.timer)
      await drop(line)
    },
  }
}

function run<T>(line: Line, priority: Priority, work: (session: Session) => Promise<T>): Promise<T> {
  return line.deps.lane.run(priority, async () => {
    line.ended.signal.throwIfAborted()
    if (line.timer !== null) clearTimeout(line.timer)
    try {
      return await work(await ready(line, priority))
    } finally {
      rest(line)
    }
  })
}

async function ready(line: Line, priority: Priority): Promise<Session> {
  if (line.session !== null && !line.session.closed) return line.session
  line.session = null
  const session = await line.deps.open(priority, line.ended.signal)
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
async function inTime<T>(work: Promise<T>, waitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new AppError('timeout', `the mail server did not answer within ${Math.round(waitMs / 1000)} s`, {
            retryAfterMs: 5000,
          }),
        ),
      waitMs,
    )
  })
  work.catch(() => undefined)
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
