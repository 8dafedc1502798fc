/** Lanes and the login limiter: who goes first, how many at once, how fast, and that nobody waits for ever. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { suite, test, type TestContext } from 'node:test'
import { AppError, isAppError } from '../../engine/errors.ts'
import { createLane, type Priority } from '../../engine/accounts/lanes.ts'
import { createLoginLimiter } from '../../engine/accounts/login-limiter.ts'

const never = new AbortController().signal

/** A task that ends when told. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  return { promise, open: () => resolve(undefined) }
}

suite('a lane', () => {
  test('API calls before live sync before back-fill, each kind in its order, one at a time', async () => {
    const lane = createLane()
    const order: string[] = []
    const first = gate()
    const blocking = lane.run('backfill', () => first.promise)
    const task = (priority: Priority, name: string) => lane.run(priority, () => Promise.resolve(void order.push(name)))
    const tasks = [task('backfill', 'b1'), task('live', 'l1'), task('api', 'a1'), task('live', 'l2'), task('api', 'a2')]
    assert.equal(lane.pending, 6)
    assert.equal(lane.wanted('api'), true)
    first.open()
    await Promise.all([blocking, ...tasks])
    assert.deepEqual(order, ['a1', 'a2', 'l1', 'l2', 'b1'])
    assert.equal(lane.pending, 0)
    assert.equal(lane.wanted('backfill'), false)
  })

  test('says whether a task of some priority or a higher one waits, and how many there are', async () => {
    const lane = createLane()
    const first = gate()
    const tasks = [lane.run('api', () => first.promise)]
    assert.deepEqual([lane.pending, lane.wanted('backfill')], [1, false], 'under way is not waiting')
    const kinds = ['backfill', 'live', 'stream', 'api'] as const
    const wanted = kinds.map((kind, index) => {
      tasks.push(lane.run(kind, () => Promise.resolve(undefined)))
      assert.equal(lane.pending, index + 2)
      return kinds.map((least) => lane.wanted(least))
    })
    assert.deepEqual(wanted, [
      [true, false, false, false],
      [true, true, true, false],
      [true, true, true, false],
      [true, true, true, true],
    ])
    first.open()
    await Promise.all(tasks)
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
            lane.run('live', async () => {
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
    const blocking = lane.run('live', () => first.promise)
    const stop = new AbortController()
    let ran = false
    const given = lane.run('api', () => Promise.resolve((ran = true)), stop.signal)
    const next = lane.run('live', () => Promise.resolve('next'))
    stop.abort(new AppError('timeout', 'too late'))
    await assert.rejects(given, (error) => isAppError(error, 'timeout'))
    assert.equal(lane.pending, 2)
    first.open()
    assert.equal(await next, 'next')
    await blocking
    assert.equal(ran, false)
    await assert.rejects(
      lane.run('api', () => Promise.resolve(), stop.signal),
      (error) => isAppError(error, 'timeout'),
    )
  })

  test('its end rejects those who wait and those who come; work under way goes on', async () => {
    const lane = createLane()
    const first = gate()
    const running = lane.run('live', () => first.promise.then(() => 'done'))
    const waiting = lane.run('api', () => Promise.resolve())
    lane.end(new AppError('shutting_down', 'over'))
    await assert.rejects(waiting, (error) => isAppError(error, 'shutting_down'))
    await assert.rejects(
      lane.run('api', () => Promise.resolve()),
      (error) => isAppError(error, 'shutting_down'),
    )
    first.open()
    assert.equal(await running, 'done')
  })
})

/** Times are seen this much late at most: the clock moves in steps. */
const stepMs = 50

/** A limiter on a clock that only the test moves; answers the times at which each login was let in. */
function clocked(t: TestContext, perMinute: number) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
  const limiter = createLoginLimiter({ perMinute })
  const entered: { readonly name: string; readonly at: number }[] = []
  const enter = (name: string, urgent = false, host = 'mail.example', signal: AbortSignal = never) =>
    enterAs(name, name, { urgent, host, signal })
  const enterAs = (
    name: string,
    user: string,
    {
      urgent = false,
      host = 'mail.example',
      signal = never,
    }: { urgent?: boolean; host?: string; signal?: AbortSignal },
  ) => limiter.enter(host, user, { urgent, signal }).then(() => void entered.push({ name, at: Date.now() - 1_000_000 }))
  /** Moves the clock in small steps, so that promises keep up with it. */
  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      t.mock.timers.tick(Math.min(stepMs, left))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { limiter, entered, enter, enterAs, pass }
}

