/**
 * A route is a value: what it takes, what it answers, who may call it, and the handler. The router, the validation, the
 * OpenAPI document and the tests are all built from these values.
 */
import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { AccountRecord, AuditRecord, DeveloperRecord, Engine } from '../engine/index.ts'
import type { OperatorScope, Spooled, UserRecord } from '../engine/index.ts'
import type { ApiVersion } from './addresses.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/**
 * `developer`: a signed call. `operator`: a token of the admin API, with the route's scope. `public`: anybody (health,
 * docs, wizard), or who has a session of the console. `link`: a signed download link.
 */
export type Auth = 'developer' | 'operator' | 'public' | 'link'

/** The operator who acts. */
export type Actor = Pick<AuditRecord, 'by' | 'actorId' | 'actorName'>

/** What a handler is given besides its parsed input. */
export interface Call {
  readonly engine: Engine
  /** Id of the developer or of the admin token that calls; '' where auth is 'public'. */
  readonly caller: string
  /** As the client used it, or MAILROOM_PUBLIC_URL; without a trailing slash. */
  readonly baseUrl: string
  /** Of the path that was called: the answer is in its words. */
  readonly version: ApiVersion
  readonly requestId: string
  /** Where the call comes from: an IPv4 address, or the /64 network of an IPv6 address. */
  readonly address: string
  /** The message of a multipart body (Definition.upload); null = there was none. */
  readonly upload: Spooled | null
  /** Where auth is 'developer'. */
  readonly developer: DeveloperRecord
  /** Path and query as they are on the wire. */
  readonly target: string
  /** Aborts when the client goes away or MAILROOM_REQUEST_TIMEOUT has passed. */
  readonly signal: AbortSignal
  /** Header of the request, lower-case name. */
  header(name: string): string | undefined
  /** Notes the operator of a form of the console; null = nothing is done. */
  actsAs(actor: Actor | null): void
  /** Notes the id of what the operator has made. */
  made(id: string): void
  asksForJson(): boolean
  /** Notes which email account the answer concerns: sets the status header and the call log. */
  concerns(user: UserRecord, account?: AccountRecord): void
  /** Counts the call against the user's IMAP budget, once; throws `rate_limited`. */
  touchesImap(user: Pick<UserRecord, 'id'>): void
  /** Before so many bytes are held in memory for the answer: waits for its turn among all calls. */
  reserve(bytes: number): Promise<void>
}

/** An answer that is not JSON. */
export class StreamAnswer {
  readonly body: Readable | Buffer | string
  readonly headers: Readonly<Record<string, string>>
  /** Instead of the route's. */
  readonly status: number | null
  constructor(
    body: Readable | Buffer | string,
    headers: Readonly<Record<string, string>>,
    status: number | null = null,
  ) {
    this.body = body
    this.headers = headers
    this.status = status
  }
}

/** Of a stream of server-sent events. */
export const eventStreamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // For proxies that would rather collect the answer first.
  'X-Accel-Buffering': 'no',
}

/** JSON that is already text, or bytes: lists answered from prepared rows. */
export class JsonText {
  readonly text: string | Buffer
  constructor(text: string | Buffer) {
    this.text = text
  }
}

type NamesIn<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `${infer Folder}+` ? Folder : Name) | NamesIn<Rest>
  : never

/** The parameters that a path names, percent-decoded. */
export type PathParameters<P extends string> = P extends string ? { readonly [Name in NamesIn<P>]: string } : never

/** What a handler takes. Query and body are as their schemas give them. */
export interface Input<P extends string, Q extends z.ZodType, B extends z.ZodType> {
  readonly path: PathParameters<P>
  /** Query parameters; on POST, PUT and DELETE the body's parameters win over the query's. */
  readonly query: z.output<Q>
  readonly body: z.output<B>
}

interface Definition<
  P extends string = string,
  Q extends z.ZodType = z.ZodType,
  B extends z.ZodType = z.ZodType,
  R extends z.ZodType = z.ZodType,
> {
  /** 'developer' when absent. */
  readonly auth?: Auth
  /** What an operator's token needs; 'read' when absent. */
  readonly scope?: OperatorScope
  readonly summary: string
  readonly tag?: string
  /** The route is deprecated: what does the same, 'GET /lite/users'; '' = nothing does. */
  readonly instead?: string
  readonly description?: string
  readonly query?: Q
  readonly body?: B
  /** The file part of a multipart body that is a message: it is not held in memory. */
  readonly upload?: string
  /** A JSON array in the place of the body is this parameter. */
  readonly listBody?: string
  /** Of a good answer. Error answers are the same everywhere. */
  readonly response: R | 'binary' | 'text' | 'html' | 'events'
  /** Some parameters make the answer plain text. */
  readonly plain?: true
  /** A caller who asks for JSON gets the `response`, others a page. */
  readonly page?: true
  /** Status of a good answer, 200 when absent. */
  readonly status?: number
  /** Statuses beyond its own and those that every route may answer; see errorStatuses in openapi.ts. */
  readonly errors?: readonly number[]
  handler(input: Input<P, Q, B>, call: Call): Promise<z.input<R> | StreamAnswer | JsonText>
}

export interface Route extends Definition {
  readonly method: Method
  readonly path: string
  readonly auth: Auth
  /** The group of the route in the documents. */
  readonly tag: string
}

export interface Match {
  readonly route: Route
  /** Percent-decoded. */
  readonly parameters: Readonly<Record<string, string>>
}

/**
 * `at` is method and path: 'GET /lite/users/{id}/email_accounts/{label}/folders/{folder+}/messages/{message_id}'.
 * `{name}` is one segment, `{folder+}` a folder: greedy up to the last '/messages' or '/expunge' segment, or to the
 * end; raw or %2F slashes.
 */
export function defineRoute<
  P extends `${Method} ${string}`,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
>(at: P, definition: Definition<P, Q, B, R>): Route {
  const [method = '', path = ''] = at.split(' ')
  return { auth: 'developer', tag: '', ...(definition as Definition), method: method as Method, path }
}

/** Routes of 2.0, deprecated: with each what does the same in lite, '' = nothing does; alone: the same path there. */
export function deprecated(
  tag: string,
  routes: readonly (Route | readonly [route: Route, instead: string])[],
): readonly Route[] {
  return routes.map((one) => {
    const [route, instead] = 'method' in one ? [one, inLite(one)] : one
    return { ...route, tag: `2.0 ${tag}`, instead }
  })
}

/** Method and path of a route of 2.0, in the words of lite. */
function inLite({ method, path }: Route): string {
  const there = path.replace('/2.0', '/lite').replace('/accounts', '/users').replace('/sources', '/email_accounts')
  return `${method} ${there.replace('{folder+}', '{folder}')}`
}

/** Routes that the documents show together. */
export function tagged(tag: string, routes: readonly Route[]): readonly Route[] {
  return routes.map((route) => ({ ...route, tag }))
}
