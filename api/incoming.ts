/**
 * The body of one request as it comes in. Its beginning is read before it is known who calls, and no more than 64 KiB of it; the rest
 * waits in the network until then.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../engine/index.ts'

/** Requests that wait for `100 Continue` (server.ts). */
const waiting = new WeakSet<IncomingMessage>()

export function awaitContinue(request: IncomingMessage): void {
  waiting.add(request)
}

/** Read before it is known who calls. */
export const earlyBytes = 65_536

/** What is read and thrown away so that the client is still listening when the answer 413 comes. */
const drainBytes = 16 * 1024 * 1024
const drainMs = 3000

export interface Body {
  /** Content-Length; null = nobody said how long it is. */
  readonly declared: number | null
  /** Bytes that have come. */
  readonly received: number
  /** Nothing more comes. */
  readonly whole: boolean
  /** What has come. */
  bytes(): Buffer
  /** Reads until it is whole or more than `most` bytes are here. Rejects when it is, or says to be, larger than `limit`. */
  read(most: number): Promise<void>
  /** Reads what is left and throws it away, for as long as a client deserves. */
  drain(): Promise<void>
  /** The answer is out, and node throws away what is left of the body: it does so for as long, and no longer. */
  leave(): void
}

/** null when there is none. */
export function bodyOf(request: IncomingMessage, response: ServerResponse, limit: number): Body | null {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (coding === undefined && (length === undefined || length === '0')) return null
  return createBody(request, response, limit)
}

function createBody(request: IncomingMessage, response: ServerResponse, limit: number): Body {
  const length = request.headers['content-length']
  const declared = length === undefined ? null : Number(length)
  let chunks: Buffer[] = []
  let received = 0
  let whole = false
  return {
    declared,
    get received() {
      return received
    },
    get whole() {
      return whole
    },
    bytes() {
      if (chunks.length > 1) chunks = [Buffer.concat(chunks)]
      return chunks[0] ?? Buffer.alloc(0)
    },
    async read(most) {
      if ((declared ?? 0) > limit) throw tooLarge(limit)
      if (waiting.delete(request)) response.writeContinue()
      for await (const chunk of piecesOf(request)) {
        chunks.push(chunk)
        received += chunk.length
        if (received > limit) chunks = []
        if (received > limit) throw tooLarge(limit)
        if (received > most) return
      }
      whole = true
    },
    async drain() {
      if (!whole && !waiting.has(request) && (declared ?? 0) <= drainBytes) await drain(request)
    },
    leave() {
      const { socket } = request
      if (!request.complete) setTimeout(() => request.complete || socket.destroy(), drainMs).unref()
    },
  }
}

async function* piecesOf(request: IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>
  } catch (cause) {
    throw new AppError('bad_request', 'body: ended too early', { cause })
  }
}

function drain(request: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const end = (): void => resolve(undefined)
  const timer = setTimeout(end, drainMs)
  let left = drainBytes
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) end()
  })
  for (const event of ['end', 'error', 'close']) request.once(event, end)
  request.resume()
  return promise.finally(() => clearTimeout(timer))
}

export function tooLarge(limit: number, why = ''): AppError {
  return new AppError('too_large', `body: larger than ${limit} bytes${why}`, { details: { parameter: 'body', limit } })
}
