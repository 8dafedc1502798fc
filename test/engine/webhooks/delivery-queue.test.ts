/**
 * The rows that a channel has read, against a model: whatever happens in whatever order, rows of an account and lane go
 * out in order, each once, none left, and what waits for its time holds up no more than it may.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { readConfig } from '../../../engine/config.ts'
import { silentLogger } from '../../../engine/observe/log.ts'
import type { OutboxRecord } from '../../../engine/store/records.ts'
import { Channel } from '../../../engine/webhooks/channel.ts'
import { DeliveryQueue, type ReadPlan } from '../../../engine/webhooks/delivery-queue.ts'
import { until } from '../../support/until.ts'
import { laneRow as row } from './lane-row.ts'

/** Pending rows in order, without some accounts, as the store answers. */
function pending(stored: readonly OutboxRecord[], done: ReadonlySet<string>, plan: ReadPlan): OutboxRecord[] {
  const { exceptAccounts, limit } = plan
  return stored
    .filter((one) => !done.has(one.id) && !exceptAccounts.includes(one.accountId ?? ''))
    .sort((a, b) => a.lane - b.lane || a.seq - b.seq)
    .slice(0, limit)
}

type Step =
  | { readonly do: 'store' | 'store unseen'; readonly account: string; readonly lane: 0 | 1 }
  | { readonly do: 'take' | 'finish' | 'fail' | 'read' | 'endRead' | 'reset' | 'tick' | 'hand' | 'endHand' }

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom('store' as const, 'store' as const, 'store unseen' as const),
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
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constantFrom('fail' as const, 'fail' as const, 'reset' as const, 'hand' as const, 'endHand' as const),
      }),
    },
  ),
  { maxLength: 120, size: 'max' },
)

interface World {
  readonly lines: DeliveryQueue
  readonly stored: OutboxRecord[]
  readonly done: Set<string>
  readonly underWay: OutboxRecord[]
  readonly byHand: OutboxRecord[]
  readonly due: Map<string, number>
  reading: { plan: ReadPlan; rows: OutboxRecord[] } | null
  now: number
}

function play(world: World, step: Step): void {
  const { lines, underWay, byHand, stored, done, due } = world
  if (step.do === 'store') {
    const made = row(step.account, stored.length, step.lane)
    stored.push(made)
    lines.stored([made])
  } else if (step.do === 'store unseen') {
    stored.push(row(step.account, stored.length, step.lane))
    lines.readAgain()
  } else if (step.do === 'take') {
    const taken = lines.take({ historical: true })
    if (taken === null) return
    assert.ok(![...underWay, ...byHand].some((one) => one.accountId === taken.accountId), 'one at a time per account')
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
    lines.finish(first)
  } else if (step.do === 'fail') {
    const [first] = underWay.splice(0, 1)
    if (first === undefined) return
    due.set(first.id, world.now + 5)
    lines.block(first, world.now + 5)
  } else if (step.do === 'read') {
    if (world.reading !== null || !lines.wantsRead()) return
    const plan = lines.beginRead()
    world.reading = {
      plan,
      rows: pending(stored, done, plan).map((one) => ({
        ...one,
        dueAt: due.get(one.id) ?? 1,
      })),
    }
  } else if (step.do === 'endRead') {
    if (world.reading === null) return
    lines.endRead(world.reading.rows, world.reading.plan, world.now)
    world.reading = null
  } else if (step.do === 'reset') {
    lines.reset()
    world.reading = null
  } else if (step.do === 'hand') {
    const busy = new Set([...underWay, ...byHand].map(({ id }) => id))
    const some = stored.find((one) => !done.has(one.id) && !busy.has(one.id))
    if (some === undefined) return
    lines.claim(some)
    byHand.push(some)
  } else if (step.do === 'endHand') {
    const [first] = byHand.splice(0, 1)
    if (first === undefined) return
    done.add(first.id)
    // What was read meanwhile is out of date, as the channel knows.
    if (world.reading !== null) lines.abortRead()
    world.reading = null
    lines.free(first)
  } else {
    world.now += 3
    lines.release(world.now)
  }
}

