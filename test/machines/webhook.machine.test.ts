import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createActor, SimulatedClock } from 'xstate'
import { describeWebhook } from '../../machines/view.ts'
import { webhookMachine } from '../../machines/webhook.machine.ts'
import { settle, startOfTime } from './rig.ts'
import { healthy, settings, webhookCoverage, webhookRig, type WebhookRig } from './webhook-rig.ts'
import './webhook-work.scenarios.ts'
import './webhook-records.scenarios.ts'

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
        rig.emitted.map(({ type }) => type),
        ['failing', 'gone'],
      )
      assert.deepEqual(
        rig.told().map(({ version, news }) => ({ version, news })),
        [{ version: 1, news: 'gone' }],
        'told once, and why',
      )
      const stored = rig.report.calls.map(({ input }) => input)
      assert.equal(stored.filter(({ goneAt }) => goneAt !== null).length, 1)
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

  test('410 while it is failing already is told besides', async () => {
    const rig = webhookRig()
    await rig.deliveryFails()
    for (let step = 0; step < 3; step += 1) {
      await rig.untilProbe()
      await rig.probeFails()
    }
    await rig.untilProbe()
    await rig.probeFails({ permanent: 'gone', message: 'HTTP 410' })
    assert.equal(rig.tags(), 'failed paused')
    assert.deepEqual(
      rig.told().map(({ version, news, message }) => ({ version, news, message })),
      [
        { version: 1, news: 'failing', message: 'HTTP 500' },
        { version: 2, news: 'gone', message: 'HTTP 410' },
      ],
    )
    assert.equal(rig.health().failureVersion, 2)
  })
})

describe('failing for five days', () => {
  async function abandonedRig(): Promise<WebhookRig> {
    const rig = webhookRig()
    await rig.deliveryFails()
    for (let tries = 0; rig.health().abandonedAt === null && tries < 200; tries += 1) {
      await rig.untilProbe()
      await rig.probeFails()
    }
    return rig
  }

  test('it stays active, is told once more, and one row is tried every hour', async () => {
    const rig = await abandonedRig()
    assert.equal(rig.tags(), 'abandoned active failed waiting')
    assert.ok(rig.context().active)
    const failingFor = rig.now() - startOfTime
    assert.ok(failingFor >= settings.abandonMs && failingFor <= settings.abandonMs + hour)
    assert.deepEqual(rig.emitted.at(-1), { type: 'abandoned', webhookId: 'w1', message: 'HTTP 500', at: rig.now() })
    assert.deepEqual(
      rig.told().map(({ version, news }) => ({ version, news })),
      [
        { version: 1, news: 'failing' },
        { version: 2, news: 'abandoned' },
      ],
    )
    const before = rig.probe.calls.length
    for (let step = 0; step < 48; step += 1) {
      await rig.untilProbe()
      await rig.probeFails()
    }
    assert.equal(rig.probe.calls.length, before + 48)
    assert.equal(rig.told().length, 2, 'never again in this failing period')
    assert.ok(rig.report.calls.every(({ input }) => input.goneAt === null))
  })

  test('a delivered probe ends it, and a new period is told anew', async () => {
    const rig = await abandonedRig()
    await rig.untilProbe()
    await rig.probes({ delivered: true, at: rig.now() })
    assert.equal(rig.tags(), 'active draining healthy')
    assert.equal(rig.health().abandonedAt, null)
    assert.equal(rig.emitted.at(-1)?.type, 'recovered')
    await rig.deliveryFails({ permanent: 'redirect' })
    assert.deepEqual(
      rig
        .told()
        .map(({ version, news }) => ({ version, news }))
        .at(-1),
      { version: 3, news: 'failing' },
    )
  })

  test('ACTIVATE ends it at once', async () => {
    const rig = await abandonedRig()
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'active draining healthy')
    assert.equal(rig.health().abandonedAt, null)
  })

  test('a restart goes on with the probes and tells nothing again', async () => {
    const before = await abandonedRig()
    const health = { ...before.health(), retryAt: startOfTime + hour }
    const rig = webhookRig({ health })
    assert.equal(rig.tags(), 'abandoned active failed waiting')
    await rig.untilProbe()
    await rig.probeFails()
    assert.equal(rig.tags(), 'abandoned active failed waiting')
    assert.deepEqual(rig.emitted, [])
    assert.deepEqual(rig.told(), [])
    assert.equal(rig.health().failureVersion, 2)
  })

  test('with rows that fail each for itself too: draining ends, the probes begin', async () => {
    const rig = webhookRig()
    await rig.rowFails()
    assert.equal(rig.tags(), 'active draining retrying')
    for (let passed = 0; passed <= settings.abandonMs; passed += hour) {
      await rig.pass(hour)
      if (rig.tags().includes('draining')) await rig.rowFails()
    }
    assert.ok(rig.tags().startsWith('abandoned active failed'), rig.tags())
    assert.ok(rig.drain.last().stopped)
    assert.deepEqual(
      rig.told().map(({ news }) => news),
      ['failing', 'abandoned'],
    )
    assert.ok(rig.health().retryAt !== null)
  })
})

