/**
 * The reads of the API over a mailbox of 200,000 messages: none holds the event loop, none waits without end, and
 * nobody else waits for them. On MongoDB of 20,000, since the server of our tests takes a minute to store 200,000:
 * `npm run bench -- api --store mongodb` reads these.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { largeLists, openLargeMailbox, type LargeMailbox } from '../support/large-lists.ts'
import { chosenStore } from '../support/store-choice.ts'

const count = chosenStore().kind === 'mongodb' ? 20_000 : 200_000
const mostMs = { held: 50, health: 250, list: 1000 }

suite(`reads of the API over a mailbox of ${count} messages`, () => {
  let large: LargeMailbox
  before(async () => (large = await openLargeMailbox(count)))
  after(() => large.close())

  for (const list of largeLists) {
    test(`${list.name}: the loop is held for ${mostMs.held} ms at most, and nobody waits long`, async () => {
      const { heldMs, healthMs, listMs } = await large.read(list)
      assert(heldMs <= mostMs.held, `held for ${Math.round(heldMs)} ms`)
      assert(healthMs <= mostMs.health, `/healthz waited ${Math.round(healthMs)} ms`)
      assert(listMs <= mostMs.list, `a list of another developer waited ${Math.round(listMs)} ms`)
    })
  }
})
