/** Guessing at the console's password with many tries at once: each costs 80 ms of a processor by design. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startLiteRig } from '../api/lite/rig.ts'
import { openStage } from '../e2e/stage.ts'
import { holdOf } from '../support/loop-held.ts'
import { beside, processorMs } from './bystanders.ts'
import { say } from './stranger.ts'

const guessAt = (url: string, n: number) =>
  say(`${url}/console/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `password=guess${n}`,
  })

suite("the console's password", () => {
  test('a try is worked on off the event loop', async (t) => {
    const rig = await startLiteRig()
    t.after(() => rig.close())
    await guessAt(rig.url, 0)
    const { value, ms } = await holdOf(() => guessAt(rig.url, 1))
    assert.equal(value.status, 401)
    assert(ms <= 50, `held for ${ms} ms`)
  })

  test('180 wrong ones at once are worked on one after the other, until the address has to wait', async () => {
    await using parts = new AsyncDisposableStack()
    const stage = await openStage()
    parts.defer(() => stage.remove())
    const { service } = stage
    const guess = (n: number) => guessAt(service.url, n)
    await guess(0)
    const before = processorMs(service)
    await guess(1)
    const one = Math.max(20, processorMs(service) - before)
    const waits = await beside(
      service,
      async () => {
        const answers = await Promise.all(Array.from({ length: 180 }, (_, n) => guess(n)))
        const refused = answers.filter(({ status }) => status === 429)
        assert(refused.length >= 170, `${refused.length} refused`)
        assert(refused.every(({ headers }) => Number(headers['retry-after']) >= 1))
        assert(refused.some(({ body }) => body.includes('too many tries at once')))
      },
      200,
    )
    assert(waits.processor < 60 * one, `${waits.processor} ms, one guess takes ${one} ms`)
    assert(waits.health < 1000 && waits.list < 2000, JSON.stringify(waits))
  })
})
