/** The Call that a handler is given: a thin view of the exchange, made once per request. */
import type { AccountRecord, DeveloperRecord, Engine, UserRecord } from '../engine/index.ts'
import type { Exchange, FrameContext } from './exchange.ts'
import type { Limits } from './middleware/limits.ts'
import type { Call } from './route.ts'
import { holdContents } from './shares.ts'

interface Deps {
  readonly engine: Engine
  readonly limits: Pick<Limits, 'touchesImap' | 'concerns'>
}

export interface FrameCall extends Call {
  /** Aborts the handler's signal. */
  abort(reason: unknown): void
}

export function createCall({ engine, limits }: Deps, ctx: FrameContext): FrameCall {
  const { exchange } = ctx.state
  // Most handlers never look at the signal: it is made when asked for.
  let aborter: AbortController | null = null
  let reason: unknown
  return {
    engine,
    get developer() {
      return developerOf(exchange)
    },
    baseUrl: exchange.baseUrl,
    requestId: exchange.requestId,
    get signal() {
      if (aborter === null) {
        aborter = new AbortController()
        if (reason !== undefined) aborter.abort(reason)
      }
      return aborter.signal
    },
    abort(why) {
      reason ??= why
      aborter?.abort(why)
    },
    ...requestHeaders(ctx),
    concerns(user, account) {
      exchange.user = user
      exchange.account = account ?? null
      limits.concerns(ctx, user)
      if (account !== undefined)
        ctx.set(engine.config.MAILROOM_STATUS_HEADER, accountStatusHeader(exchange, user, account))
    },
    touchesImap: (user) => limits.touchesImap(ctx, user),
    async reserve(bytes) {
      await holdContents(ctx, engine.budget, bytes, this.signal)
    },
  }
}

function requestHeaders(ctx: FrameContext): Pick<Call, 'header' | 'asksForJson'> {
  return {
    header(name) {
      const value = ctx.req.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
    asksForJson() {
      ctx.vary('Accept')
      return ctx.accepts('html', 'json') === 'json'
    },
  }
}

/** `<resource_url> <OK|DISABLED>`, in the words of the API version that was called. */
function accountStatusHeader(exchange: Exchange, user: UserRecord, account: AccountRecord): string {
  const { baseUrl, target } = exchange
  const label = encodeURIComponent(account.label)
  const path = target.path.startsWith('/2.0/')
    ? `/2.0/accounts/${user.id}/sources/${label}`
    : `/lite/users/${user.id}/email_accounts/${label}`
  return `${baseUrl}${path} ${account.status}`
}

function developerOf(exchange: Exchange): DeveloperRecord {
  if (exchange.developer === null) throw new Error(`${exchange.routePath} is not for developers but asks for one`)
  return exchange.developer
}
