/** The account chart away from its server, and its records. Run by account.machine.test.ts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeAccount } from '../../machines/view.ts'
import { accountRig, settings, type AccountRig } from './account-rig.ts'
import { settle, startOfTime } from './rig.ts'

const minute = 60_000
const hour = 60 * minute
describe('waiting', () => {
  test('WAKE connects at once and forgets the back-off', async () => {
    const rig = accountRig({ resume: { attempt: 7, strikes: 1, retryAt: startOfTime + hour } })
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.25 })
    assert.equal(rig.tags(), 'connecting ok')
    assert.equal(rig.resume().attempt, 0)
    assert.equal(rig.report.last().input.resume.retryAt, null, 'a restart right now would not wait either')
    assert.equal(rig.context().jitter, 0.25)
  })

  test('a passed check clears the failure and connects; a failed one counts', async () => {
    const rig = accountRig({ resume: { attempt: 1, retryAt: startOfTime + hour } })
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('auth_rejected') })
    assert.equal(rig.tags(), 'ok waiting')
    assert.deepEqual([rig.resume().attempt, rig.resume().strikes], [2, 1])
    await rig.send({ type: 'CHECK_PASSED', at: rig.now() })
    assert.equal(rig.tags(), 'connecting ok')
    assert.deepEqual([rig.resume().strikes, rig.context().message], [0, null])
  })

  test('nothing but time ends a throttling, and more of it makes it longer, never shorter', async () => {
    const rig = accountRig()
    await rig.connectFails('throttled', { retryAfterMs: 300_000, jitter: 0 })
    assert.equal(rig.tags(), 'ok throttled waiting')
    assert.equal(rig.resume().retryAt, rig.now() + 300_000)
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0 })
    await rig.send({ type: 'WAKE', reconnect: true, now: rig.now(), jitter: 0 })
    await rig.send({ type: 'CHECK_PASSED', at: rig.now() })
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('network') })
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('throttled', { retryAfterMs: 1000, jitter: 0 }) })
    assert.equal(rig.resume().retryAt, startOfTime + 300_000)
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('throttled', { retryAfterMs: 400_000, jitter: 0 }) })
    assert.equal(describeAccount(rig.actor.getSnapshot()).next?.what, 'connects again when the server allows it')
    await rig.pass(399_999)
    assert.equal(rig.connect.calls.length, 1)
    await rig.pass(1)
    assert.equal(rig.connect.calls.length, 2)
  })
})

describe('disabled', () => {
  const disabledRig = async () => {
    const rig = accountRig({ resume: { attempt: 2, strikes: 2 } })
    await rig.connectFails('auth_rejected', { message: 'the server rejects the password' })
    return rig
  }

  test('the strike that fills the measure makes it DISABLED, told once', async () => {
    const rig = await disabledRig()
    assert.equal(rig.tags(), 'disabled')
    assert.deepEqual(
      rig.emitted.filter(({ type }) => type === 'status.changed'),
      [
        {
          type: 'status.changed',
          accountId: 'a1',
          status: 'DISABLED',
          message: 'the server rejects the password',
          at: rig.now(),
        },
      ],
    )
    assert.equal(rig.report.last().input.status, 'DISABLED')
    assert.equal(rig.report.last().input.resume.retryAt, rig.now() + settings.disabledProbeMs)
  })

  test('a rejected probe waits for the next one, a passed one heals', async () => {
    const rig = await disabledRig()
    await rig.pass(settings.disabledProbeMs)
    assert.equal(rig.tags(), 'connecting disabled')
    await rig.connectFails('consent_lost')
    assert.equal(rig.tags(), 'disabled')
    await rig.pass(settings.disabledProbeMs)
    await rig.connected()
    assert.equal(rig.tags(), 'disabled syncing', 'the login alone proves nothing yet (ambiguous permission)')
    await rig.send({ type: 'sync.progress', at: rig.now() })
    assert.equal(rig.tags(), 'ok syncing')
    assert.deepEqual(
      rig.emitted.flatMap((event) => (event.type === 'status.changed' ? [event.status] : [])),
      ['DISABLED', 'OK'],
    )
    assert.equal(rig.report.last().input.status, 'OK')
    assert.equal(rig.report.last().input.message, null)
  })

  test('a probe that met no server says nothing: still DISABLED, and tried again by the back-off', async () => {
    const rig = await disabledRig()
    await rig.pass(settings.disabledProbeMs)
    await rig.connectFails('network')
    assert.equal(rig.tags(), 'disabled waiting')
    await rig.pass(settings.backoffMaxMs)
    assert.equal(rig.tags(), 'connecting disabled')
  })

  test('WAKE tries at once, and one rejection is enough to stay DISABLED', async () => {
    const rig = await disabledRig()
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'connecting disabled')
    await rig.connectFails('auth_rejected')
    assert.equal(rig.tags(), 'disabled')
  })

  test('checks: a failed one keeps it DISABLED, a passed one heals and connects', async () => {
    const rig = await disabledRig()
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('permission') })
    assert.equal(rig.tags(), 'disabled')
    await rig.send({ type: 'CHECK_PASSED', at: rig.now() })
    assert.equal(rig.tags(), 'connecting ok')
  })
})

describe('the host is back', () => {
  test('a back-off ends, and what is known of earlier failures stays; a throttling goes on', async () => {
    const rig = accountRig()
    await rig.connectFails('network', { jitter: 0 })
    await rig.send({ type: 'HOST_BACK', now: rig.now(), jitter: 0 })
    assert.equal(rig.tags(), 'connecting ok')
    assert.equal(rig.resume().attempt, 1)
    await rig.connectFails('throttled', { retryAfterMs: 300_000, jitter: 0 })
    await rig.send({ type: 'HOST_BACK', now: rig.now(), jitter: 0 })
    assert.equal(rig.tags(), 'ok throttled waiting')
  })
})

describe('paused', () => {
  test('PAUSE ends what runs, from every state', async () => {
    const rig = accountRig()
    await rig.send({ type: 'PAUSE', at: rig.now() })
    assert.ok(rig.connect.last().signal.aborted)
    await rig.send({ type: 'RESUME', now: rig.now(), jitter: 0.5 })
    await rig.toWatching()
    await rig.send({ type: 'PAUSE', at: rig.now() })
    assert.equal(rig.tags(), 'ok paused')
    assert.ok(rig.watch.last().stopped)
    const waits = accountRig({ resume: { retryAt: startOfTime + hour } })
    await waits.send({ type: 'PAUSE', at: waits.now() })
    await waits.pass(hour)
    assert.equal(waits.connect.calls.length, 0)
    await waits.send({ type: 'RESUME', now: waits.now(), jitter: 0.5 })
    assert.equal(waits.tags(), 'connecting ok')
  })

  test('RESUME does not shorten a throttling', async () => {
    const rig = accountRig()
    await rig.connectFails('throttled', { retryAfterMs: 300_000, jitter: 0 })
    await rig.send({ type: 'PAUSE', at: rig.now() })
    await rig.pass(100_000)
    await rig.send({ type: 'RESUME', now: rig.now(), jitter: 0 })
    assert.equal(rig.tags(), 'ok throttled waiting')
    await rig.pass(199_999)
    assert.equal(rig.connect.calls.length, 1)
    await rig.pass(1)
    assert.equal(rig.connect.calls.length, 2)
  })

  test('a DISABLED account stays DISABLED over a pause', async () => {
    const rig = accountRig({ input: { status: 'DISABLED' } })
    await rig.send({ type: 'PAUSE', at: rig.now() })
    assert.equal(rig.tags(), 'disabled paused')
    await rig.send({ type: 'RESUME', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'connecting disabled')
  })
})

describe('records', () => {
  test('a report that fails is repeated, ever slower, and holds nothing up', async () => {
    const rig = accountRig({ holdReports: true })
    await rig.connectFails('network')
    rig.report.last().reject(new Error('the store is away'))
    await rig.pass(500)
    assert.equal(rig.tags(), 'connecting ok', 'the account went on')
    await rig.pass(settings.reportRetryMs)
    assert.equal(rig.report.calls.length, 2)
    rig.report.last().reject(new Error('still away'))
    await rig.pass(settings.reportRetryMs)
    assert.equal(rig.report.calls.length, 2, 'the second wait is longer')
    await rig.pass(settings.reportRetryMs)
    assert.equal(rig.report.calls.length, 3)
    rig.report.last().resolve(true)
    await rig.pass(hour)
    assert.equal(rig.resume().attempt, 2, 'meanwhile the connect deadline passed')
  })

  test('what changes while a report is under way goes into the next one', async () => {
    const rig = accountRig({ holdReports: true })
    await rig.connectFails('network')
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.report.calls.length, 1)
    rig.report.last().resolve(true)
    await settle()
    assert.equal(rig.report.calls.length, 2)
    assert.equal(rig.report.last().input.resume.attempt, 0)
    rig.report.last().resolve(true)
    await rig.pass(settings.reportDeadlineMs)
    assert.equal(rig.report.calls.length, 2)
  })

  test('a report without an answer is given up and repeated', async () => {
    const rig = accountRig({ holdReports: true })
    await rig.connectFails('consent_lost')
    await rig.pass(settings.reportDeadlineMs)
    assert.ok(rig.report.last().signal.aborted)
    await rig.pass(settings.reportRetryMs)
    assert.equal(rig.report.calls.length, 2)
  })
})

describe('STOP', () => {
  test('with all recorded the actor ends at once', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.send({ type: 'STOP' })
    assert.equal(rig.actor.getSnapshot().status, 'done')
    assert.equal(rig.tags(), 'stopped')
    assert.ok(rig.watch.last().stopped)
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.connect.calls.length, 1)
  })

  test('what is not recorded yet is recorded first, tried once and within the deadline', async () => {
    const outcomes: readonly ((rig: AccountRig) => void)[] = [
      (rig) => rig.report.last().resolve(true),
      (rig) => rig.report.last().reject(new Error('away')),
      (rig) => void rig.pass(settings.reportDeadlineMs),
    ]
    for (const outcome of outcomes) {
      const rig = accountRig({ holdReports: true })
      await rig.connectFails('tls')
      await rig.send({ type: 'STOP' })
      assert.equal(rig.actor.getSnapshot().status, 'active')
      assert.equal(rig.tags(), 'stopped')
      assert.equal(rig.report.calls.length, 2)
      outcome(rig)
      await settle()
      await settle()
      await settle()
      assert.equal(rig.actor.getSnapshot().status, 'done')
    }
  })
})
