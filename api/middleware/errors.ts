/** The error middleware, first in the chain: makes the error answer of everything that is thrown. */
import { toAppError, type AppError, type ErrorCode, type Logger } from '../../engine/index.ts'
import { type FrameContext, type Middleware, sendWhole } from '../call.ts'

/** The original service's number for a wrong signature. */
const signatureCode = 105

/** Retry-After in seconds, by status, for errors without a time of their own. */
const usualWaits: Readonly<Record<number, number>> = { 429: 60, 503: 30, 504: 10 }

/** Seconds: the other call ends soon. */
const leaseWait = 2

const expected: ReadonlySet<ErrorCode> = new Set(['busy', 'backup_failed', 'lease_lost', 'shutting_down'])

/** Whether an error of the service is no fault. `busy` with a cause is one: the process has no file left to open. */
function isExpected({ code, cause }: AppError): boolean {
  return expected.has(code) && !(code === 'busy' && cause !== undefined)
}

/** The answer's words for errors of the service. The log has the details, under the request id. */
const ownWords: Partial<Readonly<Record<ErrorCode, string>>> = {
  store_unavailable: 'the service cannot reach its store at the moment',
  lease_lost: 'the email account is just being changed by another call, or served by another process; try again',
  shutting_down: 'the service is stopping; try again',
}

/** `shown` may answer an error with a page, and then returns true. */
export function errorAnswers(log: Logger, shown: (ctx: FrameContext, error: AppError) => boolean): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (thrown) {
      const error = toAppError(thrown)
      if (shown(ctx, error)) return
      report(log, ctx, error)
      // A half-sent answer must not look complete.
      if (ctx.headerSent) ctx.res.destroy()
      else answer(ctx, error)
    }
  }
}

function answer(ctx: FrameContext, error: AppError): void {
  const { status, details, code, message } = error
  // The headers of a stream that failed before its first byte may be set.
  ctx.res.removeHeader('Content-Disposition')
  const headers: Record<string, string> = { 'Content-Type': 'application/json' }
  const waitSeconds = secondsToWait(error)
  if (waitSeconds !== null) headers['Retry-After'] = String(waitSeconds)
  if (status === 401)
    headers['WWW-Authenticate'] = 'OAuth realm="mailroom", Basic realm="mailroom", Bearer realm="mailroom"'
  if (typeof details.allow === 'string') headers['Allow'] = details.allow
  // The client may still send the rest of the body, which nobody reads.
  if (status === 413) headers['Connection'] = 'close'
  const internal = `internal error; request id ${ctx.state.exchange.requestId}`
  const value = code === 'internal' ? internal : (ownWords[code] ?? message)
  const number = code === 'bad_signature' ? { code: signatureCode } : {}
  sendWhole(ctx, status, headers, JSON.stringify({ type: 'error', value, ...number }))
}

/** null = the same call would fail again. */
function secondsToWait({ retryAfterMs, retryable, status, code }: AppError): number | null {
  if (retryAfterMs !== null) return Math.max(1, Math.ceil(retryAfterMs / 1000))
  if (code === 'lease_lost') return leaseWait
  return retryable ? (usualWaits[status] ?? null) : null
}

function report(log: Logger, ctx: FrameContext, error: AppError): void {
  if (error.fault === 'caller' && !isExpected(error)) return
  const { requestId, routePath, account } = ctx.state.exchange
  const facts = { requestId, accountId: account?.id, method: ctx.method, route: routePath, code: error.code }
  if (isExpected(error) || error.details.quiet === true)
    log.debug({ ...facts, reason: error.message }, 'api call failed')
  else if (error.fault === 'us') log.error({ ...facts, err: error.cause ?? error }, 'api call failed')
  else if (error.fault === 'remote') log.warn({ ...facts, reason: error.message }, 'mail server failed an api call')
}
