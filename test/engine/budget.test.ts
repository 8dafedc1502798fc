/** A share of memory is taken in the order of asking, and given back once. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { createBudget } from '../../engine/budget.ts'

const never = new AbortController().signal

suite('a budget', () => {
  test('who would be too much waits, and those behind wait too', async () => {
    const budget = createBudget(10)
    const first = await budget.take(8, never)
    const begun: string[] = []
    const large = budget.take(9, never).then((giveBack) => (begun.push('large'), giveBack))
    const small = budget.take(1, never).then((giveBack) => (begun.push('small'), giveBack))
    await turn()
    assert.deepEqual(begun, [])
    first()
    first()
    const [giveBack] = await Promise.all([large, small])
    assert.deepEqual(begun, ['large', 'small'])
    const third = budget.take(2, never)
    await turn()
    giveBack()
    ;(await third)()
  })

  test('one that is larger than all is the whole', async () => {
    const budget = createBudget(10)
    const giveBack = await budget.take(1_000_000, never)
    const next = budget.take(1, never)
    giveBack()
    ;(await next)()
  })

  test('a part of a share can be given back before the rest, and no more than it was', async () => {
    const budget = createBudget(10)
    const giveBack = await budget.take(8, never)
    giveBack(9)
    const begun: string[] = []
    const [four, one] = [budget.take(4, never), budget.take(1, never)].map((taking, index) =>
      taking.then((release) => (begun.push(`${index}`), release)),
    )
    await turn()
    assert.deepEqual(begun, [], '2 are free')
    giveBack(6)
    await four
    await turn()
    assert.deepEqual(begun, ['0'], 'all are out')
    giveBack()
    giveBack(3)
    await one
    ;(await budget.take(5, never))()
  })

  test('who gives up leaves the queue, and lets those behind it pass', async () => {
    const budget = createBudget(10)
    const giveBack = await budget.take(5, never)
    const stop = new AbortController()
    const waiting = budget.take(10, stop.signal)
    const behind = budget.take(5, never)
    stop.abort(new Error('gone'))
    await assert.rejects(waiting, /gone/)
    ;(await behind)()
    giveBack()
    await assert.rejects(budget.take(1, stop.signal), /gone/)
    ;(await budget.take(10, never))()
  })

  test('never more is out than there is, and all is given back', async () => {
    const steps = fc.array(fc.record({ bytes: fc.nat(15), abort: fc.boolean(), turns: fc.nat(3) }), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(steps, async (calls) => {
        const budget = createBudget(10)
        let out = 0
        const work = calls.map(async ({ bytes, abort, turns }) => {
          const stop = new AbortController()
          const taking = budget.take(bytes, stop.signal)
          if (abort) stop.abort(new Error('gone'))
          const giveBack = await taking.catch(() => null)
          if (giveBack === null) return
          out += Math.min(bytes, 10)
          assert(out <= 10)
          for (let left = turns; left > 0; left -= 1) await turn()
          out -= Math.min(bytes, 10)
          giveBack()
        })
        await Promise.all(work)
        ;(await budget.take(10, never))()
      }),
      { numRuns: 200 },
    )
  })
})
