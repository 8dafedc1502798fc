/** The fair queue: who is next, that nobody is forgotten, that places are bounded, and what a deadline does. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { setImmediate as breath } from 'node:timers/promises'
import { suite, test } from 'node:test'
import { AppError, isAppError } from '../../engine/errors.ts'
import { createFairQueue, type FairQueue } from '../../engine/fair-queue.ts'

const open = (places: number, perDeveloper = Infinity): FairQueue =>
  createFairQueue({ places, perDeveloper, deadlineMs: 60_000, late: 'too slow' })

/** Asks in the name of 'developer/key' or 'developer/key!' (urgent), and notes whose work began. */
function askers(queue: FairQueue) {
  const order: string[] = []
  const ends = new Map<string, () => void>()
  return {
    order,
    ask: (name: string, signal?: AbortSignal): Promise<void> => {
      const [developerId = '', key = ''] = name.replace('!', '').split('/')
      const work = (): Promise<void> => {
        order.push(name)
        return new Promise((resolve) => ends.set(name, resolve))
      }
      return queue.run({ developerId, key, urgent: name.endsWith('!') }, work, signal)
    },
    end: async (name: string): Promise<void> => {
      ends.get(name)?.()
      await breath()
    },
    /** Work that has begun meanwhile too. */
    endAll: async (): Promise<void> => {
      for (let begun = 0; begun < order.length;) {
        begun = order.length
        for (const end of ends.values()) end()
        await breath()
      }
    },
  }
}

