import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assign, createActor, type EventObject, SimulatedClock, setup } from 'xstate'
import { ActorRegistry, type PoolActor, systemClock } from '../../engine/observe/registry.ts'
import type { InspectedEvent } from '../../engine/observe/steps.ts'
import { createMetrics } from '../../engine/observe/metrics.ts'
import { settle } from './rig.ts'

type Event = { type: 'STEP' } | { type: 'BREAK' } | { type: 'STOP' } | { type: 'SAY'; text: string }

/** The least chart that can do what a registry has to cope with: live, end when asked or not at all, and die. */
const machine = setup({
  types: {
    context: {} as { steps: number },
    events: {} as Event,
    input: {} as { start: number; stubborn?: boolean; broken?: boolean },
  },
  actions: {
    breakDown: () => {
      throw new Error('token=hunter2')
    },
  },
}).createMachine({
  context: ({ input }) => {
    if (input.broken) throw new Error('broken from the start')
    return { steps: input.start }
  },
  initial: 'live',
  states: {
    live: {
      tags: 'ok',
      on: {
        STEP: { actions: assign({ steps: ({ context }) => context.steps + 1 }) },
        BREAK: { actions: 'breakDown' },
        STOP: 'ended',
      },
    },
    ended: { type: 'final' },
  },
})

interface Snapshot {
  readonly context: { readonly steps: number }
}

type Input = { start: number; stubborn?: boolean; broken?: boolean }

function pool(load: (id: string) => Promise<Input | null> = () => Promise.resolve({ start: 100 })) {
  const clock = new SimulatedClock()
  const metrics = createMetrics()
  const lines: { level: string; fields: Record<string, unknown> }[] = []
  const write = (level: string) => (fields: object) => {
    lines.push({ level, fields: { ...fields } })
  }
  const create = (input: Input, inspect: (inspected: InspectedEvent) => void): PoolActor<Event, Snapshot> => {
    const actor = createActor(machine, { input, inspect })
    if (!input.stubborn) return actor
    return {
      start: () => actor.start(),
      stop: () => actor.stop(),
      send: () => undefined,
      getSnapshot: () => actor.getSnapshot(),
      subscribe: (observer) => actor.subscribe(observer),
    }
  }
  const registry = new ActorRegistry<Input, Event, Snapshot>({
    kind: 'account',
    create,
    load,
    describe: ({ context }) => ({
      tags: ['ok'],
      state: `step ${context.steps}`,
      next: null,
      lastError: null,
      attempt: 0,
    }),
    active: ({ context }) => [`live.${context.steps}`],
    stopTimeoutMs: 1000,
    restartMaxMs: 8000,
    log: { error: write('error'), warn: write('warn') },
    metrics,
    clock: {
      now: () => clock.now(),
      after: (ms, run) => {
        const timer = clock.setTimeout(run, ms)
        return () => clock.clearTimeout(timer)
      },
    },
  })
  const pass = async (ms: number) => {
    clock.increment(ms)
    await settle()
  }
  const deaths = async () => (await metrics.actorDeaths.get()).values[0]?.value ?? 0
  return { registry, clock, lines, pass, deaths }
}

test('actors are started, reached, seen and stopped by id', async () => {
  const { registry } = pool()
  registry.start('a', { start: 1 })
  registry.start('b', { start: 2 })
  assert.equal(registry.send('a', { type: 'STEP' }), true)
  assert.equal(registry.send('nobody', { type: 'STEP' }), false)
  assert.equal(registry.snapshot('a')?.context.steps, 2)
  assert.equal(registry.snapshot('nobody'), null)
  assert.equal(registry.view('nobody'), null)
  const facts = { id: 'a', tags: ['ok'], state: 'step 2', since: 0, next: null, lastError: null, attempt: 0 }
  assert.deepEqual(registry.facts()[0], facts)
  assert.deepEqual(registry.view('a'), {
    ...facts,
    active: ['live.2'],
    steps: [
      { at: 0, event: 'start', state: 'step 1', ms: 0 },
      { at: 0, event: 'STEP', state: 'step 2', ms: null },
    ],
    last: [],
    timers: [],
  })
  assert.deepEqual(
    registry.facts().map(({ id }) => id),
    ['a', 'b'],
  )
  assert.deepEqual([...registry.countTags()], [['ok', 2]])
  await registry.stop('a')
  await registry.stop('a')
  assert.deepEqual(
    [registry.view('a') !== null, registry.view('b') !== null, registry.facts().length],
    [false, true, 1],
  )
  await registry.stopAll()
  assert.equal(registry.facts().length, 0)
})

