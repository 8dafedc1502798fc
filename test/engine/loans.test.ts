/**
 * Places that are lent: what takes too long gives its place back, waits in other turns from then on, and is ended when
 * it is too much.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { AppError, isAppError } from '../../engine/errors.ts'
import { createLoans, type Loan } from '../../engine/turns.ts'

const never = new AbortController().signal

/** Loans on a clock that only the test moves, and works that end when told. `name` is 'developer/key'. */
function clocked(t: TestContext, places: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const loans = createLoans({ places, lendMs: 1000, progressMs: 100, ended: 'too slow' })
  const begun: string[] = []
  const works = new Map<string, { readonly loan: Loan; readonly end: () => void }>()
  async function settle(): Promise<void> {
    for (let n = 0; n < 5; n += 1) await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    loans,
    begun,
    settle,
    workOf: (name: string) => works.get(name) ?? assert.fail(`${name} has not begun`),
    start: async (
      name: string,
      { signal = never, before }: { readonly signal?: AbortSignal; readonly before?: () => Promise<void> } = {},
    ): Promise<{ readonly answer: Promise<string> }> => {
      const [developerId = '', key = ''] = name.split('/')
      const work = (loan: Loan): Promise<string> => {
        begun.push(name)
        const { promise, resolve, reject } = Promise.withResolvers<string>()
        works.set(name, { loan, end: () => resolve(name) })
        loan.signal.addEventListener('abort', () => reject(loan.signal.reason as Error))
        return promise
      }
      const wanted = before === undefined ? { signal } : { signal, before }
      const answer = loans.run({ developerId, key: key.slice(0, 1), urgent: false }, work, wanted)
      answer.catch(() => undefined)
      await settle()
      return { answer }
    },
    end: async (name: string): Promise<void> => {
      works.get(name)?.end()
      await settle()
    },
    pass: async (ms: number): Promise<void> => {
      t.mock.timers.tick(ms)
      await settle()
    },
  }
}

suite('loans', () => {
  test('a work that ends in time has its place until then', async (t) => {
    const { start, end, pass, begun, loans } = clocked(t, 1)
    const { answer } = await start('a/x')
    await start('a/y')
    await pass(900)
    assert.deepEqual(begun, ['a/x'])
    assert.equal(loans.waiting, 1)
    await end('a/x')
    assert.equal(await answer, 'a/x')
    assert.deepEqual(begun, ['a/x', 'a/y'])
  })

  test('one that takes too long goes on without its place, and answers all the same', async (t) => {
    const { start, end, pass, begun } = clocked(t, 1)
    const { answer } = await start('a/x')
    await start('a/y')
    await pass(1000)
    assert.deepEqual(begun, ['a/x', 'a/y'])
    await start('a/z')
    await end('a/x')
    assert.equal(await answer, 'a/x')
    assert.deepEqual(begun, ['a/x', 'a/y'], 'its place was given back once')
  })

  test('progress prolongs the loan by so much for each, and no more', async (t) => {
    const { start, pass, workOf, begun } = clocked(t, 1)
    await start('a/x')
    await start('a/y')
    for (let n = 0; n < 5; n += 1) workOf('a/x').loan.progress()
    await pass(1000)
    await pass(450)
    assert.deepEqual(begun, ['a/x'])
    await pass(50)
    assert.deepEqual(begun, ['a/x', 'a/y'])
  })

  test('what was slow waits in turns of its own, also who waits already, until a work ends in time', async (t) => {
    const { start, end, pass, begun, loans } = clocked(t, 1)
    await start('a/x1')
    await start('a/x2')
    await pass(1000)
    assert.deepEqual(begun, ['a/x1', 'a/x2'], 'the slow ones have a place besides')
    await start('a/y1')
    assert.deepEqual(begun.slice(2), ['a/y1'], 'the usual place is free for others')
    await start('a/x3')
    await start('a/x4')
    assert.equal(loans.waiting, 2)
    await end('a/x2')
    assert.deepEqual(begun.slice(3), [], 'now they wait with the others of their developer')
    await end('a/y1')
    assert.deepEqual(begun.slice(3), ['a/x3'])
  })

  test('a work that was given up says nothing about its key', async (t) => {
    const { start, end, pass, begun } = clocked(t, 1)
    await start('a/x1')
    await pass(1000)
    const stop = new AbortController()
    await start('a/x2', { signal: stop.signal })
    stop.abort(new AppError('shutting_down', 'over'))
    await end('a/x2')
    await start('a/y1')
    await start('a/x3')
    assert.deepEqual(begun, ['a/x1', 'a/x2', 'a/y1', 'a/x3'], 'still slow: it has not to wait for y')
  })

  test('too many late ones: the oldest of the developer who has most of them is ended', async (t) => {
    const { start, pass } = clocked(t, 1)
    const answers = new Map<string, Promise<string>>()
    for (const name of ['b/1', 'a/1', 'a/2']) {
      const { answer } = await start(name)
      answers.set(name, answer)
      await pass(1000)
    }
    await assert.rejects(
      answers.get('a/1') ?? assert.fail(),
      (error) => isAppError(error, 'timeout') && error.message === 'too slow',
    )
    for (const name of ['b/1', 'a/2']) {
      const state = await Promise.race([answers.get(name)?.then(String, String), Promise.resolve('goes on')])
      assert.equal(state, 'goes on')
    }
  })

  test('what is waited for before is no part of the time, and a slow one waits for it in its place', async (t) => {
    const { start, pass, begun, settle } = clocked(t, 1)
    const doors: (() => void)[] = []
    const before = (): Promise<void> => new Promise((resolve) => doors.push(resolve))
    await start('a/x1', { before })
    await pass(5000)
    await start('a/y1')
    assert.deepEqual(begun, ['a/y1'], 'who waits has no place')
    await pass(1000)
    doors.shift()?.()
    await settle()
    assert.deepEqual(begun, ['a/y1', 'a/x1'])
    await start('a/y2', { before })
    await start('a/y3', { before })
    assert.equal(doors.length, 1, 'y is slow: one after the other')
    await pass(1000)
    assert.equal(doors.length, 2, 'not for ever')
  })

  test('a long wait apart gives the place to others; afterwards it is had again before them, and the time is new', async (t) => {
    const { start, end, pass, workOf, begun, settle } = clocked(t, 1)
    await start('a/x')
    const apart = Promise.withResolvers<undefined>()
    let back = false
    const waits = workOf('a/x')
      .loan.untimed(() => apart.promise)
      .then(() => (back = true))
    await start('a/y')
    await pass(900)
    assert.deepEqual(begun, ['a/x'])
    await pass(100)
    assert.deepEqual(begun, ['a/x', 'a/y'])
    await start('a/z')
    apart.resolve(undefined)
    await settle()
    assert.equal(back, false, 'the place is taken')
    await end('a/y')
    await waits
    assert.deepEqual(begun, ['a/x', 'a/y'])
    await pass(999)
    assert.deepEqual(begun, ['a/x', 'a/y'])
    await pass(1)
    assert.deepEqual(begun, ['a/x', 'a/y', 'a/z'])
  })
})
