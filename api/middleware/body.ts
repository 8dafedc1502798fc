/** Reads the query and the body: form-urlencoded, multipart or JSON, on every method, into one record of values. */
import type { Hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import busboy from 'busboy'
import { AppError, isAppError, spool, type Spooled, toAppError, withCrlf, yieldToLoop } from '../../engine/index.ts'
import { type Exchange, type FrameContext, type Middleware, takeShare, whenClosed } from '../call.ts'
import { Body, bodyLength, tooLarge } from '../request-body.ts'
import { type Entries, mostParameters, type Pair, parsePairs, valuesOf } from '../wire.ts'

/** Bytes that are read before authentication. */
export const earlyBytes = 65_536

/** Memory holds a body several times: its pieces, the whole, its text and its values. */
const heldTimes = 4

/** Parses the query and reads the beginning of the body. Runs before authentication. */
export const bodyBeginning: Middleware = (ctx, next) => {
  const { exchange } = ctx.state
  try {
    exchange.query = parsePairs(exchange.rawQuery, 'query')
    exchange.values = valuesOf(exchange.query)
  } catch (error) {
    exchange.refusal ??= toAppError(error)
  }
  const { MAILROOM_BODY_LIMIT: limit, MAILROOM_MESSAGE_LIMIT: message } = exchange.engine.config
  if (bodyLength(ctx.req) === 0) return next()
  const isUpload = isMultipart(ctx.req) && exchange.match?.route.upload !== undefined
  exchange.body = new Body(ctx.req, ctx.res, isUpload ? message + limit : limit)
  return readBeginning(ctx, exchange.body, next)
}

async function readBeginning(ctx: FrameContext, body: Body, next: () => Promise<unknown>): Promise<void> {
  const { exchange } = ctx.state
  await noting(exchange, async () => {
    await body.read(earlyBytes)
    // A signature may cover a form.
    if (isForm(ctx.req)) await parseWhole(ctx)
  })
  try {
    await next()
  } catch (error) {
    if (toAppError(error).status === 413) await exchange.body?.drain()
    else ctx.res.once('finish', () => exchange.body?.leave())
    throw error
  }
}

/** Reads the rest of the body. Runs after authentication. */
export const bodyRest: Middleware = (ctx, next) => {
  const { body } = ctx.state.exchange
  return body === null ? next() : readToEnd(ctx, body, next)
}

async function readToEnd(ctx: FrameContext, body: Body, next: () => Promise<unknown>): Promise<void> {
  const { exchange } = ctx.state
  await noting(exchange, async () => {
    const isParsed = body.whole && isForm(ctx.req)
    if (isParsed || exchange.refusal !== null) return
    if (isMultipart(ctx.req)) return takeMultipart(ctx, body, null)
    await readRest(ctx)
    await parseWhole(ctx)
  })
  if (body.whole) exchange.body = null
  await next()
}

/** Keeps an error as the call's refusal, which is answered later. */
async function noting(exchange: Exchange, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (thrown) {
    const error = toAppError(thrown)
    // `too_large` wins over other errors: the rest of the body has to be drained.
    exchange.refusal = error.status === 413 ? error : (exchange.refusal ?? error)
  }
}

/** Hashes the whole body as received. A message in it goes straight into its file and is never whole in memory. */
export async function hashBody(ctx: FrameContext, hash: Hash): Promise<void> {
  const { body } = ctx.state.exchange
  if (body !== null && isMultipart(ctx.req)) await takeMultipart(ctx, body, hash)
  else hash.update(await readRest(ctx))
}

/** Reads the rest within the memory budget of the developer. Without a developer, a longer body is `too_large`. */
async function readRest(ctx: FrameContext): Promise<Buffer> {
  const { body, knownDeveloper, engine } = ctx.state.exchange
  if (body === null) return Buffer.alloc(0)
  if (body.whole) return body.bytes()
  if (knownDeveloper === null) throw tooLarge(earlyBytes)
  const limit = engine.config.MAILROOM_BODY_LIMIT
  await takeShare(ctx, 'request', heldTimes * (body.declared ?? limit))
  await body.read(limit)
  return body.bytes()
}

/** Does nothing until the body is whole. */
async function parseWhole({ req, state: { exchange } }: FrameContext): Promise<void> {
  const { body } = exchange
  if (body?.whole !== true || body.received === 0) return
  // Many bodies of one sender may arrive at the same moment, and each takes long to parse.
  await yieldToLoop(exchange.address)
  exchange.values = valuesOf([...exchange.query, ...parseBody(req, body.bytes(), exchange)])
}

const multipartType = 'multipart/form-data'
const formType = 'application/x-www-form-urlencoded'

function typeOf({ headers }: IncomingMessage): string {
  return (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/** Whether a signature covers the body: only a form's pairs are signed (RFC 5849 section 3.4.1.3.1). */
export function isForm(request: IncomingMessage): boolean {
  return typeOf(request) === formType
}

function isMultipart(request: IncomingMessage): boolean {
  return typeOf(request) === multipartType
}

function mustBePlain({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') throw malformed(`Content-Encoding ${encoding} is not accepted`)
}

function parseBody(request: IncomingMessage, body: Buffer, exchange: Exchange): Entries {
  mustBePlain(request)
  const type = typeOf(request)
  const text = decodeUtf8(body)
  if (type === 'application/json' || (type === '' && /^\s*\{/.test(text))) {
    assertModest(body)
    return Object.entries(parseJson(text, exchange.match?.route.listBody))
  }
  if (type === formType) return (exchange.form = parsePairs(text, 'body'))
  if (type === '') return parsePairs(text, 'body')
  throw malformed('expected application/x-www-form-urlencoded, multipart/form-data or application/json')
}

function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch (cause) {
    throw malformed('not UTF-8', cause)
  }
}

/** Far more than any call has. */
const mostJsonValues = 10_000
const deepestJson = 32
const [quote, backslash] = [0x22, 0x5c]
const opening = new Set([0x5b, 0x7b])
const closing = new Set([0x5d, 0x7d])
const comma = 0x2c

/** Limits the number and depth of values before JSON.parse: a small text can make large values. */
function assertModest(json: Buffer): void {
  let [values, depth, isText] = [1, 0, false]
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at] as number
    if (isText) {
      if (byte === backslash) at += 1
      else if (byte === quote) isText = false
    } else if (byte === quote) isText = true
    else if (byte === comma) values += 1
    else if (opening.has(byte)) {
      values += 1
      depth += 1
    } else if (closing.has(byte)) depth -= 1
    if (values > mostJsonValues) throw malformed(`more than ${mostJsonValues} values in JSON`)
    if (depth > deepestJson) throw malformed(`JSON nested deeper than ${deepestJson} levels`)
  }
}

function parseJson(text: string, listName: string | undefined): object {
  if (text.trim() === '') return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw malformed('not valid JSON', cause)
  }
  if (Array.isArray(value) && listName !== undefined) return { [listName]: value }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed('expected a JSON object')
  return value
}

function openMultipart(request: IncomingMessage, size: number, refuse: (error: AppError) => void): busboy.Busboy {
  // busboy reports the limit at the end of the last part that fits.
  const limits = { fieldSize: size, parts: mostParameters + 1 }
  try {
    const parser = busboy({ headers: request.headers, limits })
    return parser.on('partsLimit', () => refuse(malformed(`more than ${mostParameters} parameters`)))
  } catch (cause) {
    throw malformed('not valid multipart/form-data', cause)
  }
}

function malformed(problem: string, cause?: unknown): AppError {
  return new AppError('bad_request', `body: ${problem}`, { cause, details: { parameter: 'body' } })
}

/** Most bytes on their way from the socket to the file. */
const heldBytes = 8 * earlyBytes

/**
 * Parses a multipart body while it arrives. The first file that the route's `upload` names is the message: it goes into
 * a file (engine/spool.ts), which is deleted when the answer is out. Other files are skipped.
 */
async function takeMultipart(ctx: FrameContext, body: Body, hash: Hash | null): Promise<void> {
  const { exchange } = ctx.state
  const { knownDeveloper, match, address } = exchange
  const { config } = exchange.engine
  if (body.whole && body.received === 0) return
  mustBePlain(ctx.req)
  if (!body.whole && knownDeveloper === null) throw tooLarge(earlyBytes)
  // Many bodies of one sender may arrive at the same moment, and each takes long to parse.
  await yieldToLoop(address)
  const file = { directory: config.MAILROOM_DATA_DIR, most: config.MAILROOM_MESSAGE_LIMIT }
  const limit = config.MAILROOM_BODY_LIMIT
  // The size of the other parts is known only at the end.
  const release = await takeShare(ctx, 'request', heldBytes + Math.min(body.declared ?? limit, limit))
  const failed = new AbortController()
  // busboy calls a field truncated when it is as long as the limit.
  const parser = openMultipart(ctx.req, limit + 1, (error) => failed.abort(error))
  const pairs: Pair[] = []
  let spooling: Promise<Spooled> | null = null
  let fieldBytes = 0
  parser.on('field', (field: string | undefined, value, { valueTruncated }) => {
    fieldBytes += Buffer.byteLength(field ?? '') + Buffer.byteLength(value)
    const isCut = valueTruncated || fieldBytes > limit
    if (isCut) failed.abort(tooLarge(limit, ' besides the file (a part with a filename)'))
    else pairs.push([field ?? '', value])
  })
  parser.on('file', (field: string | undefined, stream: Readable) => {
    // The parser reports the same error.
    stream.on('error', () => undefined)
    // After an error busboy parses its piece to the end, and would never end a file that begins there.
    const isMessage = field !== undefined && field === match?.route.upload
    if (!isMessage || spooling !== null || parser.destroyed) return void stream.resume()
    spooling = spool(withCrlf(stream), file)
    spooling.catch((error: unknown) => failed.abort(error))
  })
  const problems: unknown[] = []
  await pipeline(body.pieces(hash), parser, { signal: failed.signal }).catch((error: unknown) => problems.push(error))
  const message = (await (spooling as Promise<Spooled> | null)?.catch(() => null)) ?? null
  if (failed.signal.aborted) problems.unshift(failed.signal.reason)
  if (problems.length > 0) {
    await message?.[Symbol.asyncDispose]()
    throw problems.find((error) => isAppError(error)) ?? malformed('not valid multipart/form-data', problems.at(-1))
  }
  release((message === null ? 0 : heldBytes) + heldTimes * fieldBytes)
  exchange.values = valuesOf([...exchange.query, ...pairs])
  exchange.upload = message
  exchange.body = null
  whenClosed(ctx.res, () => void message?.[Symbol.asyncDispose]())
}
