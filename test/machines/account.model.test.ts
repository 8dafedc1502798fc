/**
 * Random lives of an account: whatever happens in whatever order, the promises hold. The reference below knows the
 * rules in its own words (a count of strikes, a time before which nobody may connect) and is compared after each step.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AttemptFailed, failureClasses, type Failure } from '../../machines/events.ts'
import { isStrike, isThrottled } from '../../machines/account.rules.ts'
import { accountRig, settings, type AccountRig } from './account-rig.ts'
import { settle } from './rig.ts'

const failures = fc.record({
  class: fc.constantFrom(...failureClasses, 'auth_rejected' as const, 'throttled' as const),
  retryAfterMs: fc.option(fc.nat(600_000)),
  jitter: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
})

const steps = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('fail' as const), failure: failures, patient: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('succeed' as const) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(400_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constant(6 * 3_600_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('check' as const), failure: failures }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('command fails' as const), failure: failures }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'PAUSE' as const,
        'RESUME' as const,
        'WAKE' as const,
        'reconnect' as const,
        'progress' as const,
        'rotate' as const,
        'nap' as const,
        'queued' as const,
        'passed' as const,
        'command connects' as const,
        'report fails' as const,
      ),
    }),
  },
)

type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never

/** Fails whatever is under way, as its actor would. */
function fail(rig: AccountRig, failure: Failure): void {
  const snapshot = rig.actor.getSnapshot()
  if (snapshot.hasTag('connecting')) rig.connect.last().reject(new AttemptFailed(failure))
  else if (snapshot.hasTag('syncing')) rig.sync.last().reject(new AttemptFailed(failure))
  else if (snapshot.hasTag('watching')) rig.watch.last().sendBack({ type: 'watch.failed', failure })
}

function succeed(rig: AccountRig): void {
  const at = rig.now()
  const snapshot = rig.actor.getSnapshot()
  if (snapshot.hasTag('connecting')) rig.connect.last().resolve({ at })
  else if (snapshot.hasTag('syncing')) rig.sync.last().resolve({ at })
  else if (snapshot.hasTag('watching')) rig.watch.last().sendBack({ type: 'watch.alive', at })
}

async function take(rig: AccountRig, step: Step): Promise<void> {
  const now = rig.now()
  const moment = { now, jitter: 0.5 }
  switch (step.do) {
    case 'fail':
      // Patient: an account that waits is let to try first.
      if (step.patient) await rig.pass((rig.resume().retryAt ?? now) - now)
      fail(rig, rig.failure(step.failure.class, step.failure))
      break
    case 'succeed':
      succeed(rig)
      break
    case 'pass':
      await rig.pass(step.ms)
      break
    case 'check':
      rig.actor.send({ type: 'CHECK_FAILED', failure: rig.failure(step.failure.class, step.failure) })
      break
    case 'command fails':
      // As the engine does it: while the login of commands is held, none is tried.
      if (rig.actor.getSnapshot().hasTag('held')) await rig.pass((rig.resume().retryAt ?? now) - now)
      await rig.commandFails(step.failure.class, step.failure)
      break
    case 'command connects':
      if (!rig.actor.getSnapshot().hasTag('held')) rig.actor.send({ type: 'command.connected', at: now })
      break
    case 'PAUSE':
      rig.actor.send({ type: 'PAUSE', at: rig.now() })
      break
    case 'nap':
      rig.actor.send({ type: 'PAUSE', at: rig.now() })
      rig.actor.send({ type: 'RESUME', ...moment })
      break
    case 'RESUME':
    case 'WAKE':
      rig.actor.send({ type: step.do, ...moment })
      break
    case 'reconnect':
      rig.actor.send({ type: 'WAKE', reconnect: true, ...moment })
      break
    case 'progress':
      rig.actor.send({ type: 'sync.progress', at: now })
      break
    case 'rotate':
      rig.watch.runs.at(-1)?.sendBack({ type: 'watch.rotate', at: now })
      break
    case 'queued':
      rig.actor.send({ type: 'connect.queued', at: now })
      break
    case 'passed':
      rig.actor.send({ type: 'CHECK_PASSED', at: now })
      break
    case 'report fails':
      rig.report.calls.at(-1)?.reject(new Error('the store is away'))
      break
  }
  await settle()
}

const lives = ['connecting', 'syncing', 'watching', 'waiting', 'paused', 'stopped']

/** Exactly one of ok and disabled, and a word for what it does. */
function assertTagged(rig: AccountRig): void {
  const { tags } = rig.actor.getSnapshot()
  assert.equal(tags.has('ok') !== tags.has('disabled'), true, `tags: ${rig.tags()}`)
  assert.equal(tags.has('disabled'), rig.context().status === 'DISABLED')
  const alive = lives.filter((tag) => tags.has(tag as never))
  assert.ok(alive.length === 1 || (alive.length === 0 && tags.has('disabled')), `tags: ${rig.tags()}`)
}

/**
 * Whether this step, in this state, takes back the strikes: a success of the account's, or a person who starts anew. A
 * session that is open already takes back nothing that a newer login met.
 */
