import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRing } from '../../engine/turns.ts'

/** a: 1, 2, 3; b: 4; c: 5, 6. */
function filled() {
  const ring = createRing<number>()
  for (const [index, key] of ['a', 'a', 'a', 'b', 'c', 'c'].entries()) ring.add(key, index + 1)
  return ring
}

test('keys take turns, and of each key the first is next', () => {
  const ring = filled()
  const taken = Array.from({ length: 7 }, () => ring.take())
  assert.deepEqual(taken, [1, 4, 5, 2, 6, 3, undefined])
  assert.equal(ring.size, 0)
})

test('a key that may not is passed over, and keeps its place', () => {
  const ring = filled()
  assert.equal(
    ring.take((key) => key !== 'a'),
    4,
  )
  assert.equal(ring.take(), 1)
  assert.equal(
    ring.take(() => false),
    undefined,
  )
  assert.equal(ring.size, 4)
})

test('one that leaves is gone once, and so are all of a key', () => {
  const ring = filled()
  assert.equal(ring.remove('a', 2), true)
  assert.equal(ring.remove('a', 2), false)
  assert.equal(ring.remove('b', 1), false)
  assert.deepEqual(ring.removeAll('c'), [5, 6])
  assert.deepEqual(ring.removeAll('c'), [])
  assert.equal(ring.size, 3)
  assert.deepEqual([ring.take(), ring.take(), ring.take(), ring.take()], [1, 4, 3, undefined])
})
