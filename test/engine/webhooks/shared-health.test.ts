/** The health of a webhook that several nodes send for: what this node has stored, against records read before. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WebhookHealth } from '../../../machines/events.ts'
import type { WebhookRecord } from '../../../engine/store/records.ts'
import { freshHealth } from '../../../engine/store/rows.ts'
import { SharedHealth } from '../../../engine/webhooks/shared-health.ts'

test('a record that was read before the own turn is no news, what another node stores is', async () => {
  let stored: WebhookHealth = { ...freshHealth, consecutiveFailures: 1, retryAt: 5 }
  const adopted: (number | null)[] = []
  const record = (): WebhookRecord => ({ id: 'w', userId: null, health: stored }) as WebhookRecord
  const webhooks = {
    get: () => Promise.resolve(record()),
    recordHealth: (_: string, health: WebhookHealth) => {
      stored = health
      return Promise.resolve(true)
    },
  }
  const deps = {
    store: { kind: 'mongodb', webhooks, nodes: { ownsAll: () => false } },
    targets: { get: () => ({ webhook: record() }), touch: () => undefined },
    config: { MAILROOM_WEBHOOK_TIMEOUT: 1000 },
    now: () => 10,
    changed: () => undefined,
  }
  const health = new SharedHealth(deps as never, (_, { retryAt }) => adopted.push(retryAt))
  health.begin('w', stored)
  const early = record()
  assert.equal(await health.takeTurn('w'), true)
  assert.equal(stored.retryAt, 2010)
  await health.read(early)
  assert.deepEqual(adopted, [], 'the chart would forget the callback that it tries')
  stored = { ...stored, retryAt: 77 }
  await health.read(record())
  assert.deepEqual(adopted, [77])
})
