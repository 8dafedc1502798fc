/** Sends what a handler gave: JSON, prepared JSON, or bytes. Exactly `application/json`: several clients compare the string. */
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AppError } from '../engine/index.ts'
import type { FrameContext } from './exchange.ts'
import { JsonText, StreamAnswer, type Route } from './route.ts'

interface Options {
  /** Parse every JSON answer against its route's schema. */
  readonly check: boolean
  /** A stream that makes no progress for this long is given up. */
  readonly stallMs: number
}

export async function sendAnswer(ctx: FrameContext, route: Route, answer: unknown, options: Options): Promise<void> {
  ctx.status = route.status ?? 200
  if (route.notice !== undefined) ctx.set('X-Service-Notice', route.notice)
  if (answer instanceof StreamAnswer) return sendBytes(ctx, answer, options.stallMs)
  const text = answer instanceof JsonText ? answer.text : (JSON.stringify(answer) as string | undefined)
  if (text === undefined) throw new AppError('internal', `${route.method} ${route.path} answered nothing`)
  if (options.check) checkAnswer(route, text)
  ctx.set('Content-Type', 'application/json')
  ctx.body = text
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

async function sendBytes(ctx: FrameContext, answer: StreamAnswer, stallMs: number): Promise<void> {
  const { body } = answer
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    ctx.set({ 'Content-Type': 'application/octet-stream', ...answer.headers })
    ctx.body = body
    return
  }
  if (ctx.method === 'HEAD') {
    body.destroy()
    ctx.set({ 'Content-Type': 'application/octet-stream', ...answer.headers })
    return
  }
  await sendStream(ctx, body, answer.headers, stallMs)
}

/** An error before the first byte is still an error answer; one after it destroys the socket, so that nobody takes a part for the whole. */
async function sendStream(
  ctx: FrameContext,
  body: Readable,
  headers: Readonly<Record<string, string>>,
  stallMs: number,
): Promise<void> {
  const { res } = ctx
  const events = Object.entries(headers).some(
    ([name, value]) => /^content-type$/i.test(name) && value.startsWith('text/event-stream'),
  )
  // Events come when they come: their client gets the headers at once, and is not hurried.
  if (!events) await firstByte(body, ctx, stallMs)
  if (res.destroyed) return void body.destroy()
  ctx.set({ 'Content-Type': 'application/octet-stream', ...headers })
  ctx.respond = false
  if (events) res.flushHeaders()
  else res.setTimeout(stallMs, () => res.destroy())
  try {
    await pipeline(body, res)
  } catch (error) {
    res.destroy()
    // The client went away: nobody to tell, nothing wrong.
    if (!isPrematureClose(error)) throw error
  } finally {
    if (!events) res.setTimeout(0)
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