suite('the fair queue', () => {
  test('the developer with the fewest places is next, then its keys in turn, urgent work first', async () => {
    const { ask, end, endAll, order } = askers(open(2))
    for (const name of ['a/1', 'a/2', 'a/3', 'a/4', 'a/5!', 'b/1', 'b/2', 'c/1']) void ask(name)
    await breath()
    assert.deepEqual(order, ['a/1', 'a/2', 'b/1'], 'two places, and a spare one for who has none')
    await end('a/1')
    assert.deepEqual(order.slice(3), ['c/1'])
    await end('c/1')
    assert.deepEqual(order.slice(4), [], 'who has a place gets no spare one')
    await end('a/2')
    assert.deepEqual(order.slice(4), ['a/5!'])
    await end('a/5!')
    await end('b/1')
    assert.deepEqual(order.slice(5), ['a/3', 'b/2'])
    for (const name of ['a/3', 'b/2']) await end(name)
    assert.deepEqual(order.slice(7), ['a/4'])
    await endAll()
  })

  test('a key with much work does not hold up the other keys of its developer', async () => {
    const queue = open(1)
    const order: string[] = []
    const busy = Promise.withResolvers<undefined>()
    const first = queue.run({ developerId: 'a', key: 'x', urgent: false }, () => busy.promise)
    const all = ['x', 'x', 'x', 'y', 'y', 'z'].map((key) =>
      queue.run({ developerId: 'a', key, urgent: false }, () => Promise.resolve(void order.push(key))),
    )
    busy.resolve(undefined)
    await Promise.all([first, ...all])
    assert.deepEqual(order, ['x', 'y', 'z', 'x', 'y', 'x'])
    assert.equal(queue.waiting, 0)
  })

  test('one developer has no more places than the bound, however many are free', async () => {
    const { ask, end, endAll, order } = askers(open(4, 1))
    for (const name of ['a/1', 'a/2', 'b/1']) void ask(name)
    await breath()
    assert.deepEqual(order, ['a/1', 'b/1'])
    await end('a/1')
    assert.deepEqual(order, ['a/1', 'b/1', 'a/2'])
    await endAll()
  })

  test('who gives up waits no more, and the next one begins', async () => {
    const queue = open(1, 1)
    const { ask, end, endAll, order } = askers(queue)
    void ask('a/1')
    const stop = new AbortController()
    const given = ask('a/2', stop.signal)
    void ask('a/3')
    assert.equal(queue.waiting, 2)
    stop.abort(new AppError('shutting_down', 'over'))
    await assert.rejects(given, (error) => isAppError(error, 'shutting_down'))
    await assert.rejects(ask('a/2', stop.signal), (error) => isAppError(error, 'shutting_down'))
    assert.equal(queue.waiting, 1)
    await end('a/1')
    assert.deepEqual(order, ['a/1', 'a/3'])
    await endAll()
  })

  test('who leaves wakes the next, whether its work succeeds or fails', async () => {
    const queue = open(1)
    const asked = { developerId: 'a', key: '1', urgent: false }
    const failing = queue.run(asked, () => Promise.reject(new Error('broken')))
    const next = queue.run(asked, () => Promise.resolve('done'))
    await assert.rejects(failing, /broken/)
    assert.equal(await next, 'done')
  })

  test('who gives up does not hold up smaller work behind it', async () => {
    const queue = createFairQueue({ places: 4, spare: 0 })
    const large = { developerId: 'a', key: '', urgent: false, places: 3 }
    const release = await queue.take(large)
    const stop = new AbortController()
    const given = queue.take({ ...large, developerId: 'b', places: 2 }, stop.signal)
    const small = queue.take({ ...large, developerId: 'b', places: 1 })
    stop.abort(new Error('given up'))
    await assert.rejects(given, /given up/)
    const releaseSmall = await small
    for (const give of [release, releaseSmall]) give()
    assert.deepEqual([queue.developers, queue.waiting], [0, 0])
  })

  test('nothing is kept of developers whose work is over, or who gave up', async () => {
    const queue = createFairQueue({ places: 1, spare: 0 })
    const stop = new AbortController()
    const busy = Promise.withResolvers<undefined>()
    const first = queue.run({ developerId: 'first', key: '1', urgent: false }, () => busy.promise)
    const many = Array.from({ length: 50 }, (_, n) =>
      queue.run({ developerId: `d${n}`, key: '1', urgent: false }, () => Promise.resolve(), stop.signal),
    )
    assert.equal(queue.waiting, 50)
    stop.abort(new Error('given up'))
    busy.resolve(undefined)
    await Promise.allSettled([first, ...many])
    assert.deepEqual([queue.developers, queue.waiting], [0, 0])
  })

  test('at its deadline work is ended and fails, and its place is free', async () => {
    const queue = createFairQueue({ places: 1, deadlineMs: 20, late: 'it took too long' })
    const asked = { developerId: 'a', key: '1', urgent: false }
    let ended: unknown = null
    const stuck = queue.run(asked, (signal) => {
      signal.addEventListener('abort', () => void (ended = signal.reason))
      return new Promise<never>(() => undefined)
    })
    const next = queue.run(asked, () => Promise.resolve('next'))
    await assert.rejects(stuck, (error) => isAppError(error, 'timeout') && error.message === 'it took too long')
    assert.ok(isAppError(ended, 'timeout'))
    assert.equal(await next, 'next')
  })

  test('never more than the places and the spare ones, one of those for each developer, and all have their turn', async () => {
    const asked = fc.record({ developer: fc.constantFrom('a', 'b', 'c', 'd'), key: fc.constantFrom('1', '2', '3') })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.array(asked, { maxLength: 40 }), async (places, all) => {
        const queue = open(places)
        const held = new Map<string, number>()
        const sum = (): number => [...held.values()].reduce((total, one) => total + one, 0)
        let served = 0
        const work = all.map(({ developer, key }) =>
          queue.run({ developerId: developer, key, urgent: false }, async () => {
            const before = sum()
            held.set(developer, (held.get(developer) ?? 0) + 1)
            if (before >= places) assert.equal(held.get(developer), 1, 'a spare one is for who has none')
            assert(sum() <= places + Math.ceil(places / 2))
            await breath()
            held.set(developer, (held.get(developer) ?? 0) - 1)
            served += 1
          }),
        )
        await Promise.all(work)
        assert.deepEqual([served, queue.waiting, queue.developers], [all.length, 0, 0])
      }),
      { numRuns: 60 },
    )
  })
})
