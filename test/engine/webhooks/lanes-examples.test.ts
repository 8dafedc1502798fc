/** The lanes by example: what goes out next, what has to wait, and when the store is read. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { OutboxRecord } from '../../../engine/store/records.ts'
import { createLanes } from '../../../engine/webhooks/lanes.ts'
import { laneRow as row } from './lane-row.ts'

type Lanes = ReturnType<typeof createLanes>

const all = { historical: true } as const

/** Lanes that have read all that the store has. */
function upToDate(capacity: number, rows: readonly OutboxRecord[] = []): Lanes {
  const lanes = createLanes(capacity)
  lanes.endRead(rows, lanes.beginRead(), 10)
  if (lanes.wantsRead()) lanes.endRead([], lanes.beginRead(), 10)
  return lanes
}

/** Takes rows until none is ready, all finished at once: 'a0 b1'. */
function drained(lanes: Lanes): string {
  const names: string[] = []
  for (let next = lanes.take(all); next !== null; next = lanes.take(all)) {
    lanes.finish(next)
    names.push(`${next.accountId}${next.seq}`)
  }
  return names.join(' ')
}

/** The accounts that a read would leave out. */
function exceptions(lanes: Lanes): readonly (readonly string[])[] {
  const plan = lanes.beginRead()
  lanes.abortRead()
  return [plan.exceptAccounts, plan.exceptHistorical]
}

suite('reading', () => {
  test('begins with everything, once at a time, and ends when fewer rows came than there was room for', () => {
    const lanes = createLanes(3)
    assert.equal(lanes.wantsRead(), true)
    const plan = lanes.beginRead()
    assert.deepEqual(plan, { exceptAccounts: [], exceptHistorical: [], limit: 3 })
    assert.equal(lanes.wantsRead(), false, 'under way')
    lanes.endRead([row('a', 0), row('b', 1)], plan, 10)
    assert.equal(lanes.wantsRead(), false)
    assert.equal(drained(lanes), 'a0 b1')
    assert.equal(lanes.wantsRead(), false, 'there is nothing more')
  })

  test('goes on when as many came as were asked for, as soon as half of the memory is free', () => {
    const lanes = createLanes(4)
    lanes.endRead([row('a', 0), row('b', 1), row('c', 2), row('d', 3)], lanes.beginRead(), 10)
    for (const wanted of [false, true, true]) {
      const next = lanes.take(all)
      assert(next)
      lanes.finish(next)
      assert.equal(lanes.wantsRead(), wanted, next.accountId ?? '')
    }
    const plan = lanes.beginRead()
    assert.deepEqual([plan.limit, plan.exceptAccounts], [3, ['d']])
  })

  test('that failed is made good: what it was for is still wanted', () => {
    const lanes = createLanes(3)
    lanes.beginRead()
    lanes.offer(row('a', 0))
    lanes.abortRead()
    assert.equal(lanes.wantsRead(), true)
    lanes.endRead([], lanes.beginRead(), 10)
    assert.equal(lanes.wantsRead(), false)
  })

  test('that a row was stored during is followed by another: its answer may lack that row', () => {
    const lanes = createLanes(3)
    const plan = lanes.beginRead()
    lanes.offer(row('a', 0))
    assert.equal(lanes.take(all), null)
    lanes.endRead([], plan, 10)
    assert.equal(lanes.wantsRead(), true)
    lanes.endRead([], lanes.beginRead(), 10)
    assert.equal(lanes.wantsRead(), false)
  })

  test('is due again when others have written; of an account with rows here when those have gone', () => {
    const lanes = upToDate(4, [row('a', 0)])
    lanes.markBehind()
    assert.equal(lanes.wantsRead(), true)
    const plan = lanes.beginRead()
    assert.deepEqual(plan.exceptAccounts, ['a'])
    lanes.endRead([], plan, 10)
    assert.equal(lanes.wantsRead(), false)
    assert.equal(drained(lanes), 'a0')
    assert.equal(lanes.wantsRead(), true)
  })

  test('a row that is read before it is offered goes out once', () => {
    const lanes = upToDate(2, [row('a', 0)])
    assert.equal(drained(lanes), 'a0')
    lanes.offer(row('a', 0))
    assert.equal(drained(lanes), '')
  })

  test('the rows that were read last are known, twice as many as there is room for', () => {
    const known = (...read: readonly string[]) => {
      const lanes = createLanes(1)
      for (const [seq, account] of read.entries()) {
        lanes.endRead([row(account, seq)], { exceptAccounts: [], exceptHistorical: [], limit: 9 }, 10)
        assert.equal(drained(lanes), `${account}${seq}`)
      }
      lanes.offer(row('a', 0))
      return lanes.take(all) === null
    }
    assert.equal(known('a', 'b'), true)
    assert.equal(known('a', 'b', 'c'), false, 'long ago: it is in memory no more')
    const again = createLanes(1)
    for (const one of [row('a', 0), row('b', 1), row('a', 0), row('c', 2)]) {
      again.endRead([one], { exceptAccounts: [], exceptHistorical: [], limit: 9 }, 10)
      drained(again)
    }
    again.offer(row('a', 0))
    assert.equal(again.take(all), null, 'read twice, the last time lately')
  })

  test('a row that is due later closes its account, and a historical one what is historical in it', () => {
    const late = (one: OutboxRecord, dueAt: number) => ({ ...one, dueAt })
    const lanes = upToDate(9, [
      late(row('a', 0), 11),
      row('a', 1),
      row('b', 2),
      late(row('b', 3, 1), 30),
      row('b', 4, 1),
    ])
    assert.deepEqual(exceptions(lanes), [['b', 'a'], ['b']])
    assert.equal(lanes.nextRelease(), 11)
    assert.equal(drained(lanes), 'b2')
    lanes.release(10)
    assert.deepEqual(exceptions(lanes), [['a'], ['b']])
    assert.equal(lanes.wantsRead(), false)
    lanes.release(11)
    assert.deepEqual(exceptions(lanes), [[], ['b']])
    assert.equal(lanes.wantsRead(), true)
    assert.equal(lanes.nextRelease(), 30)
    assert.equal(upToDate(9, [late(row('a', 0), 10)]).take(all)?.seq, 0, 'due now')
  })

  test('a row that is due later behind others of its account is left to the read after those', () => {
    const lanes = upToDate(9, [row('a', 0), { ...row('a', 1), dueAt: 30 }, row('a', 2)])
    assert.equal(lanes.nextRelease(), null)
    assert.equal(drained(lanes), 'a0')
    assert.equal(lanes.wantsRead(), true)
  })
})

