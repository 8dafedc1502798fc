/**
 * What of a webhook is stored, which failures are one round, and what the times are. Run by webhook.machine.test.ts.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeWebhook } from '../../machines/view.ts'
import { settle, startOfTime } from './rig.ts'
import { settings, webhookRig, type WebhookRig } from './webhook-rig.ts'

const minute = 60_000
const hour = 60 * minute

describe('stored', () => {
  test('whatever changes last while a report is under way is in the next one', async () => {
    const changes: Record<string, (rig: WebhookRig) => Promise<void>> = {
      'a success': (rig) => rig.drains({ type: 'delivered', at: rig.now() }),
      ACTIVATE: (rig) => rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 }),
      DEACTIVATE: (rig) => rig.send({ type: 'DEACTIVATE' }),
      'nothing to try': async (rig) => {
        await rig.deliveryFails()
        await rig.pass(settings.scheduleMs[2] ?? 0)
        await rig.probes({ delivered: null, at: rig.now() })
      },
    }
    for (const [name, change] of Object.entries(changes)) {
      const rig = webhookRig({ holdReports: true, input: { settings: { ...settings, reportDeadlineMs: 24 * hour } } })
      await rig.rowFails()
      if (name !== 'nothing to try') await rig.rowFails()
      await change(rig)
      rig.report.last().resolve(true)
      await settle()
      assert.equal(rig.report.calls.length, 2, name)
      assert.deepEqual(rig.report.last().input.health, rig.health(), name)
    }
  })

  test('an announcement and a 410 that come while a report is under way are in the next, and in no other', async () => {
    const rig = webhookRig({ holdReports: true })
    await rig.deliveryFails({ permanent: 'redirect' })
    await rig.untilProbe()
    await rig.probeFails({ permanent: 'gone' })
    const at = rig.now()
    const held = () => {
      const { announcements, goneAt } = rig.report.last().input
      return [announcements.map(({ news }) => news), goneAt]
    }
    assert.deepEqual(held(), [['failing'], null])
    rig.report.last().resolve(true)
    await settle()
    assert.deepEqual(held(), [['gone'], at])
    rig.report.last().resolve(true)
    await rig.send({ type: 'DEACTIVATE' })
    assert.equal(rig.report.calls.length, 2, 'it is inactive by its 410')
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.report.calls.length, 3)
    assert.deepEqual(held(), [[], null])
  })

  test('a 410 that is stored is in no later report', async () => {
    const rig = webhookRig()
    await rig.rowFails({ permanent: 'gone' })
    await rig.send({ type: 'STOP' })
    assert.deepEqual(
      rig.report.calls.map(({ input }) => input.goneAt),
      [rig.now()],
    )
    assert.equal(rig.context().goneAt, null)
  })

  test('a success after failures is stored at once, however lately one was stored', async () => {
    const marks = [
      { consecutiveFailures: 1 },
      { failure: true },
      { retryAt: startOfTime },
      { failure: true, consecutiveFailures: 3, retryAt: startOfTime },
    ]
    for (const mark of marks) {
      const rig = webhookRig({ health: { ...mark, lastSuccessAt: startOfTime } })
      await rig.pass(0)
      await rig.send({ type: 'delivered', at: rig.now() })
      assert.equal(rig.report.calls.length, 1, JSON.stringify(mark))
    }
    const healthy = webhookRig({ health: { lastSuccessAt: startOfTime } })
    await healthy.pass(settings.successReportMs - 1)
    await healthy.drains({ type: 'delivered', at: healthy.now() })
    assert.equal(healthy.report.calls.length, 0)
    await healthy.pass(1)
    await healthy.drains({ type: 'delivered', at: healthy.now() })
    assert.equal(healthy.report.calls.length, 1)
  })

  test('reports without an answer are repeated ever slower, up to 64 times the first wait', async () => {
    const rig = webhookRig({ holdReports: true })
    await rig.send({ type: 'DEACTIVATE' })
    for (const factor of [0.75, 1.5, 3, 6, 12, 24, 48, 48, 48]) {
      const { length } = rig.report.calls
      await rig.pass(settings.reportDeadlineMs)
      await rig.pass(settings.reportRetryMs * factor - 1)
      assert.equal(rig.report.calls.length, length)
      await rig.pass(1)
      assert.equal(rig.report.calls.length, length + 1)
    }
    const failing = webhookRig({ holdReports: true })
    await failing.send({ type: 'DEACTIVATE' })
    for (const factor of [0.75, 1.5, 3]) {
      const { length } = failing.report.calls
      failing.report.last().reject(new Error('the store is away'))
      await failing.pass(settings.reportRetryMs * factor - 1)
      assert.equal(failing.report.calls.length, length)
      await failing.pass(1)
      assert.equal(failing.report.calls.length, length + 1)
    }
  })

  test('with STOP: what is not stored yet, whole', async () => {
    const rig = webhookRig({ holdReports: true })
    await rig.deliveryFails({ permanent: 'gone' })
    const { length } = rig.report.calls
    await rig.send({ type: 'STOP' })
    assert.equal(rig.report.calls.length, length + 1)
    assert.deepEqual(rig.report.last().input, rig.report.calls[0]?.input)
    assert.deepEqual([rig.report.last().input.webhookId, rig.report.last().input.goneAt], ['w1', rig.now()])
  })
})

describe('rounds', () => {
  test('an attempt that began with the failure or later is a new round, also when another of the old round failed since', async () => {
    const rig = webhookRig()
    await rig.pass(1000)
    await rig.rowFails({ startedAt: startOfTime })
    const failedAt = rig.now()
    await rig.rowFails({ startedAt: failedAt })
    assert.equal(rig.health().consecutiveFailures, 2)
    await rig.pass(1000)
    await rig.rowFails({ startedAt: startOfTime })
    await rig.pass(1000)
    await rig.rowFails({ startedAt: failedAt + 500 })
    assert.equal(rig.health().consecutiveFailures, 3)
  })

  test('a 410 of a counted round is a 410', async () => {
    const rig = webhookRig()
    await rig.pass(1000)
    await rig.rowFails({ startedAt: startOfTime })
    await rig.rowFails({ startedAt: startOfTime, permanent: 'gone' })
    assert.equal(rig.tags(), 'failed paused')
    assert.deepEqual(
      rig.told().map(({ news }) => news),
      ['gone'],
    )
  })

  test('failing for five days is told, however few tries were made', async () => {
    const rig = webhookRig({ health: { consecutiveFailures: 1, failingSince: startOfTime - settings.abandonMs } })
    await rig.rowFails()
    assert.equal(rig.tags(), 'abandoned active failed waiting', 'one row fails, and nothing but the probe is sent')
    assert.ok(rig.drain.last().stopped)
    assert.deepEqual([rig.health().failure, rig.told().map(({ news }) => news)], [true, ['abandoned']])
    await rig.pass(settings.drainDeadlineMs)
    assert.equal(rig.drain.runs.length, 1)
  })
})

describe('edits', () => {
  test('ACTIVATE may bring another schedule, which then stays', async () => {
    const rig = webhookRig()
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5, scheduleMs: [7000, 8000] })
    await rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 })
    await rig.deliveryFails()
    assert.equal(rig.health().retryAt, rig.now() + 7000)
    assert.equal(rig.context().settings.probeMs, settings.probeMs)
  })

  test('DEACTIVATE is to be seen in what the webhook says of itself', async () => {
    const rig = webhookRig()
    await rig.send({ type: 'DEACTIVATE' })
    assert.equal(rig.context().active, false)
  })
})

describe('times', () => {
  const next = (rig: WebhookRig) => describeWebhook(rig.actor.getSnapshot()).next

  test('every outcome, and rows that come after a rest, begin the deadline of drain anew', async () => {
    const signs: Record<string, (rig: WebhookRig) => Promise<void>> = {
      delivered: (rig) => rig.drains({ type: 'delivered', at: rig.now() }),
      'row.failed': (rig) => rig.rowFails(),
      ACTIVATE: (rig) => rig.send({ type: 'ACTIVATE', now: rig.now(), jitter: 0.5 }),
      'idle, then WAKE': async (rig) => {
        await rig.drains({ type: 'idle', at: rig.now() })
        await rig.send({ type: 'WAKE' })
      },
    }
    for (const [name, sign] of Object.entries(signs)) {
      const rig = webhookRig()
      await rig.pass(settings.drainDeadlineMs - 1)
      await sign(rig)
      await rig.pass(settings.drainDeadlineMs - 1)
      assert.match(rig.tags(), /^active draining/, name)
      assert.equal(rig.drain.runs.length, 1, name)
      await rig.pass(1)
      assert.match(rig.tags(), /recovering/, name)
    }
  })

  test('WAKE alone does not: a drain that says nothing is not to be trusted', async () => {
    const rig = webhookRig()
    await rig.pass(settings.drainDeadlineMs - 1)
    await rig.send({ type: 'WAKE' })
    await rig.pass(1)
    assert.equal(rig.tags(), 'active healthy recovering')
  })

  test('after a long rest an error of ours is dated from the rest, not from before it', async () => {
    const rig = webhookRig()
    await rig.pass(minute)
    await rig.drains({ type: 'idle', at: rig.now() })
    rig.actor.send({ type: 'xstate.error.actor.drain', error: new Error('store') } as never)
    assert.deepEqual(next(rig), { what: 'looks for callbacks again', at: rig.now() + settings.stallRetryMs })
  })

  test('a probe is given up by its own deadline, and its outcome has its own time', async () => {
    for (const delivered of [true, null] as const) {
      const rig = webhookRig({ health: { consecutiveFailures: 1, retryAt: startOfTime + hour } })
      await rig.pass(hour)
      assert.deepEqual(next(rig), { what: 'gives up this try', at: rig.now() + settings.probeDeadlineMs })
      await rig.pass(5000)
      await rig.probes(delivered ? { delivered, at: rig.now() } : { delivered, at: rig.now() })
      if (delivered) assert.equal(rig.health().lastSuccessAt, rig.now())
      else assert.deepEqual(next(rig), { what: 'tries one callback', at: rig.now() + settings.probeMs })
    }
  })

  test('so is a probe after a rest', async () => {
    const rig = webhookRig({ health: { consecutiveFailures: 1, retryAt: startOfTime } })
    await rig.untilProbe()
    await rig.probes({ delivered: null, at: rig.now() })
    await rig.pass(settings.probeMs)
    assert.equal(next(rig)?.at, rig.now() + settings.probeDeadlineMs)
  })

  test('an error of ours is waited for to its end, also where no other wait is that long', async () => {
    const short = { ...settings, probeMs: 1000, retryAfterMaxMs: 1000 }
    const rig = webhookRig({
      input: { settings: short, jitter: 0.999 },
      health: { consecutiveFailures: 1, retryAt: startOfTime },
    })
    await rig.untilProbe()
    rig.probe.last().reject(new Error('the store is away'))
    await settle()
    const waitMs = (rig.health().retryAt ?? 0) - rig.now()
    assert.ok(waitMs > short.stallRetryMs * 1.1, String(waitMs))
    await rig.pass(waitMs - 1)
    assert.equal(rig.probe.calls.length, 1)
    await rig.pass(1)
    assert.equal(rig.probe.calls.length, 2)
  })

  test('the last error is dated: by the last failure, after a restart by the first that is known', async () => {
    const rig = webhookRig()
    await rig.rowFails()
    await rig.pass(1000)
    await rig.rowFails()
    assert.equal(describeWebhook(rig.actor.getSnapshot()).lastError?.at, rig.now())
    const health = { ...rig.health(), retryAt: null }
    assert.equal(describeWebhook(webhookRig({ health }).actor.getSnapshot()).lastError?.at, startOfTime)
  })
})
