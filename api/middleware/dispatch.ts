/** Validates, calls the handler within MAILROOM_REQUEST_TIMEOUT, and sends what it gave. The last middleware. */
import { Readable } from 'node:stream'
import type { z } from 'zod'
import { AppError, badParameter, type Engine, toAppError, workAs } from '../../engine/index.ts'
import { sendAnswer } from '../answer.ts'
import { createCall, type Exchange, type FrameCall, type FrameContext, type Middleware } from '../call.ts'
import { type Call, type Input, StreamAnswer } from '../route.ts'
import type { Match } from '../router.ts'
import { decodePercent } from '../wire.ts'
import type { Limits } from './limits.ts'

interface Deps {
  readonly engine: Engine
  readonly checkAnswers: boolean
  readonly limits: Limits
  /** Notes them on the call. `label` null = the path names no email account. Rejects when they are not there. */
  readonly find: (call: Call, userId: string, label: string | null) => Promise<unknown>
}

export function dispatch(deps: Deps): Middleware {
  const deadlineMs = deps.engine.config.MAILROOM_REQUEST_TIMEOUT
  const options = { check: deps.checkAnswers, stallMs: deadlineMs, budget: deps.engine.budget }
  return async (ctx) => {
    const { match, values, refusal } = ctx.state.exchange
    if (refusal !== null) throw refusal
    if (match === null) throw new AppError('internal', 'dispatched without a route')
    const input = readInput(match, values)
    const call = createCall(deps, ctx)
    ctx.res.once('close', () => {
      if (!ctx.res.writableFinished) call.abort(new AppError('bad_request', 'the client went away'))
    })
    await workAs({ kind: 'call', id: `${match.route.method} ${match.route.path}` }, async () => {
      const answer = await withinDeadline(match.route.handler(input, call), call, deadlineMs)
      await sendAnswer(ctx, match.route, answer, options)
    })
  }
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

type AnyInput = Input<z.ZodType, z.ZodType, z.ZodType>

/**
 * Query and body schemas both see all values, the body's over the query's: parameters of a write may come in either. What is read
 * takes no empty value: such a parameter is not given. In a write it is a value, which often removes something.
 */
export function readInput({ route, parameters }: Match, values: Exchange['values']): AnyInput {
  const { path, query, body } = route.request
  return {
    path: parse(path, parameters),
    query: parse(query, route.method === 'GET' ? withoutEmpty(values) : values),
    body: parse(body, values),
  }
}

function withoutEmpty(values: Exchange['values']): Exchange['values'] {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''))
}

function parse(schema: z.ZodType | undefined, values: Readonly<Record<string, unknown>>): unknown {
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

export function concerned(deps: Deps): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (thrown) {
      const { fault, code } = toAppError(thrown)
      const { developer, user } = ctx.state.exchange
      // Where a handler had its say, it has noted them; an unknown id has nobody to name.
      if (developer !== null && user === null && fault === 'caller' && code !== 'not_found') await note(deps, ctx)
      throw thrown
    }
  }
}

const ofUser = /^\/(?:lite\/users|2\.0\/accounts)\/([^/]+)(?:\/(?:email_accounts|sources)\/([^/]+))?/

async function note({ find, ...deps }: Deps, ctx: FrameContext): Promise<void> {
  const [, id, label] = ofUser.exec(ctx.state.exchange.target.path) ?? []
  const names = { id: decodePercent(id ?? ''), label: label === undefined ? null : decodePercent(label) }
  if (!names.id || (label !== undefined && names.label === null)) return
  // The refusal is the answer, whatever comes of this.
  await find(createCall(deps, ctx), names.id, names.label).catch(() => undefined)
}
