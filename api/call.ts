/** One API call on its way through the middlewares, and the Call that its handler gets. */
import type Koa from 'koa'
import {
  type AccountRecord,
  AppError,
  type Budget,
  type DeveloperRecord,
  type Engine,
  type Pace,
  type Release,
  type Use,
  type UserRecord,
} from '../engine/index.ts'
import type { Body } from './middleware/body.ts'
import type { Limits } from './middleware/limits.ts'
import type { Auth, Call } from './route.ts'
import type { Match } from './router.ts'
import type { Pair, Target } from './wire.ts'

export interface Exchange {
  readonly requestId: string
  /** Milliseconds of a monotonic clock. */
  readonly startedAt: number
  readonly target: Target
  /** The route's path, or a placeholder: the label of metrics, of which there must be few. */
  routePath: string
  /** Set by the route middleware, with all below. */
  auth: Auth
  match: Match | null
  /** What is wrong already. Thrown once it is known who calls, so that the answer can say whom it concerns. */
  refusal: AppError | null
  baseUrl: string
  query: readonly Pair[]
  /** Where the call comes from; see client-address.ts. */
  readonly address: string
  /** What has come of the body; dropped when it is parsed and known who calls. */
  body: Body | null
  /** Pairs of a form-urlencoded body, for signatures. */
  form: readonly Pair[]
  /** Query and body, the body's values over the query's, the last value of a name over earlier ones. */
  values: Readonly<Record<string, unknown>>
  /** Set by the auth middleware. */
  developer: DeveloperRecord | null
  /** What the answer holds of the budget. */
  readonly shares: { readonly bytes: number; readonly release: Release }[]
  /** Bytes of the answer that the client has taken; null = it is not the client that is waited for. */
  taken: number | null
  /** Set by Call.concerns. */
  user: UserRecord | null
  account: AccountRecord | null
}

export interface FrameState {
  exchange: Exchange
}

export type FrameContext = Koa.ParameterizedContext<FrameState>
export type Middleware = Koa.Middleware<FrameState>

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

/**
 * A share for this call, in the name of its developer, or of its address while no developer is known. Rejects with `busy` when
 * there was no room in time, and with the signal's reason.
 */
export async function takeShare(
  { state: { exchange }, res }: FrameContext,
  budget: Pick<Budget, 'take'>,
  use: Use,
  bytes: number,
  options: { readonly signal?: AbortSignal; readonly pace?: Pace } = {},
): Promise<Release> {
  const owner = { developerId: exchange.developer?.id ?? exchange.address, part: '' }
  const release = await budget.take(use, owner, bytes, options)
  if (release === null) {
    throw new AppError('busy', 'many large calls are under way (MAILROOM_BUFFER_MAX); try again', {
      retryAfterMs: 5000,
    })
  }
  if (res.closed) release()
  else res.once('close', () => release())
  return release
}

/** For contents of mail, and for the answer that is made of them. A client that takes it too slowly, while others wait, loses it. */
export async function holdContents(
  ctx: FrameContext,
  budget: Pick<Budget, 'take'>,
  bytes: number,
  signal?: AbortSignal,
): Promise<void> {
  const { state, res } = ctx
  const { exchange } = state
  const pace = { moved: () => exchange.taken, end: () => void res.destroy() }
  const release = await takeShare(ctx, budget, 'contents', bytes, { pace, ...(signal ? { signal } : {}) })
  exchange.shares.push({ bytes, release })
}

/** Gives back what the answer was made of: it is held until it is out. */
export function keepOnly({ shares }: Exchange, bytes: number): void {
  let left = bytes
  for (const share of shares) {
    const kept = Math.min(left, share.bytes)
    share.release(kept)
    left -= kept
  }
}
