/**
 * One outbox row from the store to its result in the store: compose, sign, POST, record. Shared by drain and probe of
 * every channel.
 *
 * 2xx is success. 3xx is a mistake in the configuration: it is announced at once, and the row waits until the URL is
 * corrected. 410: the receiver wants no more. No answer, 429, 502, 503 and 504 concern the receiver as a whole, every
 * other status this one callback.
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
import { withinTime } from '../waits.ts'
import type { Composed, Composer, Sendable } from './compose.ts'
import { signCallback, type SignedCallback, type SigningKeys } from './envelope.ts'
import type { Targets } from './targets.ts'
import type { WebhookParts } from './parts.ts'

/** What became of a row. `until`: nothing of its account goes out before; null = the account goes on. */
export interface Handled {
  readonly until: number | null
  readonly attempt: DeliveryAttempt | null
  readonly failure: Failure | null
}

interface AttemptsDeps extends Pick<WebhookParts, 'config' | 'metrics' | 'tracing' | 'pace' | 'now' | 'random'> {
  readonly targets: Pick<Targets, 'get'>
  readonly composer: Pick<Composer, 'compose' | 'keysOf'>
  readonly http: Pick<HttpClient, 'postJson'>
  readonly recorder: Pick<Recorder, 'record'>
}

export type Attempts = ReturnType<typeof createAttempts>

/** Callbacks of a revoked key stay as they are; they are looked at again after this, or when it is in force again. */
const heldMs = 60_000

export function createAttempts(deps: AttemptsDeps) {
  const { recorder, now } = deps

  async function settle(result: OutboxResult, tried: Tried | null): Promise<Handled> {
    await recorder.record(result)
    return { attempt: null, failure: null, ...tried, until: result.state === 'pending' ? result.dueAt : null }
  }

  async function finish(row: OutboxRecord, reason: string, state: 'skipped' | 'failed' = 'skipped'): Promise<Handled> {
    const { id, kind, dueAt } = row
    const handled = await settle({ id, attempt: null, state, dueAt, finishedAt: now(), reason }, null)
    deps.metrics.deliveries.inc({ kind, outcome: state })
    return handled
  }

  async function handle(row: OutboxRecord, mode: 'drain' | 'probe', behind: readonly string[]): Promise<Handled> {
    const keys = await deps.composer.keysOf(row)
    if (keys === 'removed') return finish(row, 'the developer was removed')
    if (keys === 'revoked') return { until: now() + heldMs, attempt: null, failure: null }
    // Counted from the time when it was due last, so that a redelivered row begins anew.
    if (mode === 'probe' && now() - row.dueAt > deps.config.MAILROOM_DELIVERY_RETENTION)
      return finish(row, 'its receiver was away for too long', 'failed')
    const sealed = await seal(deps, row, keys, behind)
    if (sealed.kind === 'skip') return finish(row, sealed.reason)
    if (sealed.kind === 'postpone') {
      const { until: dueAt, reason } = sealed
      return settle({ id: row.id, attempt: null, state: 'pending', dueAt, finishedAt: null, reason }, null)
    }
    const tried = await post(deps, row, sealed)
    const spared = tried.failure !== null && isSpared(deps, row, tried.failure, mode)
    const result = spared
      ? unchanged(deps, row, tried)
      : resultOf(deps, scheduleOf(deps, row.channelId), row, tried, deps.random())
    const handled = await settle(result, tried)
    if (result.state === 'delivered' && isFresh(row))
      deps.metrics.callbackLatency.observe((now() - row.createdAt) / 1000)
    return handled
  }

  return {
    /** Sends without recording. null = there is nothing to send. */
    async send(row: OutboxRecord): Promise<Tried | null> {
      const keys = await deps.composer.keysOf(row)
      if (typeof keys === 'string') return null
      const sealed = await seal(deps, row, keys)
      return sealed.kind === 'sealed' ? post(deps, row, sealed) : null
    },
    /**
     * Rejects when something of ours is broken (the store is away): then nothing is recorded, and the row is tried
     * again. No row waits longer than MAILROOM_WEBHOOK_PROBE for the next try. One that fails before its scheduled time
     * is only logged, and so is a probe that would be the row's last attempt while the receiver as a whole is away:
     * neither counts. Rows wait for their receiver as long as deliveries are kept. `behind`: ids of the messages whose
     * callbacks follow.
     */
    handle: (row: OutboxRecord, mode: 'drain' | 'probe', behind: readonly string[] = []) =>
      workAs({ kind: 'webhook', id: row.channelId, accountId: row.accountId }, () => handle(row, mode, behind)),
  }
}

/** What goes over the wire. What it was made of is not held any more. */
interface Sealed {
  readonly kind: 'sealed'
  readonly url: string
  readonly callback: SignedCallback
  readonly release: Release
}

async function seal(
  { composer, config, pace, now }: AttemptsDeps,
  row: OutboxRecord,
  keys: SigningKeys,
  behind: readonly string[] = [],
): Promise<Sealed | Exclude<Composed, Sendable>> {
  const composed = await composer.compose(row, behind)
  if (composed.kind !== 'send') return composed
  const { url, release = () => undefined } = composed
  try {
    const options = { now: now(), maxBytes: config.MAILROOM_WEBHOOK_PAYLOAD_MAX, pace }
    const callback = await signCallback(row, composed, keys, options)
    release(callback.body.length)
    return { kind: 'sealed', url, callback, release }
  } catch (error) {
    release()
    throw error
  }
}

