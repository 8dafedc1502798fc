/**
 * The line: one command at a time, in the order asked, each with a deadline on progress. IDLE (RFC 2177) sits on the
 * line too: it enters at once, and leaves as soon as another command wants the line.
 */
import { AppError, isAppError } from '../../errors.ts'
import { connectionFailure, serverFailure } from '../failures.ts'
import type { Literal } from '../../spool.ts'
import { type Argument, type ImapResponse, pourLiteral, type Untagged, type Wire } from './below.ts'
import type { Allowance } from './frames.ts'
import { statusText, type StatusText } from './responses.ts'
import { createExclusive, pause } from '../../waits.ts'

export interface Life {
  /** Why it has ended; null while it goes on. */
  readonly ended: () => AppError | null
  readonly closed: AbortSignal
  /** Ends the session with an error, or on purpose with null. */
  readonly end: (error: AppError | null) => void
}

/** This code says that another client has expunged a message which the connection is still shown (RFC 5530). */
export function tellsGone(code: unknown): boolean {
  return code === 'EXPUNGEISSUED'
}

/**
 * Sends one command and reads its answer. Rejects with `server_refused` (NO, BAD: details.status), `not_found`,
 * `conflict`: the session goes on; any other error has ended it.
 */
export type Send = (
  command: string,
  args?: readonly Argument[],
  untagged?: Readonly<Record<string, Untagged>>,
  allowance?: Allowance,
  /** What follows when the server asks for it. */
  literal?: Literal,
) => Promise<StatusText>

/** Errors after which the connection is in order. */
export function survives(error: unknown): boolean {
  return isAppError(error, 'server_refused') || isAppError(error, 'not_found') || isAppError(error, 'conflict')
}

/** null in place of a refusal. */
export async function orNull<T>(work: Promise<T>): Promise<T | null> {
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

/** Bytes received and bytes that have left for the network. */
function progress(wire: Wire): number {
  const { socket } = wire
  return wire.streamer.readBytesCounter + (socket ? socket.bytesWritten - socket.writableLength : 0)
}

function watchdog({ wire, commandTimeoutMs, life }: LineDeps): () => void {
  let last = progress(wire)
  let still = 0
  // Four looks within the time: a standstill is seen at most a quarter late.
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

interface ExecError {
  readonly response?: ImapResponse
  readonly responseStatus?: unknown
}

/** NO and BAD as the server meant them; everything else is the connection's end. */
function commandFailure(error: unknown): AppError {
  const { response, responseStatus } = (error ?? {}) as ExecError
  if ((responseStatus === 'NO' || responseStatus === 'BAD') && response) {
    const { code, text } = statusText(response)
    return serverFailure({ status: responseStatus, code, text, phase: 'command' }, error)
  }
  return connectionFailure(error)
}

/**
 * `onPlusTag` does not wait for the end: the server may refuse the rest. A literal that is cut short leaves the server
 * waiting for bytes: that is the end of the session.
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
    /** The command has its answer. */
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
  const listeners = new Set<() => void>()
  const exclusive = createExclusive()
  let waiting = 0

  return {
    run<T>(work: (send: Send) => Promise<T>): Promise<T> {
      waiting += 1
      for (const listener of [...listeners]) listener()
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
    /** The listener is called whenever a command starts to wait. Answers how to stop that. */
    onWaiting(listener: () => void): () => void {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    /** A deadline that starts anew with every byte; call the answer to end it. */
    watch: (): (() => void) => watchdog(deps),
  }
}

/** A server that ends IDLE by itself this soon, this often, does not support it in fact. */
const uselessMs = 1000
const uselessTimes = 3

type Outcome = 'left' | 'ended-by-server' | 'refused'

interface IdlerDeps {
  readonly wire: Wire
  readonly life: Life
  readonly line: Line
  readonly offered: boolean
}

/** Until the time is over, the signal aborts, or a command waits for the line. No deadline from `+` to DONE. */
async function idleOnce({ wire, line, life }: IdlerDeps, renewMs: number, signal: AbortSignal): Promise<Outcome> {
  if (signal.aborted || line.waiting > 0) return 'left'
  const stage = { entered: false, wanted: false, done: false, stopWatch: line.watch() }
  // DONE may be sent once the server has said `+`, and once only.
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
  const unlisten = line.onWaiting(leave)
  signal.addEventListener('abort', leave, { once: true })
  try {
    const { next } = await wire.exec('IDLE', false, { onPlusTag, allowance: {} })
    next()
    return stage.done ? 'left' : 'ended-by-server'
  } catch (error) {
    const over = life.ended()
    if (over) throw over
    const { responseStatus: status } = error as ExecError
    if (status === 'NO' || status === 'BAD') return stage.done ? 'left' : 'refused'
    const failure = connectionFailure(error)
    life.end(failure)
    throw failure
  } finally {
    stage.stopWatch()
    clearTimeout(timer)
    unlisten()
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
    /** false when the server has none, or has shown that it is of no use. */
    get useful(): boolean {
      return useful
    },
    /**
     * Until `signal` aborts, the cycle ends (`renewMs`) or another command of this session needs the line. Without
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
