import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AttemptFailed, failureClasses, type FailureClass } from '../../machines/events.ts'
import { accountRig, settings, type AccountRig } from './account-rig.ts'
import { settle } from './rig.ts'

const minute = 60_000
const hour = 60 * minute

/** One failure of a fresh account: what it becomes, and how long it waits (jitter 0.5). */
const single: Record<FailureClass, { tags: string; waitMs: number; strikes: number }> = {
  network: { tags: 'ok waiting', waitMs: 500, strikes: 0 },
  tls: { tags: 'ok waiting', waitMs: 500, strikes: 0 },
  protocol: { tags: 'ok waiting', waitMs: 500, strikes: 0 },
  connection_limit: { tags: 'ok waiting', waitMs: 500, strikes: 0 },
  auth_unavailable: { tags: 'ok waiting', waitMs: 500, strikes: 0 },
  throttled: { tags: 'ok throttled waiting', waitMs: 5 * minute * 1.05, strikes: 0 },
  auth_rejected: { tags: 'ok waiting', waitMs: minute, strikes: 1 },
  consent_lost: { tags: 'ok waiting', waitMs: minute, strikes: 1 },
  permission: { tags: 'ok waiting', waitMs: minute, strikes: 1 },
}

/** Ways for a failure to reach the chart. */
const ways: Record<string, (rig: AccountRig, failureClass: FailureClass) => Promise<void>> = {
  'connect rejects': (rig, failureClass) => rig.connectFails(failureClass),
  'watch fails': async (rig, failureClass) => {
    await rig.toWatching()
    await rig.watchFails(failureClass)
  },
}

describe('one failure', () => {
  for (const [way, fail] of Object.entries(ways)) {
    for (const failureClass of failureClasses) {
      test(`${way}: ${failureClass}`, async () => {
        const rig = accountRig()
        await fail(rig, failureClass)
        const expected = single[failureClass]
        assert.equal(rig.tags(), expected.tags)
        assert.deepEqual(rig.resume().lastError, {
          class: failureClass,
          message: `it was ${failureClass}`,
          at: rig.now(),
        })
        assert.equal(rig.resume().retryAt, rig.now() + expected.waitMs)
        assert.equal(rig.resume().strikes, expected.strikes)
        assert.equal(rig.context().status, 'OK')
        assert.equal(rig.context().message, `it was ${failureClass}`)
        assert.deepEqual(rig.report.last().input.resume, rig.resume())
        assert.equal(rig.emitted.at(-1)?.type, 'attempt.failed')
        const before = rig.connect.calls.length
        await rig.pass(expected.waitMs - 1)
        assert.equal(rig.connect.calls.length, before, 'not before its time')
        await rig.pass(1)
        assert.equal(rig.connect.calls.length, before + 1)
      })
    }
  }
})

