/** The webhook chart's work: draining, failing, trying again. Run by webhook.machine.test.ts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeWebhook } from '../../machines/view.ts'
import { settle, startOfTime } from './rig.ts'
import { healthy, settings, webhookRig, type WebhookRig } from './webhook-rig.ts'

const minute = 60_000
const hour = 60 * minute

describe('start', () => {
  test('a healthy webhook drains, an inactive one is paused', async () => {
    const rig = webhookRig()
    await settle()
    assert.equal(rig.tags(), 'active draining healthy')
    assert.deepEqual(rig.drain.last().input, { webhookId: 'w1' })
    assert.equal(rig.report.calls.length, 0)
    const paused = webhookRig({ input: { active: false } })
    assert.equal(paused.tags(), 'healthy paused')
    assert.equal(paused.drain.runs.length, 0)
  })

  test('a failing one waits until its time and is not announced again', async () => {
    const rig = webhookRig({
      health: {
        failure: true,
        consecutiveFailures: 4,
        retryAt: startOfTime + 7000,
        failureVersion: 2,
        failingSince: startOfTime - hour,
      },
    })
    assert.equal(rig.tags(), 'active failed waiting')
    await rig.pass(6999)
    assert.equal(rig.probe.calls.length, 0)
    await rig.pass(1)
    assert.equal(rig.tags(), 'active failed probing')
    assert.deepEqual(rig.emitted, [])
    assert.equal(
      webhookRig({ health: { consecutiveFailures: 1, retryAt: startOfTime } }).tags(),
      'active retrying waiting',
    )
  })

  test('a record from a clock that ran ahead does not silence a webhook for ever', async () => {
    const rig = webhookRig({ health: { consecutiveFailures: 1, retryAt: startOfTime + 1000 * hour } })
    await rig.pass(hour)
    assert.equal(rig.probe.calls.length, 1)
  })
})

describe('draining', () => {
  test('drain lives on while idle and hears of new rows', async () => {
    const rig = webhookRig()
    await rig.drains({ type: 'delivered', at: rig.now() })
    await rig.drains({ type: 'idle', at: rig.now() })
    assert.equal(rig.tags(), 'active draining healthy idle')
    await rig.pass(24 * hour)
    assert.equal(rig.tags(), 'active draining healthy idle')
    await rig.send({ type: 'WAKE' })
    assert.equal(rig.tags(), 'active draining healthy')
    await rig.send({ type: 'WAKE' })
    assert.deepEqual(rig.drain.last().received, ['WAKE', 'WAKE'])
    assert.equal(rig.drain.runs.length, 1)
  })

  test('rows are claimed at the start, and again whenever there is room: while it sends, and after a rest', async () => {
    const rig = webhookRig()
    await settle()
    assert.equal(rig.claim.calls.length, 1)
    await rig.drains({ type: 'room' })
    assert.equal(rig.claim.calls.length, 2)
    await rig.drains({ type: 'idle', at: rig.now() })
    await rig.drains({ type: 'room' })
    assert.equal(rig.claim.calls.length, 3)
    assert.deepEqual(rig.claim.last().input, { webhookId: 'w1' })
    assert.equal(rig.tags(), 'active draining healthy')
    assert.equal(rig.drain.runs.length, 1)
  })

  test('a claim goes on whatever else is heard; what it claims is sent afterwards', async () => {
    const rig = webhookRig({ holdClaims: true })
    await rig.drains({ type: 'delivered', at: rig.now() })
    await rig.rowFails()
    await rig.send({ type: 'WAKE' })
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.claim.calls.length, 1)
    assert.deepEqual(rig.drain.last().received, ['WAKE', 'WAKE'])
    // Nothing is due as long as the claim has not said so.
    await rig.drains({ type: 'idle', at: rig.now() })
    assert.equal(rig.tags(), 'active draining healthy')
    rig.claim.last().resolve(true)
    await settle()
    await rig.drains({ type: 'idle', at: rig.now() })
    assert.equal(rig.tags(), 'active draining healthy idle')
  })

  test('a claim that fails, or has no end, starts drain anew and counts nothing', async () => {
    const breaks: readonly ((rig: WebhookRig) => Promise<void> | void)[] = [
      (rig) => {
        rig.claim.last().reject(new Error('the store is away'))
      },
      (rig) => rig.pass(settings.drainDeadlineMs),
    ]
    for (const broken of breaks) {
      const rig = webhookRig({ holdClaims: true })
      await settle()
      await broken(rig)
      await settle()
      assert.equal(rig.tags(), 'active healthy recovering')
      assert.ok(rig.drain.last().stopped)
      await rig.pass(settings.stallRetryMs)
      assert.equal(rig.tags(), 'active draining healthy')
      assert.equal(rig.claim.calls.length, 2)
      assert.deepEqual(rig.health(), healthy)
    }
  })

  test('lastSuccessAt alone is stored now and then, not each time', async () => {
    const rig = webhookRig()
    await rig.drains({ type: 'delivered', at: rig.now() })
    await rig.pass(1000)
    await rig.drains({ type: 'delivered', at: rig.now() })
    assert.equal(rig.health().lastSuccessAt, rig.now())
    assert.equal(rig.report.calls.length, 1)
    await rig.pass(settings.successReportMs)
    await rig.drains({ type: 'delivered', at: rig.now() })
    assert.equal(rig.report.calls.length, 2)
  })

  test('an error of ours, an end, or silence starts drain anew and counts nothing', async () => {
    const breaks: readonly ((rig: WebhookRig) => Promise<void> | void)[] = [
      (rig) => rig.actor.send({ type: 'xstate.error.actor.drain', error: new Error('store') } as never),
      (rig) => rig.actor.send({ type: 'xstate.done.actor.drain' } as never),
      (rig) => rig.pass(settings.drainDeadlineMs),
    ]
    for (const broken of breaks) {
      const rig = webhookRig()
      await broken(rig)
      assert.equal(rig.tags(), 'active healthy recovering')
      assert.ok(rig.drain.last().stopped)
      assert.equal(describeWebhook(rig.actor.getSnapshot()).next?.what, 'looks for callbacks again')
      await rig.pass(settings.stallRetryMs)
      assert.equal(rig.tags(), 'active draining healthy')
      assert.equal(rig.drain.runs.length, 2)
      assert.deepEqual(rig.health(), healthy)
    }
  })

  test('outcomes begin the deadline anew', async () => {
    const rig = webhookRig()
    for (let step = 0; step < 3; step += 1) {
      await rig.pass(settings.drainDeadlineMs - 1)
      await rig.drains({ type: 'delivered', at: rig.now() })
    }
    await rig.pass(settings.drainDeadlineMs - 1)
    assert.equal(rig.tags(), 'active draining healthy')
  })

  test('a row that fails holds nobody up; a success in between keeps the webhook healthy', async () => {
    const rig = webhookRig()
    for (let step = 0; step < 5; step += 1) {
      await rig.rowFails()
      assert.equal(rig.tags(), 'active draining retrying')
      await rig.drains({ type: 'delivered', at: rig.now() })
      assert.equal(rig.tags(), 'active draining healthy')
    }
    assert.deepEqual(rig.announced(), [])
  })

  test('rows that fail three times in a row announce the failure, and still drain', async () => {
    const rig = webhookRig()
    for (const tags of ['active draining retrying', 'active draining retrying', 'active draining failed']) {
      await rig.pass(1000)
      await rig.rowFails()
      assert.equal(rig.tags(), tags)
    }
    await rig.rowFails()
    assert.equal(rig.announced().length, 1)
    assert.equal(rig.drain.runs.length, 1)
    await rig.drains({ type: 'delivered', at: rig.now() })
    assert.equal(rig.tags(), 'active draining healthy')
    assert.equal(rig.emitted.at(-1)?.type, 'recovered')
  })

  test('rows under way at the first failure are one round with it', async () => {
    const rig = webhookRig()
    const startedAt = rig.now()
    await rig.pass(1000)
    await rig.rowFails({ startedAt })
    for (let row = 0; row < 15; row += 1) await rig.rowFails({ startedAt: startedAt + row })
    assert.equal(rig.health().consecutiveFailures, 1)
    await rig.pass(5000)
    await rig.rowFails({ startedAt: startedAt + 3000 })
    assert.equal(rig.health().consecutiveFailures, 2)
    await rig.deliveryFails({ startedAt: startedAt + 3500 })
    assert.equal(rig.health().consecutiveFailures, 2, 'a failure of the whole receiver may be of a counted round too')
    assert.equal(rig.tags(), 'active retrying waiting')
  })
})

describe('retrying', () => {
  test('first failure → 5 s → one probe → 5 min → third failure announced → 30 min → hourly', async () => {
    const rig = webhookRig()
    await rig.deliveryFails()
    assert.ok(rig.drain.last().stopped)
    assert.equal(rig.tags(), 'active retrying waiting')
    assert.equal(rig.health().failingSince, rig.now())
    const waits = [5000, 5 * minute, 30 * minute, hour, hour, hour]
    for (const [index, waitMs] of waits.entries()) {
      assert.deepEqual(describeWebhook(rig.actor.getSnapshot()).next, {
        what: 'tries one callback',
        at: rig.now() + waitMs,
      })
      await rig.pass(waitMs - 1)
      assert.equal(rig.probe.calls.length, index)
      await rig.pass(1)
      assert.equal(rig.probe.calls.length, index + 1)
      assert.ok(rig.tags().includes('probing'))
      assert.equal(rig.announced().length, index >= 2 ? 1 : 0)
      await rig.probeFails({ message: `HTTP 50${index}` })
      assert.equal(rig.health().failure, index >= 1)
    }
    assert.deepEqual(rig.announced(), [
      { type: 'failing', webhookId: 'w1', message: 'HTTP 501', at: startOfTime + 305_000 },
    ])
    assert.deepEqual(rig.told(), [{ version: 1, news: 'failing', message: 'HTTP 501', at: startOfTime + 305_000 }])
    assert.equal(rig.drain.runs.length, 1)
  })

  test('a delivered probe makes it healthy and drains the rest', async () => {
    const rig = webhookRig({
      health: { failure: true, consecutiveFailures: 3, retryAt: startOfTime, failureVersion: 1 },
    })
    await rig.untilProbe()
    await rig.probes({ delivered: true, at: rig.now() })
    assert.equal(rig.tags(), 'active draining healthy')
    assert.deepEqual(rig.health(), { ...healthy, failureVersion: 1, lastSuccessAt: rig.now() })
    assert.deepEqual(rig.report.last().input.health, rig.health())
    assert.deepEqual(rig.emitted, [{ type: 'recovered', webhookId: 'w1', message: null, at: rig.now() }])
  })

  test('a second failing period is announced again, by the next version', async () => {
    const rig = webhookRig({
      health: { failure: true, consecutiveFailures: 3, retryAt: startOfTime, failureVersion: 4 },
    })
    await rig.untilProbe()
    await rig.probes({ delivered: true, at: rig.now() })
    await rig.deliveryFails()
    for (let step = 0; step < 2; step += 1) {
      await rig.untilProbe()
      await rig.probeFails()
    }
    assert.equal(rig.announced().length, 1)
    assert.deepEqual(
      rig.report.calls.flatMap(({ input }) => input.announcements.map(({ version }) => version)),
      [5],
    )
  })

  const hints: { retryAfterMs: number | null; jitter: number; waitMs: number }[] = [
    { retryAfterMs: null, jitter: 0, waitMs: 4000 },
    { retryAfterMs: null, jitter: 0.75, waitMs: 5500 },
    { retryAfterMs: 1000, jitter: 0.5, waitMs: 5000 },
    { retryAfterMs: 90_000, jitter: 0.5, waitMs: 90_000 },
    { retryAfterMs: 24 * hour, jitter: 0.5, waitMs: hour },
  ]
  for (const { retryAfterMs, jitter, waitMs } of hints) {
    test(`Retry-After ${retryAfterMs ?? 'none'}, jitter ${jitter}: ${waitMs} ms`, async () => {
      const rig = webhookRig()
      await rig.deliveryFails({ retryAfterMs, jitter })
      assert.equal(rig.health().retryAt, rig.now() + waitMs)
    })
  }

  test('a Retry-After longer than the time between probes is obeyed', async () => {
    const rig = webhookRig({ input: { settings: { ...settings, probeMs: minute } } })
    await rig.deliveryFails({ retryAfterMs: 30 * minute, jitter: 0.5 })
    assert.equal(rig.health().retryAt, rig.now() + 30 * minute)
  })

  test('new rows do not hurry a failing webhook', async () => {
    const rig = webhookRig()
    await rig.deliveryFails()
    await rig.send({ type: 'WAKE' })
    assert.equal(rig.tags(), 'active retrying waiting')
    assert.equal(rig.probe.calls.length, 0)
  })

  test('nothing to try: it rests until there is, or looks again in time', async () => {
    const rig = webhookRig({ health: { consecutiveFailures: 1, retryAt: startOfTime } })
    await rig.untilProbe()
    await rig.probes({ delivered: null, at: rig.now() })
    assert.equal(rig.tags(), 'active resting retrying')
    assert.equal(describeWebhook(rig.actor.getSnapshot()).next?.at, rig.now() + settings.probeMs)
    await rig.send({ type: 'WAKE' })
    assert.equal(rig.tags(), 'active probing retrying')
    await rig.send({ type: 'WAKE' })
    await rig.probes({ delivered: null, at: rig.now() })
    assert.equal(rig.probe.calls.length, 3, 'rows that came during the probe are not missed')
    await rig.probes({ delivered: null, at: rig.now() })
    assert.equal(rig.tags(), 'active resting retrying', 'they are looked for once')
    await rig.pass(settings.probeMs)
    assert.equal(rig.probe.calls.length, 4)
  })

  test('nothing but rows that wait for their time: it looks again when the first is due, not at once', async () => {
    const rig = webhookRig({ health: { consecutiveFailures: 1, retryAt: startOfTime } })
    await rig.untilProbe()
    for (const [next, wait] of [
      [rig.now() + 5 * settings.stallRetryMs, 5 * settings.stallRetryMs],
      [0, settings.stallRetryMs],
      [Infinity, settings.probeMs],
    ] as const) {
      const calls = rig.probe.calls.length
      await rig.probes({ delivered: null, at: rig.now(), next })
      assert.equal(rig.health().retryAt, rig.now() + wait)
      assert.equal(rig.tags(), 'active resting retrying')
      await rig.pass(wait)
      assert.equal(rig.probe.calls.length, calls + 1)
    }
  })

  test('an error of ours and a probe without end count nothing and are repeated soon', async () => {
    const rig = webhookRig({ health: { consecutiveFailures: 2, retryAt: startOfTime } })
    await rig.untilProbe()
    rig.probe.last().reject(new Error('the store is away'))
    await settle()
    assert.equal(rig.tags(), 'active retrying waiting')
    await rig.pass(settings.stallRetryMs)
    assert.equal(rig.probe.calls.length, 2)
    assert.equal(describeWebhook(rig.actor.getSnapshot()).next?.what, 'gives up this try')
    await rig.pass(settings.probeDeadlineMs)
    assert.ok(rig.probe.last().signal.aborted)
    assert.equal(rig.tags(), 'active retrying waiting')
    assert.ok((rig.health().retryAt ?? 0) >= rig.now())
    await rig.pass(settings.stallRetryMs * 1.2)
    assert.equal(rig.probe.calls.length, 3)
    assert.equal(rig.health().consecutiveFailures, 2)
  })

  test('a callback that arrives after all ends the failing, wherever the chart is', async () => {
    const rig = webhookRig()
    await rig.deliveryFails()
    await rig.send({ type: 'delivered', at: rig.now() })
    assert.equal(rig.tags(), 'active draining healthy')
  })
})
