/** Turns: who is next, that nobody is forgotten, and that there are never more places than there may be. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { setImmediate as breath } from 'node:timers/promises'
import { suite, test } from 'node:test'
import { AppError, isAppError } from '../../engine/errors.ts'
import { createTurns, type GiveBack, type Turns } from '../../engine/turns.ts'

const never = new AbortController().signal

/** Asks in the name of 'developer/key' or 'developer/key!' (urgent), and notes who came in. */
function askers(turns: Turns) {
  const order: string[] = []
  const places = new Map<string, GiveBack>()
  const sentAway: string[] = []
  return {
    order,
    sentAway,
    ask: async (name: string, signal = never): Promise<void> => {
      const [developerId = '', key = ''] = name.replace('!', '').split('/')
      const giveBack = await turns.take({ developerId, key, urgent: name.endsWith('!') }, signal)
      if (giveBack === null) return void sentAway.push(name)
      order.push(name)
      places.set(name, giveBack)
    },
    leave: async (name: string): Promise<void> => {
      places.get(name)?.()
      await breath()
    },
  }
}

suite('turns', () => {
  test('the developer with the fewest places is next, then its keys in turn, urgent work first', async () => {
    const { ask, leave, order } = askers(createTurns(2))
    for (const name of ['a/1', 'a/2', 'a/3', 'a/4', 'a/5!', 'b/1', 'b/2', 'c/1']) void ask(name)
    await breath()
    assert.deepEqual(order, ['a/1', 'a/2', 'b/1'], 'two places, and a spare one for who has none')
    await leave('a/1')
    assert.deepEqual(order.slice(3), ['c/1'])
    await leave('c/1')
    assert.deepEqual(order.slice(4), [], 'who has a place gets no spare one')
    await leave('a/2')
    assert.deepEqual(order.slice(4), ['a/5!'])
    await leave('a/5!')
    await leave('b/1')
    assert.deepEqual(order.slice(5), ['a/3', 'b/2'])
    for (const name of ['a/3', 'b/2']) await leave(name)
    assert.deepEqual(order.slice(7), ['a/4'])
  })

  test('a key with much work does not hold up the other keys of its developer', async () => {
    const turns = createTurns(1)
    const order: string[] = []
    const work = async (key: string): Promise<void> => {
      const giveBack = await turns.take({ developerId: 'a', key, urgent: false }, never)
      order.push(key)
      giveBack?.()
    }
    const busy = await turns.take({ developerId: 'a', key: 'x', urgent: false }, never)
    const all = ['x', 'x', 'x', 'y', 'y', 'z'].map(work)
    busy?.()
    await Promise.all(all)
    assert.deepEqual(order, ['x', 'y', 'z', 'x', 'y', 'x'])
    assert.equal(turns.waiting, 0)
  })

  test('who gives up, and who is sent away, waits no more; a place that is given back twice is one', async () => {
    const turns = createTurns(1)
    const { ask, leave, order, sentAway } = askers(turns)
    await ask('a/1')
    const stop = new AbortController()
    const given = ask('a/2', stop.signal)
    for (const name of ['a/3', 'a/3!', 'a/4', 'a/5']) void ask(name)
    assert.equal(turns.waiting, 5)
    stop.abort(new AppError('shutting_down', 'over'))
    await assert.rejects(given, (error) => isAppError(error, 'shutting_down'))
    await assert.rejects(ask('a/2', stop.signal), (error) => isAppError(error, 'shutting_down'))
    turns.dismiss({ developerId: 'a', key: '3' })
    turns.dismiss({ developerId: 'b', key: '3' })
    await breath()
    assert.deepEqual(sentAway.sort(), ['a/3', 'a/3!'])
    assert.equal(turns.waiting, 2)
    await leave('a/1')
    await leave('a/1')
    assert.deepEqual(order, ['a/1', 'a/4'])
  })

  test('never more than the places and the spare ones, one of those for each developer, and all have their turn', async () => {
    const asked = fc.record({ developer: fc.constantFrom('a', 'b', 'c', 'd'), key: fc.constantFrom('1', '2', '3') })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.array(asked, { maxLength: 40 }), async (places, all) => {
        const turns = createTurns(places)
        const held = new Map<string, number>()
        const sum = (): number => [...held.values()].reduce((total, one) => total + one, 0)
        let served = 0
        const work = all.map(async ({ developer, key }) => {
          const giveBack = await turns.take({ developerId: developer, key, urgent: false }, never)
          const before = sum()
          held.set(developer, (held.get(developer) ?? 0) + 1)
          if (before >= places) assert.equal(held.get(developer), 1, 'a spare one is for who has none')
          assert(sum() <= places + Math.ceil(places / 2))
          await breath()
          held.set(developer, (held.get(developer) ?? 0) - 1)
          served += 1
          giveBack?.()
        })
        await Promise.all(work)
        assert.equal(served, all.length)
        assert.equal(turns.waiting, 0)
      }),
      { numRuns: 60 },
    )
  })
})
