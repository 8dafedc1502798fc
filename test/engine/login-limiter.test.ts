/** The login limiter: how fast, who goes first, and that nobody waits for ever. */
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

  test('never more than the number in any minute: a fifth at once, the others evenly, and all get in', async (t) => {
    const { limiter, entered, enter, pass } = clocked(t, 50)
    const all = Array.from({ length: 120 }, (_, n) => enter(String(n)))
    await pass(1000)
    const atOnce = entered.length
    await pass(59_000 - stepMs)
    assert(atOnce === 10 && entered.length > 48, `${atOnce}, ${entered.length} in the first minute`)
    await pass(110_000)
    await Promise.all(all)
    assert.equal(limiter.waiting, 0)
    assert.deepEqual(
      entered.map(({ name }) => Number(name)),
      Array.from({ length: 120 }, (_, n) => n),
    )
    const times = entered.map(({ at }) => at)
    for (const [index, at] of times.entries()) assert((times[index + 50] ?? Infinity) - at >= 60_000 - stepMs)
    const later = times.slice(10)
    for (const [index, at] of later.entries()) assert((later[index + 1] ?? at) - at <= 60_000 / 41 + stepMs)
  })

  test('a login that an API call waits for goes first; hosts do not wait for each other', async (t) => {
    const { entered, enter, pass } = clocked(t, 5)
    const all = [
      enter('a'),
      enter('b'),
      enter('c'),
      enter('urgent', true),
      enter('also', true),
      enter('other', false, 'OTHER.example'),
    ]
    const names = (): string[] => entered.map(({ name }) => name)
    await pass(50)
    assert.deepEqual(names(), ['a', 'other'])
    await pass(60_000)
    await Promise.all(all)
    assert.deepEqual(names(), ['a', 'other', 'urgent', 'also', 'b', 'c'])
  })

  test('five failed logins in ten minutes slow the username at this host, and only that, and it never stops', async (t) => {
    const { limiter, entered, enterAs, pass } = clocked(t, 50)
    for (let n = 0; n < 5; n += 1) limiter.failed(login('Mail.example', 'Ann'))
    const all = Array.from({ length: 20 }, (_, n) => enterAs(`ann ${n}`, 'ann', {}))
    const others = [
      enterAs('there', 'ann', { host: 'b.example' }),
      ...Array.from({ length: 10 }, (_, n) => enterAs('bob', `bob ${n}`, { urgent: true })),
    ]
    await pass(stepMs)
    await Promise.all(others)
    await pass(60_000 - stepMs)
    const here = entered.filter(({ name }) => name.startsWith('ann'))
    assert(here.length >= 4 && here.length <= 6, `${here.length} in a minute`)
    await pass(540_000)
    await Promise.all(all)
    const before = entered.length
    await pass(60_000)
    const fast = Array.from({ length: 10 }, (_, n) => enterAs(`fast ${n}`, 'ann', {}))
    await pass(stepMs)
    await Promise.all(fast)
    assert.equal(entered.length, before + 10)
  })

  test('tells how long an urgent login would have to wait', async (t) => {
    const { limiter, enterAs, pass } = clocked(t, 10)
    assert.equal(limiter.delay(login('mail.example', 'ann')), 0)
    for (let n = 0; n < 5; n += 1) limiter.failed(login('mail.example', 'ann'))
    assert.equal(limiter.delay(login('MAIL.example', 'ANN')), 60_000)
    assert.equal(limiter.delay(login('mail.example', 'bob')), 0)
    await pass(20_000)
    assert.equal(limiter.delay(login('mail.example', 'ann')), 40_000)
    for (let n = 0; n < 2; n += 1) await enterAs('bob', 'bob', { urgent: true })
    const distance = Math.floor(60_000 / 9)
    assert.equal(limiter.delay(login('mail.example', 'eve')), distance)
    assert.equal(limiter.delay(login('other.example', 'eve')), 0)
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

  test('logins that wait already are slowed too, once those before them were rejected', async (t) => {
    const { limiter, pass } = clocked(t, 600)
    let begun = 0
    for (let n = 0; n < 100; n += 1) {
      const guess = login('mail.example', 'ann', `guess ${n}`)
      void limiter.enter(guess, { urgent: true, signal: never }).then(() => {
        begun += 1
        limiter.failed(guess)
      })
    }
    await pass(15_000)
    assert(begun >= 15 && begun <= 15 + 120, `${begun} of 100`)
    const soon = begun
    await pass(10_000)
    assert(begun - soon <= 11, `${begun - soon} in ten seconds`)
  })

  test('an operator slows a host down, stops its logins, and frees them', async (t) => {
    const { limiter, entered, enter, pass } = clocked(t, 50)
    limiter.setPace('mail.example', 0)
    const all = Array.from({ length: 3 }, (_, n) => enter(`stopped ${n}`, true, 'Mail.example'))
    assert.equal(limiter.delay(login('mail.example', 'ann')), 600_000)
    await pass(120_000)
    assert.deepEqual([entered.length, limiter.waiting, limiter.paced()], [0, 3, ['mail.example']])
    limiter.setPace('MAIL.example', 1)
    await pass(1000)
    assert.deepEqual([entered.length, limiter.pace('mail.example')], [1, 1])
    limiter.setPace('mail.example', null)
    await pass(60_000)
    await Promise.all(all)
    assert.deepEqual([limiter.pace('mail.example'), limiter.paced()], [null, []])
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

/** Several developers at one host; the first letter of a name is the developer's. */
function shared(t: TestContext, perMinute: number) {
  const { limiter, entered, pass } = clocked(t, perMinute)
  const of = (name: string): Login => ({ host: 'mail.example', developerId: name[0] ?? '', username: name })
  const enter = (name: string, urgent = false): Promise<void> => {
    const at = (): number => Date.now() - 1_000_000
    return limiter.enter(of(name), { urgent, signal: never }).then(() => void entered.push({ name, at: at() }))
  }
  const many = (developer: string, count: number, urgent = false): Promise<void>[] =>
    Array.from({ length: count }, (_, n) => enter(`${developer}${n}`, urgent))
  return { limiter, entered, pass, of, enter, many }
}

suite('the login limiter, among developers', () => {
  test('take turns, also one who comes later, and also where the logins of another are urgent', async (t) => {
    const { entered, pass, enter, many } = shared(t, 40)
    void many('a', 200, true)
    await pass(10_000)
    const before = entered.length
    assert(before >= 8, `${before} of a alone`)
    void many('b', 50)
    void many('c', 3)
    void enter('a-urgent', true)
    await pass(60_000)
    const later = entered.slice(before, before + 30).map(({ name }) => name[0])
    const count = (developer: string): number => later.filter((one) => one === developer).length
    assert.equal(count('c'), 3)
    assert(later.slice(0, 5).includes('c') && later.slice(0, 5).includes('b'), later.join(''))
    assert(Math.abs(count('a') - count('b')) <= 2, later.join(''))
  })

  test('a single login waits for the one whose turn it is, and one of each other developer', async (t) => {
    const { entered, pass, enter, many } = shared(t, 50)
    for (const developer of ['a', 'b', 'c']) void many(developer, 100)
    await pass(20_000)
    for (let n = 0; n < 5; n += 1) {
      const asked = Date.now() - 1_000_000
      const login = enter(`z${n}`, true)
      await pass(6 * (60_000 / 41))
      await login
      const waited = (entered.find(({ name }) => name === `z${n}`)?.at ?? Infinity) - asked
      assert(waited <= 5 * (60_000 / 41) + stepMs, `${waited} ms`)
    }
  })

  test('what one developer has rejected slows nobody else, whatever the username', (t) => {
    const { limiter, of } = shared(t, 40)
    const mine = (developerId: string): Login => ({ ...of('x'), developerId, username: 'ann' })
    for (let n = 0; n < 20; n += 1) limiter.failed({ ...mine('a'), secret: `guess ${n}` })
    assert.equal(limiter.rejections(mine('a')), 20)
    assert.equal(limiter.rejections(mine('b')), 0)
    assert.equal(limiter.delay(mine('b')), 0)
  })

  test('the delay that is told counts those who go before, and is kept', async (t) => {
    const { limiter, entered, pass, of, enter, many } = shared(t, 20)
    void many('a', 30)
    await pass(20_000)
    void many('c', 5)
    await pass(stepMs)
    const told = limiter.delay(of('b-new'))
    assert(told > 0 && told <= 5 * (60_000 / 17), `told ${told}`)
    void enter('b-new', true)
    await pass(60_000)
    const at = entered.find(({ name }) => name === 'b-new')?.at ?? Infinity
    assert(at - 20_000 <= told + 2 * stepMs, `told ${told}, waited ${at - 20_000}`)
  })
})
