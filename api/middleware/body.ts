/** Reads the query and the body: form-urlencoded, multipart or JSON, on every method, into one record of values. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import busboy from 'busboy'
import { AppError, toAppError } from '../../engine/index.ts'
import type { FrameContext, Middleware } from '../exchange.ts'
import { mostParameters, parsePairs, type Pair } from '../wire.ts'

/** Requests that wait for `100 Continue` (server.ts). */
const waiting = new WeakSet<IncomingMessage>()

export function awaitContinue(request: IncomingMessage): void {
  waiting.add(request)
}

/** What is read and thrown away so that the client is still listening when the answer 413 comes. */
const drainBytes = 16 * 1024 * 1024
const drainMs = 3000

export function bodyReader(limitBytes: number): Middleware {
  return async (ctx, next) => {
    const { exchange } = ctx.state
    try {
      exchange.values = await readValues(ctx, limitBytes)
    } catch (thrown) {
      const error = toAppError(thrown)
      // What is left of too large a body has to be told of, whatever else is wrong.
      exchange.refusal = error.status === 413 ? error : (exchange.refusal ?? error)
    }
    await next()
  }
}

async function readValues({ req, res, state }: FrameContext, limitBytes: number): Promise<Record<string, unknown>> {
  const { exchange } = state
  exchange.query = parsePairs(exchange.target.query, 'query')
  const values = record(exchange.query)
  if (hasBody(req)) {
    const body = await readBody(req, res, limitBytes)
    exchange.body = body
    if (body.length > 0) await parseBody(req, body, (form) => (exchange.form = form), values)
  }
  return values
}

/** Without a prototype: parameters may have any name. The last value of a name wins. */
function record(pairs: readonly Pair[]): Record<string, unknown> {
  const values = Object.create(null) as Record<string, unknown>
  for (const [name, value] of pairs) values[name] = value
  return values
}

function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length']
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

async function readBody(request: IncomingMessage, response: ServerResponse, limit: number): Promise<Buffer> {
  const tooLarge = new AppError('too_large', `body: larger than ${limit} bytes`, {
    details: { parameter: 'body', limit },
  })
  const declared = Number(request.headers['content-length'] ?? 0)
  if (waiting.delete(request)) {
    if (declared > limit) throw tooLarge
    response.writeContinue()
  }
  if (declared > drainBytes) throw tooLarge
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let size = 0
  let timer: NodeJS.Timeout | undefined
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= limit) {
      chunks.push(chunk)
      return
    }
    timer ??= setTimeout(() => reject(tooLarge), drainMs)
    chunks.length = 0
    if (size > drainBytes) reject(tooLarge)
  })
  request.once('end', () => (size > limit ? reject(tooLarge) : resolve(Buffer.concat(chunks, size))))
  request.once('error', (cause) => reject(new AppError('bad_request', 'body: ended too early', { cause })))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

async function parseBody(
  request: IncomingMessage,
  body: Buffer,
  signed: (form: Pair[]) => void,
  values: Record<string, unknown>,
): Promise<void> {
  const encoding = request.headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') throw malformed(`Content-Encoding ${encoding} is not accepted`)
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (type === 'multipart/form-data') {
    assign(values, await parseMultipart(request, body))
    return
  }
  const text = decodeUtf8(body)
  if (type === 'application/json' || (type === '' && /^\s*\{/.test(text))) {
    assign(values, Object.entries(parseJson(text)))
  } else if (type === 'application/x-www-form-urlencoded' || type === '') {
    const pairs = parsePairs(text, 'body')
    // A signature covers the body only under this very type (RFC 5849 section 3.4.1.3.1).
    if (type !== '') signed(pairs)
    assign(values, pairs)
  } else {
    throw malformed('expected application/x-www-form-urlencoded, multipart/form-data or application/json')
  }
}

function assign(values: Record<string, unknown>, entries: readonly (readonly [string, unknown])[]): void {
  for (const [name, value] of entries) values[name] = value
}

function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch (cause) {
    throw malformed('not UTF-8', cause)
  }
}

function parseJson(text: string): object {
  if (text.trim() === '') return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw malformed('not valid JSON', cause)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed('expected a JSON object')
  return value
}

/** The fields; files are read over. */
async function parseMultipart(request: IncomingMessage, body: Buffer): Promise<Pair[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Pair[]>()
  const pairs: Pair[] = []
  const parser = openMultipart(request, body.length)
  parser.on('field', (name, value) => pairs.push([name, value]))
  parser.on('file', (_name, file) => file.on('error', reject).resume())
  // Not once: a body may be wrong in several places, and an error that nobody hears ends the call as ours.
  parser.on('error', (cause) => reject(malformed('not valid multipart/form-data', cause)))
  parser.on('partsLimit', () => reject(malformed(`more than ${mostParameters} parameters`)))
  parser.once('close', () => resolve(pairs))
  parser.end(body)
  return promise
}

function openMultipart(request: IncomingMessage, size: number): busboy.Busboy {
  try {
    return busboy({ headers: request.headers, limits: { fieldNameSize: 1024, fieldSize: size, parts: mostParameters } })
  } catch (cause) {
    throw malformed('not valid multipart/form-data', cause)
  }
}

function malformed(problem: string, cause?: unknown): AppError {
  return new AppError('bad_request', `body: ${problem}`, { cause, details: { parameter: 'body' } })
}
