/** Taking a failed creation back: until it is done, and once more when late writes can come no more. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { silentLogger } from '../../engine/observe/log.ts'
import { createUndo } from '../../engine/creation-undo.ts'

function simulated(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  return async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms)
    for (let turn = 0; turn < 3; turn += 1) await immediate()
  }
}

test('it is tried again until it is done, and done once more for writes that come late', async (t) => {
  const pass = simulated(t)
  const undo = createUndo(silentLogger, 20_000)
  let tries = 0
  await undo.run({}, () => ((tries += 1) < 3 ? Promise.reject(new Error('away')) : Promise.resolve()))
  assert.equal(tries, 1)
  await pass(1000)
  assert.equal(tries, 2)
  await pass(1999)
  assert.equal(tries, 2)
  await pass(1)
  assert.equal(tries, 3)
  await pass(20_000)
  assert.equal(tries, 4)
  await pass(3_600_000)
  assert.equal(tries, 4)
})

test('it ends with the engine', async (t) => {
  const pass = simulated(t)
  const undo = createUndo(silentLogger, 20_000)
  let tries = 0
  await undo.run({}, () => {
    tries += 1
    return Promise.reject(new Error('away'))
  })
  undo.close()
  await pass(3_600_000)
  assert.equal(tries, 1)
})

test('it ends with the engine while a try is under way', async (t) => {
  const pass = simulated(t)
  const undo = createUndo(silentLogger, 20_000)
  const { promise: answer, reject } = Promise.withResolvers<undefined>()
  let tries = 0
  const ran = undo.run({}, () => {
    tries += 1
    return answer
  })
  undo.close()
  reject(new Error('the store is closed'))
  await ran
  await pass(3_600_000)
  assert.equal(tries, 1)
})