describe('failures in a row', () => {
  const network = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 150_000, 150_000]

  test('network: doubling with full jitter up to the maximum', async () => {
    const rig = accountRig()
    for (const waitMs of network) {
      await rig.connectFails('network')
      assert.equal(rig.resume().retryAt, rig.now() + waitMs)
      await rig.pass(waitMs)
    }
    assert.equal(rig.resume().attempt, network.length)
    assert.equal(rig.context().status, 'OK', 'a server that is away never disables an account')
  })

  test('a server that lets us in and then drops us is tried ever more seldom, however far it lets us come', async () => {
    const rig = accountRig()
    for (const [index, waitMs] of network.entries()) {
      await rig.connected()
      await rig.send({ type: 'sync.progress', at: rig.now() })
      assert.equal(rig.context().message, null, 'the login stands')
      rig.sync.last().reject(rig.attemptFailed('network'))
      await settle()
      assert.deepEqual([rig.resume().attempt, rig.resume().retryAt], [index + 1, rig.now() + waitMs])
      await rig.pass(waitMs)
    }
    await rig.toWatching()
    await rig.watchFails('network')
    assert.equal(rig.resume().retryAt, rig.now() + 500, 'once it has caught up the count starts anew')
  })

  test('jitter 0 tries again at once, without end and without harm', async () => {
    const rig = accountRig()
    for (let turn = 1; turn <= 20; turn += 1) {
      await rig.connectFails('network', { jitter: 0 })
      await rig.pass(0)
      assert.equal(rig.connect.calls.length, turn + 1)
    }
  })

  const rows: { name: string; classes: FailureClass[]; disabled: boolean }[] = [
    { name: 'three rejections', classes: ['auth_rejected', 'auth_rejected', 'auth_rejected'], disabled: true },
    { name: 'three kinds of strike', classes: ['auth_rejected', 'consent_lost', 'permission'], disabled: true },
    { name: 'two rejections', classes: ['auth_rejected', 'auth_rejected'], disabled: false },
    {
      name: 'the network between rejections neither counts nor clears',
      classes: ['auth_rejected', 'network', 'auth_rejected', 'tls', 'auth_rejected'],
      disabled: true,
    },
    {
      name: 'nothing else ever disables',
      classes: ['network', 'tls', 'protocol', 'connection_limit', 'auth_unavailable', 'throttled', 'throttled'],
      disabled: false,
    },
  ]
  for (const { name, classes, disabled } of rows) {
    test(name, async () => {
      const rig = accountRig()
      for (const failureClass of classes) {
        assert.equal(rig.context().status, 'OK')
        await rig.pass((rig.resume().retryAt ?? rig.now()) - rig.now())
        await rig.connectFails(failureClass)
      }
      assert.equal(rig.context().status, disabled ? 'DISABLED' : 'OK')
      assert.equal(rig.emitted.filter(({ type }) => type === 'status.changed').length, disabled ? 1 : 0)
    })
  }

  test('rejections wait by their schedule when more strikes are allowed', async () => {
    const rig = accountRig({ input: { settings: { ...settings, strikes: 7 } } })
    for (const waitMs of [minute, 5 * minute, 30 * minute, 2 * hour, 6 * hour, 6 * hour]) {
      await rig.connectFails('auth_rejected')
      assert.equal(rig.resume().retryAt, rig.now() + waitMs)
      await rig.pass(waitMs)
    }
    await rig.connectFails('auth_rejected')
    assert.equal(rig.tags(), 'disabled')
  })

  test('a success between rejections clears them', async () => {
    const rig = accountRig()
    for (let turn = 0; turn < 3; turn += 1) {
      await rig.connectFails('auth_rejected')
      await rig.pass(minute)
      await rig.connectFails('auth_rejected')
      await rig.pass(5 * minute)
      await rig.toWatching()
      await rig.watchFails('network')
      await rig.pass(500)
      assert.equal(rig.tags(), 'connecting ok')
    }
  })

  test('a login alone does not clear a permission strike: the commands after it must work', async () => {
    const rig = accountRig()
    for (const waitMs of [minute, 5 * minute]) {
      await rig.connected()
      rig.sync.last().reject(rejection(rig))
      await settle()
      await rig.pass(waitMs)
    }
    await rig.connected()
    rig.sync.last().reject(rejection(rig))
    await settle()
    assert.equal(rig.tags(), 'disabled')
  })

  function rejection(rig: AccountRig) {
    return new AttemptFailed(rig.failure('permission'))
  }
})

describe('hints', () => {
  const rows: { failureClass: FailureClass; hint: number | null; jitter: number; waitMs: number }[] = [
    { failureClass: 'throttled', hint: 300_000, jitter: 0, waitMs: 300_000 },
    { failureClass: 'throttled', hint: 300_000, jitter: 0.9, waitMs: 327_000 },
    { failureClass: 'throttled', hint: null, jitter: 0, waitMs: settings.throttleDefaultMs },
    { failureClass: 'throttled', hint: 1e12, jitter: 0, waitMs: settings.throttleMaxMs },
    { failureClass: 'auth_unavailable', hint: 90_000, jitter: 0.5, waitMs: 90_000 },
    { failureClass: 'auth_rejected', hint: 1000, jitter: 0.5, waitMs: minute },
    { failureClass: 'network', hint: null, jitter: 0.999, waitMs: 999 },
  ]
  for (const { failureClass, hint, jitter, waitMs } of rows) {
    test(`${failureClass}, hint ${hint ?? 'none'}, jitter ${jitter}: ${waitMs} ms`, async () => {
      const rig = accountRig()
      await rig.connectFails(failureClass, { retryAfterMs: hint, jitter })
      assert.equal(rig.resume().retryAt, rig.now() + waitMs)
    })
  }
})
