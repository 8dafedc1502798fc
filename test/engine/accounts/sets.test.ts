/** UID sets as they are sent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { toSet } from '../../../engine/accounts/session/uids.ts'

test('a UID set: ranges that hold exactly these numbers', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 60 })), (uids) => {
      const numbers = toSet(uids)
        .split(',')
        .filter((part) => part !== '')
        .flatMap((part) => {
          const [from = 0, to = from] = part.split(':').map(Number)
          return Array.from({ length: to - from + 1 }, (_, index) => from + index)
        })
      assert.deepEqual(
        numbers,
        [...new Set(uids)].sort((a, b) => a - b),
      )
    }),
  )
})