function clears(rig: AccountRig, step: Step): boolean {
  const { tags } = rig.actor.getSnapshot()
  const { refusals, status } = rig.context()
  const isProof = tags.has('syncing') && (refusals === 0 || status === 'DISABLED')
  const resting = (tags.has('waiting') && !tags.has('throttled')) || rig.tags() === 'disabled'
  switch (step.do) {
    case 'succeed':
    case 'progress':
      return isProof
    case 'passed':
      return resting || (tags.has('held') && !isThrottled(rig.context(), rig.now()))
    case 'command connects':
      return refusals > 0 && !tags.has('held') && (tags.has('syncing') || tags.has('watching'))
    case 'WAKE':
      return resting || tags.has('connecting') || (tags.has('syncing') && refusals === 0)
    case 'reconnect':
      if (isThrottled(rig.context(), rig.now())) return false
      return resting || tags.has('connecting') || tags.has('syncing') || tags.has('watching')
    default:
      return false
  }
}

/** Follows the emitted failures: strikes since the last success, and until when the server asked to be left alone. */
function createReference(rig: AccountRig) {
  let strikes = 0
  let throttledUntil = 0
  let seen = 0
  let connects = rig.connect.calls.length
  let relogins = 0
  return {
    afterStep(cleared: boolean) {
      if (cleared) strikes = 0
      const fresh = rig.emitted.slice(seen)
      seen = rig.emitted.length
      for (const call of [...rig.connect.calls.slice(connects), ...rig.relogin.calls.slice(relogins)]) {
        assert.ok(call.at >= throttledUntil, 'logged in although the server had asked for peace')
      }
      connects = rig.connect.calls.length
      relogins = rig.relogin.calls.length
      for (const event of fresh) {
        if (event.type === 'attempt.failed') {
          const { failure } = event
          if (isStrike(failure.class)) strikes += 1
          if (failure.class === 'throttled') {
            const hint = Math.min(failure.retryAfterMs ?? settings.throttleDefaultMs, settings.throttleMaxMs)
            throttledUntil = Math.max(throttledUntil, failure.at + hint)
          }
        } else if (event.status === 'DISABLED') {
          assert.ok(strikes >= settings.strikes, `DISABLED after ${strikes} strikes in a row`)
        }
      }
      if (rig.context().status === 'OK') assert.ok(strikes < settings.strikes, 'still OK')
      assert.equal(rig.resume().strikes, strikes)
    },
  }
}

test('whatever happens, the promises hold', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 60 }), async (life) => {
      const rig = accountRig()
      const reference = createReference(rig)
      for (const step of life) {
        const cleared = clears(rig, step)
        await take(rig, step)
        assertTagged(rig)
        reference.afterStep(cleared)
      }
      assert.deepEqual(rig.errors, [])
      const changes = rig.emitted.flatMap((event) => (event.type === 'status.changed' ? [event.status] : []))
      assert.deepEqual(
        changes,
        changes.map((_, index) => (index % 2 === 0 ? 'DISABLED' : 'OK')),
        'told in turns',
      )
      await rig.pass(settings.reportRetryMs * 128)
      const { status, message, resume } = rig.context()
      const stored = rig.report.calls.at(-1)?.input
      if (stored && rig.context().recorded === rig.context().revision) {
        assert.deepEqual([stored.status, stored.message, stored.resume.strikes], [status, message, resume.strikes])
      }
      rig.actor.send({ type: 'STOP' })
      await settle()
      assert.equal(rig.actor.getSnapshot().status, 'done')
    }),
    { numRuns: 250 },
  )
})

test('a login of commands that failed is always tried again, and never before its time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(failures, { minLength: 1, maxLength: 12 }), async (list) => {
      const rig = accountRig()
      await rig.toWatching()
      for (const [index, failure] of list.entries()) {
        await rig.commandFails(failure.class, failure)
        if (rig.context().status === 'DISABLED') return
        const { retryAt } = rig.resume()
        assert.ok(retryAt !== null && retryAt >= rig.now())
        assert.equal(rig.tags(), 'held ok watching')
        const hear = () => rig.watch.last().sendBack({ type: 'watch.alive', at: rig.now() })
        hear()
        while (retryAt - rig.now() > settings.watchDeadlineMs / 2) {
          await rig.pass(settings.watchDeadlineMs / 2)
          hear()
        }
        assert.equal(rig.relogin.calls.length, index)
        await rig.pass(retryAt - rig.now())
        assert.equal(rig.relogin.calls.length, index + 1)
      }
    }),
    { numRuns: 60 },
  )
})

test('an account that nobody touches always tries again', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(failures, { minLength: 1, maxLength: 12 }), async (list) => {
      const rig = accountRig()
      for (const failure of list) {
        const before = rig.connect.calls.length
        fail(rig, rig.failure(failure.class, failure))
        await settle()
        const { retryAt } = rig.resume()
        assert.ok(retryAt !== null && retryAt >= rig.now())
        await rig.pass(retryAt - rig.now())
        assert.equal(rig.connect.calls.length, before + 1)
      }
    }),
    { numRuns: 60 },
  )
})
