/** The account chart's way from the start to watching. Run by account.machine.test.ts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeAccount } from '../../machines/view.ts'
import { accountRig, freshResume, settings, type AccountRig } from './account-rig.ts'
import { settle, startOfTime } from './rig.ts'

const minute = 60_000
const hour = 60 * minute
const throttledBefore = {
  attempt: 1,
  lastError: { class: 'throttled', message: 'slow down', at: startOfTime - 1000 },
} as const

describe('start', () => {
  test('a new account connects, catches up and watches', async () => {
    const rig = accountRig()
    assert.equal(rig.tags(), 'connecting ok')
    assert.deepEqual(rig.connect.last().input, { accountId: 'a1' })
    await rig.pass(700)
    await rig.connected()
    assert.equal(rig.tags(), 'ok syncing')
    assert.deepEqual(rig.sync.last().input, { accountId: 'a1' })
    assert.equal(rig.report.calls.length, 0, 'nothing is stored before there is something to store')
    await rig.synced()
    assert.equal(rig.tags(), 'ok watching')
    assert.deepEqual(rig.watch.last().input, { accountId: 'a1' })
    assert.deepEqual(rig.report.last().input, {
      accountId: 'a1',
      status: 'OK',
      message: null,
      resume: {
        ...freshResume,
        lastConnectedAt: startOfTime + 700,
        condition: { is: 'up', since: startOfTime + 700 },
      },
    })
    assert.deepEqual(rig.emitted, [])
  })

  test('retryAt in the future is waited for, one in the past is not', async () => {
    const waits = accountRig({ resume: { attempt: 4, retryAt: startOfTime + 9000 } })
    assert.equal(waits.tags(), 'ok waiting')
    assert.deepEqual(describeAccount(waits.actor.getSnapshot()).next, {
      what: 'connects again',
      at: startOfTime + 9000,
    })
    await waits.pass(8999)
    assert.equal(waits.connect.calls.length, 0)
    await waits.pass(1)
    assert.equal(waits.tags(), 'connecting ok')
    assert.deepEqual(waits.connect.last().input, { accountId: 'a1' })
    assert.equal(waits.resume().attempt, 4)
    assert.equal(accountRig({ resume: { attempt: 4, retryAt: startOfTime - 1 } }).tags(), 'connecting ok')
  })

  test('a throttled account is still throttled', async () => {
    const rig = accountRig({ resume: { ...throttledBefore, retryAt: startOfTime + minute } })
    assert.equal(rig.tags(), 'ok throttled waiting')
    await rig.pass(minute)
    assert.equal(rig.tags(), 'connecting ok')
  })

  test('a DISABLED account stays DISABLED until its probe, without another announcement', async () => {
    const rig = accountRig({ input: { status: 'DISABLED' }, resume: { strikes: 3, retryAt: startOfTime + hour } })
    assert.equal(rig.tags(), 'disabled')
    assert.deepEqual(describeAccount(rig.actor.getSnapshot()).next, {
      what: 'tries the login again',
      at: startOfTime + hour,
    })
    await rig.pass(hour - 1)
    assert.equal(rig.connect.calls.length, 0)
    await rig.pass(1)
    assert.equal(rig.tags(), 'connecting disabled')
    assert.deepEqual(rig.emitted, [])
  })

  test('a DISABLED account whose record names no time is probed after the usual interval', async () => {
    const rig = accountRig({ input: { status: 'DISABLED' } })
    await rig.pass(settings.disabledProbeMs)
    assert.equal(rig.connect.calls.length, 1)
  })

  test('a record from a clock that ran ahead does not keep an account away for ever', async () => {
    const rig = accountRig({ resume: { retryAt: startOfTime + 1000 * hour } })
    await rig.pass(settings.throttleMaxMs * 1.1)
    assert.equal(rig.connect.calls.length, 1)
  })

  test('a paused account starts paused', async () => {
    const rig = accountRig({ input: { paused: true } })
    assert.equal(rig.tags(), 'ok paused')
    await rig.pass(24 * hour)
    assert.equal(rig.connect.calls.length, 0)
    assert.equal(describeAccount(rig.actor.getSnapshot()).next, null)
  })
})

describe('connecting', () => {
  test('the deadline is a network failure and ends the attempt', async () => {
    const rig = accountRig()
    await rig.pass(settings.connectDeadlineMs - 1)
    assert.deepEqual(describeAccount(rig.actor.getSnapshot()).next, {
      what: 'gives up this login',
      at: startOfTime + settings.connectDeadlineMs,
    })
    assert.equal(rig.tags(), 'connecting ok')
    await rig.pass(1)
    assert.equal(rig.tags(), 'ok waiting')
    assert.ok(rig.connect.last().signal.aborted)
    assert.equal(rig.resume().lastError?.class, 'network')
    assert.equal(rig.resume().lastError?.at, rig.now())
  })

  test('the deadline rests while connect waits for its turn', async () => {
    const rig = accountRig()
    await rig.pass(1000)
    await rig.send({ type: 'connect.queued', at: rig.now() })
    assert.equal(rig.tags(), 'connecting ok queued')
    await rig.pass(hour)
    assert.equal(rig.tags(), 'connecting ok queued')
    assert.equal(rig.connect.calls.length, 1, 'it is the same attempt')
    await rig.send({ type: 'connect.dialing', at: rig.now() })
    await rig.pass(settings.connectDeadlineMs - 1)
    assert.equal(rig.tags(), 'connecting ok')
    await rig.pass(1)
    assert.equal(rig.tags(), 'ok waiting')
    assert.equal(rig.resume().lastError?.at, rig.now())
  })

  test('WAKE forgets the count; with reconnect it starts the attempt anew', async () => {
    const rig = accountRig({ resume: { attempt: 6, strikes: 2 } })
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.connect.calls.length, 1)
    assert.deepEqual([rig.resume().attempt, rig.resume().strikes], [0, 0])
    await rig.send({ type: 'WAKE', reconnect: true, now: rig.now(), jitter: 0.5 })
    assert.equal(rig.connect.calls.length, 2)
    assert.ok(rig.connect.calls[0]?.signal.aborted)
    assert.equal(rig.connect.last().signal.aborted, false)
  })

  test('an actor that throws something unknown fails safely and tells nothing of it', async () => {
    const rig = accountRig()
    rig.connect.last().reject(new Error('password=hunter2'))
    await settle()
    assert.equal(rig.tags(), 'ok waiting')
    assert.equal(rig.resume().lastError?.class, 'protocol')
    assert.doesNotMatch(JSON.stringify(rig.actor.getSnapshot().context), /hunter2/)
    assert.deepEqual(rig.errors, [])
  })
})

describe('syncing', () => {
  test('silence is a network failure, progress begins the deadline anew', async () => {
    const rig = accountRig()
    await rig.toSyncing()
    for (let step = 0; step < 5; step += 1) {
      await rig.pass(settings.syncDeadlineMs - 1)
      await rig.send({ type: 'sync.progress', at: rig.now() })
    }
    assert.equal(rig.sync.calls.length, 1, 'progress does not start sync again')
    assert.equal(describeAccount(rig.actor.getSnapshot()).next?.at, rig.now() + settings.syncDeadlineMs)
    await rig.pass(settings.syncDeadlineMs)
    assert.equal(rig.tags(), 'ok waiting')
    assert.ok(rig.sync.last().signal.aborted)
    assert.deepEqual([rig.resume().lastError?.class, rig.resume().lastError?.at], ['network', rig.now()])
  })

  test('a failure counts on: the server let us in and dropped us', async () => {
    const rig = accountRig({ resume: { attempt: 2 } })
    await rig.toSyncing()
    await rig.send({ type: 'sync.progress', at: rig.now() })
    rig.sync.last().reject(new Error('bug'))
    await settle()
    assert.equal(rig.resume().attempt, 3)
  })

  test('WAKE leaves the session alone unless it asks for a new one', async () => {
    const rig = accountRig()
    await rig.toSyncing()
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'ok syncing')
    await rig.send({ type: 'WAKE', reconnect: true, now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'connecting ok')
    assert.ok(rig.sync.last().signal.aborted)
  })
})

describe('watching', () => {
  test('a failure waits and connects again; all is forgotten when it has caught up', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.pass(hour / 10)
    await rig.watchFails('network')
    assert.equal(rig.tags(), 'ok waiting')
    assert.ok(rig.watch.last().stopped)
    assert.deepEqual([rig.resume().attempt, rig.resume().retryAt], [1, rig.now() + 500])
    assert.equal(rig.context().message, 'it was network')
    await rig.pass(500)
    await rig.toWatching()
    assert.deepEqual(rig.resume(), {
      ...freshResume,
      lastConnectedAt: rig.now(),
      condition: { is: 'up', since: rig.now() },
    })
    assert.equal(rig.context().message, null)
    assert.deepEqual(
      rig.emitted.map(({ type }) => type),
      ['attempt.failed'],
      'a transient failure is no change of status',
    )
  })

  test('a rotation is no failure', async () => {
    const rig = accountRig()
    await rig.toWatching()
    rig.watch.last().sendBack({ type: 'watch.rotate', at: rig.now() })
    await settle()
    assert.equal(rig.tags(), 'connecting ok')
    await rig.toWatching()
    assert.equal(rig.connect.calls.length, 2)
    assert.equal(rig.resume().attempt, 0)
    assert.deepEqual(rig.emitted, [])
  })

  test('a rotation that fails or is paused connects again afterwards', async () => {
    const rig = accountRig()
    await rig.toWatching()
    rig.watch.last().sendBack({ type: 'watch.rotate', at: rig.now() })
    await rig.connectFails('network')
    await rig.pass(500)
    assert.equal(rig.connect.calls.length, 3)
    assert.equal(rig.tags(), 'connecting ok')
    await rig.toWatching()
    rig.watch.last().sendBack({ type: 'watch.rotate', at: rig.now() })
    await rig.send({ type: 'PAUSE', at: rig.now() })
    await rig.send({ type: 'RESUME', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.connect.calls.length, 5)
    assert.equal(rig.tags(), 'connecting ok')
  })

  test('silence beyond the deadline is a network failure, signs of life begin it anew', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.pass(settings.watchDeadlineMs - 1)
    rig.watch.last().sendBack({ type: 'watch.alive', at: rig.now() })
    await rig.pass(settings.watchDeadlineMs - 1)
    assert.equal(rig.tags(), 'ok watching')
    assert.equal(rig.watch.runs.length, 1)
    await rig.pass(1)
    assert.equal(rig.tags(), 'ok waiting')
    assert.deepEqual([rig.resume().lastError?.class, rig.resume().lastError?.at], ['network', rig.now()])
  })

  test('WAKE leaves the session alone unless it asks for a new one', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'ok watching')
    await rig.send({ type: 'WAKE', reconnect: true, now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'connecting ok')
    assert.ok(rig.watch.last().stopped)
  })

  test('a failed check speaks against an open session only when the login was rejected', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('connection_limit') })
    assert.equal(rig.tags(), 'ok watching')
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('auth_rejected') })
    assert.equal(rig.tags(), 'ok waiting')
    assert.equal(rig.resume().retryAt, rig.now() + minute)
  })

  test('a check that a person asked for decides: a rejection is DISABLED at once, a server that is away says nothing', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.send({ type: 'CHECK_FAILED', failure: { ...rig.failure('auth_rejected'), decides: true } })
    assert.equal(rig.tags(), 'disabled')
    assert.equal(rig.resume().strikes, rig.context().settings.strikes)
    for (const reach of [() => Promise.resolve(), (busy: AccountRig) => busy.connected()]) {
      const busy = accountRig()
      await reach(busy)
      await busy.send({ type: 'CHECK_FAILED', failure: busy.failure('auth_rejected') })
      assert.match(busy.tags(), /^(connecting ok|ok syncing)$/, 'one of the own attempts says more')
      await busy.send({ type: 'CHECK_FAILED', failure: { ...busy.failure('auth_rejected'), decides: true } })
      assert.equal(busy.tags(), 'disabled')
    }
    const away = accountRig({ resume: { attempt: 1, retryAt: startOfTime + hour } })
    await away.send({ type: 'CHECK_FAILED', failure: { ...away.failure('network'), decides: true } })
    assert.equal(away.tags(), 'ok waiting')
    assert.equal(away.resume().strikes, 0)
  })

  test('a watch that throws or ends by itself is a failure, not the end of the actor', async () => {
    for (const event of [{ type: 'xstate.done.actor.watch' }, { type: 'xstate.error.actor.watch', error: 'x' }]) {
      const rig = accountRig()
      await rig.toWatching()
      rig.actor.send(event as never)
      assert.equal(rig.tags(), 'ok waiting')
      assert.equal(rig.resume().lastError?.class, 'protocol')
    }
  })

  test('the end of the initial sync is recorded once, whenever it is told', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.send({ type: 'sync.completed', at: rig.now() })
    const first = rig.now()
    assert.equal(rig.report.last().input.resume.initialSyncAt, first)
    const reports = rig.report.calls.length
    await rig.pass(1000)
    await rig.send({ type: 'sync.completed', at: rig.now() })
    assert.equal(rig.resume().initialSyncAt, first)
    assert.equal(rig.report.calls.length, reports)
  })
})
