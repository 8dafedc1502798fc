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

export function createLink(deps: LinkDeps): Link {
  const ended = new AbortController()
  let session: Session | null = null
  let timer: NodeJS.Timeout | null = null

  async function ready(priority: Priority): Promise<Session> {
    if (session !== null && !session.closed) return session
    session = null
    session = await deps.open(priority, ended.signal)
    return session
  }

  function rest(): void {
    if (timer !== null) clearTimeout(timer)
    timer = setTimeout(() => {
      timer = null
      if (deps.lane.pending === 0) void drop()
    }, deps.idleCloseMs)
    timer.unref()
  }

  async function drop(): Promise<void> {
    const old = session
    session = null
    await old?.close()
  }

  function run<T>(priority: Priority, work: (session: Session) => Promise<T>): Promise<T> {
    return deps.lane.run(priority, async () => {
      ended.signal.throwIfAborted()
      if (timer !== null) clearTimeout(timer)
      try {
        return await work(await ready(priority))
      } finally {
        rest()
      }
    })
  }

  function bounded<T>(priority: Priority, work: (session: Session) => Promise<T>): Promise<T> {
    return priority === 'api' ? inTime(run(priority, work), deps.waitMs) : run(priority, work)
  }

  return {
    run: bounded,
    hold: (work) => run('api', work),
    onFolder: (priority, path, work) =>
      bounded(priority, async (open) => {
        await open.select(path)
        return work(open)
      }),
    get open() {
      return session !== null && !session.closed
    },
    async close() {
      ended.abort(new AppError('shutting_down', 'the account is being stopped'))
      if (timer !== null) clearTimeout(timer)
      await drop()
    },
  }
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
