/** The body of one request: its beginning is read before it is known who calls; the rest waits in the network. */
import type { Hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../engine/index.ts'

/** Requests that wait for `100 Continue` (server.ts). */
const waiting = new WeakSet<IncomingMessage>()

export function awaitContinue(request: IncomingMessage): void {
  waiting.add(request)
}

/** For who reads the body without looking at it. */
export function continueBody(request: IncomingMessage, response: ServerResponse): void {
  if (waiting.delete(request)) response.writeContinue()
}

/** What is read and thrown away so that the client is still listening when the answer 413 comes. */
const drainBytes = 16 * 1024 * 1024
const drainMs = 3000

export class Body {
  /** Content-Length; null = its length is not known. */
  readonly declared: number | null
  /** Bytes that have come. */
  received = 0
  /** Nothing more comes. */
  whole = false
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #limit: number
  #chunks: Buffer[] = []

  constructor(request: IncomingMessage, response: ServerResponse, limit: number) {
    const length = request.headers['content-length']
    this.declared = length === undefined ? null : Number(length)
    this.#request = request
    this.#response = response
    this.#limit = limit
  }

  /** What has come. */
  bytes(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0] ?? Buffer.alloc(0)
  }

  /** Reads until it is whole or more than `most` bytes are here. Rejects when it is larger than the limit. */
  async read(most: number): Promise<void> {
    for await (const chunk of this.#more()) {
      this.#chunks.push(chunk)
      if (this.received > most) return
    }
  }

  /** All of it, once: what has come, and the rest as it comes. */
  async *pieces(hash: Hash | null): AsyncGenerator<Buffer, void, undefined> {
    const begin = this.#chunks
    this.#chunks = []
    for (const chunk of begin) hash?.update(chunk)
    yield* begin
    if (this.whole) return
    for await (const chunk of this.#more()) {
      hash?.update(chunk)
      yield chunk
    }
  }

  async *#more(): AsyncGenerator<Buffer, void, undefined> {
    if ((this.declared ?? 0) > this.#limit) throw tooLarge(this.#limit)
    if (waiting.delete(this.#request)) this.#response.writeContinue()
    for await (const chunk of piecesOf(this.#request)) {
      this.received += chunk.length
      if (this.received > this.#limit) {
        this.#chunks = []
        throw tooLarge(this.#limit)
      }
      yield chunk
    }
    this.whole = true
  }

  /** Reads the rest and throws it away, up to a limit of time and bytes. */
  async drain(): Promise<void> {
    if (!this.whole && !waiting.has(this.#request) && (this.declared ?? 0) <= drainBytes) await drain(this.#request)
  }

  /** The answer is out, and node throws away the rest of the body: this ends the connection after the same time. */
  leave(): void {
    const request = this.#request
    if (!request.complete) setTimeout(() => request.complete || request.socket.destroy(), drainMs).unref()
  }
}

/** null when there is none. */
export function bodyOf(request: IncomingMessage, response: ServerResponse, limit: number): Body | null {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (coding === undefined && (length === undefined || length === '0')) return null
  return new Body(request, response, limit)
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
