/**
 * A route is a value: what it takes, what it answers, who may call it, and the handler. The router, the validation, the
 * OpenAPI document and the tests are all built from these values.
 */
import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { AccountRecord, DeveloperRecord, Engine, UserRecord } from '../engine/index.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/**
 * `developer`: a signed call. `public`: anybody (health, docs, wizard). `link`: a signed download link.
 */
export type Auth = 'developer' | 'public' | 'link'

/** What a handler is given besides its parsed input. */
export interface Call {
  readonly engine: Engine
  /** Set when auth is 'developer'. */
  readonly developer: DeveloperRecord
  /** Base URL as the client used it, or MAILROOM_PUBLIC_URL; without a trailing slash. */
  readonly baseUrl: string
  readonly requestId: string
  /** Aborts when the client goes away or MAILROOM_REQUEST_TIMEOUT has passed. */
  readonly signal: AbortSignal
  /** Header of the request, lower-case name. */
  header(name: string): string | undefined
  /** Notes which email account the answer concerns: sets the status header and the call log. */
  concerns(user: UserRecord, account?: AccountRecord): void
  /** Counts the call against the user's IMAP budget; throws `rate_limited`. */
  touchesImap(user: Pick<UserRecord, 'id'>): void
  /** Whether the client asks for JSON rather than for a page (Accept). */
  asksForJson(): boolean
  /** Before so many bytes are held in memory for the answer: waits for its turn among all calls. */
  reserve(bytes: number): Promise<void>
}

/** An answer that is not JSON. */
export class StreamAnswer {
  readonly body: Readable | Buffer | string
  readonly headers: Readonly<Record<string, string>>
  constructor(body: Readable | Buffer | string, headers: Readonly<Record<string, string>>) {
    this.body = body
    this.headers = headers
  }
}

/** JSON that is already text: lists answered from prepared rows. */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Parsed input: path parameters, query and body as the schemas give them. */
export interface Input<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  readonly path: z.output<P>
  /** Query parameters; on POST, PUT and DELETE the body's parameters win over the query's. */
  readonly query: z.output<Q>
  readonly body: z.output<B>
}

interface Definition<
  P extends z.ZodType = z.ZodType,
  Q extends z.ZodType = z.ZodType,
  B extends z.ZodType = z.ZodType,
  R extends z.ZodType = z.ZodType,
> {
  readonly method: Method
  /**
   * '/lite/users/{id}/email_accounts/{label}/folders/{folder+}/messages/{message_id}'. `{name}` is one segment,
   * `{folder+}` a folder: greedy up to the last '/messages' or '/expunge' segment, or to the end; raw or %2F slashes.
   */
  readonly path: string
  /** 'developer' when absent. */
  readonly auth?: Auth
  readonly summary: string
  /** See `tagged`. */
  readonly tag?: string
  readonly description?: string
  readonly request: { readonly path?: P; readonly query?: Q; readonly body?: B }
  /** Of a good answer. Error answers are the same everywhere. */
  readonly response: R | 'binary' | 'text' | 'html'
  /** A caller who asks for JSON gets the `response`, others a page. */
  readonly page?: true
  /** Status of a good answer, 200 when absent. */
  readonly status?: number
  /** What a caller has to know of every good answer, in ASCII: its header `X-Service-Notice`. */
  readonly notice?: string
  /** Statuses beyond its own, 400, 401, 404, 429, 431, 500, 503 and 504 that this route may answer. */
  readonly errors?: readonly number[]
  handler(input: Input<P, Q, B>, call: Call): Promise<z.input<R> | StreamAnswer | JsonText>
}

export interface Route extends Definition {
  readonly auth: Auth
  /** The group of the route in the documents. */
  readonly tag: string
}

/** Keeps the schema types of one route for its handler, and drops them for the list of routes. */
export function defineRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType>(
  route: Definition<P, Q, B, R>,
): Route {
  return { auth: 'developer', tag: '', ...route }
}

/** Routes that the documents show together. */
export function tagged(tag: string, routes: readonly Route[]): readonly Route[] {
  return routes.map((route) => ({ ...route, tag }))
}
