/** One API call: the state that its middlewares share, and the Call that its handler gets. */
import type { ServerResponse } from 'node:http'
import type Koa from 'koa'
import { AppError, concernsAccount } from '../engine/index.ts'
import type { AccountRecord, DeveloperRecord, Engine, Release, Spooled, Use, UserRecord } from '../engine/index.ts'
import { type ApiVersion, urlsOf } from './addresses.ts'
import type { Limits } from './limits.ts'
import type { Body } from './request-body.ts'
import type { Actor, Auth, Call, Match } from './route.ts'
import { parseTarget, type Pair } from './wire.ts'

export interface FrameState {
  exchange: Exchange
}

export type FrameContext = Koa.ParameterizedContext<FrameState>
export type Middleware = Koa.Middleware<FrameState>

export class Exchange implements Call {
  readonly engine: Engine
  readonly requestId: string
  readonly address: string
  /** The path and the query (without '?') as they are on the wire. */
  readonly path: string
  readonly rawQuery: string
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
  /** The auth middleware sets this and the next two. */
  knownDeveloper: DeveloperRecord | null = null
  caller = ''
  /** The operator that calls, for the audit trail. */
  actor: Actor | null = null
  /** Id of the record that the operator made, for the audit trail; otherwise the path names the target. */
  madeId: string | null = null
  /** Held until the answer is out. */
  upload: Spooled | null = null
  /** Shares of the memory budget that the answer holds. */
  readonly shares: { readonly bytes: number; readonly release: Release }[] = []
  /** Set by `concerns`. */
  user: UserRecord | null = null
  account: AccountRecord | null = null
  readonly #ctx: FrameContext
  readonly #limits: Limits
  /** Made on first use: most handlers never read the signal. */
  #aborter: AbortController | null = null
  #reason: unknown
  #countsForImap = false

  constructor(engine: Engine, limits: Limits, ctx: FrameContext, requestId: string, address: string) {
    const { path, query } = parseTarget(ctx.req.url ?? '/')
    this.engine = engine
    this.requestId = requestId
    this.address = address
    this.path = path
    this.rawQuery = query
    this.version = path.startsWith('/2.0/') ? '2.0' : 'lite'
    this.#ctx = ctx
    this.#limits = limits
  }

  /** The route's path or a placeholder: a metric label, which must have few values. */
  get routePath(): string {
    return this.match?.route.path ?? '(none)'
  }

  get developer(): DeveloperRecord {
    if (this.knownDeveloper === null) throw new Error(`${this.routePath} is not for developers but asks for one`)
    return this.knownDeveloper
  }

  get target(): string {
    return `${this.path}?${this.rawQuery}`
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
    this.actor = actor
  }

  made(id: string): void {
    this.madeId = id
  }

  asksForJson(): boolean {
    return asksForJson(this.#ctx)
  }

  acceptsLanguages(languages: string[]): string | false {
    return this.#ctx.acceptsLanguages(languages)
  }

  concerns(user: UserRecord, account?: AccountRecord): void {
    this.user = user
    this.account = account ?? null
    this.#limits.imap.show(user.id, this.#ctx)
    if (account === undefined) return
    concernsAccount(account.id)
    const url = urlsOf(this).account({ userId: user.id, label: account.label })
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

export type Headers = Readonly<Record<string, string>>

/** Sends the whole answer at once. Node leaves the body out of an answer to HEAD. */
export function sendWhole(ctx: FrameContext, status: number, headers: Headers, body: Buffer | string): void {
  ctx.respond = false
  ctx.res.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body)
}

/** The handler's signal aborts when the client goes away, and when its key or token is revoked. */
function watchCaller({ res, state: { exchange } }: FrameContext, abort: (why: unknown) => void): void {
  const shutOut = (): void => abort(new AppError('unauthorized', 'Authorization: revoked meanwhile'))
  const leave = exchange.caller === '' ? null : exchange.engine.revocations.onEnd(exchange.caller, shutOut)
  whenClosed(res, () => {
    leave?.()
    if (!res.writableFinished) abort(new AppError('bad_request', 'the client went away'))
  })
}

/**
 * Takes a share of the memory budget for this call, in the name of its developer, or of its address before
 * authentication. Rejects with `busy` when there was no room in time, and with the signal's reason.
 */
export async function takeShare(ctx: FrameContext, use: Use, bytes: number, signal?: AbortSignal): Promise<Release> {
  const { exchange } = ctx.state
  const owner = { developerId: exchange.knownDeveloper?.id ?? exchange.address, part: '' }
  const release = await exchange.engine.budget.take(use, owner, bytes, signal ? { signal } : {})
  if (release === null) {
    const words = 'many large calls are under way (MAILROOM_BUFFER_MAX); try again'
    throw new AppError('busy', words, { retryAfterMs: 5000 })
  }
  whenClosed(ctx.res, () => release())
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
