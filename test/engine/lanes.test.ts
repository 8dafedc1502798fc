/** Lanes: who goes first, how many at once, and that nobody waits for ever. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { suite, test } from 'node:test'
import { AppError, isAppError } from '../../engine/errors.ts'
import { createLane, type Priority } from '../../engine/accounts/link.ts'

/** A task that ends when told. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  return { promise, open: () => resolve(undefined) }
}

suite('a lane', () => {
  test('API calls before the pieces of streams, each kind in its order, one at a time', async () => {
    const lane = createLane()
    const order: string[] = []
    const first = gate()
    const blocking = lane.run(() => first.promise)
    const task = (priority: Priority, name: string) => lane.run(() => Promise.resolve(void order.push(name)), priority)
    const tasks = [task('stream', 's1'), task('api', 'a1'), task('stream', 's2'), task('api', 'a2')]
    assert.equal(lane.pending, 5)
    first.open()
    await Promise.all([blocking, ...tasks])
    assert.deepEqual(order, ['a1', 'a2', 's1', 's2'])
    assert.equal(lane.pending, 0)
  })

  test('never more at once than allowed, whatever fails', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.boolean(), { maxLength: 30 }),
        async (limit, fails) => {
          const lane = createLane(limit)
          let running = 0
          let most = 0
          const work = fails.map((fail) =>
            lane.run(async () => {
              running += 1
              most = Math.max(most, running)
              await Promise.resolve()
              running -= 1
              if (fail) throw new AppError('network', 'lost')
            }),
          )
          const results = await Promise.allSettled(work)
          assert.deepEqual(
            results.map(({ status }) => status === 'rejected'),
            fails,
          )
          assert(most <= limit)
          assert.equal(lane.pending, 0)
        },
      ),
      { numRuns: 40 },
    )
  })

  test('who gives up waiting is not run, and does not hold up the others', async () => {
    const lane = createLane()
    const first = gate()
    const blocking = lane.run(() => first.promise)
    const stop = new AbortController()
    let ran = false
    const given = lane.run(() => Promise.resolve((ran = true)), 'api', stop.signal)
    const next = lane.run(() => Promise.resolve('next'))
    stop.abort(new AppError('timeout', 'too late'))
    await assert.rejects(given, (error) => isAppError(error, 'timeout'))
    assert.equal(lane.pending, 2)
    first.open()
    assert.equal(await next, 'next')
    await blocking
    assert.equal(ran, false)
    await assert.rejects(
      lane.run(() => Promise.resolve(), 'api', stop.signal),
      (error) => isAppError(error, 'timeout'),
    )
  })
})
