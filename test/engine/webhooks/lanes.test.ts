/**
 * The lanes against a model: whatever happens in whatever order, rows of an account and lane go out in order, each once, none left,
 * and what waits for its time holds up no more than it may.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import type { OutboxRecord } from '../../../engine/store/records.ts'
import { type ReadPlan, createLanes } from '../../../engine/webhooks/lanes.ts'
import { laneRow as row } from './lane-row.ts'

/** What the store answers: pending rows in order, without some accounts, or without their historical rows. */
function pending(stored: readonly OutboxRecord[], done: ReadonlySet<string>, plan: ReadPlan): OutboxRecord[] {
  const { exceptAccounts, exceptHistorical, limit } = plan
  return stored
    .filter((one) => !done.has(one.id) && !exceptAccounts.includes(one.accountId ?? ''))
    .filter((one) => one.lane === 0 || !exceptHistorical.includes(one.accountId ?? ''))
    .sort((a, b) => a.lane - b.lane || a.seq - b.seq)
    .slice(0, limit)
}

type Step =
  | { readonly do: 'store' | 'store unseen' | 'store early'; readonly account: string; readonly lane: 0 | 1 }
  | { readonly do: 'offer' | 'take' | 'finish' | 'fail' | 'read' | 'endRead' | 'reset' | 'tick' }

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom('store' as const, 'store' as const, 'store unseen' as const, 'store early' as const),
        account: fc.constantFrom('a', 'b', 'c'),
        lane: fc.constantFrom(0 as const, 1 as const),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constantFrom('take' as const, 'finish' as const, 'read' as const, 'endRead' as const, 'tick' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('fail' as const, 'reset' as const, 'offer' as const) }) },
  ),
  { maxLength: 120, size: 'max' },
)

interface World {
  readonly lanes: ReturnType<typeof createLanes>
  readonly stored: OutboxRecord[]
  /** In the store, and not offered yet. */
  readonly early: OutboxRecord[]
  readonly done: Set<string>
  readonly underWay: OutboxRecord[]
  readonly sent: OutboxRecord[]
  readonly due: Map<string, number>
  reading: { plan: ReadPlan; rows: OutboxRecord[] } | null
  now: number
}

function play(world: World, step: Step): void {
  const { lanes, underWay, stored, early, done, due } = world
  // an account has one writer: it ends one step before it begins the next
  if (step.do === 'offer' || 'account' in step) for (const one of early.splice(0)) lanes.offer(one)
  if (step.do === 'store early') {
    const made = row(step.account, stored.length, step.lane)
    stored.push(made)
    early.push(made)
  } else if (step.do === 'store') {
    const made = row(step.account, stored.length, step.lane)
    stored.push(made)
    lanes.offer(made)
  } else if (step.do === 'store unseen') {
    stored.push(row(step.account, stored.length, step.lane))
    lanes.markBehind()
  } else if (step.do === 'take') {
    const taken = lanes.take({ historical: true })
    if (taken === null) return
    assert.ok(!underWay.some((one) => one.accountId === taken.accountId), 'one at a time per account')
    assert.ok(!done.has(taken.id), 'never twice')
    const older = stored.filter(
      (one) => one.accountId === taken.accountId && one.lane === taken.lane && one.seq < taken.seq,
    )
    assert.ok(
      older.every((one) => done.has(one.id)),
      'in order',
    )
    assert.ok((due.get(taken.id) ?? 0) <= world.now, 'not before its time')
    const live = stored.filter((one) => one.accountId === taken.accountId && one.lane === 0 && !done.has(one.id))
    assert.ok(taken.lane === 0 || !live.some((one) => (due.get(one.id) ?? 0) > world.now), 'live rows first')
    underWay.push(taken)
  } else if (step.do === 'finish') {
    const [first] = underWay.splice(0, 1)
    if (first === undefined) return
    done.add(first.id)
    lanes.finish(first)
  } else if (step.do === 'fail') {
    const [first] = underWay.splice(0, 1)
    if (first === undefined) return
    due.set(first.id, world.now + 5)
    lanes.block(first, world.now + 5)
  } else if (step.do === 'read') {
    if (world.reading !== null || !lanes.wantsRead()) return
    const plan = lanes.beginRead()
    world.reading = {
      plan,
      rows: pending(stored, done, plan).map((one) => ({
        ...one,
        dueAt: due.get(one.id) ?? 1,
      })),
    }
  } else if (step.do === 'endRead') {
    if (world.reading === null) return
    lanes.endRead(world.reading.rows, world.reading.plan, world.now)
    world.reading = null
  } else if (step.do === 'reset') {
    lanes.reset()
    world.reading = null
  } else {
    world.now += 3
    lanes.release(world.now)
  }
}

