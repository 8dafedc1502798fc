/**
 * The reads of the API over a mailbox of 200,000 messages: none holds the event loop, none waits without end. On
 * MongoDB of 5,000, since the server of our tests sorts all of them for each page (docs/mongodb.md).
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { largeLists, openLargeMailbox, type LargeMailbox } from '../support/large-lists.ts'
import { chosenStore } from '../support/store-choice.ts'

const count = chosenStore().kind === 'mongodb' ? 5000 : 200_000
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
