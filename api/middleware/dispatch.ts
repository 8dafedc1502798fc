/** Validates, calls the handler within MAILROOM_REQUEST_TIMEOUT, and sends what it gave. The last middleware. */
import { Readable } from 'node:stream'
import { AppError, type Engine, workAs } from '../../engine/index.ts'
import { sendAnswer } from '../answer.ts'
import type { Middleware } from '../exchange.ts'
import { createCall, type FrameCall } from '../frame-call.ts'
import { StreamAnswer } from '../route.ts'
import { readInput } from '../validate.ts'
import type { Limits } from './limits.ts'

interface Deps {
  readonly engine: Engine
  readonly checkAnswers: boolean
  readonly limits: Limits
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
