/** The OpenAPI 3.1 document, built from the same route values that are served. */
import { STATUS_CODES } from 'node:http'
import { z } from 'zod'
import manifest from '../package.json' with { type: 'json' }
import { adminPathWords, errorSchema, introductionOf, newFolder, pathWords, securitySchemes } from './examples.ts'
import { type Json, urls } from './examples.ts'
import { callbacksOf } from './lite/webhooks/callbacks.ts'
import type { Auth, Method, Route } from './route.ts'
import { given, wireSchemas } from './values.ts'

export const serviceName = 'Mailroom'
export const serviceVersion = manifest.version

export type OpenApi = ReturnType<typeof buildOpenApi>
export type Operation = ReturnType<typeof operationOf>

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly description?: string
  readonly schema: Json
  readonly example?: unknown
}

const bodyTypes = ['application/x-www-form-urlencoded', 'multipart/form-data', 'application/json'] as const

/** Builds the document without `servers`: the caller adds the configured base URL. */
export function buildOpenApi(routes: readonly Route[], statusHeader = accountStatus) {
  const printer = createSchemaPrinter()
  const headers = headersOf(statusHeader)
  const paths: Record<string, Record<string, Operation>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll('+}', '}')
    const operations = (paths[path] ??= {})
    operations[route.method.toLowerCase()] = operationOf(route, printer, statusHeader)
  }
  return {
    openapi: '3.1.0' as const,
    info: { title: serviceName, version: serviceVersion, description: introductionOf(statusHeader) },
    servers: [] as { readonly url: string }[],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths,
    webhooks: callbacksOf(printer.print),
    components: {
      securitySchemes,
      schemas: { Error: errorSchema, ...printer.named },
      headers,
      responses: errorResponses(routes, statusHeader),
    } as Readonly<Record<string, Json>>,
  }
}

function operationOf(route: Route, printer: SchemaPrinter, statusHeader: string) {
  const schema = route.body && printer.print(route.body)
  return {
    operationId: operationId(route.method, route.path),
    tags: [route.tag],
    summary: route.summary,
    ...describedOf(route),
    security: securityOf(route),
    parameters: [...pathParameters(route), ...queryParameters(route, printer)],
    ...given({ requestBody: schema && { content: Object.fromEntries(bodyTypes.map((type) => [type, { schema }])) } }),
    responses: responsesOf(route, printer, statusHeader),
  }
}

/** The description of a deprecated route names its replacement. */
function describedOf({ description, instead }: Route) {
  if (instead === undefined) return description === undefined ? {} : { description }
  const replaced = instead === '' ? 'Nothing in the lite API does the same.' : `Use \`${instead}\` instead.`
  return { description: description === undefined ? replaced : `${description} ${replaced}`, deprecated: true as const }
}

function securityOf({ auth }: Route): Readonly<Record<string, readonly []>>[] {
  if (auth === 'operator') return [{ admin: [] }]
  return auth === 'developer' ? [{ oauth1: [] }, { basic: [] }, { bearer: [] }] : []
}

/** getLiteUsersIdEmailAccounts: unique, since method and path are. */
function operationId(method: Method, path: string): string {
  const words = path === '/' ? ['root'] : path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function pathParameters(route: Route): Parameter[] {
  return [...route.path.matchAll(/\{(\w+)\+?\}/g)].map(([, name = '']) => {
    const parameter = { name, in: 'path', required: true, schema: { type: 'string' } } as const
    const words = route.auth === 'operator' ? adminPathWords[name] : pathWords[name]
    if (words === undefined) return parameter
    const isNewFolder = route.method === 'POST' && route.path.endsWith('/{folder+}')
    return { ...parameter, description: words[0], example: isNewFolder ? newFolder : words[1] }
  })
}

function queryParameters(route: Route, printer: SchemaPrinter): Parameter[] {
  if (route.query === undefined) return []
  const { properties, required } = propertiesOf(printer.print(route.query))
  return Object.entries(properties).map(([name, schema]) => {
    const { description } = schema as { readonly description?: string }
    return {
      name,
      in: 'query',
      // The body of a write may have the parameter instead.
      required: (route.method === 'GET' || route.body === undefined) && required.includes(name),
      ...given({ description }),
      schema,
    }
  })
}

/** The answer of a successful call. */
export function answerOf({ responses }: Pick<Operation, 'responses'>): Readonly<{ status: string; answer: Json }> {
  const [status = '', answer = {}] = Object.entries(responses).find(([, one]) => 'content' in one) ?? []
  return { status, answer }
}

export function propertiesOf({ properties = {}, required = [] }: Json) {
  return { properties: properties as Record<string, Json>, required: required as readonly string[] }
}

type SchemaPrinter = ReturnType<typeof createSchemaPrinter>

export const sharedReference = '#/components/schemas/'

/** Prints schemas as JSON Schema, and collects those with a `.meta({ id })` for components.schemas. */
export function createSchemaPrinter() {
  const named: Json = {}
  return {
    named,
    print(schema: z.ZodType): Json {
      // The wire shape is the input of a response's schema too: that schema only checks the answer.
      const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', override })
      const shared = JSON.stringify(json).replaceAll('"$ref":"#/$defs/', `"$ref":"${sharedReference}`)
      const { $defs = {}, ...rest } = JSON.parse(shared) as Json
      delete rest.$schema
      Object.assign(named, $defs)
      return rest
    },
  }
}

function override({ zodSchema, jsonSchema }: { readonly zodSchema: z.core.$ZodType; readonly jsonSchema: Json }): void {
  // The limits of JavaScript's numbers are no property of the API.
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  const wire = wireSchemas.get(zodSchema as z.ZodType)?.wire
  if (wire !== undefined) {
    const { description } = jsonSchema
    for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key)
    Object.assign(jsonSchema, wire, given({ description }))
  }
  // zod drops the examples of a transformed schema as examples of its output. Ours are examples of the input.
  const examples = z.globalRegistry.get(zodSchema)?.examples
  if (examples !== undefined) jsonSchema.examples = examples
}

