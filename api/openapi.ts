/** The OpenAPI 3.1 document, built from the same route values that are served. */
import { STATUS_CODES } from 'node:http'
import { createSchemaPrinter, type Json, type SchemaPrinter } from './openapi-schema.ts'
import type { Method, Route } from './route.ts'

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: readonly Json[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Json }>> }
  readonly responses: Readonly<Record<string, Json>>
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly description?: string
  readonly schema: Json
  readonly example?: unknown
}

export interface OpenApi {
  readonly openapi: '3.1.0'
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  /** Path → method in lower case → operation. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: Readonly<Record<string, Json>>
}

/** Path parameters by their usual names: what they are, and an example. */
const pathWords: Readonly<Record<string, readonly [description: string, example: string]>> = {
  id: ['id of the user (lite) or account (2.0)', '5f3c8a2b9d4e1f6a7b8c9d0e'],
  label: ['label of the email account or source; 0 is the first one', 'anna::gmail'],
  folder: ['full path of the folder; slashes may be sent raw or as %2F', 'INBOX'],
  message_id: ['id of the message, its Message-ID, or the hosted provider’s id', '8b1a9953c4611296a827abf8'],
  webhook_id: ['id of the webhook', '5f3c8a2b9d4e1f6a7b8c9d0e'],
  attachment_id: ['index of the attachment in its message, from 0', '0'],
  token: ['the connect token', 'k3v9x1m7q2w8e5r4'],
  key: ['consumer key of the OAuth provider', 'my-consumer-key'],
}

const bodyTypes = ['application/x-www-form-urlencoded', 'multipart/form-data', 'application/json'] as const

/** A file has the type that its sender gave it. */
const answerTypes = { binary: '*/*', text: 'text/plain', html: 'text/html' } as const

/** Everything but `servers`, which the asking client's base URL decides: see `withServer`. */
export function buildOpenApi(routes: readonly Route[]): OpenApi {
  const printer = createSchemaPrinter()
  const paths: Record<string, Record<string, Operation>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll('+}', '}')
    const operations = (paths[path] ??= {})
    operations[route.method.toLowerCase()] = operationOf(route, printer)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Mailroom', version: '1.0.0', description: introduction },
    servers: [],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes,
      schemas: { Error: errorSchema, ...printer.named },
      responses: errorResponses(routes),
    },
  }
}

export function withServer(document: OpenApi, baseUrl: string): OpenApi {
  return { ...document, servers: [{ url: baseUrl }] }
}

const introduction = `REST access to IMAP mailboxes, with signed webhooks.

Parameters of a write may come in the query, or in the body as a form, as multipart/form-data or as JSON; unknown ones are
ignored. Flags are 1 or 0 (true and false are taken too), lists are comma-separated, times are Unix timestamps in seconds.
A trailing slash is optional, and nothing is ever redirected. Errors are \`{"type":"error","value":"…"}\`.`

const securitySchemes: Json = {
  oauth1: {
    type: 'http',
    scheme: 'oauth',
    description:
      'OAuth 1.0a, two-legged (RFC 5849): HMAC-SHA1 or HMAC-SHA256, PLAINTEXT over https; in the Authorization header, the query or a form body. The token is empty.',
  },
  basic: { type: 'http', scheme: 'basic', description: 'API key as user, secret as password.' },
  bearer: { type: 'http', scheme: 'bearer', description: '`<key>.<secret>`' },
}

const errorSchema: Json = {
  type: 'object',
  properties: {
    type: { const: 'error' },
    value: { type: 'string', description: 'what is wrong, naming the parameter or id' },
    code: { type: 'integer', description: '105: the signature is wrong' },
  },
  required: ['type', 'value'],
  examples: [{ type: 'error', value: 'user 5f3c8a2b9d4e1f6a7b8c9d0e is invalid' }],
}

function operationOf(route: Route, printer: SchemaPrinter): Operation {
  const body = route.request.body === undefined ? null : printer.print(route.request.body)
  return {
    operationId: operationId(route.method, route.path),
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: route.auth === 'developer' ? [{ oauth1: [] }, { basic: [] }, { bearer: [] }] : [],
    parameters: [...pathParameters(route, printer), ...queryParameters(route, printer)],
    ...(body === null
      ? {}
      : { requestBody: { content: Object.fromEntries(bodyTypes.map((type) => [type, { schema: body }])) } }),
    responses: responsesOf(route, printer),
  }
}