/** Goes on until nothing more happens without time going on. */
function settle(world: World): void {
  for (let turn = 0; turn < 500; turn += 1) {
    for (const rest of ['endHand', 'read', 'endRead', 'take', 'finish'] as const) play(world, { do: rest })
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

suite('rows in memory', () => {
  test('order, once, nothing left, bounded', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 6 }), (script, capacity) => {
        const world: World = {
          lines: new DeliveryQueue(capacity),
          stored: [],
          done: new Set(),
          underWay: [],
          byHand: [],
          due: new Map(),
          reading: null,
          now: 10,
        }
        for (const step of script) play(world, step)
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
    const lines = new DeliveryQueue(4)
    const old = [0, 1, 2, 3].map((seq) => row(`h${seq}`, seq, 1))
    lines.endRead(old, lines.beginRead(), 10)
    const live = row('live', 9)
    lines.stored([live])
    assert.equal(lines.wantsRead(), true)
    lines.endRead([live, ...old.slice(0, 3)], lines.beginRead(), 10)
    assert.equal(lines.take({ historical: true }), live)
  })

  test('live rows go before historical ones of their account that are in memory already', () => {
    const lines = new DeliveryQueue(20)
    const old = [row('a', 0, 1), row('a', 1, 1), row('b', 2, 1)]
    lines.endRead(old, lines.beginRead(), 10)
    const live = row('a', 3)
    lines.stored([live])
    const plan = lines.beginRead()
    assert.deepEqual([plan.exceptAccounts, plan.limit], [['b'], 19])
    lines.endRead([live, ...old.slice(0, 2)], plan, 10)
    const taken = Array.from({ length: 3 }, () => lines.take({ historical: true }))
    assert.deepEqual(
      taken.map((one) => one?.seq),
      [3, 2, undefined],
    )
    assert.equal(lines.take({ historical: true }), null, 'the others are busy')
  })

  test('a live row of another account is read as soon as there is room, a historical one when half is free', () => {
    for (const [lane, wanted] of [
      [0, true],
      [1, false],
    ] as const) {
      const lines = new DeliveryQueue(4)
      lines.endRead([row('a', 0), row('b', 1), row('c', 2)], lines.beginRead(), 10)
      lines.stored([row('d', 3, lane)])
      assert.equal(lines.wantsRead(), wanted)
    }
  })

  test('the rows of an account that is full of them are followed by a read, when they have gone', () => {
    const lines = new DeliveryQueue(2)
    lines.endRead([row('a', 0), row('a', 1)], lines.beginRead(), 10)
    lines.stored([row('a', 2)])
    for (const seq of [0, 1]) {
      const next = lines.take({ historical: true })
      assert(next)
      assert.equal(next.seq, seq)
      lines.finish(next)
    }
    assert.deepEqual([lines.wantsRead(), lines.beginRead().exceptAccounts], [true, []])
  })

  test('a row that is due later holds up its account, a historical one what is historical in it', () => {
    const lines = new DeliveryQueue(9)
    const [failed, next, other] = [row('a', 0, 1), row('a', 1, 1), row('b', 2, 1)]
    lines.endRead([failed, next, other], lines.beginRead(), 10)
    assert.equal(lines.take({ historical: true }), failed)
    lines.block(failed, 100)
    assert.equal(lines.take({ historical: true }), other)
    lines.block(row('c', 3), 90)
    lines.finish(other)
    assert.equal(lines.nextRelease(), 90)
    const live = row('a', 4)
    lines.stored([live, row('c', 5)])
    const plan = lines.beginRead()
    assert.deepEqual(plan.exceptAccounts, ['c'], 'a live row is read past a historical one that waits')
    lines.endRead([live, { ...failed, dueAt: 100 }, { ...row('d', 6), dueAt: 80 }, row('d', 7)], plan, 10)
    assert.equal(lines.take({ historical: true }), live)
    assert.equal(lines.take({ historical: true }), null)
    assert.equal(lines.nextRelease(), 80)
    lines.release(90)
    assert.deepEqual([lines.wantsRead(), lines.nextRelease()], [true, 100])
    lines.finish(live)
    lines.release(100)
    assert.deepEqual(lines.beginRead(), { exceptAccounts: [], limit: 9 })
  })

  test('a row that is sent by hand keeps its account to itself; afterwards the account is read anew', () => {
    const lines = new DeliveryQueue(9)
    lines.endRead([row('a', 0), row('a', 1), row('b', 2)], lines.beginRead(), 10)
    const first = lines.take({ historical: true })
    assert(first)
    lines.claim(row('a', 7))
    lines.finish(first)
    assert.equal(lines.take({ historical: true })?.accountId, 'b')
    assert.equal(lines.take({ historical: true }), null)
    assert.deepEqual([lines.accounts(), lines.wantsRead()], [['a', 'b'], false])
    lines.free(row('a', 7))
    assert.deepEqual([lines.wantsRead(), lines.beginRead().exceptAccounts], [true, ['b']])
  })

  test('to forget all keeps what is on its way, and reads the rest anew', () => {
    const lines = new DeliveryQueue(9)
    lines.endRead([row('a', 0), row('a', 1), row('b', 2)], lines.beginRead(), 10)
    const busy = lines.take({ historical: true })
    assert(busy)
    lines.block(row('e', 5, 1), 100)
    lines.beginRead()
    lines.reset()
    assert.deepEqual([lines.accounts(), lines.nextRelease(), lines.wantsRead()], [['a'], null, true])
    const plan = lines.beginRead()
    assert.deepEqual(plan, { exceptAccounts: ['a'], limit: 9 })
    lines.endRead([], plan, 10)
    assert.equal(lines.wantsRead(), false)
    lines.finish(busy)
    assert.equal(lines.wantsRead(), true, 'the rest of its account')
  })
})

