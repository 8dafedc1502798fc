import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createActor, SimulatedClock } from 'xstate'
import { accountMachine } from '../../machines/account.machine.ts'
import { describeAccount } from '../../machines/view.ts'
import { accountCoverage, accountRig, freshResume, settings } from './account-rig.ts'
import { settle, startOfTime } from './rig.ts'
import './account-online.scenarios.ts'
import './account-condition.scenarios.ts'
import './account-logins.scenarios.ts'
import './account-offline.scenarios.ts'
import './account-records.scenarios.ts'

test('a chart without its actors fails through its own paths', async () => {
  const clock = new SimulatedClock()
  const input = {
    accountId: 'a1',
    settings,
    now: startOfTime,
    jitter: 0.5,
    status: 'OK',
    statusMessage: null,
    paused: false,
    resume: freshResume,
  } as const
  const actor = createActor(accountMachine, { clock, input })
  actor.subscribe({ error: () => assert.fail('the actor died') })
  actor.start()
  await settle()
  assert.equal(actor.getSnapshot().hasTag('waiting'), true)
  actor.stop()
})

test('a description has words and times for every state', async () => {
  const rig = accountRig()
  const seen: string[] = []
  const note = () => seen.push(describeAccount(rig.actor.getSnapshot()).state)
  note()
  await rig.send({ type: 'connect.queued', at: rig.now() })
  note()
  await rig.toSyncing()
  note()
  await rig.synced()
  note()
  await rig.watchFails('throttled')
  note()
  const facts = describeAccount(rig.actor.getSnapshot())
  assert.deepEqual(facts.lastError, { class: 'throttled', message: 'it was throttled', at: rig.now() })
  assert.equal(facts.attempt, 1)
  assert.deepEqual(facts.tags, ['ok', 'throttled', 'waiting'])
  await rig.send({ type: 'PAUSE', at: rig.now() })
  note()
  await rig.send({ type: 'STOP' })
  note()
  assert.deepEqual(seen, ['connecting', 'queued', 'syncing', 'watching', 'throttled', 'paused', 'stopped'])
  assert.equal(describeAccount(accountRig({ input: { status: 'DISABLED' } }).actor.getSnapshot()).state, 'disabled')
})

test('every transition of the chart is taken by one of these tests', () => {
  assert.ok(accountCoverage.size > 50)
  assert.deepEqual(accountCoverage.untaken(), [])
})