test('a state lasts until another one follows, also while it dies and starts again', async () => {
  const { registry, pass } = pool()
  registry.start('a', { start: 1 })
  const since = () => registry.view('a')?.since
  await pass(500)
  assert.equal(since(), 0)
  registry.send('a', { type: 'SAY', text: 'nothing' })
  await pass(500)
  assert.equal(since(), 0)
  registry.send('a', { type: 'STEP' })
  assert.equal(since(), 1000)
  await pass(200)
  registry.send('a', { type: 'BREAK' })
  assert.deepEqual([since(), registry.view('a')?.active], [1200, []])
  await pass(1000)
  assert.deepEqual([registry.view('a')?.state, since()], ['step 100', 2200])
})

test('starting an id again replaces the actor and keeps its steps', () => {
  const { registry } = pool()
  registry.start('a', { start: 1 })
  registry.start('a', { start: 5 })
  assert.equal(registry.facts().length, 1)
  assert.equal(registry.snapshot('a')?.context.steps, 5)
  assert.deepEqual(
    registry
      .view('a')
      ?.steps.filter(({ event }) => event === 'start')
      .map(({ state }) => state),
    ['step 1', 'step 5'],
  )
})

test('an actor that ends by itself leaves the registry', () => {
  const { registry } = pool()
  registry.start('a', { start: 1 })
  registry.send('a', { type: 'STOP' })
  assert.equal(registry.view('a') !== null, false)
})

test('an actor that does not end when asked is ended after the timeout', async () => {
  const { registry, pass } = pool()
  registry.start('a', { start: 1, stubborn: true })
  let stopped = false
  const stopping = registry.stop('a').then(() => {
    stopped = true
  })
  await pass(999)
  assert.equal(stopped, false)
  await pass(1)
  await stopping
  assert.equal(stopped, true)
})

test('a death is logged, counted and seen, touches nobody else, and is followed by a restart from the record', async () => {
  const { registry, lines, pass, deaths } = pool()
  registry.start('a', { start: 1 })
  registry.start('b', { start: 1 })
  registry.send('a', { type: 'BREAK' })
  assert.equal(await deaths(), 1)
  const [line] = lines
  assert.equal(line?.level, 'error')
  assert.deepEqual([line.fields['kind'], line.fields['id'], line.fields['restartMs']], ['account', 'a', 1000])
  const view = registry.view('a')
  assert.equal(view?.state, 'dead')
  assert.deepEqual(view.next, { what: 'starts again', at: 1000 })
  assert.doesNotMatch(JSON.stringify(view), /hunter2/)
  assert.equal(registry.send('a', { type: 'STEP' }), false)
  assert.equal(registry.view('a') !== null, true)
  assert.deepEqual(Object.fromEntries(registry.countTags()), { dead: 1, ok: 1 })
  assert.equal(registry.send('b', { type: 'STEP' }), true)
  await pass(999)
  assert.equal(registry.snapshot('a'), null)
  await pass(1)
  assert.equal(registry.snapshot('a')?.context.steps, 100)
  assert.deepEqual(
    registry
      .view('a')
      ?.steps.map(({ event }) => event)
      .filter((event) => event !== 'BREAK'),
    ['start', 'died', 'start'],
  )
})

test('the back-off doubles while deaths follow each other, and begins anew after a long life', async () => {
  const { registry, lines, pass } = pool()
  registry.start('a', { start: 1 })
  for (const afterMs of [1000, 2000, 4000, 8000, 8000]) {
    registry.send('a', { type: 'BREAK' })
    assert.equal(lines.at(-1)?.fields['restartMs'], afterMs)
    await pass(afterMs)
    assert.equal(registry.snapshot('a')?.context.steps, 100)
  }
  await pass(16_000)
  registry.send('a', { type: 'BREAK' })
  assert.equal(lines.at(-1)?.fields['restartMs'], 1000)
})

