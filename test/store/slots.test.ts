/** What nodes have together, divided by slots.ts. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Lease, partOf } from '../../engine/store/slots.ts'

suite('slots', () => {
  test('the parts of all nodes are the whole at any time, and over time none has nothing', () => {
    for (const nodes of [1, 2, 3, 7, 20]) {
      for (const most of [1, 3, 16]) {
        const had = new Map<number, number>()
        for (let at = 1_700_000_000_000; at < 1_700_000_300_000; at += 5_000) {
          const parts = Array.from({ length: nodes }, (_, place) => partOf(most, place, nodes, at))
          assert.equal(
            parts.reduce((sum, part) => sum + part, 0),
            most,
          )
          parts.forEach((part, place) => had.set(place, Math.max(part, had.get(place) ?? 0)))
        }
        assert.ok(
          had.values().every((part) => part > 0),
          `${most} places of ${nodes} nodes`,
        )
      }
    }
  })

  test('where there is one for each, a part does not move', () => {
    assert.equal(partOf(16, 1, 3, 0), partOf(16, 1, 3, 25_000))
  })

  test('a slot in handover sends no callback, then serves nobody, and does neither again', () => {
    const lease = new Lease()
    lease.set([1, 2].map((slot) => ({ slot, epoch: 5 })))
    const states = (): boolean[] => [lease.sends(1), lease.serves(1), lease.sends(2)]
    lease.rest([1])
    assert.deepEqual(states(), [false, true, true])
    lease.close([1])
    lease.rest([1])
    assert.deepEqual(states(), [false, false, true], 'a release is tried again')
    assert.equal(lease.epochOf(1), 5, 'what runs may write')
    lease.drop([1])
    lease.set([{ slot: 1, epoch: 9 }])
    assert.equal(lease.sends(1), true, 'it has come back')
  })
})
