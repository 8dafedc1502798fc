/** Reads the body of one request in steps: its beginning before authentication, the rest later or never. */
import type { Hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { AppError } from '../engine/index.ts'

/** Requests that wait for `100 Continue` (server.ts). */
const waiting = new WeakSet<IncomingMessage>()

export function awaitContinue(request: IncomingMessage): void {
  waiting.add(request)
}

/** Sends `100 Continue` if the client waits for it. */
export function continueBody(request: IncomingMessage, response: ServerResponse): void {
  if (waiting.delete(request)) response.writeContinue()
}

/** Most of a body that is read and thrown away, so that its client reads the answer 413. */
const drainBytes = 16 * 1024 * 1024
const drainMs = 3000

export class Body {
  /** Content-Length; null = the length is unknown. */
  readonly declared: number | null
  /** Bytes received. */
  received = 0
  /** The whole body is received. */
  whole = false
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #limit: number
  #chunks: Buffer[] = []

  constructor(request: IncomingMessage, response: ServerResponse, limit: number) {
    this.declared = bodyLength(request)
    this.#request = request
    this.#response = response
    this.#limit = limit
  }

  /** The received part. */
  bytes(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0] ?? Buffer.alloc(0)
  }

  /** Reads until the body is whole or longer than `most` bytes. Rejects when the body is larger than the limit. */
  async read(most: number): Promise<void> {
    for await (const chunk of this.#more()) {
      this.#chunks.push(chunk)
      if (this.received > most) return
    }
  }

  /** All pieces, once: the received ones, then the rest as it arrives. */
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
    continueBody(this.#request, this.#response)
    try {
      for await (const chunk of this.#request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        this.received += chunk.length
        if (this.received > this.#limit) break
        yield chunk
      }
    } catch (cause) {
      throw new AppError('bad_request', 'body: ended too early', { cause })
    }
    if (this.received > this.#limit) {
      this.#chunks = []
      throw tooLarge(this.#limit)
    }
    this.whole = true
  }

  /** Reads the rest and throws it away, up to limits of time and bytes. */
  async drain(): Promise<void> {
    if (!this.whole && !waiting.has(this.#request) && (this.declared ?? 0) <= drainBytes) await drain(this.#request)
  }

  /** After an early answer Node throws away the rest of the body. Ends the connection if that takes too long. */
  leave(): void {
    const request = this.#request
    if (!request.complete) setTimeout(() => request.complete || request.socket.destroy(), drainMs).unref()
  }
}

/** Length of the body in bytes; 0 = the request has no body, null = the length is unknown. */
export function bodyLength({ headers }: IncomingMessage): number | null {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null
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