describe('ACTIVATE and DEACTIVATE', () => {
  test('DEACTIVATE ends what runs and keeps the failure; ACTIVATE clears it and tries at once', async () => {
    const rig = webhookRig({
      health: { failure: true, consecutiveFailures: 5, retryAt: startOfTime + hour, lastError: 'x' },
    })
    await rig.send({ type: 'DEACTIVATE' })
    assert.equal(rig.tags(), 'failed paused')
    assert.equal(rig.report.last().input.goneAt, null, 'that is the developer’s own edit')
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

  test('ACTIVATE makes void a 410 that is not stored yet', async () => {
    const rig = webhookRig({ holdReports: true })
    await rig.deliveryFails({ permanent: 'gone' })
    assert.equal(rig.report.last().input.goneAt, rig.now())
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    rig.report.last().reject(new Error('the store is away'))
    await rig.pass(settings.reportRetryMs)
    assert.equal(rig.report.last().input.goneAt, null)
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
    assert.deepEqual(rig.report.last().input.announcements, [
      { version: 1, news: 'failing', message: 'HTTP 500', at: startOfTime },
    ])
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

describe('ADOPT: what another node has stored', () => {
  const failing = { ...healthy, failure: true, consecutiveFailures: 3, failureVersion: 1, lastError: 'HTTP 503' }

  test('is when to wait, and when to send again', async () => {
    const rig = webhookRig()
    await rig.adopts({ ...failing, retryAt: rig.now() + 1000 })
    assert.equal(rig.tags(), 'active failed waiting')
    await rig.pass(999)
    await rig.adopts({ ...failing, retryAt: rig.now() + 1000 })
    await rig.pass(999)
    assert.equal(rig.tags(), 'active failed waiting', 'the newer one counts')
    await rig.pass(1)
    assert.equal(rig.tags(), 'active failed probing')
    await rig.adopts(healthy)
    assert.equal(rig.tags(), 'active draining healthy')
    assert.deepEqual([rig.report.calls.length, rig.told()], [0, []], 'it is stored already')
    await rig.adopts({ ...healthy, consecutiveFailures: 1 })
    assert.equal(rig.tags(), 'active draining retrying')
    assert.equal(rig.drain.runs.length, 2, 'what is sent goes on')
  })

  test('replaces what was counted here, and continues it', async () => {
    const rig = webhookRig({ holdReports: true })
    for (let step = 0; step < 3; step += 1) await rig.rowFails()
    await rig.adopts({ ...healthy, consecutiveFailures: 2 })
    assert.deepEqual(rig.health(), { ...healthy, consecutiveFailures: 2 })
    await rig.rowFails({ startedAt: rig.now() - 1 })
    assert.equal(rig.health().consecutiveFailures, 2, 'an attempt that was under way is of the same round')
    await rig.rowFails()
    rig.report.last().resolve(true)
    await settle()
    assert.deepEqual(
      rig.report.last().input.announcements.map(({ version, news }) => [version, news]),
      [[1, 'failing']],
    )
  })

  test('neither ends a pause nor a 410 that has yet to be stored', async () => {
    const rig = webhookRig({ holdReports: true })
    await rig.rowFails({ permanent: 'gone' })
    await rig.adopts(failing)
    assert.equal(rig.tags(), 'failed paused')
    const { announcements, goneAt } = rig.context()
    assert.deepEqual([announcements.map(({ news }) => news), goneAt], [['gone'], rig.now()])
  })
})

test('every transition of the chart is taken by one of these tests', () => {
  assert.ok(webhookCoverage.size > 40)
  assert.deepEqual(webhookCoverage.untaken(), [])
})
