/** The HTTP server: deadlines against slow clients, `Expect: 100-continue`, and JSON answers to what is not HTTP. */
import { createServer as createHttpServer, STATUS_CODES, type RequestListener, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Config } from '../engine/index.ts'
import { createConnections, type Connections } from './connections.ts'
import { awaitContinue } from './incoming.ts'

type Settings = Pick<Config, 'MAILROOM_REQUEST_TIMEOUT'> & Parameters<typeof createConnections>[0]

/** Headers must be there within this time, whatever the deadline of the call. */
const headersMs = 20_000
/** Longer than the idle time of common proxies and client pools, so that they close first. */
const keepAliveMs = 75_000
/** Folder names and OAuth parameters make long targets. */
const maxHeaderBytes = 32 * 1024

/**
 * `app.callback()` behind a server that gives up slow requests: headers within 20 s, the whole request within
 * MAILROOM_REQUEST_TIMEOUT. Not listening yet.
 */
export function createServer(
  app: { callback(): RequestListener },
  config: Settings,
  connections: Connections = createConnections(config),
): Server {
  const requestTimeout = config.MAILROOM_REQUEST_TIMEOUT
  const listener = connections.guard(app.callback())
  const server = createHttpServer(
    {
      headersTimeout: Math.min(headersMs, requestTimeout),
      requestTimeout,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.min(5000, Math.ceil(requestTimeout / 4)),
      maxHeaderSize: maxHeaderBytes,
      // base-url.ts asks for it, with an answer of ours.
      requireHostHeader: false,
    },
    listener,
  )
  server.on('connection', (socket) => connections.admit(socket))
  // The body reader says "100 Continue" once the request is known to be acceptable.
  server.on('checkContinue', (request, response) => {
    awaitContinue(request)
    listener(request, response)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuse(error, socket))
  return server
}

interface Refusal {
  readonly status: number
  readonly words: string
}

/**
 * By the parser's error code. Transfer-Encoding together with Content-Length is refused, not guessed at: Node's parser can be
 * told to let it pass only along with everything else that makes request smuggling possible.
 */
const refusals: Readonly<Record<string, Refusal>> = {
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
