/**
 * When the store counts as taking writes: what makes that doubtful, how it is tried, how seldom, and how it recovers.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, silentLogger, type Store } from '../../engine/index.ts'
import { createMetrics } from '../../engine/observe/metrics.ts'
import { createReadiness, type Readiness } from '../../engine/readiness.ts'
import { openTestStore, type TestStore } from '../support/test-store.ts'

suite('readiness', () => {
  let opened: TestStore
  /** What the database has no room for. */
  let largest = Infinity
  let pings: number[] = []
  let readiness: Readiness
  beforeEach(async () => {
    opened = await openTestStore()
    largest = Infinity
    pings = []
    const { store } = opened
    const full = (): Promise<never> => Promise.reject(new AppError('store_unavailable', 'full'))
    const small: Store = {
      ...store,
      providers: { ...store.providers, put: (provider) => (largest < 1000 ? full() : store.providers.put(provider)) },
      ping(room = 0) {
        pings.push(room)
        return room > largest ? full() : store.ping(room)
      },
    }
    readiness = createReadiness(small, silentLogger, createMetrics())
  })
  afterEach(() => opened.remove())

  const provider = { developerId: 'd', consumerKey: 'k', type: 't', sealedSecret: 's', shownSecret: '', createdAt: 1 }
  const write = (): Promise<unknown> => readiness.store.providers.put(provider).catch((error: unknown) => error)

  test('a write on trial decides, one at a time and one a second, however many ask', async () => {
    const started = performance.now()
    const answers = await Promise.all(Array.from({ length: 100 }, () => readiness.writable()))
    assert(answers.every(Boolean))
    for (let n = 0; n < 1000; n += 1) assert.equal(await readiness.writable(), true)
    const seconds = Math.ceil((performance.now() - started) / 1000)
    assert(pings.length >= 1 && pings.length <= seconds, `${pings.length} trials in ${seconds} s`)
    assert.deepEqual([...new Set(pings)], [0], 'a few bytes, while all is well')
  })

  test('a write that fails makes it false at once, and it stays so while only a few bytes fit', async () => {
    assert.equal(await readiness.writable(), true)
    largest = 100
    assert.equal((await write()) instanceof AppError, true)
    assert.equal(await readiness.writable(), false)
    await sleep(1100)
    assert.equal(await readiness.writable(), false)
    assert.equal(pings.at(-1), 1_048_576, 'in doubt it is as large as a batch of mail')
    largest = Infinity
    await sleep(1100)
    assert.equal(await readiness.writable(), true)
    await sleep(1100)
    assert.equal(await readiness.writable(), true)
    assert.equal(pings.at(-1), 0)
  })

  test('a damaged file is told in the log, once a minute: a write on trial may pass', async () => {
    const cause = new Error('database disk image is malformed')
    const damaged = new AppError('store_unavailable', 'no', { cause, details: { damaged: true } })
    const { store } = opened
    const broken = { ...store, users: { ...store.users, get: () => Promise.reject(damaged) } }
    const told: unknown[] = []
    const log = { ...silentLogger, error: (facts: unknown) => void told.push(facts) }
    const { store: noticed, writable } = createReadiness(broken, log, createMetrics())
    for (let n = 0; n < 3; n += 1) await assert.rejects(noticed.users.get('d', 'u'), damaged)
    assert.equal(await writable(), true)
    assert.deepEqual(told, [{ err: cause }])
  })

  test('a failure of the caller, such as a conflict, says nothing about the store', async () => {
    assert.equal(await readiness.writable(), true)
    const user = { id: 'u', developerId: 'd', firstName: '', lastName: '', emailAddresses: [], createdAt: 1 }
    await readiness.store.users.create(user)
    await assert.rejects(readiness.store.users.create(user), { code: 'conflict' })
    assert.equal(await readiness.writable(), true)
  })
})
