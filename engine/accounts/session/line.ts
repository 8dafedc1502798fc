/**
 * The line: one command at a time, in the order asked, each with a deadline on progress. IDLE sits on the line too, and leaves
 * it as soon as anybody else wants it.
 */
import { AppError, isAppError } from '../../errors.ts'
import { connectionFailure, serverFailure } from '../failures.ts'
import type { Argument, Untagged, Wire } from './client.ts'
import type { Allowance } from './frames.ts'
import { statusText, type ImapResponse, type StatusText } from './tokens.ts'

/** A tagged OK. */
export type Reply = StatusText

/**
 * Sends one command and reads its answer. Rejects with `server_refused` (NO, BAD: details.status), `not_found`, `conflict`:
 * the session goes on; any other error has ended it.
 */
export type Send = (
  command: string,
  args?: readonly Argument[],
  untagged?: Readonly<Record<string, Untagged>>,
  allowance?: Allowance,
) => Promise<Reply>

export interface Line {
  /** Runs work alone on the line. */
  run<T>(work: (send: Send) => Promise<T>): Promise<T>
  /** Others that wait for the line. */
  readonly waiting: number
  /** Told whenever somebody starts to wait; answers how to stop being told. */
  onWaiting(listener: () => void): () => void
  /** A deadline that starts anew with every byte; call the answer to end it. */
  watch(): () => void
}

/** Errors after which the connection is in order. */
export function survives(error: unknown): boolean {
  return isAppError(error, 'server_refused') || isAppError(error, 'not_found') || isAppError(error, 'conflict')
}

export interface LineDeps {
  readonly wire: Wire
  readonly commandTimeoutMs: number
  /** Ends the session with this error. */
  readonly fail: (error: AppError) => void
  /** Why the session has ended; null while it goes on. */
  readonly ended: () => AppError | null
}

/** Bytes received and bytes that have left for the network. */
function progress(wire: Wire): number {
  const { socket } = wire
  return wire.streamer.readBytesCounter + (socket ? socket.bytesWritten - socket.writableLength : 0)
}

function watchdog({ wire, commandTimeoutMs, fail }: LineDeps): () => void {
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
      fail(new AppError('timeout', 'the mail server did not answer in time'))
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

function createSender(deps: LineDeps): Send {
  const { wire, fail, ended } = deps
  return async (command, args = [], untagged = {}, allowance = {}) => {
    const over = ended()
    if (over) throw over
    const stop = watchdog(deps)
    try {
      const { response, next } = await wire.exec(command, args.length === 0 ? false : args, { untagged, allowance })
      next()
      return statusText(response)
    } catch (error) {
      const failure = ended() ?? commandFailure(error)
      if (!survives(failure)) fail(failure)
      throw failure
    } finally {
      stop()
    }
  }
}

export function createLine(deps: LineDeps): Line {
  const send = createSender(deps)
  const listeners = new Set<() => void>()
  let tail: Promise<void> = Promise.resolve()
  let waiting = 0

  async function run<T>(work: (send: Send) => Promise<T>): Promise<T> {
    const before = tail
    const turn = Promise.withResolvers<undefined>()
    tail = turn.promise
    waiting += 1
    for (const listener of [...listeners]) listener()
    await before
    waiting -= 1
    try {
      const over = deps.ended()
      if (over) throw over
      return await work(send)
    } finally {
      turn.resolve(undefined)
    }
  }

  return {
    run,
    get waiting() {
      return waiting
    },
    onWaiting(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    watch: () => watchdog(deps),
  }
}