suite('a row that was just stored', () => {
  test('waits for its turn: one of an account at a time, and every account has its turn', () => {
    const lanes = upToDate(9)
    assert.equal(lanes.take(all), null)
    const [first, second, other] = [row('a', 0), row('a', 1), row('b', 2)]
    for (const one of [first, second, other]) lanes.offer(one)
    assert.deepEqual([lanes.holds(first), lanes.holds(row('a', 7)), lanes.holds(row('c', 0))], [true, false, false])
    assert.equal(lanes.take(all), first)
    assert.equal(lanes.holds(first), false)
    assert.deepEqual(lanes.busyAccounts(), ['a'])
    assert.equal(lanes.take(all), other)
    assert.equal(lanes.take(all), null)
    assert.deepEqual(lanes.busyAccounts().toSorted(), ['a', 'b'])
    lanes.finish(first)
    assert.equal(lanes.take(all), second)
    lanes.finish(second)
    lanes.finish(other)
    assert.deepEqual([lanes.busyAccounts(), lanes.wantsRead()], [[], false])
    for (const one of [row('c', 3), row('c', 4), row('d', 5), row('d', 6)]) lanes.offer(one)
    assert.equal(drained(lanes), 'c3 d5 c4 d6')
  })

  test('without an account shares a lane with its like', () => {
    const lanes = upToDate(9)
    const [one, other] = [row('a', 0), row('b', 1)].map((some) => ({ ...some, accountId: null }))
    assert(one && other)
    lanes.offer(one)
    lanes.offer(other)
    assert.equal(lanes.take(all), one)
    assert.equal(lanes.take(all), null)
    assert.deepEqual(lanes.busyAccounts(), [''])
  })

  test('live goes before historical, over accounts and in one; the historical ones may be told to wait', () => {
    const lanes = upToDate(9, [row('a', 0, 1), row('b', 1, 1)])
    for (const one of [row('b', 2), row('b', 3), row('a', 4, 1), row('c', 5)]) lanes.offer(one)
    const taken = ['b2', 'c5', 'b3']
    for (const name of taken) {
      const next = lanes.take({ historical: false })
      assert(next)
      lanes.finish(next)
      assert.equal(`${next.accountId}${next.seq}`, name)
    }
    assert.equal(lanes.take({ historical: false }), null)
    assert.equal(drained(lanes), 'a0 b1 a4')
  })

  test('is left to the next read when memory is full, and nothing of its account overtakes it', () => {
    const lanes = upToDate(2)
    for (const seq of [0, 1, 2]) lanes.offer(row('a', seq))
    assert.equal(lanes.holds(row('a', 2)), false)
    const first = lanes.take(all)
    assert(first)
    lanes.offer(row('a', 3))
    assert.equal(lanes.holds(row('a', 3)), false, 'there is room, but the row before it is not here')
    lanes.finish(first)
    assert.equal(lanes.wantsRead(), false)
    assert.equal(drained(lanes), 'a1')
    assert.equal(lanes.wantsRead(), true)
  })

  test('of another account: a live one is read as soon as there is room, a historical one when half is free', () => {
    for (const [lane, wanted] of [
      [0, true],
      [1, false],
    ] as const) {
      const lanes = upToDate(4, [row('a', 0), row('b', 1), row('c', 2)])
      lanes.offer(row('d', 3))
      lanes.offer(row('e', 4, lane))
      assert.equal(lanes.wantsRead(), false, 'there is no room')
      const next = lanes.take(all)
      assert(next)
      lanes.finish(next)
      assert.equal(lanes.wantsRead(), wanted)
      lanes.offer(row('f', 5))
      assert.equal(lanes.holds(row('f', 5)), false, 'the store may have older ones')
    }
  })

  test('takes the place of historical ones, which are read again later', () => {
    const lanes = upToDate(3)
    for (const one of [row('a', 0), row('a', 1, 1), row('b', 2, 1)]) lanes.offer(one)
    const live = row('c', 3)
    lanes.offer(live)
    assert.deepEqual([lanes.holds(live), lanes.holds(row('a', 0))], [true, true])
    assert.deepEqual([lanes.holds(row('a', 1, 1)), lanes.holds(row('b', 2, 1))], [false, false])
    const plan = lanes.beginRead()
    assert.deepEqual([plan.limit, plan.exceptAccounts], [1, ['a', 'c']])
    lanes.abortRead()
    assert.equal(drained(lanes), 'a0 c3')
    assert.equal(lanes.wantsRead(), true)
    assert.deepEqual(exceptions(lanes), [[], []])
    const few = upToDate(3, [row('a', 0, 1), row('b', 1, 1)])
    few.offer(live)
    assert.equal(drained(few), 'c3 a0 b1', 'not while there is room for all')
  })

  test('takes no place of others when it is historical itself', () => {
    const lanes = upToDate(2)
    for (const one of [row('a', 0, 1), row('b', 1, 1), row('c', 2, 1), row('a', 3, 1)]) lanes.offer(one)
    assert.deepEqual([lanes.holds(row('a', 0, 1)), lanes.holds(row('b', 1, 1))], [true, true])
    assert.equal(drained(lanes), 'a0 b1')
    assert.equal(lanes.wantsRead(), true)
  })

  test('of an account whose rows are not all here makes the historical ones before it give way', () => {
    const lanes = upToDate(2, [row('a', 0, 1), row('a', 1, 1)])
    lanes.offer(row('a', 2, 1))
    lanes.offer(row('a', 3))
    assert.equal(lanes.holds(row('a', 0, 1)), false)
    assert.equal(lanes.wantsRead(), true)
    assert.equal(drained(lanes), '')
  })
})

