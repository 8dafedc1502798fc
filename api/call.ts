/** The state of one API call that the middlewares share, and the Call that its handler gets. */
import type { ServerResponse } from 'node:http'
import type Koa from 'koa'
import { AppError, concernsAccount } from '../engine/index.ts'
import type { AccountRecord, DeveloperRecord, Engine, Release, Spooled, Use, UserRecord } from '../engine/index.ts'
import { type ApiVersion, urlsOf } from './addresses.ts'
import type { Limits } from './limits.ts'
import type { Body } from './request-body.ts'
import type { Actor, Auth, Call, Match } from './route.ts'
import { parseTarget, type Pair, type Target } from './wire.ts'

export class Exchange {
  readonly engine: Engine
  readonly requestId: string
  /** The client's address, as clientAddressReader gives it. */
  readonly address: string
  readonly target: Target
  readonly version: ApiVersion
  /** Milliseconds of a monotonic clock. */
  readonly startedAt = performance.now()
  /** The router sets this and the next four. */
  baseUrl = ''
  auth: Auth = 'public'
  /** A path parameter, still percent-encoded. */
  captured: (name: 'id' | 'label') => string | undefined = () => undefined
  match: Match | null = null
  /** An early error. It is thrown after authentication, so that the answer can name the email account. */
  refusal: AppError | null = null
  query: readonly Pair[] = []
  /** The received part of the body; null once the body is parsed and the caller is authenticated. */
  body: Body | null = null
  /** Pairs of a form-urlencoded body, for signatures. */
  form: readonly Pair[] = []
  /** Query and body. The body's values win over the query's, the last value of a name over earlier ones. */
  values: Readonly<Record<string, unknown>> = {}
  /** Set by the auth middleware. */
  developer: DeveloperRecord | null = null
  /** Id of the developer or of the admin token that calls. */
  caller: string | null = null
  /** The operator that calls, for the audit trail. */
  actor: Actor | null = null
  /** Id of the record that the operator made, for the audit trail; otherwise the path names the target. */
  madeId: string | null = null
  /** The message of a multipart body; held until the answer is out. */
  upload: Spooled | null = null
  /** Shares of the memory budget that the answer holds. */
  readonly shares: { readonly bytes: number; readonly release: Release }[] = []
  /** Set by Call.concerns. */
  user: UserRecord | null = null
  account: AccountRecord | null = null

  constructor(engine: Engine, requestId: string, address: string, url: string) {
    this.engine = engine
    this.requestId = requestId
    this.address = address
    this.target = parseTarget(url)
    this.version = this.target.path.startsWith('/2.0/') ? '2.0' : 'lite'
  }

  /** The route's path or a placeholder: a metric label, which must have few values. */
  get routePath(): string {
    return this.match?.route.path ?? '(none)'
  }
}

export interface FrameState {
  exchange: Exchange
}

export type FrameContext = Koa.ParameterizedContext<FrameState>
export type Middleware = Koa.Middleware<FrameState>

/** Whether the client asks for JSON rather than for a page (Accept). */
export function asksForJson(ctx: FrameContext): boolean {
  ctx.vary('Accept')
  return ctx.accepts('html', 'json') === 'json'
}

/** Runs `end` when the answer is out or the client is gone; at once when that is already so. */
export function whenClosed(res: ServerResponse, end: () => void): void {
  if (res.closed) end()
  else res.once('close', end)
}

/** Sends the whole answer at once. Node leaves the body out of an answer to HEAD. */
export function sendWhole(
  ctx: FrameContext,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Buffer | string,
): void {
  ctx.respond = false
  ctx.res.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body)
}

export class ActiveCall implements Call {
  readonly engine: Engine
  readonly caller: string
  readonly baseUrl: string
  readonly version: ApiVersion
  readonly requestId: string
  readonly address: string
  readonly upload: Spooled | null
  readonly #ctx: FrameContext
  readonly #exchange: Exchange
  readonly #limits: Limits
  /** Made on first use: most handlers never read the signal. */
  #aborter: AbortController | null = null
  #reason: unknown
  #countsForImap = false