suite('the login limiter', () => {
  test('no limit lets everybody in at once', async () => {
    const limiter = createLoginLimiter({ perMinute: 0 })
    await Promise.all(Array.from({ length: 500 }, () => limiter.enter('h', 'ann', { urgent: false, signal: never })))
    limiter.failed('h', 'ann')
    assert.equal(limiter.waiting, 0)
  })

  test('never more than the number in any minute, spread by the ramp, and all get in', async (t) => {
    const { limiter, entered, enter, pass } = clocked(t, 50)
    const all = Array.from({ length: 120 }, (_, n) => enter(String(n)))
    await pass(1000)
    assert(entered.length > 2 && entered.length < 6, `${entered.length} in the first second`)
    await pass(14_000)
    assert.equal(entered.length, 50)
    await pass(150_000)
    await Promise.all(all)
    assert.equal(limiter.waiting, 0)
    assert.deepEqual(
      entered.map(({ name }) => Number(name)),
      Array.from({ length: 120 }, (_, n) => n),
    )
    const times = entered.map(({ at }) => at)
    for (const [index, at] of times.entries()) assert((times[index + 50] ?? Infinity) - at >= 60_000 - stepMs)
  })

  test('a login that an API call waits for goes first and need not keep its distance; hosts do not wait for each other', async (t) => {
    const { entered, enter, pass } = clocked(t, 50)
    const all = [
      enter('a'),
      enter('b'),
      enter('c'),
      enter('urgent', true),
      enter('also', true),
      enter('other', false, 'OTHER.example'),
    ]
    await pass(50)
    assert.deepEqual(
      entered.map(({ name }) => name),
      ['a', 'urgent', 'also', 'other'],
    )
    await pass(1000)
    await Promise.all(all)
    assert.deepEqual(
      entered.map(({ name }) => name),
      ['a', 'urgent', 'also', 'other', 'b', 'c'],
    )
  })

  test('five failed logins in ten minutes slow the username at this host, and only that, and it never stops', async (t) => {
    const { limiter, entered, enterAs, pass } = clocked(t, 50)
    for (let n = 0; n < 5; n += 1) limiter.failed('Mail.example', 'Ann')
    const all = Array.from({ length: 20 }, (_, n) => enterAs(`ann ${n}`, 'ann', { urgent: n === 10 }))
    const others = [
      enterAs('there', 'ann', { host: 'b.example' }),
      ...Array.from({ length: 10 }, (_, n) => enterAs('bob', `bob ${n}`, { urgent: true })),
    ]
    await pass(stepMs)
    await Promise.all(others)
    await pass(60_000 - stepMs)
    const here = entered.filter(({ name }) => name.startsWith('ann'))
    assert(here.length >= 4 && here.length <= 6, `${here.length} in a minute`)
    assert.deepEqual(
      here.slice(0, 2).map(({ name }) => name),
      ['ann 0', 'ann 10'],
    )
    await pass(540_000)
    await Promise.all(all)
    const before = entered.length
    await pass(60_000)
    const fast = Array.from({ length: 10 }, (_, n) => enterAs(`fast ${n}`, 'ann', {}))
    await pass(5000)
    await Promise.all(fast)
    assert.equal(entered.length, before + 10)
  })

  test('tells how long an urgent login would have to wait', async (t) => {
    const { limiter, enterAs, pass } = clocked(t, 10)
    assert.equal(limiter.delay('mail.example', 'ann'), 0)
    for (let n = 0; n < 5; n += 1) {
      await enterAs('ann', 'ann', { urgent: true })
      limiter.failed('mail.example', 'ann')
    }
    assert.equal(limiter.delay('MAIL.example', 'ANN'), 60_000)
    assert.equal(limiter.delay('mail.example', 'bob'), 0)
    await pass(20_000)
    assert.equal(limiter.delay('mail.example', 'ann'), 40_000)
    for (let n = 0; n < 5; n += 1) await enterAs('bob', 'bob', { urgent: true })
    assert.equal(limiter.delay('mail.example', 'eve'), 40_000)
  })

  test('a new credential does not wait for the failures of the old one, until it looks like guessing', async (t) => {
    const { limiter, pass } = clocked(t, 50)
    const host = 'mail.example'
    for (let n = 0; n < 5; n += 1) limiter.failed(host, 'ann', 'old')
    assert.equal(limiter.rejections(host, 'ANN', 'old'), 5)
    assert.deepEqual([limiter.delay(host, 'ann', 'new'), limiter.rejections(host, 'ann', 'new')], [0, 0])
    for (let n = 0; n < 10; n += 1) limiter.failed(host, 'ann', `guess ${n}`)
    assert.equal(limiter.rejections(host, 'ann', 'new'), 15)
    assert.equal(limiter.rejections(host, 'bob', 'old'), 0)
    await pass(600_000)
    assert.equal(limiter.rejections(host, 'ann', 'old'), 0)
  })

  test('forgets hosts that nobody has asked for, and never holds more than its number of them', async (t) => {
    const { limiter, enter, pass } = clocked(t, 1)
    await enter('a', true, 'kept.example')
    const stop = new AbortController()
    const waits = enter('b', true, 'kept.example', stop.signal)
    limiter.failed('failed.example', 'ann')
    for (let n = 0; n < 10_100; n += 1) limiter.failed(`host-${n}.example`, 'ann')
    assert(limiter.hosts <= 10_001, `${limiter.hosts} hosts`)
    assert.equal(limiter.waiting, 1)
    await pass(stepMs)
    stop.abort(new AppError('shutting_down', 'over'))
    await assert.rejects(waits)
    t.mock.timers.tick(700_000)
    await enter('c', true, 'new.example')
    assert.equal(limiter.hosts, 1)
  })

  test('who gives up leaves the queue', async (t) => {
    const { limiter, entered, enter, pass } = clocked(t, 1)
    await enter('a')
    const stop = new AbortController()
    const given = enter('b', true, 'mail.example', stop.signal)
    const next = enter('c')
    assert.equal(limiter.waiting, 2)
    stop.abort(new AppError('shutting_down', 'over'))
    await assert.rejects(given, (error) => isAppError(error, 'shutting_down'))
    await assert.rejects(enter('d', true, 'mail.example', stop.signal), (error) => isAppError(error, 'shutting_down'))
    await pass(60_000)
    await next
    assert.deepEqual(
      entered.map(({ name }) => name),
      ['a', 'c'],
    )
  })
})
