/** Whose page of a historical scan comes next. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createScanTurns, type Turn } from '../../../engine/webhooks/history.ts'

function names(turns: readonly (Turn | null)[]): (string | null)[] {
  return turns.map((turn) => (turn === null ? null : `${turn.webhookId} ${turn.accountId}`))
}

suite('turns', () => {
  test('webhooks take turns, and the accounts of each; of one webhook one page at a time', () => {
    const turns = createScanTurns()
    for (const account of ['1', '2', '3']) turns.add('a', account)
    turns.add('b', '1')
    const order: (string | null)[] = []
    for (let round = 0; round < 4; round += 1) {
      const [first, second, third] = [turns.take(0), turns.take(0), turns.take(0)]
      order.push(...names([first, second]))
      assert.equal(third, null, 'both are under way')
      if (first) turns.give(first, 'more', 0)
      if (second) turns.give(second, 'more', 0)
    }
    assert.deepEqual(order, ['a 1', 'b 1', 'a 2', 'b 1', 'a 3', 'b 1', 'a 1', 'b 1'])
  })

  test('a webhook with many accounts holds up no other, also when only one page is under way at a time', () => {
    const turns = createScanTurns()
    turns.add('a', '1')
    turns.add('a', '2')
    turns.add('b', '1')
    const order = Array.from({ length: 4 }, () => {
      const turn = turns.take(0)
      if (turn) turns.give(turn, 'more', 0)
      return turn
    })
    assert.deepEqual(names(order), ['a 1', 'b 1', 'a 2', 'b 1'])
  })

  test('a page that was scanned ends the waiting: the next wait is a short one', () => {
    const turns = createScanTurns()
    turns.add('a', '1')
    let now = 0
    const waits = (['wait', 'wait', 'more', 'wait'] as const).map((end) => {
      const turn = turns.take(now)
      assert.ok(turn)
      turns.give(turn, end, now)
      const ms = (turns.nextAt() ?? 0) - now
      now += Math.max(ms, 0)
      return Math.max(ms, 0)
    })
    assert.deepEqual(waits, [1000, 2000, 0, 1000])
  })

  test('the next that is ready is the earliest; an account without anything to scan goes', () => {
    const turns = createScanTurns()
    for (const [webhook, now] of [
      ['a', 0],
      ['b', 500],
    ] as const) {
      turns.add(webhook, '1')
      const turn = turns.take(now)
      assert.ok(turn)
      turns.give(turn, 'wait', now)
    }
    assert.equal(turns.nextAt(), 1000)
    const first = turns.take(1000)
    assert.ok(first)
    turns.give(first, 'nothing', 1000)
    assert.equal(turns.nextAt(), 1500)
    turns.give(first, 'more', 1000)
    assert.equal(turns.nextAt(), 1500, 'one that has gone stays away')
  })

  test('one that waits is left out, longer each time, and holds up no other', () => {
    const turns = createScanTurns()
    turns.add('full', '1')
    turns.add('full', '2')
    turns.add('free', '1')
    const waits: number[] = []
    let now = 0
    for (let round = 0; round < 7; round += 1) {
      const turn = turns.take(now)
      const other = turns.take(now)
      const [full, free] = turn?.webhookId === 'full' ? [turn, other] : [other, turn]
      assert.deepEqual([full?.webhookId, free?.webhookId], ['full', 'free'])
      if (full) turns.give(full, 'wait', now)
      waits.push((turns.nextAt() ?? 0) - now)
      if (free) turns.give(free, 'more', now)
      for (let page = 0; page < 3; page += 1) {
        const next = turns.take(now)
        assert.equal(next?.webhookId, 'free')
        assert.equal(turns.take(now), null, 'no other account of the one that waits, either')
        turns.give(next, 'more', now)
      }
      now += waits.at(-1) ?? 0
    }
    assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  })

  test('what is done goes; what was asked for meanwhile stays', () => {
    const turns = createScanTurns()
    turns.add('a', '1')
    const first = turns.take(0)
    assert.ok(first)
    turns.add('a', '1')
    turns.give(first, 'nothing', 0)
    const again = turns.take(0)
    assert.deepEqual(again, first)
    turns.give(again, 'done', 0)
    assert.equal(turns.take(0), null)
    assert.equal(turns.nextAt(), null)
  })

  test('an edit asks one that waits at once', () => {
    const turns = createScanTurns()
    turns.add('a', '1')
    const turn = turns.take(0)
    assert.ok(turn)
    turns.give(turn, 'wait', 0)
    assert.equal(turns.take(999), null)
    turns.add('a', '1')
    assert.deepEqual(turns.take(1), turn)
  })
})
