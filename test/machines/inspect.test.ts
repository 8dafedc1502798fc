import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createActor } from 'xstate'
import { createStepRing, eventName, rootStep, stepLimit } from '../../engine/observe/steps.ts'
import { AttemptFailed, type Failure } from '../../machines/events.ts'
import { accountMachine } from '../../machines/account.machine.ts'
import { connectTokenMachine } from '../../machines/connect-token.machine.ts'
import { webhookMachine } from '../../machines/webhook.machine.ts'
import { describeAccount } from '../../machines/view.ts'
import { freshResume, settings } from './account-rig.ts'
import { settle, simulatedTime } from './rig.ts'

const failure: Failure = {
  class: 'auth_rejected',
  message: 'LOGIN bob hunter2 was refused',
  at: 1,
  retryAfterMs: null,
  jitter: 0.5,
}

test('the ring keeps the last steps, oldest first', () => {
  const ring = createStepRing()
  for (let step = 0; step < stepLimit + 50; step += 1) ring.add(step, `e${step}`, 'watching')
  const steps = ring.list()
  assert.equal(steps.length, stepLimit)
  assert.deepEqual(steps[0], { at: 50, event: 'e50', state: 'watching', ms: 1 })
  assert.deepEqual(steps.at(-1), { at: 149, event: 'e149', state: 'watching', ms: null })
})

test('equal steps in a row are one with a count and the latest time', () => {
  const ring = createStepRing(3)
  ring.add(1, 'start', 'syncing')
  for (let at = 2; at < 1000; at += 1) ring.add(at, 'sync.progress', 'syncing')
  ring.add(1000, 'sync.progress', 'watching')
  assert.deepEqual(ring.list(), [
    { at: 1, event: 'start', state: 'syncing', ms: 1 },
    { at: 999, event: 'sync.progress ×998', state: 'syncing', ms: 998 },
    { at: 1000, event: 'sync.progress', state: 'watching', ms: null },
  ])
})

test('event names: in words, with the class of a failure, and nothing else of the content', () => {
  const rows: [event: { type: string }, name: string][] = [
    [{ type: 'xstate.init' }, 'start'],
    [{ type: 'xstate.done.actor.connect' }, 'connect done'],
    [{ type: 'xstate.error.actor.connect', ...{ error: new AttemptFailed(failure) } }, 'connect failed: auth_rejected'],
    [{ type: 'xstate.error.actor.sync', ...{ error: new Error('hunter2') } }, 'sync failed'],
    [{ type: 'xstate.after.connectDeadline.account.running.life.connecting' }, 'after connectDeadline'],
    [{ type: 'watch.failed', ...{ failure } }, 'watch.failed: auth_rejected'],
    [{ type: 'delivery.failed', ...{ failure: { message: 'x', permanent: 'gone' } } }, 'delivery.failed: gone'],
    [{ type: 'watch.failed', ...{ failure: { class: 'LOGIN bob hunter2' } } }, 'watch.failed'],
    [{ type: 'hunter2 is the password' }, 'event'],
  ]
  for (const [event, name] of rows) assert.equal(eventName(event), name)
})

test('every event of the charts has a short name of its own, so that there are few', () => {
  const types = [accountMachine, connectTokenMachine, webhookMachine].flatMap(({ events }): string[] => events)
  const names = new Set(types.map((type) => eventName({ type })))
  assert.ok(types.includes('xstate.after.drainDeadline.webhook.running.work.active.draining.claiming'))
  assert.ok(!names.has('event') && names.size > 40, [...names].join())
  for (const name of names) assert.match(name, /^[\w.]{1,20}(?: (?:done|failed)| \w{4,20})?$/)
})

test('only snapshots of the root are steps', () => {
  const event = { type: 'WAKE' }
  const at = (type: string, sessionId: string) => ({ type, rootId: 'x:0', actorRef: { sessionId }, event })
  assert.equal(rootStep(at('@xstate.snapshot', 'x:0')), event)
  assert.equal(rootStep(at('@xstate.snapshot', 'x:1')), null)
  assert.equal(rootStep(at('@xstate.event', 'x:0')), null)
})

test('a real chart leaves readable steps without a secret', async () => {
  const { clock, now } = simulatedTime()
  const ring = createStepRing()
  const actor = createActor(accountMachine, {
    clock,
    input: {
      accountId: 'a1',
      settings,
      now: now(),
      jitter: 0.5,
      status: 'OK',
      statusMessage: null,
      paused: false,
      resume: freshResume,
    },
    inspect: (inspected) => {
      const event = rootStep(inspected)
      if (event) ring.add(now(), eventName(event), describeAccount(actor.getSnapshot()).state)
    },
  })
  actor.start()
  await settle()
  actor.send({ type: 'CHECK_FAILED', failure })
  await settle()
  actor.send({ type: 'PAUSE', at: 0 })
  actor.stop()
  const steps = ring.list().map(({ event, state }) => `${event} → ${state}`)
  for (const step of [
    'start → connecting',
    'connect failed → waiting',
    'CHECK_FAILED: auth_rejected → waiting',
    'PAUSE → paused',
  ]) {
    assert.ok(steps.includes(step), `${step} in ${steps.join(', ')}`)
  }
  assert.doesNotMatch(JSON.stringify(ring.list()), /hunter2/)
})
