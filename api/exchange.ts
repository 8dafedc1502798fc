/** What the frame knows of one request on its way through the middlewares. */
import type Koa from 'koa'
import type { AccountRecord, AppError, DeveloperRecord, Release, UserRecord } from '../engine/index.ts'
import type { Body } from './incoming.ts'
import type { Auth } from './route.ts'
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
