/** The last middleware: validates the call, runs its handler within MAILROOM_REQUEST_TIMEOUT, and sends the answer. */
import { Readable } from 'node:stream'
import type { z } from 'zod'
import { AppError, badParameter, toAppError, workAs, type Engine } from '../../engine/index.ts'
import { sendAnswer } from '../answer.ts'
import { createCall, type Exchange, type FrameCall, type Middleware } from '../call.ts'
import { findAccount, findUser } from '../lite/find.ts'
import { StreamAnswer, type Input } from '../route.ts'
import type { Match } from '../router.ts'
import { decodePercent } from '../wire.ts'
import type { Limits } from '../limits.ts'

export function dispatch(engine: Engine, limits: Limits, checkAnswers: boolean): Middleware {
  const deadlineMs = engine.config.MAILROOM_REQUEST_TIMEOUT
  const options = { check: checkAnswers, stallMs: deadlineMs, budget: engine.budget }
  return async (ctx) => {
    const { exchange } = ctx.state
    const call = createCall(ctx, engine, limits)
    try {
      if (exchange.developer !== null) limits.calls.count(exchange.developer.id, ctx)
      const { match, values, refusal } = exchange
      if (refusal !== null) throw refusal
      if (match === null) throw new AppError('internal', 'dispatched without a route')
      const input = readInput(match, values)
      ctx.res.once('close', () => {
        if (!ctx.res.writableFinished) call.abort(new AppError('bad_request', 'the client went away'))
      })
      const { requestId } = exchange
      await workAs({ kind: 'call', id: `${match.route.method} ${match.route.path}`, requestId }, async () => {
        const answer = await withinDeadline(match.route.handler(input, call), call, deadlineMs)
        await sendAnswer(ctx, match.route, answer, options)
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
async function nameConcerned({ developer, user, captured }: Exchange, call: FrameCall, thrown: unknown): Promise<void> {
  const { fault, code } = toAppError(thrown)
  // A handler that was reached has named them already; an unknown id names no user.
  if (developer === null || user !== null || fault !== 'caller' || code === 'not_found') return
  const id = decodePercent(captured['id'] ?? '')
  const label = captured['label'] === undefined ? undefined : decodePercent(captured['label'])
  if (!id || label === null) return
  const found: Promise<unknown> = label === undefined ? findUser(call, id) : findAccount(call, id, label)
  // The refusal is the answer, whatever comes of this.
  await found.catch(() => undefined)
}

async function withinDeadline(work: Promise<unknown>, call: FrameCall, deadlineMs: number): Promise<unknown> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const error = new AppError('timeout', `no answer within ${deadlineMs / 1000} s; try again`)
    call.abort(error)
    reject(error)
    void work.then(discard, () => undefined)
  }, deadlineMs)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** A stream that comes after the deadline has a mail server's connection behind it. */
function discard(answer: unknown): void {
  if (answer instanceof StreamAnswer && answer.body instanceof Readable) answer.body.destroy()
}

/**
 * Query and body schemas both see all values, the body's over the query's: parameters of a write may come in either.
 * What is read takes no empty value: such a parameter is not given. In a write it is a value, which often removes
 * something.
 */
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

function withoutEmpty(values: Exchange['values']): Exchange['values'] {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''))
}

/** Throws `bad_request`, which names the parameter. */
export function parse(schema: z.ZodType | undefined, values: Readonly<Record<string, unknown>>): unknown {
  if (schema === undefined) return values
  const result = schema.safeParse(values)
  if (result.success) return result.data
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
