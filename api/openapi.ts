/** The OpenAPI 3.1 document, built from the same route values that are served. */
import { callbacksOf, type Callback } from './openapi-callbacks.ts'
import { errorResponses, headersOf, responsesOf } from './openapi-responses.ts'
import { createSchemaPrinter, type Json, type SchemaPrinter } from './openapi-schema.ts'
import { errorSchema, introductionOf, newFolder, pathWords, securitySchemes } from './openapi-words.ts'
import type { Method, Route } from './route.ts'
import { serviceName, serviceVersion } from './version.ts'

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
  /** What the service sends. */
  readonly webhooks: Readonly<Record<string, { readonly post: Callback }>>
  readonly components: Readonly<Record<string, Json>>
}

const bodyTypes = ['application/x-www-form-urlencoded', 'multipart/form-data', 'application/json'] as const

/** Settings that the document tells. */
export interface DocumentSettings {
  /** MAILROOM_STATUS_HEADER */
  readonly statusHeader: string
}

const usualSettings: DocumentSettings = { statusHeader: 'X-Service-Email-Account-Status' }

/** Everything but `servers`, which the configured base URL decides: see `withServer`. */
export function buildOpenApi(routes: readonly Route[], settings = usualSettings): OpenApi {
  const printer = createSchemaPrinter()
  const headers = headersOf(settings.statusHeader)
  const paths: Record<string, Record<string, Operation>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll('+}', '}')
    const operations = (paths[path] ??= {})
    operations[route.method.toLowerCase()] = operationOf(route, printer, settings)
  }
  const webhooks = callbacksOf(printer)
  return {
    openapi: '3.1.0',
    info: { title: serviceName, version: serviceVersion, description: introductionOf(settings.statusHeader) },
    servers: [],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths,
    webhooks,
    components: {
      securitySchemes,
      schemas: { Error: errorSchema, ...printer.named },
      headers,
      responses: errorResponses(routes, settings.statusHeader),
    },
  }
}

export function withServer(document: OpenApi, baseUrl: string): OpenApi {
  return { ...document, servers: [{ url: baseUrl }] }
}

function operationOf(route: Route, printer: SchemaPrinter, { statusHeader }: DocumentSettings): Operation {
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
    responses: responsesOf(route, printer, statusHeader),
  }
}

/** getLiteUsersIdEmailAccounts: unique, since method and path are. */
function operationId(method: Method, path: string): string {
  const words = path === '/' ? ['root'] : path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

function pathParameters(route: Route, printer: SchemaPrinter): Parameter[] {
  const properties = route.request.path === undefined ? {} : propertiesOf(printer.print(route.request.path)).properties
  return [...route.path.matchAll(/\{(\w+)\+?\}/g)].map(([, name = '']) => {
    const schema = properties[name] ?? { type: 'string' }
    const words = pathWords[name]
    const description = textOf(schema.description) ?? words?.[0]
    const example = route.method === 'POST' && route.path.endsWith('/{folder+}') ? newFolder : words?.[1]
    return {
      name,
      in: 'path',
      required: true,
      ...(description === undefined ? {} : { description }),
      schema,
      ...(example === undefined ? {} : { example }),
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
      // Where a write has a body, the parameter may come in it instead.
      required: (route.method === 'GET' || route.request.body === undefined) && required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema,
    }
  })
}

/** The good answer: errors are described elsewhere. */
export function answerOf({ responses }: Pick<Operation, 'responses'>): {
  readonly status: string
  readonly answer: Json
} {
  const [status = '', answer = {}] = Object.entries(responses).find(([, one]) => 'content' in one) ?? []
  return { status, answer }
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
