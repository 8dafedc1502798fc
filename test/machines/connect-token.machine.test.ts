/** The chart of a connect token: what its record says of it, and what a try leads to. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { createActor, fromPromise } from 'xstate'
import { connectTokenMachine, tokenLife, triesOfToken, type TryOutput } from '../../machines/connect-token.machine.ts'

const fresh = { token: 't', usedAt: null, expiresAt: 1000, tries: 0, now: 999, deadlineMs: 50 }

function started(t: TestContext, attempt: () => Promise<TryOutput>, input = fresh) {
  const work = fromPromise<TryOutput, { readonly token: string }>(attempt)
  const actor = createActor(connectTokenMachine.provide({ actors: { attempt: work } }), { input }).start()
  t.after(() => actor.stop())
  return actor
}

suite('the chart of a connect token', () => {
  for (const [life, record] of [
    ['open', {}],
    ['expired', { now: 1000 }],
    ['used', { usedAt: 5 }],
    ['used', { usedAt: 5, now: 2000, tries: triesOfToken }],
    ['open', { tries: triesOfToken - 1 }],
    ['spent', { tries: triesOfToken }],
    ['expired', { tries: triesOfToken, now: 1000 }],
  ] as const) {
    test(`a record ${JSON.stringify(record)} is ${life}`, () => {
      assert.equal(tokenLife({ ...fresh, ...record }), life)
    })
  }

  test('a second TRY is not heard while the first one is under way', async (t) => {
    const { promise, resolve } = Promise.withResolvers<TryOutput>()
    let begun = 0
    const actor = started(t, () => {
      begun += 1
      return promise
    })
    actor.send({ type: 'TRY', at: 1 })
    actor.send({ type: 'TRY', at: 2 })
    assert(actor.getSnapshot().hasTag('trying'))
    assert.equal(actor.getSnapshot().context.tries, 1)
    resolve({ usedAt: null, tries: 1, at: 3 })
    await promise
    await Promise.resolve()
    assert(actor.getSnapshot().hasTag('open'))
    assert.equal(begun, 1)
  })

  for (const [state, output] of [
    ['used', { usedAt: 7, tries: 1, at: 7 }],
    ['open', { usedAt: null, tries: 1, at: 7 }],
    ['expired', { usedAt: null, tries: 1, at: 1000 }],
    ['spent', { usedAt: null, tries: triesOfToken, at: 7 }],
  ] as const) {
    test(`a try that ends with ${JSON.stringify(output)} leaves it ${state}`, async (t) => {
      const actor = started(t, () => Promise.resolve(output))
      actor.send({ type: 'TRY', at: 1 })
      await new Promise((resolve) => setImmediate(resolve))
      assert(actor.getSnapshot().hasTag(state))
    })
  }

  test('a try that rejects, and one that never ends, leave it open; they count', async (t) => {
    const failing = started(t, () => Promise.reject(new Error('the store is away')))
    failing.send({ type: 'TRY', at: 1 })
    await new Promise((resolve) => setImmediate(resolve))
    assert(failing.getSnapshot().hasTag('open'))
    const hanging = started(t, () => new Promise(() => undefined))
    hanging.send({ type: 'TRY', at: 1 })
    assert(hanging.getSnapshot().hasTag('trying'))
    await new Promise((resolve) => setTimeout(resolve, fresh.deadlineMs + 30))
    assert(hanging.getSnapshot().hasTag('open'))
    assert.equal(hanging.getSnapshot().context.tries, 1)
  })

  test('no TRY is heard once it is used, expired or spent', (t) => {
    for (const record of [{ usedAt: 5 }, { now: 1000 }, { tries: triesOfToken }]) {
      const actor = started(t, () => assert.fail('a try was begun'), { ...fresh, ...record } as typeof fresh)
      actor.send({ type: 'TRY', at: 1 })
      assert(!actor.getSnapshot().hasTag('trying'))
    }
  })
})
