/** In which order calls begin. */
import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { suite, test } from 'node:test'
import { createCallTurns } from '../../../api/connections.ts'

function workFor(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

suite('turns of calls', () => {
  test('where nothing waits a call begins at once', async () => {
    const turns = createCallTurns()
    const begun: string[] = []
    turns.enter('a', false, () => begun.push('a'))
    turns.enter('b', true, () => begun.push('b'))
    assert.deepEqual(begun, ['a', 'b'])
    await nextTurn()
    turns.enter('a', false, () => begun.push('again'))
    assert.deepEqual(begun, ['a', 'b', 'again'])
  })

  test('after 10 ms of work the others wait, health first, then one of each address', async () => {
    const turns = createCallTurns()
    const begun: string[] = []
    turns.enter('a', false, () => workFor(12))
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) turns.enter(name.charAt(0), false, () => begun.push(name))
    turns.enter('a', true, () => begun.push('health'))
    assert.deepEqual(begun, [])
    await nextTurn()
    assert.deepEqual(begun, ['health', 'a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  })

  test('what a call does before it waits for something counts, and timers come between', async () => {
    const turns = createCallTurns()
    let [begun, done, most] = [0, 0, 0]
    const call = async (): Promise<void> => {
      begun += 1
      await Promise.resolve()
      workFor(4)
      done += 1
    }
    turns.enter('a', false, () => workFor(12))
    for (let n = 0; n < 20; n += 1) turns.enter('a', false, () => void call())
    for (let before = 0; done < 20; before = done) {
      await nextTurn()
      assert.equal(begun, done)
      most = Math.max(most, done - before)
    }
    assert(most <= 3, `${most} calls in one turn of the loop`)
  })

  test('a flood of health checks leaves the others a turn', async () => {
    const turns = createCallTurns()
    const begun: string[] = []
    let left = 100
    const health = (): void => {
      workFor(2)
      left -= 1
      if (left > 0) turns.enter('a', true, health)
    }
    turns.enter('a', false, () => workFor(12))
    for (let n = 0; n < 5; n += 1) turns.enter('a', true, health)
    turns.enter('b', false, () => begun.push('b'))
    await nextTurn()
    await nextTurn()
    assert.deepEqual(begun, ['b'])
    left = 0
  })
})
