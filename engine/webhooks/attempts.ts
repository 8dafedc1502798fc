/**
 * One attempt of an outbox row: compose, sign, POST, record the result. Used by drain and probe of every channel.
 *
 * 2xx is success. 3xx is a mistake in the webhook's URL: it is announced at once, and the row waits until the URL is
 * corrected. 410 ends the webhook. No response, 429, 502, 503 and 504 concern the receiver as a whole, every other
 * status only this callback.
 */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import type { Release } from '../budget.ts'
import { spreadMs } from '../../machines/backoff.ts'
import type { DeliveryFailure } from '../../machines/events.ts'
import { AppError, toAppError } from '../errors.ts'
import { retryAfterOf, type HttpAnswer, type HttpClient } from '../net/http.ts'
import type { Logger } from '../observe/log.ts'
import { workAs } from '../observe/loop.ts'
import type { OutboxResult, OutboxStore } from '../store/port.ts'
import type { DeliveryAttempt, OutboxRecord } from '../store/records.ts'
import { type Nodes, slotLost, slotOfRow } from '../store/slots.ts'
import { withinTime } from '../scheduling.ts'
import type { Composed, Composer, Sendable } from './compose.ts'
import { signCallback, type SignedCallback, type SigningKeys } from './envelope.ts'
import type { Targets } from './targets.ts'
import type { WebhookParts } from './parts.ts'

/** Result of a row. `until`: the account's rows wait until then; null = the next row may go out. */
export interface Outcome {
  readonly until: number | null
  readonly attempt: DeliveryAttempt | null
  readonly failure: Failure | null
}

interface AttemptsDeps extends Pick<WebhookParts, 'config' | 'metrics' | 'tracing' | 'pace' | 'now' | 'random'> {
  readonly store: { readonly nodes: Pick<Nodes, 'owns'> }
  readonly targets: Pick<Targets, 'get'>
  readonly composer: Pick<Composer, 'compose' | 'keysOf'>
  readonly http: Pick<HttpClient, 'postJson'>
  readonly recorder: Pick<Recorder, 'record'>
}

export type Attempts = ReturnType<typeof createAttempts>

/** Callbacks of a revoked key wait; the key is checked again after this time, and when it is changed. */
const heldMs = 60_000

export function createAttempts(deps: AttemptsDeps) {
  const { recorder, now } = deps

  async function settle(result: OutboxResult, tried: Tried | null): Promise<Outcome> {
    await recorder.record(result)
    return { attempt: null, failure: null, ...tried, until: result.state === 'pending' ? result.dueAt : null }
  }

  async function finish(row: OutboxRecord, reason: string, state: 'skipped' | 'failed' = 'skipped'): Promise<Outcome> {
    const { id, kind, dueAt } = row
    const outcome = await settle({ id, attempt: null, state, dueAt, finishedAt: now(), reason }, null)
    deps.metrics.deliveries.inc({ kind, outcome: state })
    return outcome
  }

  async function handle(row: OutboxRecord, mode: 'drain' | 'probe', behind: readonly string[]): Promise<Outcome> {
    const keys = await deps.composer.keysOf(row)
    if (keys === null) return { until: now() + heldMs, attempt: null, failure: null }
    // dueAt, not createdAt: a redelivered row begins anew.
    if (mode === 'probe' && now() - row.dueAt > deps.config.MAILROOM_DELIVERY_RETENTION)
      return finish(row, 'its receiver was away for too long', 'failed')
    const signed = await composeSigned(deps, row, keys, behind)
    if (signed.kind === 'skip') return finish(row, signed.reason, signed.state)
    if (signed.kind === 'postpone') {
      const { until: dueAt, reason } = signed
      return settle({ id: row.id, attempt: null, state: 'pending', dueAt, finishedAt: null, reason }, null)
    }
    const tried = await post(deps, row, signed)
    const uncounted = tried.failure !== null && isUncounted(deps, row, tried.failure, mode)
    const result = uncounted
      ? uncountedResult(deps, row, tried)
      : resultOf(deps, scheduleOf(deps, row.channelId), row, tried, deps.random())
    const outcome = await settle(result, tried)
    if (result.state === 'delivered' && isFresh(row))
      deps.metrics.callbackLatency.observe((now() - row.createdAt) / 1000)
    return outcome
  }

  return {
    /** Sends without a record. null = there is nothing to send. */
    async send(row: OutboxRecord): Promise<Tried | null> {
      const keys = await deps.composer.keysOf(row)
      if (keys === null) return null
      const signed = await composeSigned(deps, row, keys)
      return signed.kind === 'signed' ? post(deps, row, signed) : null
    },
    /**
     * Rejects without a record when Mailroom itself fails (the store is away); the row is tried again. A row is tried
     * at least every MAILROOM_WEBHOOK_PROBE. Two failures are logged but not counted: one before the row's scheduled
     * time, and a probe's that would be the row's last attempt while the receiver as a whole is away. A row waits for
     * its receiver for MAILROOM_DELIVERY_RETENTION. `behind`: ids of the messages of the next callbacks.
     */
    handle: (row: OutboxRecord, mode: 'drain' | 'probe', behind: readonly string[] = []) =>
      workAs({ kind: 'webhook', id: row.channelId, accountId: row.accountId }, () => handle(row, mode, behind)),
  }
}