/** getLiteUsersIdEmailAccounts: unique, since method and path are. */
function operationId(method: Method, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function pathParameters(route: Route, printer: SchemaPrinter): Parameter[] {
  const properties = route.request.path === undefined ? {} : propertiesOf(printer.print(route.request.path)).properties
  return [...route.path.matchAll(/\{(\w+)\+?\}/g)].map(([, name = '']) => {
    const schema = properties[name] ?? { type: 'string' }
    const words = pathWords[name]
    const description = textOf(schema.description) ?? words?.[0]
    return {
      name,
      in: 'path',
      required: true,
      ...(description === undefined ? {} : { description }),
      schema,
      ...(words === undefined ? {} : { example: words[1] }),
    }
  })
}

function queryParameters(route: Route, printer: SchemaPrinter): Parameter[] {
  if (route.request.query === undefined) return []
  const { properties, required } = propertiesOf(printer.print(route.request.query))
  return Object.entries(properties).map(([name, schema]) => {
    const description = textOf(schema.description)
    return {
      name,
      in: 'query',
      // A write's parameters may come in the body instead.
      required: route.method === 'GET' && required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema,
    }
  })
}

export function propertiesOf(schema: Json): {
  readonly properties: Record<string, Json>
  readonly required: readonly string[]
} {
  return {
    properties: (schema.properties ?? {}) as Record<string, Json>,
    required: (schema.required ?? []) as readonly string[],
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function responsesOf(route: Route, printer: SchemaPrinter): Record<string, Json> {
  const { response } = route
  const content =
    typeof response === 'string'
      ? { [answerTypes[response]]: { schema: response === 'binary' ? {} : { type: 'string' } } }
      : { 'application/json': { schema: printer.print(response) } }
  const errors = Object.fromEntries(
    errorStatuses(route).map((status) => [status, { $ref: `#/components/responses/${status}` }]),
  )
  return { '200': { description: 'Success', headers: answerHeaders(route), content }, ...errors }
}

/** What every route may answer beyond 200, and what this one names. */
function errorStatuses(route: Route): number[] {
  const common = route.auth === 'developer' ? [400, 401, 404, 429, 431, 500, 503, 504] : [400, 431, 500]
  const body = route.method === 'GET' ? [] : [413]
  return [...new Set([...common, ...body, ...(route.errors ?? [])])].sort((a, b) => a - b)
}

const requestIdHeader: Json = { description: 'Names this call in the log', schema: { type: 'string' } }

function answerHeaders(route: Route): Json {
  if (route.auth !== 'developer') return { 'X-Request-Id': requestIdHeader }
  return {
    'X-Request-Id': requestIdHeader,
    'X-RateLimit-Limit': { description: 'Calls an hour for this API key', schema: { type: 'integer' } },
    'X-RateLimit-Remaining': { description: 'Calls left in this hour', schema: { type: 'integer' } },
    'X-RateLimit-Reset': { description: 'When the hour ends, Unix timestamp', schema: { type: 'integer' } },
    ...(route.path.startsWith('/lite/users/{id}') ? imapHeaders : {}),
  }
}

const imapHeaders: Json = {
  'X-RateLimit-IMAP-Limit': {
    description: 'Calls a minute to the mail servers of this user',
    schema: { type: 'integer' },
  },
  'X-RateLimit-IMAP-Remaining': { description: 'Such calls left in this minute', schema: { type: 'integer' } },
  'X-RateLimit-IMAP-Reset': { description: 'When the minute ends, Unix timestamp', schema: { type: 'integer' } },
}

const retryAfter: Json = { description: 'Seconds to wait', schema: { type: 'integer' } }

function errorResponses(routes: readonly Route[]): Json {
  const statuses = [...new Set(routes.flatMap(errorStatuses))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: STATUS_CODES[status] ?? String(status),
        ...([429, 503, 504].includes(status) ? { headers: { 'Retry-After': retryAfter } } : {}),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  )
}
