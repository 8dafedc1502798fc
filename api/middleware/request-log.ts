/** Opens the exchange, names it by a request id, and when the answer is out (or the client gone) counts, logs and records it. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { newId, type Logger, type Metrics } from '../../engine/index.ts'
import type { CallLog } from '../call-log.ts'
import type { Exchange, FrameContext, Middleware } from '../exchange.ts'
import { parseTarget } from '../wire.ts'

interface Deps {
  readonly log: Logger
  readonly metrics: Metrics
  readonly calls: CallLog
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly addressOf: (request: IncomingMessage) => string
}

export function requestLog(deps: Deps): Middleware {
  const prefix = randomBytes(6).toString('hex')
  let count = 0
  return async (ctx, next) => {
    count += 1
    const exchange = openExchange(`${prefix}-${count.toString(36)}`, deps.addressOf(ctx.req), ctx.req.url ?? '/')
    ctx.state.exchange = exchange
    ctx.set('X-Request-Id', exchange.requestId)
    // Most answers hold what strangers wrote: never to be taken for something else.
    ctx.set('X-Content-Type-Options', 'nosniff')
    ctx.res.once('close', () => finish(deps, ctx, exchange))
    await next()
  }
}

function openExchange(requestId: string, address: string, url: string): Exchange {
  return {
    requestId,
    startedAt: performance.now(),
    target: parseTarget(url),
    routePath: '(none)',
    auth: 'public',
    match: null,
    refusal: null,
    baseUrl: '',
    query: [],
    address,
    body: null,
    form: [],
    values: {},
    developer: null,
    shares: [],
    taken: null,
    user: null,
    account: null,
  }
}

function finish({ log, metrics, calls, now }: Deps, ctx: FrameContext, exchange: Exchange): void {
  const durationMs = performance.now() - exchange.startedAt
  // 499: the client went away before it had the answer.
  const status = ctx.res.writableFinished ? ctx.res.statusCode : 499
  const { method } = ctx
  metrics.apiCalls.inc({ method: knownMethod(method), route: exchange.routePath, status })
  metrics.apiSeconds.observe({ route: exchange.routePath }, durationMs / 1000)
  log.debug({ requestId: exchange.requestId, method, route: exchange.routePath, status, durationMs }, 'api call')
  if (exchange.developer === null) return
  const at = now()
  calls.add({
    id: newId(at),
    developerId: exchange.developer.id,
    userId: exchange.user?.id ?? null,
    at,
    method,
    path: exchange.target.path,
    status,
    durationMs: Math.round(durationMs),
  })
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'])

/** Clients can send any word as the method; a metric's labels must be few. */
function knownMethod(method: string): string {
  return methods.has(method) ? method : 'other'
}
