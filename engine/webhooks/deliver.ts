/**
 * One attempt: sign, POST, and what the answer means.
 *
 * 2xx is success. 3xx is a mistake in the configuration: told at once, and the row waits for its mending. 410: the receiver wants no more.
 * No answer, 429, 502, 503 and 504 speak of the receiver as a whole, every other status of this one callback.
 */
import type { HttpAnswer, HttpClient, HttpLimits } from '../net/http.ts'
import { toAppError } from '../errors.ts'
import type { OutboxResult } from '../store/port.ts'
import type { DeliveryAttempt, OutboxRecord } from '../store/records.ts'
import type { SignedCallback } from './envelope.ts'
import { type ScheduleConfig, retryAfterMs, waitAfter } from './schedule.ts'

export interface Failure {
  readonly message: string
  readonly scope: 'receiver' | 'row'
  readonly permanent: 'gone' | 'redirect' | null
  readonly retryAfterMs: number | null
}

/** failure null = delivered. */
export interface Tried {
  readonly attempt: DeliveryAttempt
  readonly failure: Failure | null
}

export interface DeliverDeps {
  readonly http: Pick<HttpClient, 'postJson'>
  readonly limits: HttpLimits
  readonly config: ScheduleConfig
  readonly now: () => number
}

/** Never rejects: what goes wrong is the attempt's failure. */
export async function attempt(deps: DeliverDeps, url: string, callback: SignedCallback): Promise<Tried> {
  const at = deps.now()
  const since = performance.now()
  const took = () => Math.round(performance.now() - since)
  try {
    const answer = await deps.http.postJson(url, callback.headers, callback.body, deps.limits)
    const failure = judge(deps, answer)
    const error = failure === null ? null : failure.message
    return { attempt: { at, durationMs: took(), status: answer.status, error, response: answer.body, url }, failure }
  } catch (thrown) {
    const { code, message } = toAppError(thrown)
    const error = `${code}: ${message}`
    const failure: Failure = { message: error, scope: 'receiver', permanent: null, retryAfterMs: null }
    return { attempt: { at, durationMs: took(), status: null, error, response: null, url }, failure }
  }
}

const wholeReceiver = new Set([429, 502, 503, 504])

function judge(deps: DeliverDeps, { status, headers }: HttpAnswer): Failure | null {
  if (status >= 200 && status < 300) return null
  const row: Failure = { message: `HTTP ${status}`, scope: 'row', permanent: null, retryAfterMs: null }
  if (status === 410)
    return { ...row, message: 'HTTP 410: the receiver wants no more', scope: 'receiver', permanent: 'gone' }
  if (status < 400) {
    const message = `HTTP ${status}: redirects are not followed, set the final URL`
    return { ...row, message, scope: 'receiver', permanent: 'redirect' }
  }
  if (!wholeReceiver.has(status)) return row
  return { ...row, scope: 'receiver', retryAfterMs: retryAfterMs(deps.config, headers['retry-after'], deps.now()) }
}

/**
 * The row's next state: delivered, tried again at dueAt, or failed for good when the receiver is gone or the schedule is used up.
 * A wait longer than the probe's is broken by tries that do not count.
 */
export function resultOf(
  deps: Pick<DeliverDeps, 'config' | 'now'>,
  schedule: readonly number[],
  row: OutboxRecord,
  { attempt: made, failure }: Tried,
  random: number,
): OutboxResult {
  const now = deps.now()
  const finished = { id: row.id, attempt: made, dueAt: row.dueAt, finishedAt: now }
  if (failure === null) return { ...finished, state: 'delivered', reason: null }
  if (failure.permanent === 'gone') return { ...finished, state: 'failed', reason: failure.message }
  const wait = waitAfter(deps.config, schedule, row.attemptCount + 1, random)
  if (wait === null) {
    return {
      ...finished,
      state: 'failed',
      reason: `given up after ${row.attemptCount + 1} attempts: ${failure.message}`,
    }
  }
  const asked = failure.retryAfterMs ?? 0
  const countsAt = now + Math.max(wait, asked)
  const dueAt = Math.min(countsAt, now + Math.max(deps.config.MAILROOM_WEBHOOK_PROBE, asked))
  const next = { id: row.id, attempt: made, state: 'pending', dueAt, finishedAt: null, reason: null } as const
  return dueAt < countsAt ? { ...next, countsAt } : next
}