/** A signed callback, without the texts that it was made of. */
interface SignedAttempt {
  readonly kind: 'signed'
  readonly url: string
  readonly callback: SignedCallback
  readonly release: Release
}

async function composeSigned(
  { composer, config, pace, now }: AttemptsDeps,
  row: OutboxRecord,
  keys: SigningKeys,
  behind: readonly string[] = [],
): Promise<SignedAttempt | Exclude<Composed, Sendable>> {
  const composed = await composer.compose(row, behind)
  if (composed.kind !== 'send') return composed
  const { url, release = () => undefined } = composed
  try {
    const options = { now: now(), maxBytes: config.MAILROOM_WEBHOOK_PAYLOAD_MAX, pace }
    const callback = await signCallback(row, composed, keys, options)
    release(callback.body.length)
    return { kind: 'signed', url, callback, release }
  } catch (error) {
    release()
    throw error
  }
}

async function post(deps: AttemptsDeps, row: OutboxRecord, { url, callback, release }: SignedAttempt): Promise<Tried> {
  const { metrics, tracing, store } = deps
  const { userId, developerId } = row
  try {
    // Another node may have taken the slot while the callback was composed.
    if (!store.nodes.owns(userId ?? developerId)) throw slotLost(slotOfRow(row))
    const tried = await attempt(deps, url, callback)
    metrics.deliverySeconds.observe(tried.attempt.durationMs / 1000)
    tracing?.callback(row, tried.attempt)
    metrics.deliveries.inc({ kind: row.kind, outcome: tried.failure === null ? 'delivered' : 'failed' })
    return tried
  } finally {
    release()
  }
}

/** Neither historical nor redelivered: such callbacks are late on purpose. */
function isFresh({ lane, attemptCount, attempts }: OutboxRecord): boolean {
  return lane === 0 && (attemptCount > 0 || attempts.length === 0)
}

/** From when a failure of the row counts. `countsAt` may be absent, or left from an earlier attempt. */
function countsFrom({ countsAt = 0, dueAt }: OutboxRecord): number {
  return Math.max(countsAt, dueAt)
}

function uncountedResult({ config, now }: AttemptsDeps, row: OutboxRecord, { attempt: made }: Tried): OutboxResult {
  const nextAt = Math.min(countsFrom(row), now() + config.MAILROOM_WEBHOOK_PROBE)
  const dueAt = Math.max(row.dueAt, nextAt)
  return { id: row.id, attempt: made, counted: false, state: 'pending', dueAt, finishedAt: null, reason: row.reason }
}

function isUncounted(deps: AttemptsDeps, row: OutboxRecord, failure: Failure, mode: 'drain' | 'probe'): boolean {
  if (failure.permanent === 'gone') return false
  const schedule = scheduleOf(deps, row.channelId)
  // The chart and the row have their own jitter: within twice the jitter the row counts as due.
  const tolerance = 50 + ((schedule[row.attemptCount - 1] ?? 0) * deps.config.MAILROOM_WEBHOOK_JITTER * 2) / 100
  if (deps.now() < countsFrom(row) - tolerance) return true
  return mode === 'probe' && failure.scope === 'receiver' && row.attemptCount >= schedule.length
}

/** A failure of the receiver as a whole, or of this row alone. */
interface Failure extends Pick<DeliveryFailure, 'message' | 'retryAfterMs' | 'permanent'> {
  readonly scope: 'receiver' | 'row'
}

interface Tried {
  readonly attempt: DeliveryAttempt
  readonly failure: Failure | null
}

/** The part of a response that is kept. */
const keptBytes = 4096

/** Returns the failure of a failed attempt. Rejects only with a passing fault of Mailroom. */
async function attempt(deps: AttemptsDeps, url: string, { headers, body }: SignedCallback): Promise<Tried> {
  const limits = { timeoutMs: deps.config.MAILROOM_WEBHOOK_TIMEOUT, maxResponseBytes: keptBytes }
  const at = deps.now()
  const since = performance.now()
  const tried = (failure: Failure | null, answer: HttpAnswer | null): Tried => {
    const durationMs = Math.round(performance.now() - since)
    const { status = null, body: response = null } = answer ?? {}
    return { attempt: { at, durationMs, status, error: failure?.message ?? null, response, url }, failure }
  }
  try {
    const answer = await deps.http.postJson(url, headers, body, limits)
    return tried(judge(deps, answer), answer)
  } catch (error) {
    const { code, message, fault, retryable } = toAppError(error)
    if (fault === 'us' && retryable) throw error
    return tried({ message: `${code}: ${message}`, scope: 'receiver', retryAfterMs: null }, null)
  }
}

