/** Sends what a handler gave: JSON, prepared JSON or bytes. Just `application/json`: some clients compare the text. */
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
  if (answer instanceof StreamAnswer) {
    if (answer.status !== null) ctx.status = answer.status
    await send(ctx, answer.body, { 'Content-Type': 'application/octet-stream', ...answer.headers }, options)
    return
  }
  const text = answer instanceof JsonText ? answer.text : (JSON.stringify(answer) as string | undefined)
  if (text === undefined) throw new AppError('internal', `${route.method} ${route.path} answered nothing`)
  if (options.check) checkAnswer(route, text)
  await send(ctx, text, { 'Content-Type': 'application/json' }, options)
}

type Headers = Readonly<Record<string, string>>

async function send(ctx: FrameContext, body: StreamAnswer['body'], headers: Headers, options: Options): Promise<void> {
  if (body instanceof Readable) {
    if (ctx.method !== 'HEAD') return sendStream(ctx, body, headers, options)
    body.destroy()
    ctx.set(headers)
    return
  }
  if (Buffer.isBuffer(body) || body.length <= pieceBytes || ctx.method === 'HEAD') {
    ctx.set(headers)
    // What is not taken holds no connection for ever.
    ctx.res.setTimeout(options.stallMs, () => ctx.res.destroy())
    ctx.body = body
    return
  }
  const bytes = Buffer.byteLength(body)
  const { exchange } = ctx.state
  if (exchange.shares.length === 0) await holdContents(ctx, options.budget, bytes)
  else keepOnly(exchange, bytes)
  await sendStream(ctx, Readable.from(textPieces(body)), { ...headers, 'Content-Length': String(bytes) }, options)
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

/** An error before the first byte is an error answer; one after it destroys the socket: a part must not look whole. */
async function sendStream(ctx: FrameContext, body: Readable, headers: Headers, { stallMs }: Options): Promise<void> {
  const { res } = ctx
  const isEvents = headers['Content-Type']?.startsWith('text/event-stream') === true
  // Events come when they come: their client gets the headers at once, and may take its time.
  if (!isEvents) await firstByte(body, ctx, stallMs)
  if (res.destroyed) return void body.destroy()
  ctx.set(headers)
  ctx.respond = false
  try {
    if (isEvents) {
      res.flushHeaders()
      await pipeline(body, res)
    } else {
      res.setTimeout(stallMs, () => res.destroy())
      await sendCounted(ctx, body)
    }
  } catch (error) {
    res.destroy()
    // The client went away: nothing is wrong.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  } finally {
    if (!isEvents) res.setTimeout(0)
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