  constructor(ctx: FrameContext, limits: Limits) {
    const { exchange } = ctx.state
    this.engine = exchange.engine
    this.caller = exchange.caller ?? ''
    this.baseUrl = exchange.baseUrl
    this.version = exchange.version
    this.requestId = exchange.requestId
    this.address = exchange.address
    this.upload = exchange.upload
    this.#ctx = ctx
    this.#exchange = exchange
    this.#limits = limits
  }

  get developer(): DeveloperRecord {
    const { developer, routePath } = this.#exchange
    if (developer === null) throw new Error(`${routePath} is not for developers but asks for one`)
    return developer
  }

  get target(): string {
    const { path, query } = this.#exchange.target
    return `${path}?${query}`
  }

  get signal(): AbortSignal {
    if (this.#aborter === null) {
      this.#aborter = new AbortController()
      if (this.#reason !== undefined) this.#aborter.abort(this.#reason)
      else watchCaller(this.#ctx, (why) => this.abort(why))
    }
    return this.#aborter.signal
  }

  /** Aborts the signal. */
  abort(why: unknown): void {
    this.#reason ??= why
    this.#aborter?.abort(why)
  }

  header(name: string): string | undefined {
    const value = this.#ctx.req.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  actsAs(actor: Actor | null): void {
    this.#exchange.actor = actor
  }

  made(id: string): void {
    this.#exchange.madeId = id
  }

  asksForJson(): boolean {
    return asksForJson(this.#ctx)
  }

  concerns(user: UserRecord, account?: AccountRecord): void {
    this.#exchange.user = user
    this.#exchange.account = account ?? null
    this.#limits.imap.show(user.id, this.#ctx)
    if (account === undefined) return
    concernsAccount(account.id)
    const url = urlsOf(this.#exchange).account({ userId: user.id, label: account.label })
    this.#ctx.res.setHeader(this.engine.config.MAILROOM_STATUS_HEADER, `${url} ${account.status}`)
  }

  touchesImap({ id }: Pick<UserRecord, 'id'>): void {
    if (!this.#countsForImap) this.#limits.imap.count(id, this.#ctx)
    this.#countsForImap = true
  }

  reserve(bytes: number): Promise<void> {
    return holdContents(this.#ctx, bytes, this.signal)
  }
}

/** The handler's signal aborts when the client goes away, and when its key or token is revoked. */
function watchCaller({ res, state: { exchange } }: FrameContext, abort: (why: unknown) => void): void {
  const shutOut = (): void => abort(new AppError('unauthorized', 'Authorization: revoked meanwhile'))
  const leave = exchange.caller === null ? null : exchange.engine.revocations.onEnd(exchange.caller, shutOut)
  whenClosed(res, () => {
    leave?.()
    if (!res.writableFinished) abort(new AppError('bad_request', 'the client went away'))
  })
}

/**
 * Takes a share of the memory budget for this call, in the name of its developer, or of its address before
 * authentication. Rejects with `busy` when there was no room in time, and with the signal's reason.
 */
export async function takeShare(
  { state: { exchange }, res }: FrameContext,
  use: Use,
  bytes: number,
  signal?: AbortSignal,
): Promise<Release> {
  const owner = { developerId: exchange.developer?.id ?? exchange.address, part: '' }
  const release = await exchange.engine.budget.take(use, owner, bytes, signal ? { signal } : {})
  if (release === null) {
    const words = 'many large calls are under way (MAILROOM_BUFFER_MAX); try again'
    throw new AppError('busy', words, { retryAfterMs: 5000 })
  }
  whenClosed(res, () => release())
  return release
}

/** Takes a share for mail contents and the answer made of them. */
export async function holdContents(ctx: FrameContext, bytes: number, signal?: AbortSignal): Promise<void> {
  const release = await takeShare(ctx, 'contents', bytes, signal)
  ctx.state.exchange.shares.push({ bytes, release })
}

/** Keeps `bytes` of the call's shares for the finished answer, and releases the rest. */
export function keepOnly({ shares }: Exchange, bytes: number): void {
  let left = bytes
  for (const share of shares) {
    const kept = Math.min(left, share.bytes)
    share.release(kept)
    left -= kept
  }
}
