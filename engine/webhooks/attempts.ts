/** One outbox row from the store to its result in the store: compose, sign, POST, record. Shared by drain and probe of every channel. */
import type { Config } from '../config.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { DeliveryAttempt, OutboxRecord } from '../store/records.ts'
import type { Composer } from './composer.ts'
import { type DeliverDeps, type Failure, type Tried, attempt, resultOf } from './deliver.ts'
import { signCallback } from './envelope.ts'
import type { Recorder } from './recorder.ts'

/** What became of a row. `until`: nothing of its account goes out before; null = the account goes on. */
export interface Handled {
  readonly until: number | null
  readonly attempt: DeliveryAttempt | null
  readonly failure: Failure | null
}

export interface AttemptsDeps {
  readonly config: Pick<
    Config,
    'MAILROOM_WEBHOOK_PAYLOAD_MAX' | 'MAILROOM_WEBHOOK_SCHEDULE' | 'MAILROOM_WEBHOOK_JITTER'
  >
  readonly composer: Composer
  readonly deliver: DeliverDeps
  readonly recorder: Recorder
  readonly metrics: Pick<Metrics, 'deliveries' | 'deliverySeconds'>
  readonly random: () => number
}

export interface Attempts {
  /**
   * Rejects when something of ours is broken (the store is away): then nothing is recorded, and the row is tried again.
   * A probe of a row that is not due by its own schedule counts no attempt of the row when it fails.
   */
  handle(row: OutboxRecord, mode: 'drain' | 'probe'): Promise<Handled>
  /** Sends without recording. null = nothing to send, with the reason. */
  send(row: OutboxRecord, url: string, body: Readonly<Record<string, unknown>>): Promise<Tried | null>
}

export function createAttempts(deps: AttemptsDeps): Attempts {
  const { composer, recorder, deliver } = deps

  async function finish(row: OutboxRecord, reason: string): Promise<Handled> {
    const state = { state: 'skipped', dueAt: row.dueAt, finishedAt: deliver.now(), reason } as const
    await recorder.record({ id: row.id, attempt: null, ...state })
    deps.metrics.deliveries.inc({ kind: row.kind, outcome: 'skipped' })
    return { until: null, attempt: null, failure: null }
  }

  async function send(row: OutboxRecord, url: string, body: Readonly<Record<string, unknown>>): Promise<Tried | null> {
    const keys = await composer.keysOf(row)
    if (keys === null) return null
    const options = { now: deliver.now(), maxBytes: deps.config.MAILROOM_WEBHOOK_PAYLOAD_MAX }
    const tried = await attempt(deliver, url, signCallback(row, body, keys, options))
    deps.metrics.deliverySeconds.observe(tried.attempt.durationMs / 1000)
    deps.metrics.deliveries.inc({ kind: row.kind, outcome: tried.failure === null ? 'delivered' : 'failed' })
    return tried
  }

  return {
    send,
    async handle(row, mode) {
      const composed = await composer.compose(row)
      if (composed.kind === 'skip') return finish(row, composed.reason)
      if (composed.kind === 'postpone') {
        const { until, reason } = composed
        await recorder.record({ id: row.id, attempt: null, state: 'pending', dueAt: until, finishedAt: null, reason })
        return { until, attempt: null, failure: null }
      }
      const tried = await send(row, composed.url, composed.body)
      if (tried === null) return finish(row, 'the developer was removed')
      const early = mode === 'probe' && tried.failure !== null && tried.failure.permanent === null && isEarly(deps, row)
      if (early) return { ...tried, until: row.dueAt }
      const result = resultOf(deliver, row, tried, deps.random())
      await recorder.record(result)
      return { ...tried, until: result.state === 'pending' ? result.dueAt : null }
    },
  }
}

/** The chart's clock and the row's are jittered apart: within twice the jitter the row counts as due. */
function isEarly({ config, deliver }: AttemptsDeps, row: OutboxRecord): boolean {
  const wait = config.MAILROOM_WEBHOOK_SCHEDULE[row.attemptCount - 1] ?? 0
  const tolerance = 50 + (wait * config.MAILROOM_WEBHOOK_JITTER * 2) / 100
  return deliver.now() < row.dueAt - tolerance
}