/** Goes on until nothing more happens without time going on. */
function settle(world: World): void {
  for (let turn = 0; turn < 500; turn += 1) {
    for (const rest of ['read', 'endRead', 'take', 'finish'] as const) play(world, { do: rest })
  }
}

/** What has not gone out though nothing before it waits for its time: live rows wait for live ones alone. */
function forgotten({ stored, done, due, now }: World): OutboxRecord[] {
  const left = stored.filter((one) => !done.has(one.id))
  return left.filter((row) => {
    const before = left.filter((one) => one.accountId === row.accountId && one.lane <= row.lane)
    return !before.some((one) => (due.get(one.id) ?? 0) > now)
  })
}

suite('lanes', () => {
  test('order, once, nothing left, bounded', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 6 }), (script, capacity) => {
        const world: World = {
          lanes: createLanes(capacity),
          stored: [],
          early: [],
          done: new Set(),
          underWay: [],
          sent: [],
          due: new Map(),
          reading: null,
          now: 10,
        }
        for (const step of script) play(world, step)
        play(world, { do: 'offer' })
        settle(world)
        assert.deepEqual(forgotten(world), [], 'nothing waits that need not')
        for (let turn = 0; turn < 2000 && world.done.size < world.stored.length; turn += 1) {
          for (const rest of ['tick', 'read', 'endRead', 'take', 'finish'] as const) play(world, { do: rest })
        }
        assert.equal(world.done.size, world.stored.length, 'every row went out')
      }),
      { numRuns: 1500 },
    )
  })

  test('live rows go before historical ones, also when memory is full of those', () => {
    const lanes = createLanes(4)
    const old = [0, 1, 2, 3].map((seq) => row(`h${seq}`, seq, 1))
    lanes.endRead(old, lanes.beginRead(), 10)
    lanes.endRead([], { exceptAccounts: [], exceptHistorical: [], limit: 4 }, 10)
    lanes.offer(row('live', 9))
    assert.equal(lanes.take({ historical: true })?.accountId, 'live')
  })

  test('live rows go before historical ones that are in memory already, of their account and of others', () => {
    const lanes = createLanes(20)
    const old = [row('a', 0, 1), row('a', 1, 1), row('b', 2, 1), row('c', 3, 1)]
    lanes.endRead(old, lanes.beginRead(), 10)
    for (const live of [row('c', 4), row('a', 5), row('d', 6)]) lanes.offer(live)
    const taken = Array.from({ length: 4 }, () => lanes.take({ historical: true }))
    assert.deepEqual(
      taken.map((one) => `${one?.accountId} ${one?.lane}`),
      ['a 0', 'c 0', 'd 0', 'b 1'],
    )
    assert.equal(lanes.take({ historical: true }), null, 'the others are busy')
    for (const one of taken) if (one !== null) lanes.finish(one)
    lanes.offer(row('c', 7))
    assert.deepEqual(
      [0, 1, 2].map(() => lanes.take({ historical: true })?.seq),
      [7, 0, undefined],
    )
    // The second of account a waits for its first.
    assert.equal(lanes.take({ historical: true }), null)
  })

  test('a live row that finds no room beside older ones of its account is read before them', () => {
    const lanes = createLanes(2)
    const [first, second, live] = [row('a', 0, 1), row('a', 1, 1), row('a', 2)]
    lanes.endRead([first, second], lanes.beginRead(), 10)
    lanes.offer(live)
    assert.equal(lanes.take({ historical: true }), null, 'nothing goes before it')
    assert.equal(lanes.wantsRead(), true)
    lanes.endRead([live, first], lanes.beginRead(), 10)
    assert.equal(lanes.take({ historical: true }), live)
  })

  test('a historical row that waits holds up what is historical in its account, and nothing else', () => {
    const lanes = createLanes(9)
    const [failed, next, other] = [row('a', 0, 1), row('a', 1, 1), row('b', 2, 1)]
    lanes.endRead([failed, next, other], lanes.beginRead(), 10)
    assert.equal(lanes.take({ historical: true }), failed)
    lanes.block(failed, 100)
    assert.equal(lanes.take({ historical: true }), other)
    lanes.finish(other)
    const plan = lanes.beginRead()
    assert.deepEqual([plan.exceptAccounts, plan.exceptHistorical], [[], ['a']])
    lanes.endRead([], plan, 10)
    const live = row('a', 3)
    lanes.offer(live)
    assert.equal(lanes.take({ historical: true }), live)
    lanes.finish(live)
    assert.equal(lanes.take({ historical: true }), null)
    assert.equal(lanes.nextRelease(), 100)
    lanes.release(100)
    assert.deepEqual(lanes.beginRead().exceptHistorical, [])
  })
})
