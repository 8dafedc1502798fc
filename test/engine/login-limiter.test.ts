/** The login limiter: how fast, who goes first, whose share is whose, and that nobody waits for ever. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { AppError, isAppError } from '../../engine/errors.ts'
import { createLoginLimiter, type Login } from '../../engine/accounts/login-limiter.ts'

const never = new AbortController().signal

/** Of one developer. */
const login = (host: string, username: string, secret?: string): Login => ({
  ...{ host, username, developerId: 'dev' },
  ...(secret === undefined ? {} : { secret }),
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
  ) =>
    limiter
      .enter(login(host, user), { urgent, signal })
      .then(() => void entered.push({ name, at: Date.now() - 1_000_000 }))
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
    await Promise.all(
      Array.from({ length: 500 }, () => limiter.enter(login('h', 'ann'), { urgent: false, signal: never })),
    )
    limiter.failed(login('h', 'ann'))
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
    for (let n = 0; n < 5; n += 1) limiter.failed(login('Mail.example', 'Ann'))
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
    assert.equal(limiter.delay(login('mail.example', 'ann')), 0)
    for (let n = 0; n < 5; n += 1) {
      await enterAs('ann', 'ann', { urgent: true })
      limiter.failed(login('mail.example', 'ann'))
    }
    assert.equal(limiter.delay(login('MAIL.example', 'ANN')), 60_000)
    assert.equal(limiter.delay(login('mail.example', 'bob')), 0)
    await pass(20_000)
    assert.equal(limiter.delay(login('mail.example', 'ann')), 40_000)
    for (let n = 0; n < 5; n += 1) await enterAs('bob', 'bob', { urgent: true })
    assert.equal(limiter.delay(login('mail.example', 'eve')), 40_000)
  })

  test('a new credential does not wait for the failures of the old one, until it looks like guessing', async (t) => {
    const { limiter, pass } = clocked(t, 50)
    const host = 'mail.example'
    for (let n = 0; n < 5; n += 1) limiter.failed(login(host, 'ann', 'old'))
    assert.equal(limiter.rejections(login(host, 'ANN', 'old')), 5)
    assert.deepEqual([limiter.delay(login(host, 'ann', 'new')), limiter.rejections(login(host, 'ann', 'new'))], [0, 0])
    for (let n = 0; n < 10; n += 1) limiter.failed(login(host, 'ann', `guess ${n}`))
    assert.equal(limiter.rejections(login(host, 'ann', 'new')), 15)
    assert.equal(limiter.rejections(login(host, 'bob', 'old')), 0)
    await pass(600_000)
    assert.equal(limiter.rejections(login(host, 'ann', 'old')), 0)
  })

  test('forgets hosts that nobody has asked for, and never holds more than its number of them', async (t) => {
    const { limiter, enter, pass } = clocked(t, 1)
    await enter('a', true, 'kept.example')
    const stop = new AbortController()
    const waits = enter('b', true, 'kept.example', stop.signal)
    limiter.failed(login('failed.example', 'ann'))
    for (let n = 0; n < 10_100; n += 1) limiter.failed(login(`host-${n}.example`, 'ann'))
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

/** The names of those who came in, in groups by their first letter: their developer. */
function countBy(entered: readonly { readonly name: string }[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { name } of entered) counts[name[0] ?? ''] = (counts[name[0] ?? ''] ?? 0) + 1
  return counts
}

/** Several developers at one host; the first letter of a name is the developer's. */
function shared(t: TestContext, perMinute: number) {
  const { limiter, entered, pass } = clocked(t, perMinute)
  const of = (name: string, check = false): Login => ({
    ...{ host: 'mail.example', developerId: name[0] ?? '', username: name, check },
  })
  const enter = (name: string, options: { urgent?: boolean; check?: boolean; signal?: AbortSignal } = {}) => {
    const { check = false, urgent = check, signal = never } = options
    const at = (): number => Date.now() - 1_000_000
    return limiter.enter(of(name, check), { urgent, signal }).then(() => void entered.push({ name, at: at() }))
  }
  const many = (developer: string, count: number, options?: Parameters<typeof enter>[1]): Promise<void>[] =>
    Array.from({ length: count }, (_, n) => enter(`${developer}${n}`, options))
  return { limiter, entered, pass, of, enter, many }
}

suite('the login limiter, among developers', () => {
  test('who comes later has the same share; urgent ones go first within their own', async (t) => {
    const { entered, pass, enter, many } = shared(t, 40)
    void many('a', 200)
    await pass(4000)
    const before = entered.length
    assert(before > 8 && before < 14, `${before} of a alone`)
    void many('b', 200)
    void many('c', 3)
    void enter('a-urgent', { urgent: true })
    await pass(60_000)
    const { a = 0, b = 0, c } = countBy(entered.slice(0, 40))
    assert.deepEqual([c, a + b], [3, 37])
    assert(Math.abs(a - b) <= 1, `a ${a}, b ${b}`)
    const next = entered.slice(before).filter(({ name }) => name.startsWith('a'))
    assert.equal(next[0]?.name, 'a-urgent')
    await pass(120_000)
    const later = countBy(entered.slice(40, 120))
    assert(Math.abs((later['a'] ?? 0) - (later['b'] ?? 0)) <= 2, JSON.stringify(later))
  })

  test('one who adds accounts leaves a quarter of the pace to others, also with its first logins', async (t) => {
    const { entered, pass, enter, many, limiter, of } = shared(t, 40)
    void many('a', 60, { check: true })
    await pass(100)
    assert.deepEqual(countBy(entered), { a: 30 })
    void many('a', 60)
    await pass(30_000)
    assert.deepEqual(countBy(entered), { a: 30 }, 'its own logins too')
    assert.equal(limiter.delay(of('b', true)), 0)
    void enter('b1', { check: true })
    void enter('b2')
    await pass(2000)
    assert.deepEqual(countBy(entered), { a: 30, b: 2 })
  })

  test('while other logins wait, checks take half of the pace at most, and each developer its first ones', async (t) => {
    const { entered, pass, enter, many } = shared(t, 40)
    void many('z', 100)
    void many('a', 60, { check: true })
    void many('b', 60, { check: true })
    await pass(60_000 - 1)
    assert.equal(entered.length, 40)
    const { a = 0, b = 0, z = 0 } = countBy(entered)
    assert(a + b <= 20 && z >= 13, JSON.stringify({ a, b, z }))
    void enter('c', { check: true })
    await pass(3000)
    const later = entered.slice(40).map(({ name }) => name)
    assert(later.includes('c'), JSON.stringify(later))
  })

  test('a developer alone at a host has all of the pace; where others were lately, some of it is left to them', async (t) => {
    const { entered, pass, enter, many } = shared(t, 40)
    void many('a', 100)
    await pass(20_000)
    assert.deepEqual(countBy(entered), { a: 40 })
    void enter('b')
    await pass(100_000)
    const { b, a = 0 } = countBy(entered)
    assert.equal(b, 1)
    assert(a <= 76 + 1, `${a} of a`)
    const started = entered.length
    void enter('b-again', { urgent: true })
    await pass(50)
    assert.equal(entered[started]?.name, 'b-again')
  })

  test('what one developer has rejected slows nobody else, whatever the username', (t) => {
    const { limiter, of } = shared(t, 40)
    const mine = (developerId: string): Login => ({ ...of('x'), developerId, username: 'ann' })
    for (let n = 0; n < 20; n += 1) limiter.failed({ ...mine('a'), secret: `guess ${n}` })
    assert.equal(limiter.rejections(mine('a')), 20)
    assert.equal(limiter.rejections(mine('b')), 0)
    assert.equal(limiter.delay(mine('b')), 0)
  })

  test('the delay that is told counts those who go before', async (t) => {
    const { limiter, entered, pass, of, enter, many } = shared(t, 20)
    void many('a', 30)
    await pass(20_000)
    void many('c', 5)
    void enter('a-urgent', { urgent: true })
    await pass(1000)
    const [b, a] = [limiter.delay(of('b-new')), limiter.delay(of('a-new'))]
    assert.deepEqual(
      [b, a],
      [39_000 + 750, 39_000 + 6 * 750],
      'one of c goes before b; all of c, and an urgent one, before a',
    )
    void enter('b-new', { urgent: true })
    void enter('a-new', { urgent: true })
    await pass(60_000)
    const waited = (name: string): number => (entered.find((one) => one.name === name)?.at ?? Infinity) - 21_000
    assert(Math.abs(waited('b-new') - b) <= stepMs, `told ${b}, waited ${waited('b-new')}`)
    assert(Math.abs(waited('a-new') - a) <= 750 + stepMs, `told ${a}, waited ${waited('a-new')}`)
  })

  test('a developer who has had its part is told when it has one again', async (t) => {
    const { limiter, entered, pass, of, enter, many } = shared(t, 20)
    void many('a', 10, { check: true })
    await pass(5000)
    void many('a', 5, { check: true })
    await pass(1000)
    assert.deepEqual([limiter.delay(of('a', true)), limiter.delay(of('b', true))], [54_000, 0])
    void enter('a-new', { check: true })
    await pass(54_000 - stepMs)
    assert.equal(entered.length, 15)
    await pass(2 * stepMs)
    assert.equal(entered.at(-1)?.name, 'a-new')
  })
})
