/** Samples of the last hour: rates between two of them, for events and deliveries of the whole process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHistory, createMetrics, latencies } from '../../../engine/observe/metrics.ts'
import { createHosts } from '../../../engine/accounts/hosts.ts'
import { noPrlimit, withoutFiles } from '../../support/no-files.ts'
import { until } from '../../support/until.ts'

test('a sample has what happened since the one before', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  const metrics = createMetrics()
  metrics.changes.inc({ kind: 'received' }, 100)
  let time = 0
  const history = createHistory({ metrics, now: () => (time += 10_000), everyMs: 20 })
  assert.deepEqual(history.samples(), [])
  const stop = history.start()
  await settle()
  metrics.changes.inc({ kind: 'received' }, 15)
  metrics.changes.inc({ kind: 'deleted' }, 5)
  metrics.deliverySeconds.observe(0.1)
  metrics.deliverySeconds.observe(0.3)
  metrics.deliveries.inc({ kind: 'message', outcome: 'delivered' })
  metrics.deliveries.inc({ kind: 'message', outcome: 'failed' })
  metrics.callbackLatency.observe(7)
  for (let sample = 0; sample < 2; sample += 1) {
    t.mock.timers.tick(20)
    await settle()
  }
  stop()
  const [first, second] = history.samples()
  assert(first && second)
  assert.deepEqual([first.eventsPerSecond, first.deliveriesPerSecond], [2, 0.1], 'a failed attempt is none')
  assert.equal(Math.round(first.latencyMs), 7000)
  const counts = (await latencies(metrics)).filter(({ callbacks }) => callbacks > 0)
  assert.deepEqual(counts, [{ seconds: 10, callbacks: 1 }])
  assert.equal(Math.round(first.attemptMs), 200)
  assert.ok(first.memoryMib > 10 && first.loopDelayMs >= 0)
  assert.deepEqual([second.eventsPerSecond, second.deliveriesPerSecond, second.attemptMs], [0, 0, 0])
  assert.ok(second.at > first.at)
})

test('no more than an hour is kept', async () => {
  const history = createHistory({ metrics: createMetrics(), everyMs: 1 })
  const stop = history.start()
  await until('an hour of samples', () => history.samples().length === 360)
  const [oldest] = history.samples()
  await until('the oldest went', () => history.samples()[0] !== oldest)
  stop()
  assert.equal(history.samples().length, 360)
})

test('logins of a host count for a minute, by outcome, whatever the case of its name', () => {
  let time = 0
  const { countLogin, logins } = createHosts(() => time)
  countLogin('imap.Example.com', 'ok')
  time = 30_000
  countLogin('imap.example.com', 'ok')
  countLogin('imap.example.com', 'network')
  countLogin('other.example.com', 'ok')
  assert.deepEqual(logins('IMAP.example.com'), { ok: 2, network: 1 })
  time = 60_000
  assert.deepEqual(logins('imap.example.com'), { ok: 1, network: 1 })
  time = 90_000
  assert.deepEqual([logins('imap.example.com'), logins('nowhere')], [{}, {}])
})

test('samples go on while no file is left to open', { skip: noPrlimit() }, async (t) => {
  const history = createHistory({ metrics: createMetrics(), everyMs: 20 })
  t.after(history.start())
  const before = await until('a sample', () => history.samples().length)
  await withoutFiles(() => until('more samples', () => history.samples().length > before + 2))
  assert(history.samples().every(({ memoryMib }) => memoryMib > 10))
})
