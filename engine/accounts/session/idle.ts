/** IDLE (RFC 2177): enters at once, leaves for anybody who wants the line. */
import type { AppError } from '../../errors.ts'
import { connectionFailure } from '../failures.ts'
import type { Wire } from './client.ts'
import type { Line } from './line.ts'

export interface Idler {
  /** false when the server has none, or has shown that it is of no use. */
  readonly useful: boolean
  idle(renewMs: number, signal: AbortSignal): Promise<void>
}

export interface IdlerDeps {
  readonly wire: Wire
  readonly line: Line
  readonly offered: boolean
  readonly fail: (error: AppError) => void
  readonly ended: () => AppError | null
  /** Aborts when the session ends. */
  readonly closed: AbortSignal
}

/** A server that ends IDLE by itself this soon, this often, does not mean it. */
const uselessMs = 1000
const uselessTimes = 3

type Outcome = 'left' | 'ended-by-server' | 'refused'

/** Where one IDLE stands: DONE may be sent once the server has said `+`, and once only. */
interface Stage {
  entered: boolean
  leaving: boolean
  stopWatch: () => void
}

function sendDone({ wire, line, fail, ended }: IdlerDeps, stage: Stage): void {
  if (!stage.entered || stage.leaving || ended()) return
  stage.leaving = true
  stage.stopWatch = line.watch()
  try {
    wire.write('DONE')
  } catch (error) {
    fail(connectionFailure(error))
  }
}

/** One IDLE command, from its start to its tagged answer. No deadline runs between `+` and DONE. */
async function idleOnce(deps: IdlerDeps, leave: AbortSignal): Promise<Outcome> {
  const { wire, line, ended } = deps
  const stage: Stage = { entered: false, leaving: false, stopWatch: line.watch() }
  const done = (): void => sendDone(deps, stage)
  leave.addEventListener('abort', done, { once: true })
  const onPlusTag = (): void => {
    stage.entered = true
    stage.stopWatch()
    if (leave.aborted) done()
  }
  try {
    const { next } = await wire.exec('IDLE', false, { onPlusTag, allowance: {} })
    next()
    return stage.leaving ? 'left' : 'ended-by-server'
  } catch (error) {
    return failed(deps, error, ended(), stage.leaving)
  } finally {
    stage.stopWatch()
    leave.removeEventListener('abort', done)
  }
}

function failed(deps: IdlerDeps, error: unknown, over: AppError | null, leaving: boolean): Outcome {
  if (over) throw over
  const { responseStatus: status } = error as { readonly responseStatus?: unknown }
  if (status === 'NO' || status === 'BAD') return leaving ? 'left' : 'refused'
  const failure = connectionFailure(error)
  deps.fail(failure)
  throw failure
}

/** Sits on the line until the time is over, the signal aborts, or somebody waits for the line. */
async function idleOnLine(deps: IdlerDeps, renewMs: number, signal: AbortSignal): Promise<Outcome> {
  const { line } = deps
  if (signal.aborted || line.waiting > 0) return 'left'
  const leaving = new AbortController()
  const leave = (): void => leaving.abort()
  const timer = setTimeout(leave, renewMs)
  const unlisten = line.onWaiting(leave)
  signal.addEventListener('abort', leave, { once: true })
  try {
    return await idleOnce(deps, leaving.signal)
  } finally {
    clearTimeout(timer)
    unlisten()
    signal.removeEventListener('abort', leave)
  }
}

/** Resolves when the time is over, the caller aborts, or the session ends. */
async function pause(ms: number, signal: AbortSignal, closed: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const finish = (): void => resolve(undefined)
  const timer = setTimeout(finish, ms)
  signal.addEventListener('abort', finish, { once: true })
  closed.addEventListener('abort', finish, { once: true })
  if (signal.aborted || closed.aborted) finish()
  await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', finish)
  closed.removeEventListener('abort', finish)
}

export function createIdler(deps: IdlerDeps): Idler {
  let useful = deps.offered
  let useless = 0

  async function idleAndJudge(renewMs: number, signal: AbortSignal): Promise<void> {
    const started = performance.now()
    const outcome = await deps.line.run(() => idleOnLine(deps, renewMs, signal))
    const soon = performance.now() - started < uselessMs
    useless = outcome === 'ended-by-server' && soon ? useless + 1 : 0
    if (outcome === 'refused' || useless >= uselessTimes) useful = false
  }

  return {
    get useful() {
      return useful
    },
    async idle(renewMs, signal) {
      if (signal.aborted) return
      if (useful) await idleAndJudge(renewMs, signal)
      else await pause(renewMs, signal, deps.closed)
      const over = deps.ended()
      if (over) throw over
    },
  }
}
