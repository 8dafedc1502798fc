/** Look-ups of names: what one zone's dead name servers cost, and whom. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as breath, setTimeout as sleep } from 'node:timers/promises'
import { resolveGuarded } from '../../engine/net/address.ts'
import { createLookup } from '../../engine/net/names.ts'

const found = [{ address: '8.8.8.8', family: 4 }]
const noServer = () => Object.assign(new Error('no name server answers'), { code: 'EAI_AGAIN' })
const hundred = Array.from({ length: 100 }, (_, n) => `host${n}.dead.example`)

/** A resolver that notes what it is asked. What is called dead it gives up one after the other, when it is told to. */
function createResolver() {
  const asked: string[] = []
  const waiting: (() => void)[] = []
  const ask = (name: string): Promise<typeof found> => {
    asked.push(name)
    if (!/dead/.test(name)) return Promise.resolve(found)
    return new Promise((_, reject) => waiting.push(() => reject(noServer())))
  }
  const failNext = async (): Promise<void> => {
    waiting.shift()?.()
    await breath()
  }
  return { asked, ask, failNext, underWay: () => waiting.length }
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'an answer',
    (error: unknown) => error,
  )

suite('look-ups of names', () => {
  test('beside a hundred names of a dead zone another zone’s name is answered at once', async () => {
    const { asked, ask, failNext, underWay } = createResolver()
    const lookup = createLookup(ask)
    for (const name of hundred) void failureOf(lookup(name))
    await breath()
    assert.equal(asked.length, 2, 'the dead zone’s share')
    assert.deepEqual(await lookup('mail.alive.example.org'), found)
    // More dead zones than places: the next place is the one of who holds none.
    for (let n = 0; n < 12; n += 1) void failureOf(lookup(`mail.dead${n}.net`))
    await breath()
    assert.equal(underWay(), 12)
    const answer = lookup('mail.alive.example.org')
    for (let n = 0; n < 5; n += 1) await failNext()
    assert.deepEqual(await Promise.race([answer, sleep(1000)]), found)
    assert(underWay() <= 12)
    while (underWay() > 0) await failNext()
  })

  test('who gives up before its turn never reaches the resolver', async () => {
    const { asked, ask, failNext, underWay } = createResolver()
    const names = createLookup(ask)
    const patient = failureOf(names('host0.dead.example'))
    const impatient = new AbortController()
    const guarded = { allowPrivate: false, lookup: names, signal: impatient.signal }
    const given = hundred.map((name) => failureOf(resolveGuarded(name, guarded)))
    const stays = failureOf(names('host99.dead.example'))
    await breath()
    impatient.abort()
    for (const error of await Promise.all(given)) assert.equal((error as { code: unknown }).code, 'timeout')
    const again = failureOf(resolveGuarded('host7.dead.example', guarded))
    assert.equal(((await again) as { code: unknown }).code, 'timeout')
    while (underWay() > 0) await failNext()
    assert.deepEqual(asked, [...hundred.slice(0, 2), 'host99.dead.example'])
    await Promise.all([patient, stays])
  })

  test('who asks anew after all others gave up is answered', async () => {
    const { ask, failNext, underWay } = createResolver()
    const lookup = createLookup(ask)
    const busy = hundred.slice(0, 2).map((name) => failureOf(lookup(name)))
    const ended = new AbortController()
    const gone = failureOf(lookup('late.dead.example', ended.signal))
    ended.abort()
    const anew = failureOf(lookup('late.dead.example'))
    await breath()
    while (underWay() > 0) await failNext()
    await Promise.all(busy)
    assert.equal(((await gone) as { name: unknown }).name, 'AbortError')
    assert.equal(((await anew) as { code: unknown }).code, 'EAI_AGAIN')
  })

  test('equal names under way are asked for once, and anew once they are answered', async () => {
    const asked: string[] = []
    const lookup = createLookup((name) => {
      asked.push(name)
      return sleep(5).then(() => found)
    })
    const ended = new AbortController()
    const all = [lookup('mail.example', ended.signal), lookup('mail.example'), lookup('MAIL.example')]
    await breath()
    ended.abort()
    assert.deepEqual(await Promise.all(all), [found, found, found])
    assert.deepEqual(asked, ['mail.example'])
    await lookup('mail.example')
    assert.equal(asked.length, 2, 'addresses are not remembered')
  })

  test('a zone has two look-ups at once, so that a dead one leaves places to the others', async () => {
    const asked: string[] = []
    const lookup = createLookup((name) => {
      asked.push(name)
      return sleep(200).then(() => Promise.reject(noServer()))
    })
    const dead = Array.from({ length: 12 }, (_, n) => failureOf(lookup(`mail${n}.dead.example`)))
    const others = Array.from({ length: 9 }, (_, n) => failureOf(lookup(`mail.zone${n}.net`)))
    await breath()
    assert.deepEqual(asked.slice(0, 3), ['mail0.dead.example', 'mail1.dead.example', 'mail.zone0.net'])
    assert.equal(asked.filter((name) => name.endsWith('dead.example')).length, 2)
    assert.equal(asked.length, 11)
    await Promise.all([...dead, ...others])
    assert.equal(asked.length, 21)
  })
})
