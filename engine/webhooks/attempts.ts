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
import { type Config, parseDurations } from '../config.ts'
import { AppError, badParameter, toAppError } from '../errors.ts'
import type { HttpAnswer, HttpClient, HttpLimits } from '../net/http.ts'
import type { Logger } from '../observe/log.ts'
import { workAs } from '../observe/loop.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Tracing } from '../observe/tracing.ts'
import type { OutboxResult, OutboxStore } from '../store/port.ts'
import type { DeliveryAttempt, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { withinTime } from '../waits.ts'
import type { Composed, Composer, Sendable } from './compose.ts'
import { type Pace, signCallback, type SignedCallback } from './envelope.ts'
import type { Targets } from './targets.ts'

/** What became of a row. `until`: nothing of its account goes out before; null = the account goes on. */
export interface Handled {
  readonly until: number | null
  readonly attempt: DeliveryAttempt | null
  readonly failure: Failure | null
}

interface AttemptsDeps {
  readonly config: Config
  readonly targets: Pick<Targets, 'get'>
  readonly composer: Pick<Composer, 'compose' | 'keysOf'>
  readonly deliver: DeliverDeps
  readonly recorder: Pick<Recorder, 'record'>
  readonly metrics: Pick<Metrics, 'deliveries' | 'deliverySeconds' | 'callbackLatency'>
  /** Absent in tests. */
  readonly tracing?: Pick<Tracing, 'callback'> | undefined
  readonly pace: Pace
  readonly random: () => number
}

export type Attempts = ReturnType<typeof createAttempts>

export function createAttempts(deps: AttemptsDeps) {
  const { recorder, deliver } = deps

  async function finish(row: OutboxRecord, reason: string, state: 'skipped' | 'failed' = 'skipped'): Promise<Handled> {
    await recorder.record({ id: row.id, attempt: null, state, dueAt: row.dueAt, finishedAt: deliver.now(), reason })
    deps.metrics.deliveries.inc({ kind: row.kind, outcome: state })
    return { until: null, attempt: null, failure: null }
  }

  async function handle(row: OutboxRecord, mode: 'drain' | 'probe'): Promise<Handled> {
    if (mode === 'probe' && hasExpired(deps, row)) return finish(row, 'its receiver was away for too long', 'failed')
    const sealed = await seal(deps, row)
    if (sealed.kind === 'skip') return finish(row, sealed.reason)
    if (sealed.kind === 'postpone') {
      const { until, reason } = sealed
      await recorder.record({ id: row.id, attempt: null, state: 'pending', dueAt: until, finishedAt: null, reason })
      return { until, attempt: null, failure: null }
    }
    const tried = await post(deps, row, sealed)
    const spared = tried.failure !== null && isSpared(deps, row, tried.failure, mode)
    const result = spared
      ? unchanged(deps, row, tried)
      : resultOf(deliver, waitsOf(deps, row), row, tried, deps.random())
    await recorder.record(result)
    if (result.state === 'delivered' && isFresh(row))
      deps.metrics.callbackLatency.observe((deliver.now() - row.createdAt) / 1000)
    return { ...tried, until: result.state === 'pending' ? result.dueAt : null }
  }

  return {
    /** Sends without recording. null = there is nothing to send. */
    async send(row: OutboxRecord): Promise<Tried | null> {
      const sealed = await seal(deps, row)
      return sealed.kind === 'sealed' ? post(deps, row, sealed) : null
    },
    /**
     * Rejects when something of ours is broken (the store is away): then nothing is recorded, and the row is tried
     * again. No row waits longer than MAILROOM_WEBHOOK_PROBE for the next try. One that fails before its scheduled time
     * is only logged, and so is a probe that would be the row's last attempt while the receiver as a whole is away:
     * neither counts. Rows wait for their receiver as long as deliveries are kept.
     */
    handle: (row: OutboxRecord, mode: 'drain' | 'probe') =>
      workAs({ kind: 'webhook', id: row.channelId, accountId: row.accountId }, () => handle(row, mode)),
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
  { composer, deliver, config, pace }: AttemptsDeps,
  row: OutboxRecord,
): Promise<Sealed | Exclude<Composed, Sendable>> {
  const keys = await composer.keysOf(row)
  if (keys === null) return { kind: 'skip', reason: 'the developer was removed' }
  const composed = await composer.compose(row)
  if (composed.kind !== 'send') return composed
  const { url, release = () => undefined } = composed
  try {
    const options = { now: deliver.now(), maxBytes: config.MAILROOM_WEBHOOK_PAYLOAD_MAX, pace }
    const callback = await signCallback(row, composed, keys, options)
    release(callback.body.length)
    return { kind: 'sealed', url, callback, release }
  } catch (error) {
    release()
    throw error
  }
}

async function post(
  { deliver, metrics, tracing }: AttemptsDeps,
  row: OutboxRecord,
  { url, callback, release }: Sealed,
): Promise<Tried> {
  try {
    const tried = await attempt(deliver, url, callback)
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

/** A failure notice has its webhook's id, and its channel is a bare URL. */
function waitsOf({ config, targets }: AttemptsDeps, { channelId }: OutboxRecord): readonly number[] {
  return scheduleOf(config, targets.get(channelId)?.webhook ?? null)
}

/** The chart's clock and the row's are jittered apart: within twice the jitter the row counts as due. */
function isEarly(deps: AttemptsDeps, row: OutboxRecord): boolean {
  const { config, deliver } = deps
  const wait = waitsOf(deps, row)[row.attemptCount - 1] ?? 0
  const tolerance = 50 + (wait * config.MAILROOM_WEBHOOK_JITTER * 2) / 100
  return deliver.now() < countsFrom(row) - tolerance
}

/** A row that was not put off has none, and what is left of an earlier putting off lies behind. */
function countsFrom({ countsAt = 0, dueAt }: OutboxRecord): number {
  return Math.max(countsAt, dueAt)
}

/** The log gets the attempt, the row stays as it is; when it was due for a try between, the next one follows. */
function unchanged({ config, deliver }: AttemptsDeps, row: OutboxRecord, { attempt: made }: Tried): OutboxResult {
  const nextAt = Math.min(countsFrom(row), deliver.now() + config.MAILROOM_WEBHOOK_PROBE)
  const dueAt = Math.max(row.dueAt, nextAt)
  return { id: row.id, attempt: made, counted: false, state: 'pending', dueAt, finishedAt: null, reason: row.reason }
}

function isSpared(
  deps: AttemptsDeps,
  row: OutboxRecord,
  { permanent, scope }: Failure,
  mode: 'drain' | 'probe',
): boolean {
  if (permanent === 'gone') return false
  const last = row.attemptCount >= waitsOf(deps, row).length
  return isEarly(deps, row) || (mode === 'probe' && last && scope === 'receiver')
}

/** Counted from the time when it was due last, so that a redelivered row begins anew. */
function hasExpired({ config, deliver }: AttemptsDeps, row: OutboxRecord): boolean {
  return deliver.now() - row.dueAt > config.MAILROOM_DELIVERY_RETENTION
}

interface Failure {
  readonly message: string
  readonly scope: 'receiver' | 'row'
  readonly permanent: 'gone' | 'redirect' | null
  readonly retryAfterMs: number | null
}

interface Tried {
  readonly attempt: DeliveryAttempt
  readonly failure: Failure | null
}

interface DeliverDeps {
  readonly http: Pick<HttpClient, 'postJson'>
  readonly limits: HttpLimits
  readonly config: Config
  readonly now: () => number
}

/** Never rejects: what goes wrong is the attempt's failure. */
async function attempt(deps: DeliverDeps, url: string, callback: SignedCallback): Promise<Tried> {
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
 * The row's next state: delivered, tried again at dueAt, or failed for good when the receiver is gone or the schedule
 * is used up. A wait longer than the probe's is broken by tries that do not count.
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

const mostWaits = 20

/**
 * A webhook's own schedule as its parameter gives it; an empty text removes it. Throws `bad_request` naming the
 * parameter.
 */
export function readSchedule(given: string | null): Required<Pick<WebhookRecord, 'retrySchedule' | 'retryScheduleMs'>> {
  const text = given?.trim() ?? ''
  if (text === '') return { retrySchedule: '', retryScheduleMs: [] }
  const waits = text.split(',').length
  if (waits > mostWaits) throw badParameter('retry_schedule', `expected at most ${mostWaits} waits, got ${waits}`)
  try {
    return { retrySchedule: text, retryScheduleMs: parseDurations(text, '1s', '7d') }
  } catch (error) {
    throw badParameter('retry_schedule', (error as Error).message)
  }
}

/** The webhook's own schedule, or the configured one, which is that of bare URLs (null) too. */
export function scheduleOf(
  config: Pick<Config, 'MAILROOM_WEBHOOK_SCHEDULE'>,
  webhook: Pick<WebhookRecord, 'retryScheduleMs'> | null,
): readonly number[] {
  const own = webhook?.retryScheduleMs ?? []
  return own.length > 0 ? own : config.MAILROOM_WEBHOOK_SCHEDULE
}

/**
 * Retry-After (RFC 9110 10.2.3: seconds or a date) as a wait in ms, at most the configured longest; null = absent or
 * unreadable.
 */
function retryAfterMs(config: Config, header: string | undefined, now: number): number | null {
  if (header === undefined) return null
  const text = header.trim()
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  if (Number.isNaN(wait)) return null
  return Math.min(Math.max(wait, 0), config.MAILROOM_WEBHOOK_RETRY_AFTER_MAX)
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
