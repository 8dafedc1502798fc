/** Who takes the lead of a database, over a record that changes between two looks at it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '../../engine/observe/log.ts'
import type { Collections } from '../../engine/store/mongo/documents.ts'
import { takeLead } from '../../engine/store/mongo/lead.ts'

interface Holder {
  readonly owner: string
  readonly place: string
  readonly pid: number
  readonly beat: number
}

/** One record, with the four commands that the lead sends; `looked` is called after each of them that looks at it. */
function record(first: Holder, looked: () => void) {
  let holder = first
  const fits = (wanted: Partial<Holder>): boolean =>
    Object.entries(wanted).every(([name, value]) => name === '_id' || holder[name as keyof Holder] === value)
  const meta = {
    findOne() {
      const found = holder
      looked()
      return Promise.resolve(found)
    },
    replaceOne(wanted: Partial<Holder>, next: Holder) {
      const matchedCount = fits(wanted) ? 1 : 0
      if (matchedCount === 1) holder = next
      return Promise.resolve({ matchedCount })
    },
    updateOne: (wanted: Partial<Holder>) => Promise.resolve({ matchedCount: fits(wanted) ? 1 : 0 }),
  }
  return {
    collections: { meta } as unknown as Pick<Collections, 'meta'>,
    holder: (): Holder => holder,
    beat: () => (holder = { ...holder, beat: holder.beat + 1 }),
  }
}

const elsewhere = { owner: 'other', place: 'elsewhere', pid: 1, beat: 0 }
const options = { log: silentLogger, lost: () => assert.fail('lost'), beatMs: 1 }

test('a lead that beats again just before it is taken over keeps it', async () => {
  // It beats between each look and what follows from it.
  const one = record(elsewhere, () => one.beat())
  await assert.rejects(takeLead(one.collections, { ...options, silentMs: 0, patienceMs: 15 }), { code: 'conflict' })
  assert.equal(one.holder().owner, 'other')
})

test('a lead that beats now and then is not silent, one that does not is taken over', async () => {
  let looks = 0
  const beating = record(elsewhere, () => {
    looks += 1
    if (looks % 2 === 0) beating.beat()
  })
  await assert.rejects(takeLead(beating.collections, { ...options, silentMs: 5, patienceMs: 30 }), { code: 'conflict' })
  const silent = record(elsewhere, () => undefined)
  const lead = await takeLead(silent.collections, { ...options, silentMs: 5 })
  assert.notEqual(silent.holder().owner, 'other')
  await lead.release()
})
