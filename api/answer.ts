/** Sends what a handler gave: JSON, prepared JSON, or bytes. Exactly `application/json`: several clients compare the string. */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AppError, type Budget } from '../engine/index.ts'
import { type FrameContext, holdContents, keepOnly } from './call.ts'
import { JsonText, type Route, StreamAnswer } from './route.ts'

interface Options {
  /** Parse every JSON answer against its route's schema. */
  readonly check: boolean
  /** A stream that makes no progress for this long is given up. */
  readonly stallMs: number
  readonly budget: Pick<Budget, 'take'>
}

/** Longer texts go out in pieces, as the client takes them, and draw from the budget. */
const pieceBytes = 65_536

export async function sendAnswer(ctx: FrameContext, route: Route, answer: unknown, options: Options): Promise<void> {
  ctx.status = route.status ?? 200
  if (route.notice !== undefined) ctx.set('X-Service-Notice', route.notice)
  if (answer instanceof StreamAnswer) return sendBytes(ctx, answer, options)
  const text = answer instanceof JsonText ? answer.text : (JSON.stringify(answer) as string | undefined)
  if (text === undefined) throw new AppError('internal', `${route.method} ${route.path} answered nothing`)
  if (options.check) checkAnswer(route, text)
  await sendText(ctx, text, { 'Content-Type': 'application/json' }, options)
}

async function sendText(
  ctx: FrameContext,
  text: string,
  headers: Readonly<Record<string, string>>,
  options: Options,
): Promise<void> {
  ctx.set(headers)
  // What is not taken holds no connection for ever.
  ctx.res.setTimeout(options.stallMs, () => ctx.res.destroy())
  if (text.length <= pieceBytes || ctx.method === 'HEAD') {
    ctx.body = text
    return
  }
  const bytes = Buffer.byteLength(text)
  const { exchange } = ctx.state
  if (exchange.shares.length === 0) await holdContents(ctx, options.budget, bytes)
  else keepOnly(exchange, bytes)
  await sendStream(ctx, Readable.from(textPieces(text)), { ...headers, 'Content-Length': String(bytes) }, options)
}

/** Encoded one by one: no more than one lies in memory besides the text. */
function* textPieces(text: string): Generator<Buffer, void, undefined> {
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = Math.min(text.length, at + pieceBytes)
    // No character is cut in two.
    if (end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1
    yield Buffer.from(text.slice(at, end))
  }
}

/** The answer as a client reads it, against the schema. */
function checkAnswer(route: Route, text: string): void {
  const name = `${route.method} ${route.path}`
  if (typeof route.response === 'string') throw mismatch(`${name} answered JSON, but promises ${route.response}`)
  const result = route.response.safeParse(JSON.parse(text))
  if (!result.success) throw mismatch(`${name} answered against its schema: ${result.error.message}`)
}

function mismatch(words: string): AppError {
  return new AppError('internal', words, { cause: new Error(words) })
}

async function sendBytes(ctx: FrameContext, answer: StreamAnswer, options: Options): Promise<void> {
  const { body } = answer
  const headers = { 'Content-Type': 'application/octet-stream', ...answer.headers }
  if (typeof body === 'string') return sendText(ctx, body, headers, options)
  if (Buffer.isBuffer(body)) {
    ctx.set(headers)
    ctx.body = body
    return
  }
  if (ctx.method === 'HEAD') {
    body.destroy()
    ctx.set(headers)
    return
  }
  await sendStream(ctx, body, headers, options)
}

/** An error before the first byte is still an error answer; one after it destroys the socket, so that nobody takes a part for the whole. */
async function sendStream(
  ctx: FrameContext,
  body: Readable,
  headers: Readonly<Record<string, string>>,
  { stallMs }: Options,
): Promise<void> {
  const { res } = ctx
  const events = Object.entries(headers).some(
    ([name, value]) => /^content-type$/i.test(name) && value.startsWith('text/event-stream'),
  )
  // Events come when they come: their client gets the headers at once, and is not hurried.
  if (!events) await firstByte(body, ctx, stallMs)
  if (res.destroyed) return void body.destroy()
  ctx.set(headers)
  ctx.respond = false
  if (events) res.flushHeaders()
  else res.setTimeout(stallMs, () => res.destroy())
  try {
    if (events) await pipeline(body, res)
    else await sendCounted(ctx, body)
  } catch (error) {
    res.destroy()
    // The client went away: nobody to tell, nothing wrong.
    if (!isPrematureClose(error)) throw error
  } finally {
    if (!events) res.setTimeout(0)
  }
}

async function sendCounted(ctx: FrameContext, body: Readable): Promise<void> {
  const { res } = ctx
  // A source that has nothing to say would not hear that the client went away.
  res.once('close', () => body.destroy())
  await pipeline(body, (chunks: AsyncIterable<Buffer>) => counted(chunks, ctx), res)
}

/** In pieces, so that it is seen how many the client has taken. */
async function* counted(chunks: AsyncIterable<Buffer>, ctx: FrameContext): AsyncGenerator<Buffer, void, undefined> {
  const { exchange } = ctx.state
  let taken = 0
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      const piece = chunk.subarray(at, at + pieceBytes)
      exchange.taken = taken
      yield piece
      exchange.taken = null
      taken += piece.length
    }
  }
}

async function firstByte(body: Readable, ctx: FrameContext, stallMs: number): Promise<void> {
  if (body.readableLength > 0 || body.readableEnded) return
  if (body.errored) throw body.errored
  const aborter = new AbortController()
  const gone = (): void => void body.destroy()
  const timer = setTimeout(() => body.destroy(new AppError('timeout', 'the mail server sent nothing in time')), stallMs)
  ctx.res.once('close', gone)
  const { signal } = aborter
  try {
    await Promise.race([
      once(body, 'readable', { signal }),
      once(body, 'end', { signal }),
      once(body, 'close', { signal }),
    ])
  } finally {
    clearTimeout(timer)
    ctx.res.off('close', gone)
    aborter.abort()
  }
}

function isPrematureClose(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE'
}
