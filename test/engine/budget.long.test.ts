/**
 * What is held at once is bounded, by use, developer and part; nobody waits for those who are slow, and small ones for
 * no large one.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { createBudget, type Budget, type Owner, type Release } from '../../engine/budget.ts'

const mib = 1_048_576
/**
 * 32 MiB for large contents (over 256 KiB), 8 for small ones, 8 for bodies of calls, 16 for answers of mail servers.
 */
const total = 64 * mib

/** A part of a developer of its own. */
const alone = (name: string): Owner => ({ developerId: name, part: 'one' })
const calls = (developerId: string): Owner => ({ developerId, part: '' })

async function isTaken(taking: Promise<unknown>): Promise<boolean> {
  let taken = false
  void taking.then(() => (taken = true))
  for (let count = 0; count < 5; count += 1) await turn()
  return taken
}

async function must(taking: Promise<Release | null>): Promise<Release> {
  const release = await taking
  assert(release !== null)
  return release
}

suite('a budget', () => {
  test('of a pool a part has a quarter at most, and all together no more than there is', async () => {
    const budget = createBudget(total)
    const take = (name: string, bytes: number) => must(budget.take('contents', alone(name), bytes))
    const first = await take('a', 6 * mib)
    const second = take('a', 6 * mib)
    assert.equal(await isTaken(second), false, 'the same part waits')
    const others = await Promise.all(['b', 'c', 'd'].map((name) => take(name, 8 * mib)))
    const last = take('e', 4 * mib)
    const behind = take('f', mib)
    assert.equal(await isTaken(last), false, 'all is out')
    assert.equal(await isTaken(behind), false, 'who fits passes nobody who waits for room')
    others[0]?.(4 * mib)
    assert.equal(await isTaken(last), true, 'a piece was given back')
    others[1]?.()
    first()
    assert.equal(await isTaken(second), true)
    assert.equal(await isTaken(behind), true)
  })

  test('small ones wait for no large one, nor one use for another', async () => {
    const budget = createBudget(total)
    for (const name of ['a', 'b']) await must(budget.take('contents', alone(name), 500 * mib))
    assert.equal(await isTaken(budget.take('contents', alone('c'), mib)), false)
    for (let count = 0; count < 8; count += 1)
      assert.equal(await isTaken(budget.take('contents', alone('a'), 256 * 1024)), true)
    assert.equal(await isTaken(budget.take('contents', alone('a'), 256 * 1024)), false, 'a quarter of the small pool')
    assert.equal(await isTaken(budget.take('contents', alone('b'), 256 * 1024)), true)
    for (const use of ['request', 'literal'] as const)
      assert.equal(await isTaken(budget.take(use, alone('a'), mib)), true, use)
  })

  test('a developer has at most five eighths, and who has nothing gets a share while others want more', async () => {
    const budget = createBudget(total)
    const grab = async (name: string): Promise<number> => {
      let count = 0
      while (await isTaken(budget.take('contents', calls(name), mib))) count += 1
      return count
    }
    const taken = [await grab('a'), await grab('b'), await grab('c'), await grab('d')]
    assert.deepEqual(taken, [20, 4, 1, 1], 'of 32: five eighths, the rest of three quarters, and spare ones')
    const release = await must(createBudget(total).take('contents', calls('a'), 500 * mib))
    release()
    assert.equal(await isTaken(budget.take('contents', calls('e'), mib)), true)
  })

  test('who has waited too long gets nothing and holds up nobody; an end wakes all who wait', async () => {
    const budget = createBudget(total, 50)
    const take = () => budget.take('contents', alone('a'), 8 * mib)
    const held = await must(take())
    assert.equal(await take(), null)
    held()
    const again = await must(take())
    const stop = new AbortController()
    const gone = budget.take('contents', alone('a'), 8 * mib, { signal: stop.signal })
    stop.abort(new Error('gone'))
    await assert.rejects(gone, /gone/)
    const waiting = take()
    budget.close()
    await assert.rejects(waiting, { code: 'shutting_down' })
    await assert.rejects(take(), { code: 'shutting_down' })
    again()
  })

  test('never more is out than there is, and all is given back', async () => {
    const step = fc.record({
      owner: fc.constantFrom('a', 'b', 'c'),
      bytes: fc.nat(12 * mib),
      abort: fc.boolean(),
      turns: fc.nat(3),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const budget = createBudget(total)
        let out = 0
        const work = steps.map(async ({ owner, bytes, abort, turns }) => {
          const stop = new AbortController()
          const taking = budget.take('literal', calls(owner), bytes, { signal: stop.signal })
          if (abort) stop.abort(new Error('gone'))
          const release = await taking.catch(() => null)
          if (release === null) return
          const held = Math.min(bytes, 8 * mib)
          out += held
          assert(out <= 16 * mib)
          for (let left = turns; left > 0; left -= 1) await turn()
          release(held / 2)
          out -= held
          release()
          release()
        })
        await Promise.all(work)
        await wholePool(budget)
      }),
      { numRuns: 100 },
    )
  })
})

async function wholePool(budget: Budget): Promise<void> {
  for (const name of ['x', 'y']) assert.equal(await isTaken(budget.take('literal', calls(name), 8 * mib)), true)
}
