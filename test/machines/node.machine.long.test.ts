/** The schedules of node.machine.test.ts, ten thousand of them. */
import { suite, test } from 'node:test'
import { schedule } from './node-schedules.ts'

/** All schedules are one turn of the loop. */
const longer = { timeout: 600_000 }

suite('nodes in virtual time', () => {
  test('never two that write one slot, every slot owned in the end, evenly: 10,000 random schedules', longer, () => {
    for (let seed = 1001; seed <= 11_000; seed += 1) schedule(seed)
  })
})