const receiverStatuses = new Set([429, 502, 503, 504])

function judge({ config, now }: AttemptsDeps, { status, headers }: HttpAnswer): Failure | null {
  if (status >= 200 && status < 300) return null
  const row: Failure = { message: `HTTP ${status}`, scope: 'row', retryAfterMs: null }
  if (status === 410)
    return { ...row, message: 'HTTP 410: the receiver wants no more', scope: 'receiver', permanent: 'gone' }
  if (status < 400) {
    const message = `HTTP ${status}: redirects are not followed, set the final URL`
    return { ...row, message, scope: 'receiver', permanent: 'redirect' }
  }
  if (!receiverStatuses.has(status)) return row
  const retryAfterMs = retryAfterOf(headers['retry-after'], now(), config.MAILROOM_WEBHOOK_RETRY_AFTER_MAX)
  return { ...row, scope: 'receiver', retryAfterMs }
}

/**
 * The row's next state: delivered; pending until dueAt; or failed, after a 410 or the last attempt of the schedule. A
 * wait longer than MAILROOM_WEBHOOK_PROBE is interrupted by attempts that do not count.
 */
export function resultOf(
  deps: Pick<AttemptsDeps, 'config' | 'now'>,
  schedule: readonly number[],
  row: OutboxRecord,
  { attempt: made, failure }: Tried,
  random: number,
): OutboxResult {
  const now = deps.now()
  const finished = { id: row.id, attempt: made, dueAt: row.dueAt, finishedAt: now }
  if (failure === null) return { ...finished, state: 'delivered', reason: null }
  if (failure.permanent === 'gone') return { ...finished, state: 'failed', reason: failure.message }
  const planned = schedule[row.attemptCount]
  if (planned === undefined) {
    const reason = `given up after ${row.attemptCount + 1} attempts: ${failure.message}`
    return { ...finished, state: 'failed', reason }
  }
  const wait = spreadMs(planned, deps.config.MAILROOM_WEBHOOK_JITTER, random)
  const asked = failure.retryAfterMs ?? 0
  const countsAt = now + Math.max(wait, asked)
  const dueAt = Math.min(countsAt, now + Math.max(deps.config.MAILROOM_WEBHOOK_PROBE, asked))
  const next = { id: row.id, attempt: made, state: 'pending', dueAt, finishedAt: null, reason: null } as const
  return dueAt < countsAt ? { ...next, countsAt } : next
}

type Scheduled = Pick<AttemptsDeps, 'config' | 'targets'>

/** The webhook's own retry schedule in ms, or the configured schedule, as for bare URLs and failure notices. */
export function scheduleOf({ config, targets }: Scheduled, channelId: string): readonly number[] {
  const own = targets.get(channelId)?.webhook.retryScheduleMs ?? []
  return own.length > 0 ? own : config.MAILROOM_WEBHOOK_SCHEDULE
}

interface Waiting {
  readonly result: OutboxResult
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

const mostAtOnce = 200
const retryMs = 1000

type Recorder = ReturnType<typeof createRecorder>

/**
 * Writes results of attempts into the store in batches: results gather while a write is under way. A write is repeated
 * until the store takes it. The account's next row waits for the record: otherwise a restart could send out of order.
 */
export function createRecorder(store: Pick<OutboxStore, 'record'>, log: Logger) {
  let waiting: Waiting[] = []
  let writing: Promise<void> | null = null
  let closed = false

  async function writeAll(): Promise<void> {
    // Results of the same turn of the event loop make one batch.
    await nextTurn()
    while (waiting.length > 0) {
      const batch = waiting.slice(0, mostAtOnce)
      try {
        await store.record(batch.map((one) => one.result))
        waiting = waiting.slice(batch.length)
        for (const one of batch) one.done()
      } catch (error) {
        log.error({ err: toAppError(error), results: waiting.length }, 'delivery results not stored yet')
        if (closed) break
        await pause(retryMs)
      }
    }
    writing = null
  }

  return {
    /** Resolves when the result is stored. Rejects with `shutting_down` when the recorder is closed before. */
    record: (result: OutboxResult) =>
      new Promise<void>((done, failed) => {
        waiting.push({ result, done, failed })
        writing ??= writeAll()
      }),
    /** Rejects results that are not stored within the time. */
    async close(withinMs: number): Promise<void> {
      closed = true
      await withinTime(withinMs, writing ?? Promise.resolve())
      for (const one of waiting) one.failed(new AppError('shutting_down', 'the delivery result was not stored in time'))
      waiting = []
    },
  }
}
