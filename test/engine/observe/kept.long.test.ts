/** What is kept of an account for operators, in bytes: in a process of its own, since the heap is measured. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createStepRing } from '../../../engine/observe/inspect.ts'
import { createWireRing } from '../../../engine/observe/wire.ts'

test('steps and lines of an account are at most 20 KiB', () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const count = 1000
  const heap = (): number => {
    for (let time = 0; time < 3; time += 1) gc()
    return process.memoryUsage().heapUsed + process.memoryUsage().external
  }
  const kept: unknown[] = []
  const full = () => {
    const [steps, wire] = [createStepRing(), createWireRing()]
    for (let step = 0; step < 150; step += 1) steps.add(1.7e12 + step, `watch.alive${step % 7}`, 'watching')
    const text = `S: * OK ${'x'.repeat(90)}`
    for (let line = 0; line < 250; line += 1) wire.add(line < 100 ? `${text}${line}` : `S: * ${line} FETCH (FLAGS ())`)
    wire.freeze(1.7e12, 'network')
    for (let line = 0; line < 119; line += 1) wire.add(`${text}${line}`)
    return [steps, wire]
  }
  full()
  const before = heap()
  for (let one = 0; one < count; one += 1) kept.push(full())
  const each = (heap() - before) / count
  assert.equal(kept.length, count)
  assert.ok(each < 20 * 1024, `${Math.round(each)} bytes`)
  assert.ok(each > 5000, `${Math.round(each)} bytes: the measure is wrong`)
})
