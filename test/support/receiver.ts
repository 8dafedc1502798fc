/**
 * A developer's server for tests: takes callbacks over real HTTP, keeps them, checks both signatures by itself (not
 * with the code under test), and answers as scripted: slowly, wrongly, or not at all.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { freePort } from './port.ts'

export interface Received {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly raw: string
  /** Parsed JSON. */
  readonly body: Readonly<Record<string, unknown>>
  readonly at: number
  readonly id: string
  /** The sender's port: the same for requests over one connection. */
  readonly remotePort: number
}

export type Answer =
  | {
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
      readonly delayMs?: number
    }
  /** Takes the request and never answers. */
  | 'hang'
  /** Closes the connection without an answer. */
  | 'reset'
  /** Sends headers and a byte, and never the rest. */
  | 'slow body'
  /** Not HTTP. */
  | 'garbage'

export interface Receiver {
  readonly port: number
  url(path: string): string
  readonly requests: readonly Received[]
  /** Those of one path, in order of arrival. */
  at(path: string): Received[]
  /** Answers of a path: each once, then `last` for good (200 otherwise). A function decides for itself. */
  script(path: string, answers: readonly Answer[], last?: Answer): void
  decide(path: string, answer: (request: Received) => Answer): void
  /** Ends all connections and stops listening; `open` listens on the same port again. */
  close(): Promise<void>
  open(): Promise<void>
}

/** `otherwise` answers on paths that nothing else was said of. */
export async function createReceiver(
  otherwise: (request: Received) => Answer = () => ({ status: 200 }),
): Promise<Receiver> {
  const requests: Received[] = []
  const deciders = new Map<string, (request: Received) => Answer>()
  const server = createServer((request, response) => {
    receive(request, response).catch((error: unknown) => response.writeHead(400).end(String(error)))
  })
  server.keepAliveTimeout = 60_000
  const port = await freePort()

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      return
    }
    const received = readRequest(request, Buffer.concat(chunks).toString('utf8'))
    requests.push(received)
    const decide = deciders.get(received.path) ?? otherwise
    answer(response, decide(received))
  }

  async function open(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => {
        server.off('error', reject)
        resolve()
      })
    })
  }

  await open()
  return {
    port,
    url: (path) => `http://127.0.0.1:${port}${path}`,
    requests,
    at: (path) => requests.filter((one) => one.path === path),
    script(path, answers, last = { status: 200 }) {
      const left = [...answers]
      deciders.set(path, () => left.shift() ?? last)
    },
    decide: (path, decider) => void deciders.set(path, decider),
    async close() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    },
    open,
  }
}

function readRequest(request: IncomingMessage, raw: string): Received {
  let body: Record<string, unknown> = {}
  try {
    body = JSON.parse(raw) as Record<string, unknown>
  } catch {
    // Not JSON: the test sees it by the empty body.
  }
  const { headers, url = '/' } = request
  return {
    path: url,
    headers,
    raw,
    body,
    at: Date.now(),
    id: String(headers['webhook-id'] ?? ''),
    remotePort: request.socket.remotePort ?? 0,
  }
}

function answer(response: ServerResponse, how: Answer): void {
  if (how === 'hang') return
  if (how === 'reset') response.socket?.resetAndDestroy()
  else if (how === 'garbage') response.socket?.end('220 mail.example.com ESMTP\r\n')
  else if (how === 'slow body') {
    response.writeHead(200, { 'content-length': '100' })
    response.write('.')
  } else if (how.delayMs === undefined) send(response, how)
  else setTimeout(() => send(response, how), how.delayMs)
}

function send(response: ServerResponse, { status, headers = {}, body = '' }: Exclude<Answer, string>): void {
  if (response.destroyed) return
  response.writeHead(status, headers)
  response.end(body)
}

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/**
 * interface.md, Authentication 3: HMAC-SHA256 (hex) of timestamp and token, keyed with the API secret; within five
 * minutes of ours.
 */
export function bodySignatureValid(received: Received, apiSecret: string): boolean {
  const { timestamp, token, signature } = received.body
  if (typeof timestamp !== 'number' || typeof token !== 'string' || typeof signature !== 'string') return false
  const expected = createHmac('sha256', apiSecret).update(String(timestamp)).update(token).digest('hex')
  return same(signature, expected) && Math.abs(Date.now() / 1000 - timestamp) < 300
}

/**
 * Standard Webhooks 1.0: `v1,<base64>` of HMAC-SHA256 over `id.timestamp.body`; one of the signatures must fit the key
 * (`whsec_…`, or raw bytes), and the time must be within five minutes of ours.
 */
export function standardSignatureValid(received: Received, key: string | Buffer): boolean {
  const { headers, raw } = received
  const id = String(headers['webhook-id'])
  const timestamp = String(headers['webhook-timestamp'])
  const bytes = typeof key === 'string' ? Buffer.from(key.slice('whsec_'.length), 'base64') : key
  const expected = `v1,${createHmac('sha256', bytes).update(`${id}.${timestamp}.${raw}`).digest('base64')}`
  const signatures = String(headers['webhook-signature']).split(' ')
  return Math.abs(Date.now() / 1000 - Number(timestamp)) < 300 && signatures.some((one) => same(one, expected))
}
