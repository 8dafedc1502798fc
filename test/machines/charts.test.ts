/** The charts as data say what the machines are: every state, and the states that an actor is in are among them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createActor, type AnyStateMachine, type AnyStateNode } from 'xstate'
import { accountMachine } from '../../machines/account.machine.ts'
import { activeStates, charts, type ChartState } from '../../machines/view.ts'
import { connectTokenMachine } from '../../machines/connect-token.machine.ts'
import { webhookMachine } from '../../machines/webhook.machine.ts'
import { freshResume, settings } from './account-rig.ts'

const machines: readonly [keyof typeof charts, AnyStateMachine][] = [
  ['account', accountMachine],
  ['webhook', webhookMachine],
  ['connectToken', connectTokenMachine],
]

const nodes = (node: AnyStateNode): AnyStateNode[] => [node, ...Object.values(node.states).flatMap(nodes)]
const all = (state: ChartState): ChartState[] => [state, ...state.children.flatMap(all)]

function at(path: string): ChartState {
  const found = all(charts.account).find((state) => state.path === path)
  assert(found, path)
  return found
}

for (const [name, machine] of machines) {
  test(`the chart of ${name} lists exactly the states of the machine`, () => {
    const ids = nodes(machine.root).map(({ id }) => id.split('.').slice(1).join('.'))
    const paths = all(charts[name]).map(({ path }) => path)
    assert.deepEqual(paths.toSorted(), ids.toSorted())
    assert.equal(new Set(paths).size, paths.length)
  })

  test(`every target and every first state of the ${name} chart is one of its states`, () => {
    const paths = new Set(all(charts[name]).map(({ path }) => path))
    for (const { transitions, initial, type, children } of all(charts[name])) {
      for (const { targets } of transitions) for (const target of targets) assert(paths.has(target), target)
      assert.equal(initial !== null, type === 'compound')
      if (initial !== null) assert(children.some(({ path }) => path === initial))
    }
  })
}

test('types, timers, actors, conditions and events are those of the machine', () => {
  assert.deepEqual([charts.account.path, charts.account.type, charts.account.initial], ['', 'compound', 'running'])
  assert.equal(at('running').type, 'parallel')
  assert.equal(at('stopped').type, 'final')
  assert.equal(at('running.life').initial, 'running.life.starting')
  const connecting = at('running.life.connecting')
  assert.deepEqual(connecting.invokes, ['connect'])
  const done = { event: 'connect done', targets: ['running.life.online'], guard: null }
  assert.deepEqual(
    connecting.transitions.find(({ event }) => event === 'connect done'),
    done,
  )
  assert.deepEqual(
    connecting.transitions.filter(({ event }) => event === 'WAKE').map(({ guard }) => guard),
    ['wantsNewSession', null],
  )
  assert.deepEqual(at('running.life.connecting.dialing').after, ['connectDeadline'])
  const wait = { event: 'after wait', targets: ['running.life.connecting'], guard: 'hasProbe' }
  assert.deepEqual(
    at('running.life.disabled').transitions.find(({ event }) => event === 'after wait'),
    wait,
  )
  const first = { event: '', targets: ['running.life.paused'], guard: 'startsPaused' }
  assert.deepEqual(at('running.life.starting').transitions[0], first)
})

test('the active states of an actor are innermost states of the chart', () => {
  const input = { accountId: 'a', settings, now: 0, jitter: 0, status: 'OK', statusMessage: null } as const
  const resume = { ...freshResume, condition: { is: 'paused', since: 0 } } as const
  const actor = createActor(accountMachine, { input: { ...input, paused: true, resume } }).start()
  const active = activeStates(actor.getSnapshot().value)
  assert.deepEqual(active.toSorted(), ['running.life.paused', 'running.records.clean', 'running.status.ok'])
  for (const path of active) assert.equal(at(path).children.length, 0)
  actor.stop()
})
