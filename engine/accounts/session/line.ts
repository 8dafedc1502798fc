/**
 * The command line of a session: one command at a time, in the order of the calls, each with a deadline on progress.
 * IDLE (RFC 2177) holds the line too: it enters at once, and leaves as soon as another command waits.
 */
import { AppError, isAppError } from '../../errors.ts'
import { connectionFailure, serverFailure } from '../failures.ts'
import type { Literal } from '../../spool.ts'
import { type Argument, type ImapResponse, pourLiteral, type Untagged, type Wire } from './below.ts'
import type { Allowance } from './frames.ts'
import { statusText, type StatusText } from './responses.ts'
import { createExclusive, pause } from '../../scheduling.ts'

export interface Life {
  /** Why the session has ended; null while it goes on. */
  readonly ended: () => AppError | null
  readonly closed: AbortSignal
  /** Ends the session with an error, or on purpose with null. */
  readonly end: (error: AppError | null) => void
}

/** EXPUNGEISSUED: another client has expunged a message that this connection still sees (RFC 5530). */
export function tellsGone(code: unknown): boolean {
  return code === 'EXPUNGEISSUED'
}

/**
 * Sends one command and reads its answer. Rejects with `server_refused` (NO, BAD: details.status), `not_found` or
 * `conflict`, after which the session goes on; any other error has ended it.
 */
export type Send = (
  command: string,
  args?: readonly Argument[],
  untagged?: Readonly<Record<string, Untagged>>,
  allowance?: Allowance,
  /** Sent after the server's continuation request. */
  literal?: Literal,
) => Promise<StatusText>

/** Whether the session goes on after the error. */
export function survives(error: unknown): boolean {
  return isAppError(error, 'server_refused') || isAppError(error, 'not_found') || isAppError(error, 'conflict')
}

/** Turns a refusal into null. */
export function orNull<T>(work: Promise<T>): Promise<T | null> {
  return work.catch((error: unknown) => {
    if (survives(error)) return null
    throw error
  })
}

interface LineDeps {
  readonly wire: Wire
  readonly life: Life
  readonly commandTimeoutMs: number
  readonly onCommand?: ((kind: string, seconds: number) => void) | undefined
}

/** Bytes received plus bytes that have left for the network. */
function progress(wire: Wire): number {
  const { socket } = wire
  return wire.streamer.readBytesCounter + (socket ? socket.bytesWritten - socket.writableLength : 0)
}

function watchdog({ wire, commandTimeoutMs, life }: LineDeps): () => void {
  let last = progress(wire)
  let still = 0
  // Looks four times within the time, and so finds a standstill at most a quarter late.
  const timer = setInterval(
    () => {
      const now = progress(wire)
      still = now === last ? still + 1 : 0
      last = now
      if (still < 4) return
      clearInterval(timer)
      life.end(new AppError('timeout', 'the mail server did not answer in time'))
    },
    Math.max(1, commandTimeoutMs / 4),
  )
  return () => clearInterval(timer)
}

/** imapflow's errors: the status of a tagged NO or BAD; null = another error. */
export function refusalOf(error: unknown): 'NO' | 'BAD' | null {
  const { responseStatus } = (error ?? {}) as { readonly responseStatus?: unknown }
  return responseStatus === 'NO' || responseStatus === 'BAD' ? responseStatus : null
}

/** The class of a NO or BAD by its text; every other error means the end of the connection. */
function commandFailure(error: unknown): AppError {
  const status = refusalOf(error)
  const { response } = (error ?? {}) as { readonly response?: ImapResponse }
  if (status === null || !response) return connectionFailure(error)
  const { code, text } = statusText(response)
  return serverFailure({ status, code, text, phase: 'command' }, error)
}

/**
 * `onPlusTag` does not wait for the end of the literal: the server may refuse the rest. A literal that is cut short
 * ends the session, because the server waits for its bytes.
 */
function literalSender({ wire, life }: LineDeps, literal: Literal) {
  let state: 'unasked' | 'under way' | 'sent' = 'unasked'
  return {
    onPlusTag(): void {
      if (state !== 'unasked') return
      state = 'under way'
      pourLiteral(wire, literal, life.closed).then(
        () => (state = 'sent'),
        (error: unknown) => life.end(isAppError(error) ? error : connectionFailure(error)),
      )
    },
    /** Called when the command has its answer. */
    close(): void {
      if (state === 'under way') life.end(new AppError('network', 'the mail server answered before it had the message'))
    },
  }
}

