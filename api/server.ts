/** The HTTP server: deadlines against slow clients, `Expect: 100-continue`, JSON answers to bad HTTP; the port. */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError, type Config } from '../engine/index.ts'
import { answerError, type Connections, createConnections } from './connections.ts'
import { awaitContinue } from './request-body.ts'
import { mayMeasure, measureWords, type MetricsConfig, type Served } from './system.ts'

type Settings = Pick<Config, 'MAILROOM_REQUEST_TIMEOUT'> & Parameters<typeof createConnections>[0]

/** Headers must be there within this time, whatever the deadline of the call. */
const headersMs = 20_000
/** Longer than the idle time of common proxies and client pools, so that they close first. */
const keepAliveMs = 75_000
/** Folder names and OAuth parameters make long targets. */
const maxHeaderBytes = 32 * 1024

/**
 * `app.callback()` behind Node's own timeouts: headers within 20 s, the whole request within MAILROOM_REQUEST_TIMEOUT;
 * a connection on which nothing moves for twice that time during a call is closed. Not listening yet.
 */
export function createServer(
  app: { callback(served: Served): RequestListener },
  config: Settings,
  connections: Connections = createConnections(config),
  served: Served = 'all',
): Server {
  const requestTimeout = config.MAILROOM_REQUEST_TIMEOUT
  const listener = connections.guard(app.callback(served))
  const server = createHttpServer(
    {
      headersTimeout: Math.min(headersMs, requestTimeout),
      requestTimeout,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.min(5000, Math.ceil(requestTimeout / 4)),
      maxHeaderSize: maxHeaderBytes,
      // addresses.ts asks for it, with an answer of ours.
      requireHostHeader: false,
    },
    listener,
  )
  server.timeout = 2 * requestTimeout
  server.on('connection', (socket) => connections.admit(socket))
  // The body reader says "100 Continue" once the request is known to be acceptable.
  server.on('checkContinue', (request, response) => {
    awaitContinue(request)
    listener(request, response)
  })
  // Ignored (RFC 9110 10.1.1 allows it): Node's own 417 would pass by the limits and deadlines of answers.
  server.on('checkExpectation', listener)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuse(error, socket))
  return server
}

/**
 * By the parser's error code. Transfer-Encoding together with Content-Length is refused, not guessed at: Node's parser
 * lets it pass only along with everything else that makes request smuggling possible.
 */
const refusals: Readonly<Record<string, { readonly status: number; readonly words: string }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, words: `headers: larger than ${maxHeaderBytes} bytes` },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, words: 'the request was not complete in time' },
  HPE_INVALID_TRANSFER_ENCODING: {
    status: 400,
    words: 'Transfer-Encoding: send either Transfer-Encoding or Content-Length, not both',
  },
  HPE_INVALID_CONTENT_LENGTH: {
    status: 400,
    words: 'Content-Length: send one number, and not together with Transfer-Encoding',
  },
}

function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { status, words } = refusals[error.code ?? ''] ?? { status: 400, words: 'the request is not valid HTTP' }
  const body = JSON.stringify({ type: 'error', value: words })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

/**
 * What answers on the port from the first moment on. Until the app takes over (the store may be away at the start, or
 * another process serve it), it says that the process is alive and not ready, and asks callers of everything else to
 * come back.
 */
export function createFront(config: MetricsConfig) {
  let app: { callback(served: Served): RequestListener } = {
    callback: (served) => (request, response) => beforeStart(config, request, response, served),
  }
  return {
    /** Of the listener that serves so much. */
    callback(served: Served): RequestListener {
      let [of, handle] = [app, app.callback(served)]
      return (request, response) => {
        if (of !== app) [of, handle] = [app, app.callback(served)]
        handle(request, response)
      }
    },
    /** From now on the app answers. */
    use(started: typeof app): void {
      app = started
    },
  }
}

const starting = 'the service is starting: it waits for its store'

function beforeStart(
  config: MetricsConfig,
  { url, headers }: IncomingMessage,
  response: ServerResponse,
  served: Served,
): void {
  const path = url?.split('?')[0]?.replace(/\/$/, '')
  if (path === '/healthz') response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ status: 'ok' }))
  else if (path !== '/metrics' || served === 'api')
    answerError(response, new AppError('store_unavailable', starting, { retryAfterMs: 5000 }))
  else if (!mayMeasure(config, headers.authorization)) {
    response.setHeader('WWW-Authenticate', 'Bearer realm="mailroom"')
    answerError(response, new AppError('unauthorized', measureWords))
  } else {
    response.setHeader('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
    response.end('# TYPE mailroom_ready gauge\nmailroom_ready 0\n')
  }
}

/** It stands for every address of the machine: clients cannot be sent to it. */
export function isWildcard(host: string): boolean {
  return /^(?:0\.0\.0\.0|[0:]+)$/.test(host)
}

/** Resolves to the base URL, on 127.0.0.1 for a wildcard host. Rejects with `bad_request` when it cannot listen. */
export async function listen(
  server: Server,
  of: 'MAILROOM' | 'MAILROOM_ADMIN',
  host: string,
  port: number,
): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        new AppError(
          'bad_request',
          `${of}_HOST, ${of}_PORT: cannot listen on ${host}:${port}: ${cause.code ?? cause.message}`,
          { cause },
        ),
      ),
    )
    server.listen(port, host, resolve)
  })
  const { port: chosen } = server.address() as AddressInfo
  if (isWildcard(host)) return `http://127.0.0.1:${chosen}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${chosen}`
}

/** Takes no new call, lets open ones end for `graceMs`, then cuts what is left (event streams among it). */
export async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  const cut = setTimeout(() => server.closeAllConnections(), graceMs)
  await closed
  clearTimeout(cut)
}