/** The sender of a file chose its type. */
const answerTypes = { binary: '*/*', text: 'text/plain', html: 'text/html', events: 'text/event-stream' } as const

function responsesOf(route: Route, printer: SchemaPrinter, statusHeader: string): Record<string, Json> {
  const { response } = route
  const content = {
    ...(typeof response === 'string'
      ? { [answerTypes[response]]: { schema: response === 'binary' ? {} : { type: 'string' } } }
      : { 'application/json': { schema: printer.print(response) } }),
    ...(route.plain === true ? { 'text/plain': { schema: { type: 'string' } } } : {}),
    ...(route.page === true ? { 'text/html': { schema: { type: 'string' } } } : {}),
  }
  const errors = Object.fromEntries(
    errorStatuses(route).map((status) => [status, { $ref: `#/components/responses/${status}` }]),
  )
  return { '200': { description: 'Success', headers: answerHeaders(route, statusHeader), content }, ...errors }
}

const commonErrors: Partial<Readonly<Record<Auth, readonly number[]>>> = {
  developer: [400, 401, 404, 429, 431, 500, 503, 504],
  operator: [400, 401, 403, 404, 429, 431, 500, 503, 504],
}

/** The error statuses of every route, and those that this route names. */
function errorStatuses(route: Route): number[] {
  const common = commonErrors[route.auth] ?? [400, 431, 500]
  const body = route.method === 'GET' ? [] : [413]
  return [...new Set([...common, ...body, ...(route.errors ?? [])])].sort((a, b) => a - b)
}

/** Name of the component. In an answer MAILROOM_STATUS_HEADER names the header. */
const accountStatus = 'X-Service-Email-Account-Status'

const text = (description: string, example: string): Json => ({ description, schema: { type: 'string' }, example })
const count = (description: string, example: number): Json => ({ description, schema: { type: 'integer' }, example })

const callLimit = {
  'X-RateLimit-Limit': count('Calls an hour for this API key; absent without a limit', 5000),
  'X-RateLimit-Remaining': count('Calls left in this hour', 4999),
  'X-RateLimit-Reset': count('When the hour ends, Unix timestamp in seconds', 1_700_003_600),
}
const imapLimit = {
  'X-RateLimit-IMAP-Limit': count('Calls a minute to the mail servers of this user; absent without a limit', 240),
  'X-RateLimit-IMAP-Remaining': count('Such calls left in this minute', 239),
  'X-RateLimit-IMAP-Reset': count('When the minute ends, Unix timestamp in seconds', 1_700_000_060),
}

/** components.headers */
function headersOf(statusHeader: string): Json {
  return {
    'X-Request-Id': text('Names this call in the log', '0b5f2c1e-7d3a-4f7e-9a51-3c8d2e6f1a90'),
    ...callLimit,
    ...imapLimit,
    [accountStatus]: text(
      `On every answer about one email account, as \`${statusHeader}\`: its resource URL, a space, then OK or DISABLED`,
      `${urls.account} OK`,
    ),
    'Retry-After': count('Seconds to wait; absent when the same call would fail again', 30),
    'WWW-Authenticate': text('How a call may be signed', 'OAuth realm="mailroom"'),
  }
}

function referencesTo(names: readonly string[], statusHeader: string): Json {
  return Object.fromEntries(
    names.map((name) => [name === accountStatus ? statusHeader : name, { $ref: `#/components/headers/${name}` }]),
  )
}

function answerHeaders(route: Route, statusHeader: string): Json {
  const names = [
    'X-Request-Id',
    ...(route.auth === 'developer' ? Object.keys(callLimit) : []),
    ...(concernsUser(route) ? Object.keys(imapLimit) : []),
    ...(concernsAccount(route) ? [accountStatus] : []),
  ]
  return referencesTo(names, statusHeader)
}

function concernsUser(route: Route): boolean {
  return /^\/(?:lite\/users|2\.0\/accounts)\/\{id\}/.test(route.path) || concernsAccount(route) || route.auth === 'link'
}

const makers = ['/lite/users', '/lite/users/{id}/email_accounts', '/2.0/accounts', '/2.0/accounts/{id}/sources']

/** Whether the route is about one email account, or creates one. */
function concernsAccount({ method, path }: Route): boolean {
  const makesOne = method === 'POST' && makers.includes(path)
  return makesOne || /\/(?:email_accounts|sources)\/\{label\}|^\/2\.0\/.*\/(?:messages?|files|threads)\b/.test(path)
}

/** Statuses with a Retry-After. */
const retryable = [429, 503, 504]

function errorHeaders(status: number, statusHeader: string): Json {
  // The HTTP server itself answers 431, before there is a call.
  if (status === 431) return {}
  const names = [
    'X-Request-Id',
    ...(retryable.includes(status) ? ['Retry-After'] : []),
    ...(status === 401 ? ['WWW-Authenticate'] : [...Object.keys(callLimit), ...Object.keys(imapLimit), accountStatus]),
  ]
  return referencesTo(names, statusHeader)
}

/** components.responses: errors are the same everywhere. */
function errorResponses(routes: readonly Route[], statusHeader: string): Json {
  const statuses = [...new Set(routes.flatMap(errorStatuses))].sort((a, b) => a - b)
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: STATUS_CODES[status] ?? String(status),
        headers: errorHeaders(status, statusHeader),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  )
}
