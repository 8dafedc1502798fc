/** What is kept of an account for operators, in bytes. In a process of its own: the heap is measured. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createStepRing } from '../../../engine/observe/steps.ts'
import { createWireRing } from '../../../engine/observe/wire.ts'
import { unlikeLines, usualLines } from './lines.ts'

const accounts = 1000

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

function heap(): number {
  for (let time = 0; time < 3; time += 1) gc()
  return process.memoryUsage().heapUsed + process.memoryUsage().external
}

/** Of a thousand accounts that have been through all these lines; what is frozen is none of the last ones. */
function bytesEach(lines: readonly string[]): number {
  const full = () => {
    const [steps, wire] = [createStepRing(), createWireRing()]
    const add = wire.open(1.7e12, 'mailbox')
    for (let step = 0; step < 150; step += 1) steps.add(1.7e12 + step, `watch.alive${step % 7}`, 'watching')
    for (const [index, line] of lines.entries()) {
      add(1.7e12 + Math.round(index * 917.3), line)
      if (index === 239) wire.freeze(1.7e12, 'network', 'mailbox')
    }
    return [steps, wire]
  }
  full()
  const before = heap()
  const kept = Array.from({ length: accounts }, full)
  const each = (heap() - before) / kept.length
  return Math.round(each)
}

for (const [name, linesOf] of Object.entries({ usual: usualLines, 'without likeness': unlikeLines })) {
  test(`steps and lines of an account are at most 20 KiB, with lines that are ${name}`, (t) => {
    // How many lines wait for their block differs.
    const sizes = [477, 487, 497, 507, 517].map((count) => bytesEach(linesOf(count)))
    t.diagnostic(`bytes of an account: ${sizes.join(', ')}`)
    for (const each of sizes) {
      assert.ok(each < 20 * 1024, `${each} bytes`)
      assert.ok(each > 5000, `${each} bytes: the measure is wrong`)
    }
  })
}
