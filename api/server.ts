/** The HTTP server: deadlines for slow clients, `Expect: 100-continue`, JSON answers to bad HTTP, start and end. */
import { createServer as createHttpServer, type RequestListener, type Server, STATUS_CODES } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError, type Config } from '../engine/index.ts'
import { answerError, type Connections, createConnections } from './connections.ts'
import { awaitContinue } from './request-body.ts'
import { mayMeasure, measureWords, type MetricsConfig, type Served } from './system.ts'

type Settings = Pick<Config, 'MAILROOM_REQUEST_TIMEOUT'> & Parameters<typeof createConnections>[0]

interface App {
  callback(served: Served): RequestListener
}

/** The headers must arrive within this time, whatever the deadline of the call. */
const headersMs = 20_000
/** Longer than the idle time of common proxies and client pools, so that they close first. */
const keepAliveMs = 75_000
/** Folder names and OAuth parameters make long targets. */
const maxHeaderBytes = 32 * 1024

/**
 * Serves the app behind Node's own timeouts: headers within 20 s, the whole request within MAILROOM_REQUEST_TIMEOUT. A
 * connection without traffic for twice that time during a call is closed. The server does not listen yet.
 */
export function createServer(
  app: App,
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
      // addresses.ts requires the header and answers in our words.
      requireHostHeader: false,
    },
    listener,
  )
  server.timeout = 2 * requestTimeout
  server.on('connection', (socket) => connections.admit(socket))
  // The body reader sends "100 Continue" when it starts to read.
  server.on('checkContinue', (request, response) => {
    awaitContinue(request)
    listener(request, response)
  })
  // Other expectations are ignored (RFC 9110 section 10.1.1): Node's own 417 would bypass the limits and deadlines.
  server.on('checkExpectation', listener)
  server.on('clientError', refuse)
  return server
}

/**
 * By the parser's error code. Transfer-Encoding together with Content-Length is refused: the parser option that would
 * accept both also permits request smuggling.
 */
const refusals: Readonly<Record<string, readonly [status: number, words: string]>> = {
  HPE_HEADER_OVERFLOW: [431, `headers: larger than ${maxHeaderBytes} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request was not complete in time'],
  HPE_INVALID_TRANSFER_ENCODING: [400, 'Transfer-Encoding: send either Transfer-Encoding or Content-Length, not both'],
  HPE_INVALID_CONTENT_LENGTH: [400, 'Content-Length: send one number, and not together with Transfer-Encoding'],
}

function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, words] = refusals[error.code ?? ''] ?? [400, 'the request is not valid HTTP']
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
 * Answers on the port until the app is started, which may wait for the store: the process is alive but not ready, and
 * other calls get a 503.
 */
export function createFront(config: MetricsConfig) {
  let app: App | null = null
  return {
    callback(served: Served): RequestListener {
      const waiting = beforeStart(config, served)
      let started: RequestListener | undefined
      return (request, response) => {
        started ??= app?.callback(served)
        const listener = started ?? waiting
        listener(request, response)
      }
    },
    /** From now on the app answers. Called once. */
    use(started: App): void {
      app = started
    },
  }
}

const starting = 'the service is starting: it waits for its store'

function beforeStart(config: MetricsConfig, served: Served): RequestListener {
  return ({ url, headers }, response) => {
    const path = url?.split('?')[0]?.replace(/\/$/, '')
    if (path === '/healthz')
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ status: 'ok' }))
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
}

/** Whether the host means every address of the machine: clients cannot use such a host in a URL. */
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
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const words = `${of}_HOST, ${of}_PORT: cannot listen on ${host}:${port}: ${cause.code ?? cause.message}`
      reject(new AppError('bad_request', words, { cause }))
    })
    server.listen(port, host, resolve)
  })
  const { port: chosen } = server.address() as AddressInfo
  if (isWildcard(host)) return `http://127.0.0.1:${chosen}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${chosen}`
}

/** Accepts no new call, gives open calls `graceMs` to end, then closes all connections, event streams included. */
export async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const cut = setTimeout(() => server.closeAllConnections(), graceMs)
  await closed
  clearTimeout(cut)
}
