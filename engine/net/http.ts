/**
 * The HTTP client for callbacks, discovery and token endpoints. It follows no redirect. Addresses are checked at each
 * connection: a literal address before it, a resolved address in the socket's own look-up.
 *
 * Errors are AppErrors: `timeout` (one deadline over connect, headers and body), `private_address`, `tls`, `network`
 * (refused, reset, no such host; details.reason has the system's code), `protocol` (the response is not HTTP); `busy`
 * and `shutting_down` are faults of Mailroom.
 */
import { isIP, type LookupFunction } from 'node:net'
import { Agent, type Dispatcher, buildConnector, errors } from 'undici'
import { AppError, errnoOf, isTlsCode, shortageOf, toAppError } from '../errors.ts'
import { isPublicAddress, notPublic, pinned, resolveGuarded } from './address.ts'

export interface HttpLimits {
  readonly timeoutMs: number
  readonly maxResponseBytes: number
}

export interface HttpAnswer {
  readonly status: number
  /** Lower-case names; repeated headers joined with a comma. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type Texts = Readonly<Record<string, string>>

export type HttpClient = ReturnType<typeof createHttpClient>

/** Bound on all callers' connections to one origin; each caller has its own lower bound. */
const connectionsPerOrigin = 1024
/** The rest of a response up to this size is read and dropped, so that the connection can be reused. */
const drainBytes = 65_536
/** A connection is closed after a request body of more than this. */
const largeBytes = 1_048_576

interface ClientOptions {
  /** false = only public unicast addresses are allowed. */
  readonly allowPrivate: boolean
  readonly connectTimeoutMs?: number
}

export function createHttpClient({ allowPrivate, connectTimeoutMs: timeout = 15_000 }: ClientOptions) {
  const agent = new Agent({
    connect: guardedConnector(allowPrivate, timeout),
    connections: connectionsPerOrigin,
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: 15_000,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const send = (url: string, limits: HttpLimits, outgoing: Outgoing): Promise<HttpAnswer> =>
    sendOver(agent, limits, url, outgoing)
  return {
    postJson: (url: string, headers: Texts, body: string | Uint8Array, limits: HttpLimits) =>
      send(url, limits, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }),
    postForm: (url: string, form: Texts, limits: HttpLimits) =>
      send(url, limits, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: new URLSearchParams(form).toString(),
      }),
    get: (url: string, headers: Texts, limits: HttpLimits) => send(url, limits, { method: 'GET', headers }),
    /** Closes every connection; requests under way fail with `shutting_down`. */
    close: (): Promise<void> => agent.destroy(),
  }
}

interface Outgoing {
  readonly method: 'GET' | 'POST'
  readonly headers: Record<string, string>
  readonly body?: string | Uint8Array
}

/** undici's `request` would make a stream of each response and need a signal for the deadline. */
async function sendOver(dispatcher: Agent, limits: HttpLimits, url: string, outgoing: Outgoing): Promise<HttpAnswer> {
  const answer = collect(limits.maxResponseBytes)
  const timer = setTimeout(() => {
    answer.end(new AppError('timeout', `no complete answer within ${limits.timeoutMs} ms`))
  }, limits.timeoutMs)
  try {
    const { origin, pathname, search } = new URL(url)
    // A receiver may respond without reading the whole body: after a large body the connection is closed.
    const reset = (outgoing.body?.length ?? 0) > largeBytes
    dispatcher.dispatch({ ...outgoing, origin, path: pathname + search, reset }, answer.handler)
    return await answer.whole
  } catch (error) {
    throw toNetworkError(error)
  } finally {
    clearTimeout(timer)
  }
}

/** Collects a response; `end` gives it up and closes its connection. */
function collect(maxBytes: number) {
  const { promise: whole, resolve, reject } = Promise.withResolvers<HttpAnswer>()
  const kept: Buffer[] = []
  let [left, seen] = [maxBytes, 0]
  let head: Pick<HttpAnswer, 'status' | 'headers'> = { status: 0, headers: {} }
  let request: Dispatcher.DispatchController | null = null
  let over: Error | null = null
  const finish = (): void => resolve({ ...head, body: Buffer.concat(kept).toString('utf8') })
  const end = (error: Error): void => {
    over = error
    reject(error)
    request?.abort(error)
  }
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(controller) {
      request = controller
      if (over !== null) controller.abort(over)
    },
    onResponseStart(_controller, status, headers) {
      if (status >= 200) head = { status, headers: flat(headers) }
    },
    onResponseData(_controller, chunk) {
      seen += chunk.length
      if (left > 0) kept.push(chunk.subarray(0, left))
      left -= chunk.length
      if (seen <= Math.max(maxBytes, drainBytes)) return
      finish()
      end(new Error('the rest of the answer is not wanted'))
    },
    onResponseEnd: finish,
    onResponseError: (_controller, error) => reject(error),
  }
  return { whole, handler, end }
}

function flat(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')]))
}

function guardedConnector(allowPrivate: boolean, timeout: number): buildConnector.connector {
  const connect = buildConnector({ allowH2: false, timeout, lookup: guardedLookup(allowPrivate, timeout) })
  return (options, callback) => {
    const { hostname } = options
    if (allowPrivate || isIP(hostname) === 0 || isPublicAddress(hostname)) connect(options, callback)
    else callback(notPublic(hostname), null)
  }
}

/** The socket's look-up, which returns checked addresses only. */
function guardedLookup(allowPrivate: boolean, timeout: number): LookupFunction {
  return (hostname, options, callback) => {
    resolveGuarded(hostname, { allowPrivate, signal: AbortSignal.timeout(timeout) }).then(
      (addresses) => pinned(addresses)(hostname, options, callback),
      (error: unknown) => callback(toAppError(error), []),
    )
  }
}

/** Retry-After (RFC 9110 10.2.3: seconds or a date) as a wait in ms, at most `longestMs`; null = absent or invalid. */
export function retryAfterOf(header: string | null | undefined, now: number, longestMs: number): number | null {
  const text = header?.trim() ?? ''
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(wait) ? null : Math.min(Math.max(wait, 0), longestMs)
}

const protocolCodes = /^(HPE_|UND_ERR_(RES|HEADERS|BODY|INFO|REQ|NOT_SUPPORTED|INVALID_ARG))/
/** Codes of a closed client, see `close`. */
const closedCodes = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'])

function toNetworkError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const ours = shortageOf(error)
  if (ours !== null) return ours
  const reason = errnoOf(error) ?? 'unknown'
  if (closedCodes.has(reason)) return new AppError('shutting_down', 'the service is stopping', { cause: error })
  const message = error instanceof Error ? error.message || reason : reason
  if (reason === 'UND_ERR_CONNECT_TIMEOUT') return new AppError('timeout', 'no connection in time', { cause: error })
  if (isTlsCode(reason)) return new AppError('tls', message, { cause: error, details: { reason } })
  // undici asserts some properties of a response, such as a status of at least 100.
  if (reason === 'ERR_ASSERTION') return new AppError('protocol', 'the answer is not valid HTTP', { cause: error })
  const code = error instanceof errors.HTTPParserError || protocolCodes.test(reason) ? 'protocol' : 'network'
  return new AppError(code, message, { cause: error, details: { reason } })
}
