/** Limits over two nodes: what each counts, the other one hears. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCounter, createTries } from '../../api/limits.ts'
import { AppError } from '../../engine/errors.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { createUses, ownUses, type ToldUses, type Uses } from '../../engine/uses.ts'
import { until } from '../support/until.ts'

/** Nodes that hear each other, those that are away but for; answers also how often each was told something. */
function joined(count: number) {
  const told: string[] = []
  const away = new Set<string>()
  const all: { readonly uses: Uses; readonly id: string }[] = []
  for (let at = 0; at < count; at += 1) {
    const id = `node ${at}`
    const others = () => all.filter((one) => one.id !== id)
    const nodes = { id, has: (name: string) => name !== id, others: () => others().map((one) => one.id) }
    const tellAll = (uses: ToldUses): Promise<boolean> => {
      const there = others().filter((one) => !away.has(one.id))
      for (const one of there) {
        told.push(one.id)
        one.uses.heard(JSON.parse(JSON.stringify(uses)) as ToldUses)
      }
      return Promise.resolve(there.length === others().length)
    }
    all.push({ uses: createUses({ nodes, tellAll }), id })
  }
  return { all, told, away }
}

test('a counter counts what all nodes have counted, told together', async () => {
  const { all, told } = joined(3)
  const counters = all.map(({ uses }) => createCounter(60_000, () => 1000, { uses, kind: 'calls' }))
  const [first, second, third] = counters
  for (let at = 0; at < 100; at += 1) first?.count('ann')
  for (let at = 0; at < 10; at += 1) second?.count('ann')
  second?.count('bob')
  assert.equal(first?.windowOf('ann').count, 100, 'a call waits for nobody')
  await until('all know', () => counters.every((one) => one.windowOf('ann').count === 110))
  await until('all know of bob', () => counters.every((one) => one.windowOf('bob').count === 1))
  assert.equal(third?.windowOf('eve').count, 0)
  assert.equal(told.length, 4, 'each of the two that counted has told each other one once')
})

test('wrong keys count over all nodes, and a right one ends them', async () => {
  const { all } = joined(2)
  const tries = all.map(({ uses }) => createTries({ free: 4, now: () => 1000, log: silentLogger, uses }))
  const heard = new Map<string, number>()
  for (const { uses, id } of all)
    uses.hear('wrong key', (name, by) => name.endsWith(' key') && heard.set(id, (heard.get(id) ?? 0) + by))
  const [first, second] = tries
  const wrong = () => Promise.reject(new AppError('unauthorized', 'wrong'))
  const codeOf = async (one: typeof first, check: () => Promise<unknown>, name = 'key'): Promise<string> =>
    (await one?.run('127.0.0.9', name, check).catch((error: unknown) => (error as AppError).code)) as string
  const right = () => Promise.resolve('fits')
  for (let at = 0; at < 3; at += 1) assert.equal(await codeOf(first, wrong, 'other'), 'unauthorized')
  assert.equal(await codeOf(first, right, 'other'), 'fits')
  for (let at = 0; at < 2; at += 1) assert.equal(await codeOf(first, wrong), 'unauthorized')
  for (let at = 0; at < 2; at += 1) assert.equal(await codeOf(second, wrong), 'unauthorized')
  await until('both know', () => all.every(({ id }) => heard.get(id) === 2))
  for (const one of tries) assert.equal(await codeOf(one, right), 'rate_limited')
  assert.equal(await codeOf(second, wrong, 'other'), 'unauthorized', 'the right one was heard of')
})

test('of what is open each node tells the number, again where it was not heard', async () => {
  const { all, away } = joined(2)
  const heard: unknown[] = []
  all[1]?.uses.hear('streams', (...one) => heard.push(one))
  all[1]?.uses.hear('calls', (...one) => heard.push(one))
  for (const open of [1, 2, 1, 2]) all[0]?.uses.tell('streams', 'dev', open)
  await until('it is told', () => heard.length > 0)
  assert.deepEqual(heard, [['dev', 2, 'node 0']])
  away.add('node 1')
  all[0]?.uses.tell('streams', 'dev', 7)
  all[0]?.uses.tell('calls', 'dev')
  await sleep(300)
  away.clear()
  await until('it is told again', () => heard.length > 1)
  assert.deepEqual(heard.slice(1), [['dev', 7, 'node 0']], 'calls that nobody heard of are lost')
})

test('a process that is alone tells nobody', () => {
  let told = 0
  const tellAll = () => Promise.resolve((told += 1) > 0)
  const uses = createUses({ nodes: { id: '', has: () => false, others: () => [] }, tellAll })
  const counter = createCounter(1000, () => 0, { uses, kind: 'calls' })
  assert.equal(counter.count('ann').count, 1)
  assert.deepEqual([uses.nodes(), ownUses.nodes(), told], [1, 1, 0])
})
