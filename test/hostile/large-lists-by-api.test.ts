/** The reads of the API over a mailbox of 200,000 messages: none holds the event loop, none waits without end. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { largeLists, openLargeMailbox, type LargeMailbox } from '../support/large-lists.ts'

const count = 200_000
const mostMs = 50

suite(`reads of the API over a mailbox of ${count} messages`, () => {
  let large: LargeMailbox
  before(async () => (large = await openLargeMailbox(count)))
  after(() => large.close())

  for (const list of largeLists) {
    test(`${list.name}: the loop is held for ${mostMs} ms at most`, async () => {
      const { heldMs } = await large.read(list)
      assert(heldMs <= mostMs, `held for ${Math.round(heldMs)} ms`)
    })
  }
})
