/** The last middleware: validates the call, runs its handler within MAILROOM_REQUEST_TIMEOUT, and sends the answer. */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { z } from 'zod'
import { AppError, badParameter, toAppError, withinTime, workAs, yieldToLoop } from '../../engine/index.ts'
import { ActiveCall, type Exchange, type FrameContext, type Middleware } from '../call.ts'
import { holdContents, keepOnly, sendWhole } from '../call.ts'
import { findAccount, findUser } from '../lite/find.ts'
import { onceRead } from '../lite/unread.ts'
import { type Call, type Input, JsonText, type Match, type Route, StreamAnswer } from '../route.ts'
import { decodePercent } from '../wire.ts'
import type { Limits } from '../limits.ts'

export function dispatch(limits: Limits, checkAnswers: boolean): Middleware {
  return async (ctx) => {
    const { exchange } = ctx.state
    const { engine } = exchange
    const deadlineMs = engine.config.MAILROOM_REQUEST_TIMEOUT
    const call = new ActiveCall(ctx, limits)
    try {
      if (exchange.developer !== null) limits.calls.count(exchange.developer.id, ctx)
      const { match, values, refusal } = exchange
      if (refusal !== null) throw refusal
      if (match === null) throw new AppError('internal', 'dispatched without a route')
      const input = readInput(match, values)
      const { requestId } = exchange
      await workAs({ kind: 'call', id: `${match.route.method} ${match.route.path}`, requestId }, async () => {
        const answering = answerOf(match.route, input, call)
        const answer = await withinDeadline(answering, (why) => call.abort(why), deadlineMs)
        await sendAnswer(ctx, match.route, answer, checkAnswers)
      })
    } catch (error) {
      await nameConcerned(exchange, call, error)
      throw error
    }
  }
}

/**
 * What is refused before its handler is reached (a bad parameter, a broken body, a wrong method, too many calls)
 * concerns the user and the email account of its path all the same: the answer names them, to the developer to whom
 * they belong.
 */
async function nameConcerned({ developer, user, captured }: Exchange, call: Call, thrown: unknown): Promise<void> {
  const { fault, code } = toAppError(thrown)
  // A handler that was reached has named them already; an unknown id names no user.
  if (developer === null || user !== null || fault !== 'caller' || code === 'not_found') return
  const [rawId, rawLabel] = [captured('id'), captured('label')]
  const id = decodePercent(rawId ?? '')
  const label = rawLabel === undefined ? undefined : decodePercent(rawLabel)
  if (!id || label === null) return
  const found: Promise<unknown> = label === undefined ? findUser(call, id) : findAccount(call, id, label)
  // The refusal is the answer, whatever comes of this.
  await found.catch(() => undefined)
}

/**
 * A read waits for the first page of what it reads; a write, until other nodes have followed what it told them: the
 * caller's next call may go to any of them.
 */
async function answerOf(route: Route, input: Parameters<Route['handler']>[0], call: Call): Promise<unknown> {
  if (route.method === 'GET') return onceRead(call, () => route.handler(input, call))
  const answer = await route.handler(input, call)
  await call.engine.store.nodes.told()
  return answer
}

function withinDeadline(
  work: Promise<unknown>,
  abort: (reason: AppError) => void,
  deadlineMs: number,
): Promise<unknown> {
  return withinTime(deadlineMs, work, () => {
    const error = new AppError('timeout', `no answer within ${deadlineMs / 1000} s; try again`)
    abort(error)
    void work.then(discard, () => undefined)
    throw error
  })
}

/** A stream that comes after the deadline has a mail server's connection behind it. */
function discard(answer: unknown): void {
  if (answer instanceof StreamAnswer && answer.body instanceof Readable) answer.body.destroy()
}

/** Query and body schemas both see all values, the body's over the query's: a write's may come in either. */
export function readInput(
  { route, parameters }: Match,
  values: Exchange['values'],
): Input<string, z.ZodType, z.ZodType> {
  return {
    path: parameters,
    query: parse(route.query, route.method === 'GET' ? withoutEmpty(values) : values),
    body: parse(route.body, values),
  }
}

function withoutEmpty(values: Exchange['values'], names = Object.keys(values)): Exchange['values'] {
  if (!names.some((name) => values[name] === '')) return values
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== '' || !names.includes(name)))
}

/**
 * An empty parameter of a read is not given. An empty one of a write often removes something: it is a value where the
 * schema takes one, and is not given elsewhere. Throws `bad_request`, which names the parameter.
 */