async function post(deps: AttemptsDeps, row: OutboxRecord, { url, callback, release }: Sealed): Promise<Tried> {
  const { metrics, tracing } = deps
  try {
    const tried = await attempt(deps, url, callback)
    metrics.deliverySeconds.observe(tried.attempt.durationMs / 1000)
    tracing?.callback(row, tried.attempt)
    metrics.deliveries.inc({ kind: row.kind, outcome: tried.failure === null ? 'delivered' : 'failed' })
    return tried
  } finally {
    release()
  }
}

/** Not history, and not sent anew: these are late on purpose. */
function isFresh({ lane, attemptCount, attempts }: OutboxRecord): boolean {
  return lane === 0 && (attemptCount > 0 || attempts.length === 0)
}

/** A row that was not put off has none, and what is left of an earlier putting off lies behind. */
function countsFrom({ countsAt = 0, dueAt }: OutboxRecord): number {
  return Math.max(countsAt, dueAt)
}

/** The log gets the attempt, the row stays as it is; when it was due for a try between, the next one follows. */
function unchanged({ config, now }: AttemptsDeps, row: OutboxRecord, { attempt: made }: Tried): OutboxResult {
  const nextAt = Math.min(countsFrom(row), now() + config.MAILROOM_WEBHOOK_PROBE)
  const dueAt = Math.max(row.dueAt, nextAt)
  return { id: row.id, attempt: made, counted: false, state: 'pending', dueAt, finishedAt: null, reason: row.reason }
}

function isSpared(deps: AttemptsDeps, row: OutboxRecord, failure: Failure, mode: 'drain' | 'probe'): boolean {
  if (failure.permanent === 'gone') return false
  const schedule = scheduleOf(deps, row.channelId)
  // The chart's clock and the row's are jittered apart: within twice the jitter the row counts as due.
  const tolerance = 50 + ((schedule[row.attemptCount - 1] ?? 0) * deps.config.MAILROOM_WEBHOOK_JITTER * 2) / 100
  if (deps.now() < countsFrom(row) - tolerance) return true
  return mode === 'probe' && failure.scope === 'receiver' && row.attemptCount >= schedule.length
}

/** Of the receiver as a whole, or of this row alone. */
interface Failure extends Pick<DeliveryFailure, 'message' | 'retryAfterMs' | 'permanent'> {
  readonly scope: 'receiver' | 'row'
}

interface Tried {
  readonly attempt: DeliveryAttempt
  readonly failure: Failure | null
}

/** Of what a receiver answers. */
const keptBytes = 4096

/** What goes wrong is the attempt's failure. With a failure of ours that may pass it rejects. */
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

const wholeReceiver = new Set([429, 502, 503, 504])

function judge({ config, now }: AttemptsDeps, { status, headers }: HttpAnswer): Failure | null {
  if (status >= 200 && status < 300) return null
  const row: Failure = { message: `HTTP ${status}`, scope: 'row', retryAfterMs: null }
  if (status === 410)
    return { ...row, message: 'HTTP 410: the receiver wants no more', scope: 'receiver', permanent: 'gone' }
  if (status < 400) {
    const message = `HTTP ${status}: redirects are not followed, set the final URL`
    return { ...row, message, scope: 'receiver', permanent: 'redirect' }
  }
  if (!wholeReceiver.has(status)) return row
  const retryAfterMs = retryAfterOf(headers['retry-after'], now(), config.MAILROOM_WEBHOOK_RETRY_AFTER_MAX)
  return { ...row, scope: 'receiver', retryAfterMs }
}

/**
 * The row's next state: delivered, tried again at dueAt, or failed for good when the receiver is gone or the schedule
 * is used up. A wait longer than the probe's is broken by tries that do not count.
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

/** The webhook's own schedule, or the configured one, which is that of bare URLs and of failure notices too. */
export function scheduleOf(
  { config, targets }: Pick<AttemptsDeps, 'config' | 'targets'>,
  channelId: string,
): readonly number[] {
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
 * Writes results of attempts into the store, several in one step: while one write is under way, the next ones gather. A
 * result is tried until the store takes it, because the next row of its account waits for it: to send on without the
 * record would let a restart send out of order.
 */
export function createRecorder(store: Pick<OutboxStore, 'record'>, log: Logger) {
  let waiting: Waiting[] = []
  let writing: Promise<void> | null = null
  let closed = false

  async function writeAll(): Promise<void> {
    // Results of the same turn of the event loop go together.
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
  }

  function start(): void {
    writing ??= writeAll().finally(() => {
      writing = null
      if (waiting.length > 0 && !closed) start()
    })
  }

  return {
    /** Resolves when the store has it. Rejects with `shutting_down` when the recorder was closed before that. */
    record: (result: OutboxResult) =>
      new Promise<void>((done, failed) => {
        waiting.push({ result, done, failed })
        start()
      }),
    /** Gives up what the store does not take within the time. */
    async close(withinMs: number): Promise<void> {
      closed = true
      await withinTime(withinMs, writing ?? Promise.resolve())
      for (const one of waiting) one.failed(new AppError('shutting_down', 'the delivery result was not stored in time'))
      waiting = []
    },
  }
}
