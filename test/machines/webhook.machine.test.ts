import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createActor, SimulatedClock } from 'xstate'
import { describeWebhook } from '../../machines/view.ts'
import { webhookMachine } from '../../machines/webhook.machine.ts'
import { settle, startOfTime } from './rig.ts'
import { healthy, settings, webhookCoverage, webhookRig, type WebhookRig } from './webhook-rig.ts'
import './webhook-work.scenarios.ts'

const hour = 3_600_000

describe('permanent failures', () => {
  test('410 makes it inactive and failed, by whichever way it came', async () => {
    const ways: readonly ((rig: WebhookRig) => Promise<void>)[] = [
      (rig) => rig.deliveryFails({ permanent: 'gone' }),
      (rig) => rig.rowFails({ permanent: 'gone' }),
      async (rig) => {
        await rig.deliveryFails()
        await rig.untilProbe()
        await rig.probeFails({ permanent: 'gone' })
      },
    ]
    for (const way of ways) {
      const rig = webhookRig()
      await way(rig)
      assert.equal(rig.tags(), 'failed paused')
      assert.ok(rig.drain.last().stopped)
      assert.equal(rig.announced().length, 1)
      assert.deepEqual(
        rig.emitted.filter(({ type }) => type === 'deactivated'),
        [{ type: 'deactivated', webhookId: 'w1', reason: 'gone', at: rig.now() }],
      )
      const stored = rig.report.calls.map(({ input }) => input)
      assert.equal(stored.filter(({ deactivation }) => deactivation !== null).length, 1)
      assert.equal(stored.at(-1)?.health.failure, true)
      assert.equal(stored.at(-1)?.health.retryAt, null)
      await rig.pass(24 * hour)
      assert.equal(rig.tags(), 'failed paused')
    }
  })

  test('a redirect is a failure at once, and tries go on', async () => {
    const rig = webhookRig()
    await rig.deliveryFails({ permanent: 'redirect' })
    assert.equal(rig.tags(), 'active failed waiting')
    assert.equal(rig.announced().length, 1)
    assert.equal(rig.health().consecutiveFailures, 1)
    await rig.untilProbe()
    await rig.probeFails({ permanent: 'redirect' })
    assert.equal(rig.announced().length, 1)
  })

  test('failing for five days makes it inactive', async () => {
    const rig = webhookRig()
    await rig.deliveryFails()
    let tries = 0
    while (rig.context().active && tries < 200) {
      await rig.untilProbe()
      await rig.probeFails()
      tries += 1
    }
    assert.equal(rig.tags(), 'failed paused')
    const failingFor = rig.now() - startOfTime
    assert.ok(failingFor >= settings.abandonMs && failingFor <= settings.abandonMs + hour)
    assert.deepEqual(rig.emitted.at(-1), {
      type: 'deactivated',
      webhookId: 'w1',
      reason: 'abandoned',
      at: rig.now(),
    })
    assert.equal(rig.announced().length, 1)
  })
})

describe('ACTIVATE and DEACTIVATE', () => {
  test('DEACTIVATE ends what runs and keeps the failure; ACTIVATE clears it and tries at once', async () => {
    const rig = webhookRig({
      health: { failure: true, consecutiveFailures: 5, retryAt: startOfTime + hour, lastError: 'x' },
    })
    await rig.send({ type: 'DEACTIVATE' })
    assert.equal(rig.tags(), 'failed paused')
    assert.equal(rig.report.last().input.deactivation, null, 'that is the developer’s own edit')
    assert.equal(rig.health().retryAt, null)
    await rig.send({ type: 'delivered', at: rig.now() })
    await rig.send({ type: 'WAKE' })
    await rig.pass(24 * hour)
    assert.equal(rig.tags(), 'failed paused')
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'active draining healthy')
    assert.deepEqual(rig.health(), healthy)
  })

  test('ACTIVATE on an active webhook: a failing one drains at once, a draining one goes on', async () => {
    const rig = webhookRig()
    await rig.deliveryFails()
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'active draining healthy')
    await rig.rowFails()
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'active draining healthy')
    assert.equal(rig.drain.runs.length, 2)
    assert.deepEqual(rig.drain.last().received, ['WAKE'])
  })

  test('ACTIVATE makes void a deactivation that is not stored yet', async () => {
    const rig = webhookRig({ holdReports: true })
    await rig.deliveryFails({ permanent: 'gone' })
    assert.equal(rig.report.last().input.deactivation?.reason, 'gone')
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    rig.report.last().reject(new Error('the store is away'))
    await rig.pass(settings.reportRetryMs)
    assert.equal(rig.report.last().input.deactivation, null)
    assert.deepEqual(
      rig.report.last().input.announcements.map(({ version }) => version),
      [1],
    )
  })
})

