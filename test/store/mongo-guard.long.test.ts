/** A step that the server rolled back because of another one: taken again, and given up when that does not help. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { MongoServerError } from 'mongodb'
import { guarded } from '../../engine/store/mongo/errors.ts'

/** A step that fails with these codes, one each time, and goes well when there are no more. */
function failing(codes: readonly number[]) {
  let tries = 0
  const step = (): Promise<number> => {
    const code = codes[tries++]
    return code === undefined ? Promise.resolve(tries) : Promise.reject(new MongoServerError({ message: 'no', code }))
  }
  return { ...guarded({ step }, 10_000), tries: () => tries }
}

const [writeConflict, serialization, deadlock] = [112, 16_777_220, 16_908_292]

suite('a step on MongoDB', () => {
  test('is taken again after a write conflict, a serialization failure and a deadlock', async () => {
    assert.equal(await failing([writeConflict, serialization, deadlock]).step(), 4)
  })

  test('that is rolled back every time is store_unavailable', async () => {
    const { step, tries } = failing(Array.from({ length: 100 }, () => deadlock))
    await assert.rejects(step(), { code: 'store_unavailable' })
    assert.equal(tries(), 5)
  })

  test('that fails otherwise is taken once', async () => {
    const { step, tries } = failing([91])
    await assert.rejects(step(), { code: 'store_unavailable' })
    assert.equal(tries(), 1)
  })
})
