/** One outbox row from the store to its result in the store: compose, sign, POST, record. Shared by drain and probe of every channel. */
import type { Release } from '../budget.ts'
import type { Config } from '../config.ts'
import type { Metrics } from '../observe/metrics.ts'
import { workAs } from '../observe/loop.ts'
import type { OutboxResult } from '../store/port.ts'
import type { DeliveryAttempt, OutboxRecord } from '../store/records.ts'
import type { Composer } from './composer.ts'
import { type DeliverDeps, type Failure, type Tried, attempt, resultOf } from './deliver.ts'
import { type SignedCallback, signCallback } from './envelope.ts'
import type { Pace } from './pace.ts'
import type { Composed, Sendable } from './payload.ts'
import type { Recorder } from './recorder.ts'
import { scheduleOf, waitAfter } from './schedule.ts'
import type { Targets } from './targets.ts'

/** What became of a row. `until`: nothing of its account goes out before; null = the account goes on. */
export interface Handled {
  readonly until: number | null
  readonly attempt: DeliveryAttempt | null
  readonly failure: Failure | null
}

export interface AttemptsDeps {
  readonly config: Pick<
    Config,
    | 'MAILROOM_WEBHOOK_PAYLOAD_MAX'
    | 'MAILROOM_WEBHOOK_SCHEDULE'
    | 'MAILROOM_WEBHOOK_JITTER'
    | 'MAILROOM_WEBHOOK_RETRY_AFTER_MAX'
    | 'MAILROOM_WEBHOOK_PROBE'
    | 'MAILROOM_DELIVERY_RETENTION'
  >
  readonly targets: Pick<Targets, 'get'>
  readonly composer: Composer
  readonly deliver: DeliverDeps
  readonly recorder: Recorder
  readonly metrics: Pick<Metrics, 'deliveries' | 'deliverySeconds'>
  readonly pace: Pace
  readonly random: () => number
}

export interface Attempts {
  /**
   * Rejects when something of ours is broken (the store is away): then nothing is recorded, and the row is tried again.
   * No row waits longer than MAILROOM_WEBHOOK_PROBE for the next try. One that fails before the row's schedule has come to it is
   * only logged, and so is a probe that would be the row's last attempt while the receiver as a whole is away: neither uses the
   * row up. Rows wait for their receiver as long as deliveries are kept.
   */
  handle(row: OutboxRecord, mode: 'drain' | 'probe'): Promise<Handled>
  /** Sends without recording. null = there is nothing to send. */
  send(row: OutboxRecord): Promise<Tried | null>
}

export function createAttempts(deps: AttemptsDeps): Attempts {
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
    return { ...tried, until: result.state === 'pending' ? result.dueAt : null }
  }

  return {
    async send(row) {
      const sealed = await seal(deps, row)
      return sealed.kind === 'sealed' ? post(deps, row, sealed) : null
    },
    handle: (row, mode) => workAs({ kind: 'webhook', id: row.channelId }, () => handle(row, mode)),
  }
}

/** What goes over the wire. Nobody holds any more what it was made of. */
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
  { deliver, metrics }: AttemptsDeps,
  { kind }: OutboxRecord,
  { url, callback, release }: Sealed,
): Promise<Tried> {
  try {
    const tried = await attempt(deliver, url, callback)
    metrics.deliverySeconds.observe(tried.attempt.durationMs / 1000)
    metrics.deliveries.inc({ kind, outcome: tried.failure === null ? 'delivered' : 'failed' })
    return tried
  } finally {
    release()
  }
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
  const last = waitAfter(deps.config, waitsOf(deps, row), row.attemptCount + 1, 0) === null
  return isEarly(deps, row) || (mode === 'probe' && last && scope === 'receiver')
}

/** Counted from the time when it was due last, so that a redelivered row begins anew. */
function hasExpired({ config, deliver }: AttemptsDeps, row: OutboxRecord): boolean {
  return deliver.now() - row.dueAt > config.MAILROOM_DELIVERY_RETENTION
}