describe('records', () => {
  test('an announcement stays in the report until it is stored, then never again', async () => {
    const rig = webhookRig({ holdReports: true })
    await rig.deliveryFails({ permanent: 'redirect' })
    rig.report.last().reject(new Error('the store is away'))
    await rig.pass(settings.reportRetryMs)
    assert.equal(rig.report.calls.length, 2)
    assert.deepEqual(rig.report.last().input.announcements, [{ version: 1, message: 'HTTP 500', at: startOfTime }])
    await rig.pass(settings.reportDeadlineMs)
    assert.ok(rig.report.last().signal.aborted)
    await rig.pass(settings.reportRetryMs * 2)
    assert.equal(rig.report.calls.length, 3)
    assert.equal(rig.report.last().input.announcements.length, 1)
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    rig.report.last().resolve(true)
    await settle()
    assert.equal(rig.report.calls.length, 4, 'what changed meanwhile follows')
    assert.deepEqual(rig.report.last().input.announcements, [])
  })
})

describe('STOP', () => {
  test('with all recorded the actor ends at once', async () => {
    const rig = webhookRig()
    await rig.send({ type: 'STOP' })
    assert.equal(rig.actor.getSnapshot().status, 'done')
    assert.equal(rig.tags(), 'stopped')
    assert.ok(rig.drain.last().stopped)
  })

  test('what is not recorded yet is recorded first, tried once and within the deadline', async () => {
    const outcomes: readonly ((rig: WebhookRig) => void)[] = [
      (rig) => rig.report.last().resolve(true),
      (rig) => rig.report.last().reject(new Error('away')),
      (rig) => void rig.pass(settings.reportDeadlineMs),
    ]
    for (const outcome of outcomes) {
      const rig = webhookRig({ holdReports: true })
      await rig.deliveryFails()
      await rig.send({ type: 'STOP' })
      assert.equal(rig.actor.getSnapshot().status, 'active')
      assert.equal(rig.report.calls.length, 2)
      outcome(rig)
      await settle()
      await settle()
      await settle()
      assert.equal(rig.actor.getSnapshot().status, 'done')
    }
  })
})

test('a chart without its actors fails through its own paths', async () => {
  const input = { webhookId: 'w1', settings, now: startOfTime, jitter: 0.5, active: true, health: healthy }
  const actor = createActor(webhookMachine, { clock: new SimulatedClock(), input })
  actor.subscribe({ error: () => assert.fail('the actor died') })
  actor.start()
  await settle()
  assert.equal(actor.getSnapshot().hasTag('recovering'), true)
  actor.stop()
})

test('a description has words and the last error', async () => {
  const rig = webhookRig()
  assert.deepEqual(describeWebhook(rig.actor.getSnapshot()), {
    tags: ['active', 'draining', 'healthy'],
    state: 'draining',
    next: null,
    lastError: null,
    attempt: 0,
  })
  await rig.deliveryFails()
  const facts = describeWebhook(rig.actor.getSnapshot())
  assert.equal(facts.state, 'waiting')
  assert.deepEqual(facts.lastError, { class: 'delivery', message: 'HTTP 500', at: rig.now() })
  assert.equal(facts.attempt, 1)
})

test('every transition of the chart is taken by one of these tests', () => {
  assert.ok(webhookCoverage.size > 40)
  assert.deepEqual(webhookCoverage.untaken(), [])
})
