/** What of an account is stored, and what the times in it are. Run by account.machine.test.ts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeAccount } from '../../machines/view.ts'
import { accountRig, settings, type AccountRig, type RigOptions } from './account-rig.ts'
import { settle, startOfTime } from './rig.ts'

const minute = 60_000
const hour = 60 * minute
const lastError = { class: 'network', message: 'away', at: startOfTime - 1 } as const

describe('stored', () => {
  test('whatever changes last while a report is under way is in the next one', async () => {
    const changes: Record<string, (rig: AccountRig) => Promise<void>> = {
      'a wake': (rig) => rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 }),
      'a passed check': (rig) => rig.send({ type: 'CHECK_PASSED', at: rig.now() }),
      'the end of the initial sync': (rig) => rig.send({ type: 'sync.completed', at: rig.now() }),
      'a catch-up': async (rig) => {
        await rig.pass(1000)
        await rig.toWatching()
      },
    }
    for (const [name, change] of Object.entries(changes)) {
      const rig = accountRig({ holdReports: true })
      await rig.connectFails('network')
      await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('network') })
      await change(rig)
      rig.report.last().resolve(true)
      await settle()
      assert.equal(rig.report.calls.length, 2, name)
      assert.deepEqual(rig.report.last().input.resume, rig.resume(), name)
    }
  })

  test('a healthy account stores nothing for each sign of progress', async () => {
    const rig = accountRig()
    await rig.toSyncing()
    await rig.send({ type: 'sync.progress', at: rig.now() })
    assert.equal(rig.report.calls.length, 0)
    await rig.synced()
    assert.equal(rig.report.calls.length, 1, 'lastConnectedAt')
  })

  const marks: Record<string, RigOptions> = {
    'being DISABLED': { input: { status: 'DISABLED' } },
    'a message': { input: { statusMessage: 'away' } },
    strikes: { resume: { strikes: 1 } },
    'an error': { resume: { lastError } },
  }
  for (const [name, options] of Object.entries(marks)) {
    test(`of earlier failures ${name} goes with the first sign of progress, not before`, async () => {
      const rig = accountRig(options)
      await rig.send({ type: 'CHECK_PASSED', at: rig.now() })
      if (rig.report.calls.length === 0) {
        await rig.toSyncing()
        assert.equal(rig.report.calls.length, 0, 'the login alone proves nothing')
        await rig.send({ type: 'sync.progress', at: rig.now() })
      }
      const { status, message, resume } = rig.report.last().input
      assert.deepEqual([status, message, resume.strikes, resume.lastError], ['OK', null, 0, null])
    })
  }

  test('with STOP: what is not stored yet, whole', async () => {
    const rig = accountRig({ holdReports: true })
    await rig.connectFails('auth_rejected')
    await rig.send({ type: 'STOP' })
    assert.deepEqual(rig.report.last().input, {
      accountId: 'a1',
      status: 'OK',
      message: 'it was auth_rejected',
      resume: rig.resume(),
    })
    assert.equal(rig.resume().strikes, 1)
  })

  test('reports without an answer are repeated ever slower, up to 64 times the first wait', async () => {
    const rig = accountRig({ holdReports: true })
    await rig.send({ type: 'PAUSE', at: rig.now() })
    await rig.send({ type: 'sync.completed', at: rig.now() })
    for (const factor of [0.75, 1.5, 3, 6, 12, 24, 48, 48, 48]) {
      const { length } = rig.report.calls
      await rig.pass(settings.reportDeadlineMs)
      await rig.pass(settings.reportRetryMs * factor - 1)
      assert.equal(rig.report.calls.length, length)
      await rig.pass(1)
      assert.equal(rig.report.calls.length, length + 1)
    }
  })
})

describe('times', () => {
  const gaveUp = (rig: AccountRig) => describeAccount(rig.actor.getSnapshot()).next

  test('a login after a wait is given up by its own deadline, and the wait is over in what is stored', async () => {
    const rig = accountRig()
    await rig.connectFails('network')
    await rig.pass(500)
    assert.deepEqual(gaveUp(rig), { what: 'gives up this login', at: rig.now() + settings.connectDeadlineMs })
    assert.equal(rig.resume().retryAt, null)
    await rig.pass(settings.connectDeadlineMs)
    assert.equal(rig.resume().lastError?.at, rig.now())
  })

  test('so is a login after a pause', async () => {
    const rig = accountRig({ resume: { retryAt: startOfTime + 2 * hour, attempt: 3 } })
    await rig.send({ type: 'PAUSE', at: rig.now() })
    await rig.pass(hour)
    await rig.send({ type: 'RESUME', now: rig.now(), jitter: 0.25 })
    assert.equal(gaveUp(rig)?.at, rig.now() + settings.connectDeadlineMs)
    assert.deepEqual([rig.resume().retryAt, rig.resume().attempt, rig.context().jitter], [null, 3, 0.25])
  })

  test('so is the probe of a DISABLED account', async () => {
    const rig = accountRig({ input: { status: 'DISABLED' } })
    assert.deepEqual(gaveUp(rig), { what: 'tries the login again', at: startOfTime + settings.disabledProbeMs })
    await rig.pass(settings.disabledProbeMs - 1)
    assert.equal(rig.connect.calls.length, 0)
    await rig.pass(1)
    assert.equal(gaveUp(rig)?.at, rig.now() + settings.connectDeadlineMs)
  })

  test('one rejection of a DISABLED account waits for the next probe, however often it was woken', async () => {
    const rig = accountRig({ input: { status: 'DISABLED' } })
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    await rig.connectFails('auth_rejected')
    assert.equal(rig.resume().strikes, 1)
    assert.equal(rig.resume().retryAt, rig.now() + settings.disabledProbeMs)
  })

  test('the longest hint is waited for to its end', async () => {
    const rig = accountRig()
    await rig.connectFails('throttled', { retryAfterMs: settings.throttleMaxMs, jitter: 0.9 })
    const waitMs = settings.throttleMaxMs * 1.09
    assert.deepEqual(gaveUp(rig), { what: 'connects again when the server allows it', at: startOfTime + waitMs })
    await rig.pass(waitMs - 1)
    assert.equal(rig.connect.calls.length, 1)
    await rig.pass(1)
    assert.equal(rig.connect.calls.length, 2)
  })

  test('a throttling that is over keeps nobody away, neither at the start nor after a pause', async () => {
    const before = { lastError: { ...lastError, class: 'throttled' } } as const
    for (const retryAt of [startOfTime - minute, startOfTime]) {
      assert.equal(accountRig({ resume: { ...before, retryAt } }).tags(), 'connecting ok')
      const paused = accountRig({ input: { paused: true }, resume: { ...before, retryAt } })
      await paused.send({ type: 'RESUME', now: startOfTime, jitter: 0.5 })
      assert.equal(paused.tags(), 'connecting ok')
    }
  })

  test('a later hint that is shorter counts once the first is over', async () => {
    const rig = accountRig()
    await rig.connectFails('throttled', { retryAfterMs: hour, jitter: 0 })
    await rig.pass(hour)
    await rig.connectFails('throttled', { retryAfterMs: minute, jitter: 0 })
    assert.equal(rig.resume().retryAt, rig.now() + minute)
  })

  test('another failure while the server asks for peace is none of the account’s', async () => {
    const rig = accountRig()
    await rig.connectFails('throttled', { retryAfterMs: hour, jitter: 0 })
    const { length } = rig.emitted
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('network') })
    assert.deepEqual([rig.resume().attempt, rig.emitted.length], [1, length])
  })

  test('a check that meets no server waits as long as the attempt after it would', async () => {
    const rig = accountRig({ resume: { attempt: 1, retryAt: startOfTime + hour } })
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('network') })
    assert.equal(rig.resume().retryAt, rig.now() + 1000)
  })

  test('a session that is silent while it catches up is given up when it was announced', async () => {
    const rig = accountRig()
    await rig.pass(1000)
    await rig.toSyncing()
    const at = rig.now() + settings.syncDeadlineMs
    assert.deepEqual(gaveUp(rig), { what: 'gives up this session unless the server answers', at })
  })

  test('WAKE while the mailbox is read forgets the failures before', async () => {
    const rig = accountRig({ resume: { attempt: 6 } })
    await rig.toSyncing()
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    rig.sync.last().reject(new Error('bug'))
    await settle()
    assert.equal(rig.resume().attempt, 1)
    assert.match(rig.context().message ?? '', /internal error/)
  })

  test('a rotation that a person interrupts connects anew', async () => {
    const rig = accountRig()
    await rig.toWatching()
    rig.watch.last().sendBack({ type: 'watch.rotate', at: rig.now() })
    await settle()
    await rig.send({ type: 'WAKE', reconnect: true, now: rig.now(), jitter: 0.5 })
    assert.equal(rig.connect.calls.length, 3)
    assert.equal(rig.tags(), 'connecting ok')
  })
})
