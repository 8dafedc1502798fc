/** Work on large texts leaves turns of the event loop to others. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createPace } from '../../../engine/webhooks/envelope.ts'

const large = 1_048_576

function busy(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

suite('a pace', () => {
  test('does small pieces at once, and large ones in order, one a turn, with as much rest as work', async () => {
    const pace = createPace()
    const order: string[] = []
    const times: number[] = []
    const works = ['a', 'b', 'c'].map((name) =>
      pace(large, () => {
        times.push(performance.now())
        order.push(name)
        busy(20)
        return name
      }),
    )
    assert.equal(await pace(10, () => order.push('small')), 1)
    assert.deepEqual(await Promise.all(works), ['a', 'b', 'c'])
    assert.deepEqual(order, ['small', 'a', 'b', 'c'])
    for (const [index, at] of times.entries()) if (index > 0) assert.ok(at - (times[index - 1] ?? 0) >= 38)
  })

  test('goes on after an error, which is the caller’s', async () => {
    const pace = createPace()
    const failing = pace(large, () => {
      throw new Error('not this one')
    })
    const next = pace(large, () => 'next')
    await assert.rejects(failing, /not this one/)
    assert.equal(await next, 'next')
  })
})
