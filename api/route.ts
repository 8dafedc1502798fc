/**
 * A route is a value: its input, its answers, its authentication and its handler. The router, the validation, the
 * OpenAPI document and the tests are built from these values.
 */
import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { AccountRecord, AuditRecord, DeveloperRecord, Engine } from '../engine/index.ts'
import type { OperatorScope, Spooled, UserRecord } from '../engine/index.ts'
import type { ApiVersion } from './addresses.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/**
 * `developer`: a signed call. `operator`: an admin token with the route's scope. `public`: no key (health, docs,
 * wizard, console). `link`: a signed download link.
 */
export type Auth = 'developer' | 'operator' | 'public' | 'link'

/** The operator that calls. */
export type Actor = Pick<AuditRecord, 'by' | 'actorId' | 'actorName'>

/** The handler's view of a call, besides the parsed input. */
export interface Call {
  readonly engine: Engine
  /** Id of the developer or of the admin token that calls; '' where auth is 'public'. */
  readonly caller: string
  /** MAILROOM_PUBLIC_URL, or the base URL that the client used; without a trailing slash. */
  readonly baseUrl: string
  /** The API of the path; the answer has the words of this API. */
  readonly version: ApiVersion
  readonly requestId: string
  /** The client's IPv4 address, or the /64 network of its IPv6 address. */
  readonly address: string
  /** The message of a multipart body (Definition.upload); null = none. */
  readonly upload: Spooled | null
  /** Throws where auth is not 'developer'. */
  readonly developer: DeveloperRecord
  /** Path and query as they are on the wire. */
  readonly target: string
  /** Aborts when the client goes away, its key is revoked or MAILROOM_REQUEST_TIMEOUT has passed. */
  readonly signal: AbortSignal
  /** Header of the request, lower-case name. */
  header(name: string): string | undefined
  /** Notes the operator of a console form, for the audit trail; null = the form changes nothing. */
  actsAs(actor: Actor | null): void
  /** Notes the id of the record that the operator created, for the audit trail. */
  made(id: string): void
  asksForJson(): boolean
  /** The language that the client prefers (Accept-Language); false = none of these. */
  acceptsLanguages(languages: string[]): string | false
  /** Notes the user and the email account of the answer, for the status header and the call log. */
  concerns(user: UserRecord, account?: AccountRecord): void
  /** Counts the call against the user's IMAP budget, once; throws `rate_limited`. */
  touchesImap(user: Pick<UserRecord, 'id'>): void
  /** Waits for a share of the memory budget; call it before so many bytes are held for the answer. */
  reserve(bytes: number): Promise<void>
}

/** An answer that is not JSON. */
export class StreamAnswer {
  readonly body: Readable | Buffer | string
  readonly headers: Readonly<Record<string, string>>
  readonly status: number
  constructor(body: Readable | Buffer | string, headers: Readonly<Record<string, string>>, status = 200) {
    this.body = body
    this.headers = headers
    this.status = status
  }
}

/** Headers of a stream of server-sent events. */
export const eventStreamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // Stops nginx from buffering the answer.
  'X-Accel-Buffering': 'no',
}

/** JSON that is already text or bytes, for lists of prepared rows. */
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

/** The handler's input: the outputs of the query and body schemas. */
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
  /** Scope that an admin token needs; 'read' when absent. */
  readonly scope?: OperatorScope
  readonly summary: string
  readonly tag?: string
  /** The route is deprecated: the route that replaces it, 'GET /lite/users'; '' = none. */
  readonly instead?: string
  readonly description?: string
  readonly query?: Q
  readonly body?: B
  /** Name of the file part that is a message: it goes into a file, not into memory. */
  readonly upload?: string
  /** Name of the parameter for a JSON array in place of the body. */
  readonly listBody?: string
  /** Of a successful answer. Error answers are the same everywhere. */
  readonly response: R | 'binary' | 'text' | 'html' | 'events'
  /** Some parameters make the answer plain text. */
  readonly plain?: true
  /** A caller who asks for JSON gets the `response`, others a page. */
  readonly page?: true
  /** Error statuses besides those of every route; see errorStatuses in openapi.ts. */
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

/** A route at several paths: at each of `paths`, with `end` behind the path. */
export function routesAt<
  M extends Method,
  P extends string,
  E extends string,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
>(method: M, paths: readonly P[], end: E, definition: Definition<`${M} ${P}${E}`, Q, B, R>): readonly Route[] {
  return paths.map((path) => defineRoute(`${method} ${path}${end}`, definition))
}

/** Deprecated routes of 2.0. A route that does not name its replacement has the same path in lite. */
export function deprecated(tag: string, routes: readonly Route[]): readonly Route[] {
  return routes.map((route) => ({ instead: inLite(route), ...route, tag: `2.0 ${tag}` }))
}

/** Method and path of the lite route with the same path. */
function inLite({ method, path }: Route): string {
  const there = path.replace('/2.0', '/lite').replace('/accounts', '/users').replace('/sources', '/email_accounts')
  return `${method} ${there.replace('{folder+}', '{folder}')}`
}

/** Groups routes in the documents. */
export function tagged(tag: string, routes: readonly Route[]): readonly Route[] {
  return routes.map((route) => ({ ...route, tag }))
}
