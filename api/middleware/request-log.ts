/** Gives each call a request id. When the answer is out or the client gone: counts, logs and records the call. */
import { randomBytes } from 'node:crypto'
import { type CallLogRecord, type Engine, type Logger, newId, type Store } from '../../engine/index.ts'
import { Exchange, type FrameContext, type Middleware } from '../call.ts'
import { audited } from '../audit.ts'
import { clientAddress } from '../addresses.ts'
import { createCounter, type Limits } from '../limits.ts'
import { eventStreamHeaders } from '../route.ts'

interface Deps {
  readonly engine: Engine
  readonly calls: CallLog
  readonly limits: Limits
  /** Milliseconds since 1970. */
  readonly now: () => number
}

export function requestLog(deps: Deps): Middleware {
  const prefix = randomBytes(6).toString('hex')
  let count = 0
  return (ctx, next) => {
    count += 1
    const id = `${prefix}-${count.toString(36)}`
    const exchange = new Exchange(deps.engine, deps.limits, ctx, id, clientAddress(deps.engine.config, ctx.req))
    ctx.state.exchange = exchange
    ctx.res.setHeader('X-Request-Id', id)
    // Answers contain texts of strangers: a browser must not guess another type.
    ctx.res.setHeader('X-Content-Type-Options', 'nosniff')
    ctx.res.on('close', () => finish(deps, ctx, exchange))
    return next()
  }
}

function finish({ engine, calls, now }: Deps, ctx: FrameContext, exchange: Exchange): void {
  const { log, metrics } = engine
  const durationMs = performance.now() - exchange.startedAt
  // 499 = the client went away before the end of the answer.
  const status = ctx.res.writableFinished ? ctx.res.statusCode : 499
  const { method } = ctx
  const { requestId, account, knownDeveloper, routePath: route } = exchange
  metrics.apiCalls.inc({ method: methods.has(method) ? method : 'other', route, status })
  // The reader of an event stream decides how long it lasts.
  if (ctx.res.getHeader('Content-Type') !== eventStreamHeaders['Content-Type'])
    metrics.apiSeconds.observe({ route }, durationMs / 1000)
  log.debug({ requestId, accountId: account?.id, method, route, status, durationMs }, 'api call')
  const at = now()
  audited(engine, exchange, status, at)
  // Calls over a rate limit must not cost the store a write: only the metrics count them.
  if (knownDeveloper === null || status === 429) return
  calls.add({
    id: newId(at),
    developerId: knownDeveloper.id,
    userId: exchange.user?.id ?? null,
    at,
    method,
    path: cut(exchange.path),
    status,
    durationMs: Math.round(durationMs),
  })
}

const longestPath = 2048

/** Copies the beginning: a mere slice would keep the whole path in memory while the row waits. */
function cut(path: string): string {
  return path.length <= longestPath ? path : Buffer.from(path.slice(0, longestPath)).toString()
}

/** A metric label must have few values, but a client can send any word as the method. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'])

type CallLog = ReturnType<typeof createCallLog>

interface LogOptions {
  readonly store: Pick<Store['calls'], 'append'>
  readonly log: Logger
  /** Rows of one developer in 24 hours; 0 = any number. */
  readonly perDay: number
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Rows in the buffer at most. */
  readonly capacity?: number
  readonly batch?: number
  readonly everyMs?: number
}

/** The log of API calls: writes rows in batches from a bounded buffer. No call waits for a write. */
export function createCallLog({ store, log, perDay, now, capacity = 10_000, batch = 500, everyMs = 500 }: LogOptions) {
  const ofDeveloper = createCounter(86_400_000, now)
  let rows: CallLogRecord[] = []
  let dropped = 0
  let writing: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null

  async function write(): Promise<void> {
    while (rows.length > 0) {
      const part = rows.slice(0, batch)
      rows = rows.slice(batch)
      try {
        await store.append(part)
      } catch (error) {
        dropped += part.length
        log.warn({ err: error, rows: part.length }, 'call log not written')
      }
    }
    if (dropped > 0) log.warn({ rows: dropped }, 'rows of the call log were dropped')
    dropped = 0
  }

  /** Writes the buffer. Resolves when each row is written or dropped. */
  function flush(): Promise<void> {
    if (timer !== null) clearTimeout(timer)
    timer = null
    writing ??= write().finally(() => (writing = null))
    return writing
  }

  return {
    /** Never waits, never throws. Drops and counts the row if the buffer is full; ignores it over `perDay`. */
    add(call: CallLogRecord): void {
      const { developerId } = call
      const { count } = ofDeveloper.count(developerId)
      if (perDay > 0 && count > perDay) {
        if (count === perDay + 1) log.warn({ developerId, perDay }, 'no more calls of this developer are logged today')
        return
      }
      if (rows.length >= capacity) {
        dropped += 1
        return
      }
      rows.push(call)
      timer ??= setTimeout(() => void flush(), everyMs).unref()
    },
    flush,
    /** Flushes twice, for rows that were added during the first write. */
    close: () => flush().then(flush),
  }
}
