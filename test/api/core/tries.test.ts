/** Wrong keys: how long an address waits, what it is told meanwhile, and who does not wait with it. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createTries } from '../../../api/limits.ts'
import { AppError, isAppError, silentLogger } from '../../../engine/index.ts'

const free = 3

function stage() {
  let clock = 1_700_000_000_000
  const tries = createTries({ free, now: () => clock, log: silentLogger })
  const outcome = async (address: string, key: string, check: () => Promise<string>): Promise<string> => {
    try {
      return await tries.run(address, key, check)
    } catch (error) {
      if (isAppError(error, 'rate_limited')) return `wait ${error.retryAfterMs ?? 0}`
      if (isAppError(error)) return error.code
      throw error
    }
  }
  const reject = (code: 'unauthorized' | 'bad_signature' | 'store_unavailable') => () =>
    Promise.reject(new AppError(code, 'no'))
  return {
    pass: (seconds: number): void => void (clock += seconds * 1000),
    wrong: (address: string, key = 'k') => outcome(address, key, reject('unauthorized')),
    unsigned: (address: string, key = 'k') => outcome(address, key, reject('bad_signature')),
    away: (address: string, key = 'k') => outcome(address, key, reject('store_unavailable')),
    right: (address: string, key = 'k') => outcome(address, key, () => Promise.resolve('in')),
    outcome,
  }
}

suite('wrong keys', () => {
  test('the first ones cost nothing, then each wait is twice as long, five minutes at most', async () => {
    const { wrong, pass, right } = stage()
    for (let n = 0; n < free; n += 1) assert.equal(await wrong('a'), 'unauthorized')
    for (const seconds of [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]) {
      assert.equal(await wrong('a'), `wait ${seconds * 1000}`)
      assert.equal(await right('a'), `wait ${seconds * 1000}`, 'the right key waits too')
      pass(seconds)
      assert.equal(await wrong('a'), 'unauthorized')
    }
  })

  test('tries during a wait do not make it longer', async () => {
    const { wrong, right, pass } = stage()
    for (let n = 0; n < free; n += 1) await wrong('a')
    for (let n = 0; n < 100; n += 1) await wrong('a')
    assert.equal(await right('a'), 'wait 1000')
    pass(1)
    assert.equal(await right('a'), 'in')
  })

  test('another address does not wait, nor another key at this one', async () => {
    const { wrong, right } = stage()
    for (let n = 0; n < 20; n += 1) await wrong('a')
    assert.equal(await right('b'), 'in')
    assert.equal(await right('a', 'other'), 'in')
  })

  test('the right key, and time, make up for wrong ones', async () => {
    const { wrong, right, pass } = stage()
    for (let round = 0; round < 5; round += 1) {
      for (let n = 1; n < free; n += 1) assert.equal(await wrong('a'), 'unauthorized')
      assert.equal(await right('a'), 'in')
    }
    for (let n = 0; n < free; n += 1) await wrong('b')
    pass(1 + 900)
    for (let n = 1; n < free; n += 1) assert.equal(await wrong('b'), 'unauthorized')
    assert.equal(await right('b'), 'in')
  })

  test('a wrong signature counts, a store that is away does not', async () => {
    const { unsigned, away } = stage()
    for (let n = 0; n < 10; n += 1) assert.equal(await away('a'), 'store_unavailable')
    for (let n = 0; n < free; n += 1) assert.equal(await unsigned('a'), 'bad_signature')
    assert.equal(await unsigned('a'), 'wait 1000')
  })

  test('many keys from one address: it waits, except with a key that has fitted from there', async () => {
    const { wrong, right } = stage()
    assert.equal(await right('a', 'mine'), 'in')
    for (let n = 0; n < 10 * free; n += 1) assert.equal(await wrong('a', `key ${n}`), 'unauthorized')
    assert.equal(await wrong('a', 'one more'), 'wait 1000')
    assert.equal(await right('a', 'yours'), 'wait 1000')
    assert.equal(await right('a', 'mine'), 'in')
    assert.equal(await right('b', 'yours'), 'in')
  })

  test('many guesses at once: no more than the free ones are answered, the right one among them is not', async () => {
    const { outcome } = stage()
    const gate = Promise.withResolvers<undefined>()
    const guess = (hit: boolean) => async () => {
      await gate.promise
      if (hit) return 'in'
      throw new AppError('unauthorized', 'no')
    }
    const guesses = Array.from({ length: 50 }, (_, n) => outcome('a', 'k', guess(n === 49)))
    gate.resolve(undefined)
    const answers = await Promise.all(guesses)
    assert.equal(answers.filter((answer) => answer === 'unauthorized').length, free)
    assert.equal(answers.filter((answer) => answer === 'in').length, 0)
  })

  test('0 is no limit', async () => {
    const tries = createTries({ free: 0, now: Date.now, log: silentLogger })
    for (let n = 0; n < 100; n += 1) {
      const refused = tries.run('a', 'k', () => Promise.reject(new AppError('unauthorized', 'no')))
      await assert.rejects(refused, (error) => isAppError(error, 'unauthorized'))
    }
  })
})
