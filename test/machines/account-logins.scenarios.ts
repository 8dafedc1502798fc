/** Logins of the command connection beside an open session. Run by account.machine.test.ts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { describeAccount } from '../../machines/view.ts'
import type { FailureClass } from '../../machines/events.ts'
import { accountRig, freshResume, settings, type AccountRig } from './account-rig.ts'
import { startOfTime } from './rig.ts'
import { settle } from './rig.ts'

const minute = 60_000

async function watchingRig(): Promise<AccountRig> {
  const rig = accountRig()
  await rig.toWatching()
  return rig
}

describe('a failed login of the command connection', () => {
  test('rejected: a strike that shows at once, and the session that watches stays', async () => {
    const rig = await watchingRig()
    await rig.commandFails('auth_rejected')
    assert.equal(rig.tags(), 'held ok watching')
    assert.equal(rig.watch.last().stopped, false)
    assert.equal(rig.context().message, 'it was auth_rejected')
    const { strikes, retryAt, attempt, lastError } = rig.resume()
    assert.deepEqual([strikes, retryAt, attempt], [1, rig.now() + minute, 0])
    assert.deepEqual(lastError, { class: 'auth_rejected', message: 'it was auth_rejected', at: rig.now() })
    assert.deepEqual(rig.report.last().input.resume, rig.resume())
    assert.deepEqual(describeAccount(rig.actor.getSnapshot()).next, {
      what: 'logs in for commands again',
      at: rig.now() + minute,
    })
    assert.equal(describeAccount(rig.actor.getSnapshot()).state, 'watching')
  })

  test('it is tried again along the schedule, and the third rejection ends the session and makes it DISABLED', async () => {
    const rig = await watchingRig()
    await rig.commandFails('auth_rejected')
    for (const [waitMs, tries] of [
      [minute, 1],
      [5 * minute, 2],
    ] as const) {
      await rig.pass(waitMs - 1)
      assert.equal(rig.relogin.calls.length, tries - 1)
      assert.equal(rig.tags(), 'held ok watching')
      await rig.pass(1)
      assert.equal(rig.relogin.calls.length, tries)
      assert.equal(rig.tags(), 'ok watching', 'one login is allowed')
      await rig.commandFails('auth_rejected')
      assert.ok(rig.relogin.last().signal.aborted)
    }
    assert.equal(rig.tags(), 'disabled')
    assert.ok(rig.watch.last().stopped)
    assert.equal(rig.resume().retryAt, rig.now() + settings.disabledProbeMs)
    assert.deepEqual(
      rig.emitted.map(({ type }) => type),
      ['attempt.failed', 'attempt.failed', 'attempt.failed', 'status.changed'],
    )
  })

  const harmless: readonly FailureClass[] = ['connection_limit', 'network', 'tls', 'auth_unavailable', 'protocol']
  for (const failureClass of harmless) {
    test(`${failureClass}: no strike, tried ever more seldom, with a count of its own`, async () => {
      const rig = await watchingRig()
      for (const waitMs of [500, 1000, 2000, 4000]) {
        await rig.commandFails(failureClass)
        assert.equal(rig.tags(), 'held ok watching')
        assert.equal(rig.resume().retryAt, rig.now() + waitMs)
        await rig.pass(waitMs)
      }
      assert.equal(rig.context().message, `it was ${failureClass}`)
      assert.deepEqual([rig.resume().strikes, rig.resume().attempt], [0, 0])
      await rig.watchFails('network')
      assert.equal(rig.resume().retryAt, rig.now() + 500, 'the first failure of the session')
      assert.equal(rig.context().refusals, 0)
    })
  }

  test('whatever else ends the try is a failure too', async () => {
    const rig = await watchingRig()
    await rig.commandFails('network')
    await rig.pass(500)
    rig.relogin.last().reject(new Error('a bug'))
    await settle()
    assert.equal(rig.tags(), 'held ok watching')
    assert.equal(rig.resume().lastError?.class, 'protocol')
    await rig.pass(minute)
    assert.equal(rig.relogin.calls.length, 2)
  })

  test('a rejection in place of an error of the try counts the same', async () => {
    const rig = accountRig({ input: { settings: { ...settings, strikes: 1 } } })
    await rig.toWatching()
    await rig.commandFails('network')
    await rig.pass(500)
    rig.relogin.last().reject(rig.attemptFailed('permission'))
    await settle()
    assert.equal(rig.tags(), 'disabled')
  })
})

describe('what takes it back', () => {
  const ways: Record<string, (rig: AccountRig) => Promise<void>> = {
    'the try went well': async (rig) => {
      await rig.pass(minute)
      rig.relogin.last().resolve({ at: rig.now() })
      await settle()
    },
    'another login of commands went well': (rig) => rig.send({ type: 'command.connected', at: rig.now() }),
    'a check passed': (rig) => rig.send({ type: 'CHECK_PASSED', at: rig.now() }),
  }
  for (const [way, take] of Object.entries(ways)) {
    test(way, async () => {
      const rig = await watchingRig()
      await rig.commandFails('auth_rejected')
      await take(rig)
      assert.equal(rig.tags(), 'ok watching')
      const { lastConnectedAt } = rig.resume()
      assert.deepEqual(rig.resume(), { ...freshResume, lastConnectedAt, condition: { is: 'up', since: startOfTime } })
      assert.equal(rig.context().message, null)
      assert.equal(rig.report.last().input.message, null)
      assert.equal(rig.context().refusals, 0)
      await rig.pass(10 * minute - 1)
      assert.ok(rig.relogin.calls.length <= 1, 'nothing is tried any more')
      assert.equal(rig.watch.runs.length, 1, 'the session was the same all the time')
    })
  }

  test('new credentials: a new session, with a new count', async () => {
    const rig = await watchingRig()
    await rig.commandFails('auth_rejected')
    await rig.send({ type: 'WAKE', reconnect: true, now: rig.now(), jitter: 0.5 })
    assert.equal(rig.tags(), 'connecting ok')
    await rig.toWatching()
    assert.equal(rig.tags(), 'ok watching')
    assert.deepEqual([rig.context().message, rig.resume().strikes], [null, 0])
  })

  test('a login of commands that nothing spoke against changes nothing', async () => {
    const rig = await watchingRig()
    const reports = rig.report.calls.length
    await rig.send({ type: 'command.connected', at: rig.now() })
    assert.equal(rig.tags(), 'ok watching')
    assert.equal(rig.report.calls.length, reports)
  })
})

describe('while the mailbox is read', () => {
  test('what the older session goes on to do takes nothing back', async () => {
    const rig = accountRig()
    await rig.toSyncing()
    await rig.commandFails('auth_rejected')
    assert.equal(rig.tags(), 'held ok syncing')
    await rig.send({ type: 'sync.progress', at: rig.now() })
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    await rig.synced()
    assert.equal(rig.tags(), 'held ok watching')
    assert.equal(rig.context().message, 'it was auth_rejected')
    assert.deepEqual([rig.resume().strikes, rig.resume().attempt], [1, 0])
    await rig.pass(minute)
    assert.equal(rig.relogin.calls.length, 1)
  })

  test('one that was DISABLED is OK when the session obeys, and DISABLED again when a new login is rejected', async () => {
    const rig = accountRig({ input: { status: 'DISABLED' }, resume: { strikes: 3, retryAt: null } })
    await rig.send({ type: 'WAKE', now: rig.now(), jitter: 0.5 })
    await rig.connected()
    await rig.commandFails('connection_limit')
    assert.equal(rig.tags(), 'disabled held syncing')
    await rig.send({ type: 'sync.progress', at: rig.now() })
    assert.equal(rig.tags(), 'held ok syncing')
    assert.deepEqual([rig.resume().strikes, rig.context().message], [0, 'it was connection_limit'])
    const again = accountRig({ input: { status: 'DISABLED' } })
    await again.send({ type: 'WAKE', now: again.now(), jitter: 0.5 })
    await again.connected()
    await again.commandFails('auth_rejected')
    assert.equal(again.tags(), 'disabled')
  })
})

describe('the wait in force', () => {
  test('the end of the session does not shorten the wait after a rejection', async () => {
    const rig = await watchingRig()
    await rig.commandFails('auth_rejected')
    const { retryAt } = rig.resume()
    await rig.pass(1000)
    await rig.watchFails('network')
    assert.equal(rig.tags(), 'ok waiting')
    assert.deepEqual([rig.resume().retryAt, rig.resume().strikes], [retryAt, 1])
    await rig.pass(minute - 1001)
    assert.equal(rig.connect.calls.length, 1)
    await rig.pass(1)
    assert.equal(rig.connect.calls.length, 2)
  })

  test('throttled: no login before its time, whatever happens to the session meanwhile', async () => {
    const ends: readonly ((rig: AccountRig) => Promise<void>)[] = [
      (rig) => rig.watchFails('network'),
      (rig) => rig.watchFails('auth_rejected'),
      (rig) => rig.send({ type: 'CHECK_FAILED', failure: rig.failure('auth_rejected') }),
      (rig) => rig.send({ type: 'WAKE', reconnect: true, now: rig.now(), jitter: 0.5 }),
      async (rig) => {
        rig.watch.last().sendBack({ type: 'watch.rotate', at: rig.now() })
        await settle()
      },
    ]
    for (const end of ends) {
      const rig = await watchingRig()
      await rig.commandFails('throttled', { retryAfterMs: 300_000, jitter: 0 })
      const throttledUntil = rig.now() + 300_000
      assert.equal(rig.tags(), 'held ok watching')
      await rig.send({ type: 'CHECK_PASSED', at: rig.now() })
      assert.equal(rig.tags(), 'held ok watching')
      await rig.pass(1000)
      await end(rig)
      assert.equal(rig.tags(), 'ok throttled waiting')
      assert.deepEqual([rig.context().message, rig.resume().retryAt], ['it was throttled', throttledUntil])
      await rig.pass(throttledUntil - rig.now() - 1)
      assert.equal(rig.connect.calls.length, 1)
      await rig.pass(1)
      assert.equal(rig.connect.calls.length, 2)
    }
  })

  test('a check that decides makes a throttled account DISABLED, and the throttling lasts', async () => {
    const rig = await watchingRig()
    await rig.commandFails('throttled', { retryAfterMs: 300_000, jitter: 0 })
    await rig.send({ type: 'CHECK_FAILED', failure: { ...rig.failure('auth_rejected'), decides: true } })
    assert.equal(rig.tags(), 'disabled throttled waiting')
    assert.equal(rig.context().message, 'it was auth_rejected')
    await rig.pass(299_999)
    assert.equal(rig.connect.calls.length, 1)
    await rig.pass(1)
    assert.equal(rig.tags(), 'connecting disabled')
  })

  test('nobody hears of logins where there is no session', async () => {
    const rig = accountRig()
    await rig.commandFails('auth_rejected')
    await rig.connectFails('network')
    await rig.commandFails('auth_rejected')
    assert.equal(rig.tags(), 'ok waiting')
    assert.equal(rig.resume().strikes, 0)
  })
})
