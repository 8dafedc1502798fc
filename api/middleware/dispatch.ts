/** The last middleware: validates the input, runs the handler within MAILROOM_REQUEST_TIMEOUT, and sends the answer. */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { z } from 'zod'
import { AppError, badParameter, toAppError, withinTime, workAs, yieldToLoop } from '../../engine/index.ts'
import type { Exchange, FrameContext, Headers, Middleware } from '../call.ts'
import { holdContents, keepOnly, sendWhole, whenClosed } from '../call.ts'
import { findAccount, findUser } from '../lite/find.ts'
import { onceRead } from '../lite/unread.ts'
import { type Call, JsonText, type Match, type Route, StreamAnswer } from '../route.ts'
import { decodePercent } from '../wire.ts'
import type { Limits } from '../limits.ts'

export function dispatch(limits: Limits, checkAnswers: boolean): Middleware {
  return async (ctx) => {
    const { exchange } = ctx.state
    try {
      const { knownDeveloper, match, values, refusal, requestId } = exchange
      if (knownDeveloper !== null) limits.calls.count(knownDeveloper.id, ctx)
      if (refusal !== null) throw refusal
      if (match === null) throw new AppError('internal', 'dispatched without a route')
      const input = readInput(match, values)
      await workAs({ kind: 'call', id: `${match.route.method} ${match.route.path}`, requestId }, async () => {
        const answer = await withinDeadline(exchange, answerOf(match.route, input, exchange))
        await sendAnswer(ctx, match.route, answer, checkAnswers)
      })
    } catch (error) {
      await nameConcerned(exchange, error)
      throw error
    }
  }
}

/**
 * Sets the status header for a call that failed before its handler (a bad parameter, a broken body, a wrong method, too
 * many calls), if the user and the email account in its path belong to the developer.
 */
async function nameConcerned(exchange: Exchange, thrown: unknown): Promise<void> {
  const { knownDeveloper, user, captured } = exchange
  const { fault, code } = toAppError(thrown)
  // A handler has named them itself; an unknown id names no user.
  if (knownDeveloper === null || user !== null || fault !== 'caller' || code === 'not_found') return
  const [rawId, rawLabel] = [captured('id'), captured('label')]
  const id = decodePercent(rawId ?? '')
  const label = rawLabel === undefined ? undefined : decodePercent(rawLabel)
  if (!id || label === null) return
  const found: Promise<unknown> = label === undefined ? findUser(exchange, id) : findAccount(exchange, id, label)
  // The first error stays the answer.
  await found.catch(() => undefined)
}

/**
 * A read waits for the first page of an account that is not synced yet. A write waits until the other nodes know the
 * change: the caller's next call may go to any node.
 */
async function answerOf(route: Route, input: HandlerInput, call: Call): Promise<unknown> {
  if (route.method === 'GET') return onceRead(call, () => route.handler(input, call))
  const answer = await route.handler(input, call)
  await call.engine.store.nodes.told()
  return answer
}

function withinDeadline(call: Exchange, work: Promise<unknown>): Promise<unknown> {
  const deadlineMs = call.engine.config.MAILROOM_REQUEST_TIMEOUT
  return withinTime(deadlineMs, work, () => {
    const error = new AppError('timeout', `no answer within ${deadlineMs / 1000} s; try again`)
    call.abort(error)
    void work.then(discard, () => undefined)
    throw error
  })
}

/** A stream that comes after the deadline would hold a connection to a mail server. */
function discard(answer: unknown): void {
  if (answer instanceof StreamAnswer && answer.body instanceof Readable) answer.body.destroy()
}

type HandlerInput = Parameters<Route['handler']>[0]

