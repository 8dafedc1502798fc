/** Writes of two nodes to one account, as the proxies judge. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trackWriters } from './writers.ts'

test('writes of two nodes to one account are noticed, and refused ones are none', () => {
  const writers = trackWriters()
  const send = (node: string, command: object, answer: object): void => writers.watch(node)(command)?.(answer)
  const claim = (node: string, epoch: number): void => {
    const update = { $inc: { epoch: 1 }, $set: { fence: epoch } }
    send(node, { findAndModify: 'accounts', query: { _id: 'a' }, update }, { value: { _id: 'a', epoch } })
    const q = { accountId: 'a', epoch: { $lt: epoch } }
    send(node, { update: 'folders', updates: [{ q, u: { $set: { epoch } } }] }, { n: 1 })
  }
  const write = (epoch: number) => ({ update: 'folders', updates: [{ q: { _id: 'f', accountId: 'a', epoch }, u: {} }] })
  const doubles = (): number => writers.facts().double.length

  claim('one', 1)
  send('one', write(1), { n: 1 })
  const late = writers.watch('one')(write(1))
  claim('two', 2)
  late?.({ n: 1 })
  assert.equal(doubles(), 0, 'on its way while the other node claims')
  send('one', write(1), { n: 0 })
  send('two', write(2), { n: 1 })
  assert.deepEqual(writers.facts(), { claims: 2, writes: 3, refused: 1, double: [] })
  send('one', write(1), { n: 1 })
  assert.equal(doubles(), 1, 'an older epoch')
  send('one', { findAndModify: 'folders', query: { _id: 'f', accountId: 'a', epoch: 2 } }, { value: { _id: 'f' } })
  assert.equal(doubles(), 2, 'the epoch of another node')
})