suite('rows of a channel', () => {
  /** The first read of the outbox answers `read`, the others nothing; each row is under way until `sent`. */
  function stage() {
    const [read, sent] = [Promise.withResolvers<OutboxRecord[]>(), Promise.withResolvers<undefined>()]
    const handled: string[] = []
    const reads: (readonly string[])[] = []
    const channel = new Channel('c', {
      store: {
        outbox: {
          pending: (_, except) => {
            reads.push(except)
            return reads.length === 1 ? read.promise : Promise.resolve([])
          },
        },
      },
      attempts: {
        async handle({ id }) {
          handled.push(id)
          await sent.promise
          const attempt = { at: 1, durationMs: 1, status: 200, error: null, response: '' }
          return { until: null, attempt, failure: null }
        },
      },
      log: silentLogger,
      now: () => 1000,
      random: () => 0.5,
      config: readConfig({}),
      notify: ({ type }) => {
        if (type === 'room') void channel.claim()
      },
    })
    return { channel, read, sent, handled, reads }
  }
  const one = row('a', 0)

  for (const ends of ['before', 'after'] as const)
    test(`a row that is sent by hand while the outbox is read, and ends ${ends} the read, is sent once`, async () => {
      const { channel, read, sent, handled, reads } = stage()
      channel.start()
      assert.equal(reads.length, 1)
      channel.sendNow(one)
      if (ends === 'before') {
        sent.resolve(undefined)
        await channel.settled()
      }
      // As the store had it when the read began.
      read.resolve([one])
      await nextTurn()
      await nextTurn()
      sent.resolve(undefined)
      await until('read anew', () => reads.length > 1)
      channel.stop()
      await channel.settled()
      assert.deepEqual(handled, [one.id])
    })

  test('a row that is sent by hand while a probe reads the outbox is not what the probe sends', async () => {
    const { channel, read, sent, handled } = stage()
    const probing = channel.probe()
    channel.sendNow(one)
    sent.resolve(undefined)
    await channel.settled()
    read.resolve([one])
    assert.equal((await probing).delivered, null)
    assert.deepEqual(handled, [one.id])
  })

  test('a row that is sent by hand twice at once is sent once', async () => {
    const { channel, sent, handled } = stage()
    channel.sendNow(one)
    channel.sendNow(one)
    sent.resolve(undefined)
    await channel.settled()
    assert.deepEqual(handled, [one.id])
  })

  test('the chart hears of deliveries once a second, and of the first one after a failure', async () => {
    const heard: string[] = []
    let [now, status] = [1000, 200]
    const channel = new Channel('c', {
      store: { outbox: { pending: () => Promise.resolve([]) } },
      attempts: {
        handle: () => {
          const attempt = { at: now, durationMs: 1, status, error: null, response: '' }
          const failure = status === 200 ? null : ({ message: 'no', scope: 'row', retryAfterMs: null } as const)
          return Promise.resolve({ until: null, attempt, failure })
        },
      },
      log: silentLogger,
      now: () => now,
      random: () => 0.5,
      config: readConfig({}),
      notify: ({ type }) => void heard.push(`${type} ${now}`),
    })
    const send = async (at: number, answer = 200): Promise<void> => {
      ;[now, status] = [at, answer]
      channel.sendNow(one)
      await channel.settled()
    }
    for (const at of [1000, 1001, 1999, 2000, 2001]) await send(at)
    await send(2002, 500)
    await send(2003)
    await send(2004)
    assert.deepEqual(heard, ['delivered 1000', 'delivered 2000', 'row.failed 2002', 'delivered 2003'])
  })
})