test('a record that cannot be read is read again later; one that is gone ends it', async () => {
  const answers: (() => Promise<Input | null>)[] = [
    () => Promise.reject(new Error('the store is away')),
    () => Promise.resolve(null),
  ]
  const { registry, lines, pass, deaths } = pool(() => answers.shift()?.() ?? Promise.resolve(null))
  registry.start('a', { start: 1 })
  registry.send('a', { type: 'BREAK' })
  await pass(1000)
  assert.equal(lines.at(-1)?.level, 'warn')
  assert.equal(registry.view('a')?.next?.at, 2000)
  await pass(1000)
  assert.equal(registry.view('a') !== null, false)
  assert.equal(await deaths(), 1)
})

test('an actor that cannot even be made is a death like any other', async () => {
  const { registry, pass, deaths } = pool()
  registry.start('a', { start: 1, broken: true })
  assert.equal(registry.view('a')?.state, 'dead')
  assert.equal(await deaths(), 1)
  await pass(1000)
  assert.equal(registry.snapshot('a')?.context.steps, 100)
})

test('stop and start cancel a restart that is due', async () => {
  const { registry, pass } = pool()
  registry.start('a', { start: 1 })
  registry.send('a', { type: 'BREAK' })
  await registry.stop('a')
  await pass(10_000)
  assert.equal(registry.view('a') !== null, false)
  registry.start('b', { start: 1 })
  registry.send('b', { type: 'BREAK' })
  registry.start('b', { start: 7 })
  await pass(10_000)
  assert.equal(registry.snapshot('b')?.context.steps, 7)
})

test('a restart that loses the race against stop or start does nothing', async () => {
  const { promise, resolve } = Promise.withResolvers<Input>()
  const { registry, pass } = pool(() => promise)
  registry.start('a', { start: 1 })
  registry.send('a', { type: 'BREAK' })
  await pass(1000)
  registry.start('a', { start: 9 })
  resolve({ start: 100 })
  await settle()
  assert.equal(registry.snapshot('a')?.context.steps, 9)
})

test('the system clock runs and cancels', async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const before = systemClock.now()
  systemClock.after(1, () => assert.fail('cancelled'))()
  systemClock.after(5, () => resolve(null))
  await promise
  assert.ok(systemClock.now() - before >= 4)
})

test('the last transitions of each region, and the timers that run, are those of the machine', async () => {
  const life = {
    initial: 'dialing',
    states: {
      dialing: { on: { FAIL: 'deciding' } },
      deciding: { always: 'waiting' },
      waiting: { after: { rest: 'dialing' }, on: { HEAR: {} } },
    },
  } as const
  const records = {
    initial: 'clean',
    states: { clean: { on: { FAIL: 'writing' } }, writing: { on: { DONE: 'clean' } } },
  } as const
  const chart = setup({ delays: { rest: 40_000 } }).createMachine({
    id: 'pair',
    initial: 'on',
    states: { on: { type: 'parallel', states: { life, records } } },
  })
  const clock = new SimulatedClock()
  const registry = new ActorRegistry<null, EventObject, object>({
    kind: 'account',
    create: (_input, inspect) => createActor(chart, { inspect, clock }),
    load: () => Promise.resolve(null),
    describe: () => ({ tags: [], state: '', next: null, lastError: null, attempt: 0 }),
    active: () => [],
    stopTimeoutMs: 1,
    restartMaxMs: 1,
    log: { error: assert.fail, warn: assert.fail },
    metrics: createMetrics(),
  })
  registry.start('a', null)
  const before = Date.now()
  for (const type of ['FAIL', 'HEAR', 'DONE']) registry.send('a', { type })
  const { last = [], timers = [] } = registry.view('a') ?? {}
  assert.deepEqual(
    last.map(({ from, event, to }) => `${from} ${event} ${to}`),
    [
      'on.life.dialing FAIL on.life.deciding',
      'on.life.deciding  on.life.waiting',
      'on.records.writing DONE on.records.clean',
    ],
  )
  const [{ at, ...timer } = assert.fail('no timer'), ...more] = timers
  assert.deepEqual([timer, more], [{ from: 'on.life.waiting', event: 'after rest' }, []])
  assert.ok(at >= before + 40_000 && at <= Date.now() + 40_000, String(at))
  clock.increment(40_000)
  await settle()
  assert.deepEqual(registry.view('a')?.timers, [])
  registry.start('a', null)
  assert.deepEqual(registry.view('a')?.last, [])
})