export function parse(schema: z.ZodType | undefined, values: Readonly<Record<string, unknown>>): unknown {
  if (schema === undefined) return values
  const result = schema.safeParse(values)
  if (result.success) return result.data
  const refused = result.error.issues.map(({ path }) => String(path[0] ?? '')).filter((name) => values[name] === '')
  if (refused.length > 0) return parse(schema, withoutEmpty(values, refused))
  const issue = result.error.issues[0]
  const name = issue?.path.map(String).join('.') ?? ''
  const absent = issue !== undefined && isAbsent(values, issue.path)
  throw badParameter(
    name === '' ? 'parameters' : name,
    absent ? 'is required' : lowered(issue?.message ?? 'is invalid'),
  )
}

function isAbsent(values: Readonly<Record<string, unknown>>, path: readonly PropertyKey[]): boolean {
  const [first] = path
  return typeof first === 'string' && path.length === 1 && values[first] === undefined
}

/** zod begins its own messages with a capital; ours follow `<parameter>: `. */
function lowered(message: string): string {
  return message.replace(/^Invalid input: /, '').replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())
}

/* The answer: JSON, prepared JSON or bytes. Just `application/json`: some clients compare the text. */

/** Longer texts go out in pieces, as the client takes them, and draw from the budget. */
const pieceBytes = 65_536

/** `check`: parse every JSON answer against its route's schema. */
async function sendAnswer(ctx: FrameContext, route: Route, answer: unknown, check: boolean): Promise<void> {
  const { status = 200 } = route
  if (answer instanceof StreamAnswer) {
    const headers = { 'Content-Type': 'application/octet-stream', ...answer.headers }
    return send(ctx, answer.status ?? status, answer.body, headers)
  }
  const text = answer instanceof JsonText ? answer.text : (JSON.stringify(answer) as string | undefined)
  if (text === undefined) throw new AppError('internal', `${route.method} ${route.path} answered nothing`)
  if (check) checkAnswer(route, String(text))
  return send(ctx, status, text, { 'Content-Type': 'application/json' })
}

type Headers = Readonly<Record<string, string>>

/** A client that takes nothing, or a stream that makes no progress, for this long is given up. */
const stallMsOf = ({ state }: FrameContext): number => state.exchange.engine.config.MAILROOM_REQUEST_TIMEOUT

async function send(ctx: FrameContext, status: number, body: StreamAnswer['body'], headers: Headers): Promise<void> {
  if (body instanceof Readable) {
    if (ctx.method !== 'HEAD') return sendStream(ctx, status, body, headers)
    body.destroy()
    ctx.respond = false
    ctx.res.writeHead(status, headers).end()
    return
  }
  if (Buffer.isBuffer(body) || body.length <= pieceBytes || ctx.method === 'HEAD') {
    sendWhole(ctx, status, headers, body)
    return
  }
  const bytes = Buffer.byteLength(body)
  const { exchange } = ctx.state
  if (exchange.shares.length === 0) await holdContents(ctx, bytes)
  else keepOnly(exchange, bytes)
  await sendStream(ctx, status, Readable.from(textPieces(body)), { ...headers, 'Content-Length': String(bytes) })
}

/**
 * Encoded one by one: no more than one lies in memory besides the text. A client may take all of them at once: other
 * calls have their turn between two.
 */
async function* textPieces(text: string): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = Math.min(text.length, at + pieceBytes)
    // No character is cut in two.
    if (end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1
    await yieldToLoop()
    yield Buffer.from(text.slice(at, end))
  }
}

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
async function sendStream(ctx: FrameContext, status: number, body: Readable, headers: Headers): Promise<void> {
  const { res } = ctx
  const stallMs = stallMsOf(ctx)
  // Events come when they come: their client gets the headers at once, and silence says nothing.
  const isEvents = headers['Content-Type']?.startsWith('text/event-stream') === true
  if (!isEvents) await firstByte(body, ctx, stallMs)
  if (res.destroyed) return void body.destroy()
  ctx.respond = false
  res.statusCode = status
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
  // The pipeline, the limits and the caller's signal listen for its end: some more than Node takes for a leak.
  res.setMaxListeners(20)
  // A source that has nothing to say would not hear that the client went away.
  res.once('close', () => body.destroy())
  // A heartbeat that is not taken says enough.
  res.setTimeout(stallMs, () => {
    if (!isEvents || res.writableLength > 0) res.destroy()
  })
  if (isEvents) res.flushHeaders()
  try {
    await pipeline(body, res)
  } catch (error) {
    res.destroy()
    // The client went away: nothing is wrong.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
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
    await Promise.race(['readable', 'end', 'close'].map((event) => once(body, event, { signal })))
  } finally {
    clearTimeout(timer)
    ctx.res.off('close', gone)
    aborter.abort()
  }
}