/** The query schema and the body schema both parse all values: a write's parameters may come in either place. */
export function readInput({ route, parameters }: Match, values: Exchange['values']): HandlerInput {
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
 * Parses the values of a write. An empty parameter often removes something: it is a value if the schema accepts it,
 * else it counts as absent. Throws `bad_request`, which names the parameter.
 */
export function parse(schema: z.ZodType | undefined, values: Readonly<Record<string, unknown>>): unknown {
  if (schema === undefined) return values
  const result = schema.safeParse(values)
  if (result.success) return result.data
  const refused = result.error.issues.map(({ path }) => String(path[0] ?? '')).filter((name) => values[name] === '')
  if (refused.length > 0) return parse(schema, withoutEmpty(values, refused))
  const [issue] = result.error.issues
  const name = issue?.path.map(String).join('.') ?? ''
  const isAbsent = issue?.path.length === 1 && values[name] === undefined
  const problem = isAbsent ? 'is required' : lowered(issue?.message ?? 'is invalid')
  throw badParameter(name === '' ? 'parameters' : name, problem)
}

/** zod begins its own messages with a capital; ours follow `<parameter>: `. */
function lowered(message: string): string {
  return message.replace(/^Invalid input: /, '').replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())
}

/** Longer texts go out in pieces, as fast as the client reads, and draw from the memory budget. */
const pieceBytes = 65_536

/** `check`: parse every JSON answer against its route's schema. */
async function sendAnswer(ctx: FrameContext, route: Route, answer: unknown, check: boolean): Promise<void> {
  if (answer instanceof StreamAnswer) {
    const headers = { 'Content-Type': 'application/octet-stream', ...answer.headers }
    return send(ctx, answer.status, answer.body, headers)
  }
  const text = answer instanceof JsonText ? answer.text : (JSON.stringify(answer) as string | undefined)
  if (text === undefined) throw new AppError('internal', `${route.method} ${route.path} answered nothing`)
  if (check) checkAnswer(route, String(text))
  // Without a charset: some clients compare the whole header.
  return send(ctx, 200, text, { 'Content-Type': 'application/json' })
}

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

/** Encodes one piece at a time, to save memory, and yields to the event loop before each: other calls go on. */
async function* textPieces(text: string): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = Math.min(text.length, at + pieceBytes)
    // Not between the two halves of a surrogate pair.
    if (end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1
    await yieldToLoop()
    yield Buffer.from(text.slice(at, end))
  }
}

function checkAnswer(route: Route, text: string): void {
  const name = `${route.method} ${route.path}`
  const problem =
    typeof route.response === 'string'
      ? `promises ${route.response}`
      : route.response.safeParse(JSON.parse(text)).error?.message
  if (problem === undefined) return
  const words = `${name} answered JSON against its schema: ${problem}`
  throw new AppError('internal', words, { cause: new Error(words) })
}

/**
 * An error before the first byte becomes an error answer. A later error destroys the socket: a partial answer must not
 * look complete. MAILROOM_REQUEST_TIMEOUT bounds the wait for the first byte, and then a client that does not read.
 */
async function sendStream(ctx: FrameContext, status: number, body: Readable, headers: Headers): Promise<void> {
  const { res } = ctx
  const stallMs = ctx.state.exchange.engine.config.MAILROOM_REQUEST_TIMEOUT
  // The pipeline, the limits and the caller's signal listen for 'close': more than Node's limit for a leak.
  res.setMaxListeners(20)
  whenClosed(res, () => body.destroy())
  // An event stream may be silent for long: its client gets the headers at once.
  const isEvents = headers['Content-Type']?.startsWith('text/event-stream') === true
  if (!isEvents) await firstByte(body, stallMs)
  if (res.destroyed) return
  ctx.respond = false
  res.writeHead(status, headers)
  // The heartbeats of an event stream show whether its client reads.
  res.setTimeout(stallMs, () => {
    if (!isEvents || res.writableLength > 0) res.destroy()
  })
  if (isEvents) res.flushHeaders()
  try {
    await pipeline(body, res)
  } catch (error) {
    res.destroy()
    // The client went away.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  }
}

async function firstByte(body: Readable, stallMs: number): Promise<void> {
  if (body.readableLength > 0 || body.readableEnded) return
  if (body.errored) throw body.errored
  const aborter = new AbortController()
  const { signal } = aborter
  const timer = setTimeout(() => body.destroy(new AppError('timeout', 'the mail server sent nothing in time')), stallMs)
  try {
    await Promise.race(['readable', 'end', 'close'].map((event) => once(body, event, { signal })))
  } finally {
    clearTimeout(timer)
    aborter.abort()
  }
}
