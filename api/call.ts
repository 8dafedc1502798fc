/** One API call on its way through the middlewares, and the Call that its handler gets. */
import type Koa from 'koa'
import {
  AppError,
  type AccountRecord,
  type Budget,
  concernsAccount,
  type DeveloperRecord,
  type Engine,
  type Pace,
  type Release,
  type Use,
  type UserRecord,
} from '../engine/index.ts'
import type { Body } from './middleware/body.ts'
import type { Limits } from './limits.ts'
import type { Auth, Call } from './route.ts'
import type { Match } from './router.ts'
import { parseTarget, type Pair, type Target } from './wire.ts'

export class Exchange {
  readonly requestId: string
  /** Where the call comes from; see addresses.ts. */
  readonly address: string
  readonly target: Target
  /** Milliseconds of a monotonic clock. */
  readonly startedAt = performance.now()
  /** Set by the router, with the four below. */
  baseUrl = ''
  auth: Auth = 'public'
  /** Path parameters as they are on the wire. */
  captured: Readonly<Record<string, string>> = {}
  match: Match | null = null
  /** What is wrong already. Thrown once it is known who calls, so that the answer can say whom it concerns. */
  refusal: AppError | null = null
  query: readonly Pair[] = []
  /** What has come of the body; dropped when it is parsed and known who calls. */
  body: Body | null = null
  /** Pairs of a form-urlencoded body, for signatures. */
  form: readonly Pair[] = []
  /** Query and body, the body's values over the query's, the last value of a name over earlier ones. */
  values: Readonly<Record<string, unknown>> = {}
  /** Set by the auth middleware. */
  developer: DeveloperRecord | null = null
  /** What the answer holds of the budget. */
  readonly shares: { readonly bytes: number; readonly release: Release }[] = []
  /** Bytes of the answer that the client has taken; null = it is not the client that is waited for. */
  taken: number | null = null
  /** Set by Call.concerns. */
  user: UserRecord | null = null
  account: AccountRecord | null = null

  constructor(requestId: string, address: string, url: string) {
    this.requestId = requestId
    this.address = address
    this.target = parseTarget(url)
  }

  /** The path of the route, or a placeholder: the label of metrics, of which there must be few. */
  get routePath(): string {
    return this.match?.route.path ?? '(none)'
  }
}

export interface FrameState {
  exchange: Exchange
}

export type FrameContext = Koa.ParameterizedContext<FrameState>
export type Middleware = Koa.Middleware<FrameState>

export interface FrameCall extends Call {
  /** Aborts the handler's signal. */
  abort(reason: unknown): void
}

export function createCall(ctx: FrameContext, engine: Engine, limits: Limits): FrameCall {
  const { exchange } = ctx.state
  // Most handlers never look at the signal: it is made when asked for.
  let aborter: AbortController | null = null
  let reason: unknown
  return {
    engine,
    get developer() {
      if (exchange.developer === null) throw new Error(`${exchange.routePath} is not for developers but asks for one`)
      return exchange.developer
    },
    baseUrl: exchange.baseUrl,
    requestId: exchange.requestId,
    address: exchange.address,
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
    header(name) {
      const value = ctx.req.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
    asksForJson() {
      ctx.vary('Accept')
      return ctx.accepts('html', 'json') === 'json'
    },
    concerns(user, account) {
      exchange.user = user
      exchange.account = account ?? null
      limits.imap.show(user.id, ctx)
      if (account !== undefined) concernsAccount(account.id)
      if (account !== undefined) ctx.set(engine.config.MAILROOM_STATUS_HEADER, accountStatus(exchange, user, account))
    },
    touchesImap: ({ id }) => limits.imap.count(id, ctx),
    async reserve(bytes) {
      await holdContents(ctx, engine.budget, bytes, this.signal)
    },
  }
}

/** `<resource_url> <OK|DISABLED>`, in the words of the API version that was called. */
function accountStatus({ baseUrl, target }: Exchange, user: UserRecord, account: AccountRecord): string {
  const label = encodeURIComponent(account.label)
  const path = target.path.startsWith('/2.0/')
    ? `/2.0/accounts/${user.id}/sources/${label}`
    : `/lite/users/${user.id}/email_accounts/${label}`
  return `${baseUrl}${path} ${account.status}`
}

/**
 * A share for this call, in the name of its developer, or of its address while no developer is known. Rejects with
 * `busy` when there was no room in time, and with the signal's reason.
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

/** For contents of mail, and the answer made of them. A client that reads too slowly, while others wait, loses it. */
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