function createSender(deps: LineDeps): Send {
  const { wire, life } = deps
  return async (command, args = [], untagged = {}, allowance = {}, literal?) => {
    const over = life.ended()
    if (over) throw over
    const stop = watchdog(deps)
    const started = performance.now()
    const sender = literal && literalSender(deps, literal)
    const options = { untagged, allowance, ...(sender && { onPlusTag: sender.onPlusTag }) }
    try {
      const { response, next } = await wire.exec(command, args.length === 0 ? false : args, options)
      next()
      return statusText(response)
    } catch (error) {
      const failure = life.ended() ?? commandFailure(error)
      if (!survives(failure)) life.end(failure)
      throw failure
    } finally {
      stop()
      sender?.close()
      deps.onCommand?.(command, (performance.now() - started) / 1000)
    }
  }
}

export type Line = ReturnType<typeof createLine>

export function createLine(deps: LineDeps) {
  const send = createSender(deps)
  const exclusive = createExclusive()
  let waiting = 0
  let onWaiting = (): void => undefined

  return {
    run<T>(work: (send: Send) => Promise<T>): Promise<T> {
      waiting += 1
      onWaiting()
      return exclusive(async () => {
        waiting -= 1
        const over = deps.life.ended()
        if (over) throw over
        return work(send)
      })
    },
    get waiting(): number {
      return waiting
    },
    /** Calls the listener, until another one replaces it, whenever a command starts to wait. */
    onWaiting(listener: () => void): void {
      onWaiting = listener
    },
    /** Starts the deadline on progress; returns the function that ends it. */
    watch: (): (() => void) => watchdog(deps),
  }
}

/** A server that ends IDLE by itself within this time, this many times in a row, does not really support it. */
const uselessMs = 1000
const uselessTimes = 3

type Outcome = 'left' | 'ended-by-server' | 'refused'

interface IdlerDeps {
  readonly wire: Wire
  readonly life: Life
  readonly line: Line
  readonly offered: boolean
}

/** IDLEs until the time is over, the signal aborts, or a command waits. From `+` to DONE there is no deadline. */
async function idleOnce({ wire, line, life }: IdlerDeps, renewMs: number, signal: AbortSignal): Promise<Outcome> {
  if (signal.aborted || line.waiting > 0) return 'left'
  const stage = { entered: false, wanted: false, done: false, stopWatch: line.watch() }
  // DONE is sent after the server's `+`, and only once.
  const leave = (): void => {
    stage.wanted = true
    if (!stage.entered || stage.done || life.ended()) return
    stage.done = true
    stage.stopWatch = line.watch()
    try {
      wire.write('DONE')
    } catch (error) {
      life.end(connectionFailure(error))
    }
  }
  const onPlusTag = (): void => {
    if (stage.entered) return
    stage.entered = true
    stage.stopWatch()
    if (stage.wanted) leave()
  }
  const timer = setTimeout(leave, renewMs)
  line.onWaiting(leave)
  signal.addEventListener('abort', leave, { once: true })
  try {
    const { next } = await wire.exec('IDLE', false, { onPlusTag, allowance: {} })
    next()
    return stage.done ? 'left' : 'ended-by-server'
  } catch (error) {
    const over = life.ended()
    if (over) throw over
    if (refusalOf(error) !== null) return stage.done ? 'left' : 'refused'
    const failure = connectionFailure(error)
    life.end(failure)
    throw failure
  } finally {
    stage.stopWatch()
    clearTimeout(timer)
    line.onWaiting(() => undefined)
    signal.removeEventListener('abort', leave)
  }
}

export function createIdler(deps: IdlerDeps) {
  const { line, life } = deps
  let useful = deps.offered
  let useless = 0

  async function idleAndJudge(renewMs: number, signal: AbortSignal): Promise<void> {
    const started = performance.now()
    const outcome = await line.run(() => idleOnce(deps, renewMs, signal))
    const soon = performance.now() - started < uselessMs
    useless = outcome === 'ended-by-server' && soon ? useless + 1 : 0
    if (outcome === 'refused' || useless >= uselessTimes) useful = false
  }

  return {
    /** false when the server offers no IDLE, refuses it, or ends it too soon. */
    get useful(): boolean {
      return useful
    },
    /**
     * Waits in IDLE until `signal` aborts, the cycle ends (`renewMs`) or another command of this session waits. Without
     * IDLE: until `renewMs` or abort.
     */
    async idle(renewMs: number, signal: AbortSignal): Promise<void> {
      if (signal.aborted) return
      if (useful) await idleAndJudge(renewMs, signal)
      else await pause(renewMs, AbortSignal.any([signal, life.closed]))
      const over = life.ended()
      if (over) throw over
    },
  }
}