suite('waiting', () => {
  test('a live row that waits keeps its whole account back until its time', () => {
    const lanes = upToDate(9, [row('a', 0), row('a', 1), row('b', 2, 1)])
    const failed = lanes.take(all)
    assert(failed)
    lanes.block(failed, 100)
    assert.deepEqual([lanes.busyAccounts(), lanes.nextRelease()], [[], 100])
    lanes.offer(row('a', 3))
    lanes.offer(row('a', 4, 1))
    assert.equal(drained(lanes), 'b2')
    assert.equal(lanes.wantsRead(), false)
    lanes.release(99)
    assert.deepEqual(exceptions(lanes), [['a'], []])
    lanes.release(100)
    assert.deepEqual([lanes.nextRelease(), lanes.wantsRead()], [null, true])
    assert.deepEqual(lanes.beginRead(), { exceptAccounts: [], exceptHistorical: [], limit: 9 })
  })

  test('a historical row that waits keeps new historical ones of its account back, not of others', () => {
    const lanes = upToDate(9, [row('a', 0, 1)])
    const failed = lanes.take(all)
    assert(failed)
    lanes.block(failed, 100)
    assert.deepEqual(lanes.busyAccounts(), [])
    for (const one of [row('a', 1, 1), row('a', 2), row('b', 3, 1)]) lanes.offer(one)
    assert.equal(drained(lanes), 'a2 b3')
    assert.deepEqual(exceptions(lanes), [[], ['a']])
    lanes.offer(row('a', 4))
    lanes.release(100)
    assert.deepEqual([lanes.nextRelease(), lanes.wantsRead()], [null, false])
    assert.equal(drained(lanes), 'a4')
    assert.equal(lanes.wantsRead(), true, 'the historical ones that were kept back')
  })

  test('the next release is the earliest of all', () => {
    const lanes = upToDate(9, [row('a', 0), row('b', 1), row('c', 2, 1)])
    const [a, b, c] = [lanes.take(all), lanes.take(all), lanes.take(all)]
    assert(a && b && c)
    assert.equal(lanes.nextRelease(), null)
    lanes.block(a, 300)
    lanes.block(b, 200)
    assert.equal(lanes.nextRelease(), 200)
    lanes.block(c, 100)
    assert.equal(lanes.nextRelease(), 100)
    lanes.release(Infinity)
    assert.equal(lanes.nextRelease(), null)
  })

  test('an account that is set free is read again, whatever was here of it', () => {
    for (const lane of [0, 1] as const) {
      const lanes = upToDate(9, [row('a', 0, lane)])
      const failed = lanes.take(all)
      assert(failed)
      lanes.block(failed, 100)
      assert.equal(lanes.wantsRead(), false)
      lanes.free(failed)
      assert.deepEqual([lanes.nextRelease(), lanes.wantsRead(), exceptions(lanes)], [null, true, [[], []]])
    }
    const lanes = upToDate(4, [row('a', 0), row('a', 1), row('b', 2)])
    lanes.free(row('a', 9))
    assert.equal(lanes.wantsRead(), true)
    const plan = lanes.beginRead()
    assert.deepEqual([plan.exceptAccounts, plan.limit], [['b'], 3])
  })

  test('an account that is busy with a row of elsewhere sends nothing, and is read when that is over', () => {
    const lanes = upToDate(9)
    const probe = row('a', 0)
    lanes.claim(probe)
    assert.deepEqual(lanes.busyAccounts(), ['a'])
    lanes.offer(row('a', 1))
    assert.equal(lanes.take(all), null)
    lanes.finish(probe)
    assert.deepEqual([lanes.busyAccounts(), lanes.wantsRead()], [[], true])
    lanes.endRead([], lanes.beginRead(), 10)
    lanes.offer(probe)
    assert.equal(drained(lanes), '', 'it has gone out')
  })

  test('what is over for an account that is here no more changes nothing', () => {
    const lanes = upToDate(9, [row('a', 0)])
    const failed = lanes.take(all)
    assert(failed)
    lanes.block(failed, 100)
    lanes.finish(failed)
    assert.deepEqual([lanes.busyAccounts(), lanes.nextRelease(), lanes.wantsRead()], [[], 100, false])
    lanes.block(row('b', 1), 90)
    lanes.block(row('c', 2, 1), 80)
    assert.equal(lanes.nextRelease(), 80)
    const probe = row('d', 3)
    lanes.claim(probe)
    lanes.finish(probe)
    assert.deepEqual([lanes.busyAccounts(), lanes.wantsRead(), lanes.take(all)], [[], true, null])
  })

  test('to forget all keeps what is on its way, and reads the rest anew', () => {
    const lanes = upToDate(9, [row('a', 0), row('a', 1), row('b', 2), row('c', 3), row('d', 4, 1)])
    const [busy, failed] = [lanes.take(all), lanes.take(all)]
    assert(busy && failed)
    lanes.block(failed, 100)
    lanes.block(row('e', 5, 1), 100)
    lanes.beginRead()
    lanes.reset()
    assert.deepEqual([lanes.busyAccounts(), lanes.nextRelease(), lanes.wantsRead()], [['a'], null, true])
    const plan = lanes.beginRead()
    assert.deepEqual(plan, { exceptAccounts: ['a'], exceptHistorical: [], limit: 9 })
    lanes.endRead([], plan, 10)
    assert.equal(lanes.take(all), null)
    assert.equal(lanes.wantsRead(), false)
    lanes.finish(busy)
    assert.equal(lanes.wantsRead(), true, 'the rest of its account')
  })
})
