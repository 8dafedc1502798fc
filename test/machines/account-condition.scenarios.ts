/** How an account is, and since when: what survives tries and restarts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AccountInput } from '../../machines/account.rules.ts'
import type { AccountResume } from '../../machines/events.ts'
import { accountRig, type AccountRig } from './account-rig.ts'
import { startOfTime } from './rig.ts'

const minute = 60_000
const hour = 60 * minute

const is = (rig: AccountRig) => [rig.resume().condition.is, rig.resume().condition.since - startOfTime]
const stored = (rig: AccountRig) => rig.report.last().input.resume.condition
const without = (resume: Partial<AccountResume>, input: Partial<AccountInput> = {}) => {
  return is(accountRig({ resume: { ...resume, condition: undefined as never }, input }))
}

describe('condition', () => {
  test('down begins with the first failure, and each further try leaves its time alone', async () => {
    const rig = accountRig()
    await rig.toWatching()
    assert.deepEqual(is(rig), ['up', 0])
    await rig.pass(minute)
    await rig.watchFails('network')
    const reports = rig.report.calls.length
    for (let tries = 0; tries < 5; tries += 1) {
      await rig.pass((rig.resume().retryAt ?? 0) - rig.now())
      await rig.connectFails('network')
      assert.deepEqual(is(rig), ['down', minute])
    }
    assert.equal(rig.report.calls.length, reports + 5, 'one for each failure, as before')
    assert.deepEqual(stored(rig), { is: 'down', since: startOfTime + minute })
    await rig.pass((rig.resume().retryAt ?? 0) - rig.now())
    await rig.toSyncing()
    assert.equal(is(rig)[0], 'down', 'a login alone proves nothing')
    const back = rig.now() - startOfTime
    await rig.synced()
    assert.deepEqual(is(rig), ['up', back])
    assert.equal(stored(rig)?.is, 'up')
  })

  test('a new actor begins with what was stored', async () => {
    const since = startOfTime - 7 * 24 * hour
    const rig = accountRig({ resume: { condition: { is: 'down', since } } })
    assert.equal(rig.report.calls.length, 0, 'nothing is written for it')
    await rig.connectFails('network')
    assert.deepEqual(stored(rig), { is: 'down', since })
    const up = accountRig({ resume: { condition: { is: 'up', since } } })
    await up.toWatching()
    assert.deepEqual(up.resume().condition, { is: 'up', since })
  })

  test('disabled begins with the status, and a failed probe leaves its time alone', async () => {
    const rig = accountRig()
    await rig.connectFails('network')
    await rig.pass(minute)
    await rig.send({ type: 'CHECK_FAILED', failure: rig.failure('auth_rejected', { decides: true }) })
    const at = rig.now() - startOfTime
    assert.deepEqual(is(rig), ['disabled', at])
    await rig.pass((rig.resume().retryAt ?? 0) - rig.now())
    await rig.connectFails('network')
    assert.deepEqual(is(rig), ['disabled', at])
    await rig.pass((rig.resume().retryAt ?? 0) - rig.now())
    await rig.toSyncing()
    await rig.send({ type: 'sync.progress', at: rig.now() })
    assert.equal(rig.context().status, 'OK')
    assert.equal(is(rig)[0], 'down', 'no longer disabled, and not caught up yet')
  })

  test('a refused login of the command connection leaves an open session up', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.commandFails('auth_rejected')
    assert.deepEqual(is(rig), ['up', 0])
  })

  test('a pause has a time of its own, and what it interrupted goes on after it', async () => {
    const rig = accountRig()
    await rig.toWatching()
    await rig.watchFails('network')
    await rig.pass(minute)
    await rig.send({ type: 'PAUSE', at: rig.now() })
    const [, paused] = is(rig)
    assert.deepEqual(is(rig), ['paused', rig.now() - startOfTime])
    await rig.pass(hour)
    await rig.send({ type: 'PAUSE', at: rig.now() })
    assert.deepEqual(is(rig), ['paused', paused])
    assert.equal(stored(rig)?.is, 'paused')
    await rig.send({ type: 'RESUME', now: rig.now(), jitter: 0 })
    assert.deepEqual(is(rig), ['down', 0])
    assert.equal(stored(rig)?.is, 'down')
    const up = accountRig()
    await up.toWatching()
    await up.send({ type: 'PAUSE', at: up.now() })
    await up.pass(hour)
    await up.send({ type: 'RESUME', now: up.now(), jitter: 0 })
    assert.deepEqual(is(up), ['down', hour], 'not connected yet')
  })

  test('where nothing is stored yet, what is known stands for it, and is stored', () => {
    const lastError = { class: 'network', message: 'away', at: startOfTime - 5 } as const
    assert.deepEqual(without({ lastError }), ['down', -5])
    assert.deepEqual(without({ lastConnectedAt: startOfTime - 9 }), ['up', -9])
    assert.deepEqual(without({ lastError }, { status: 'DISABLED' }), ['disabled', -5])
    assert.deepEqual(without({}, { paused: true }), ['paused', 0])
    assert.deepEqual(without({}), ['down', 0])
    const rig = accountRig({ input: { paused: true }, resume: { condition: { is: 'up', since: 1 } } })
    assert.equal(stored(rig)?.is, 'paused')
  })
})
