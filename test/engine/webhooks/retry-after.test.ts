/**
 * When a row is tried again: its schedule, the probe between, and what the receiver asks for. No clock but the test's.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readConfig } from '../../../engine/config.ts'
import { newId } from '../../../engine/store/ids.ts'
import { resultOf } from '../../../engine/webhooks/attempts.ts'
import { outboxRecord, webhookRecord } from '../../store/contract/records.ts'

const [now, second, minute] = [1_700_000_000_000, 1000, 60_000]
const config = readConfig({ MAILROOM_WEBHOOK_PROBE: '10m', MAILROOM_WEBHOOK_JITTER: '0' })

/** Waits of the row's next try and of its next attempt, after a failure that asked for `retryAfterMs`. */
function waits(scheduleMs: number, retryAfterMs: number | null) {
  const row = outboxRecord(webhookRecord(newId()), { attemptCount: 0 })
  const failure = { message: 'HTTP 503', scope: 'receiver', retryAfterMs } as const
  const attempt = { at: now, durationMs: 1, status: 503, error: 'HTTP 503', response: '' }
  const { dueAt, countsAt, state } = resultOf({ config, now: () => now }, [scheduleMs], row, { attempt, failure }, 0.5)
  assert.equal(state, 'pending')
  return { tried: dueAt - now, counts: (countsAt ?? dueAt) - now }
}

suite('Retry-After', () => {
  for (const [what, scheduleMs, asked, tried, counts] of [
    ['none', 5 * minute, null, 5 * minute, 5 * minute],
    ['none, a wait longer than the probe', 60 * minute, null, 10 * minute, 60 * minute],
    ['shorter than the wait', 5 * minute, second, 5 * minute, 5 * minute],
    ['zero', 5 * minute, 0, 5 * minute, 5 * minute],
    ['shorter than wait and probe', 60 * minute, second, 10 * minute, 60 * minute],
    ['longer than the wait', 5 * minute, 8 * minute, 8 * minute, 8 * minute],
    ['longer than the probe', 60 * minute, 40 * minute, 40 * minute, 60 * minute],
    ['longer than wait and probe', 5 * minute, 50 * minute, 50 * minute, 50 * minute],
  ] as const) {
    test(`${what}: tried after ${tried / second} s, counted after ${counts / second} s`, () => {
      assert.deepEqual(waits(scheduleMs, asked), { tried, counts })
    })
  }
})
