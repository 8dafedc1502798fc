/** Answers in the OpenAPI document: statuses, and the headers that come with them. */
import { STATUS_CODES } from 'node:http'
import type { Json, SchemaPrinter } from './openapi-schema.ts'
import type { Route } from './route.ts'

/** A file has the type that its sender gave it. */
const answerTypes = { binary: '*/*', text: 'text/plain', html: 'text/html' } as const

export function responsesOf(route: Route, printer: SchemaPrinter, statusHeader: string): Record<string, Json> {
  const { response, status = 200 } = route
  const content = {
    ...(typeof response === 'string'
      ? { [answerTypes[response]]: { schema: response === 'binary' ? {} : { type: 'string' } } }
      : { 'application/json': { schema: printer.print(response) } }),
    ...(route.page === true ? { 'text/html': { schema: { type: 'string' } } } : {}),
  }
  const description = status === 200 ? 'Success' : (STATUS_CODES[status] ?? String(status))
  const errors = Object.fromEntries(
    errorStatuses(route).map((status) => [status, { $ref: `#/components/responses/${status}` }]),
  )
  return { [status]: { description, headers: answerHeaders(route, statusHeader), content }, ...errors }
}

/** What every route may answer beyond 200, and what this one names. */
function errorStatuses(route: Route): number[] {
  const common = route.auth === 'developer' ? [400, 401, 404, 429, 431, 500, 503, 504] : [400, 431, 500]
  const body = route.method === 'GET' ? [] : [413]
  return [...new Set([...common, ...body, ...(route.errors ?? [])])].sort((a, b) => a - b)
}

const callLimit = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']
const imapLimit = ['X-RateLimit-IMAP-Limit', 'X-RateLimit-IMAP-Remaining', 'X-RateLimit-IMAP-Reset']
/** The component; in an answer the header has the name that MAILROOM_STATUS_HEADER gives it. */
const accountStatus = 'X-Service-Email-Account-Status'

const text = (description: string, example: string): Json => ({ description, schema: { type: 'string' }, example })
const count = (description: string, example: number): Json => ({ description, schema: { type: 'integer' }, example })

/** components.headers */
export function headersOf(statusHeader: string): Json {
  const url = 'https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample'
  return {
    'X-Service-Notice': text('What a caller has to know of this answer', 'the wizard is not there yet'),
    'X-Request-Id': text('Names this call in the log', '0b5f2c1e-7d3a-4f7e-9a51-3c8d2e6f1a90'),
    'X-RateLimit-Limit': count('Calls an hour for this API key; absent without a limit', 5000),
    'X-RateLimit-Remaining': count('Calls left in this hour', 4999),
    'X-RateLimit-Reset': count('When the hour ends, Unix timestamp in seconds', 1_700_003_600),
    'X-RateLimit-IMAP-Limit': count('Calls a minute to the mail servers of this user; absent without a limit', 240),
    'X-RateLimit-IMAP-Remaining': count('Such calls left in this minute', 239),
    'X-RateLimit-IMAP-Reset': count('When the minute ends, Unix timestamp in seconds', 1_700_000_060),
    [accountStatus]: text(
      `On every answer about one email account, as \`${statusHeader}\`: its resource URL, a space, then OK or DISABLED`,
      `${url} OK`,
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
    ...(route.notice === undefined ? [] : ['X-Service-Notice']),
    ...(route.auth === 'developer' ? callLimit : []),
    ...(concernsUser(route) ? imapLimit : []),
    ...(concernsAccount(route) ? [accountStatus] : []),
  ]
  return referencesTo(names, statusHeader)
}

function concernsUser(route: Route): boolean {
  return route.path.startsWith('/lite/users/{id}') || concernsAccount(route) || route.auth === 'link'
}

/** What is about one email account, or makes one. */
function concernsAccount({ method, path }: Route): boolean {
  const makesOne = method === 'POST' && ['/lite/users', '/lite/users/{id}/email_accounts'].includes(path)
  return makesOne || path.includes('/email_accounts/{label}')
}

const mayPass = [429, 503, 504]

function errorHeaders(status: number, statusHeader: string): Json {
  // Answered by the HTTP server itself, before there is a call.
  if (status === 431) return {}
  const names = [
    'X-Request-Id',
    ...(mayPass.includes(status) ? ['Retry-After'] : []),
    ...(status === 401 ? ['WWW-Authenticate'] : [...callLimit, ...imapLimit, accountStatus]),
  ]
  return referencesTo(names, statusHeader)
}

/** components.responses: errors are the same everywhere. */
export function errorResponses(routes: readonly Route[], statusHeader: string): Json {
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
