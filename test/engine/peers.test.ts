/** Calls between nodes: only those who have the key are heard. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { createPeers, type Peers } from '../../engine/net/peers.ts'

const key = Buffer.alloc(32, 1)

function peersWith(t: TestContext, own: Buffer, former: readonly Buffer[] = []): Peers {
  const peers = createPeers(own, former)
  t.after(() => peers.close())
  return peers
}

const call = (change: Partial<Parameters<Peers['call']>[1]> = {}) => {
  return { method: 'POST', path: '/x', headers: [], body: null, signal: new AbortController().signal, ...change }
}

test('a call goes through with its headers and body, and the answer comes back', async (t) => {
  const server = peersWith(t, key)
  const address = await server.listen(
    (request, response) => {
      void text(request).then((body) => {
        response.writeHead(201, { 'X-Seen': `${String(request.headers['x-one'])} ${String(request.url)}` })
        response.end(body.toUpperCase())
      })
    },
    '127.0.0.1',
    0,
  )
  const peers = peersWith(t, key)
  for (const body of [Buffer.from('hello'), Readable.from([Buffer.from('hel'), Buffer.from('lo')])]) {
    const answer = await peers.call(address, call({ headers: ['X-One', '1'], body }))
    assert.deepEqual([answer.status, answer.headers['x-seen'], await text(answer.body)], [201, '1 /x', 'HELLO'])
  }
  assert.equal(await peers.tell(address, '/look'), 201)
  const raw = await peers.call(address, call({ path: '/a/../b/%2e%2e/c' }))
  assert.equal(raw.headers['x-seen'], 'undefined /a/../b/%2e%2e/c', 'the path is as it came')
  raw.body.resume()
})

test('without the key nothing is heard, on either side', async (t) => {
  let heard = 0
  const server = peersWith(t, key)
  const address = await server.listen(() => (heard += 1), '127.0.0.1', 0)
  const stranger = peersWith(t, Buffer.alloc(32, 2))
  await assert.rejects(stranger.call(address, call({ body: Buffer.from('secret') })), { code: 'network' })
  assert.equal(await stranger.tell(address, '/look'), 0)
  assert.equal(await fetch(`http://${address}/look`).catch(() => 'refused'), 'refused')
  assert.equal(heard, 0)
})

test('while the key is replaced, nodes that still have the old one reach the others, and are reached', async (t) => {
  const [old, next] = [Buffer.alloc(32, 3), Buffer.alloc(32, 4)]
  const nodes: readonly (readonly [string, Buffer, readonly Buffer[]])[] = [
    ['before', old, []],
    ['knows the next one', old, [next]],
    ['has replaced it', next, [old]],
    ['has forgotten the old one', next, []],
  ]
  const reached: string[] = []
  for (const [name, own, former] of nodes) {
    const address = await peersWith(t, own, former).listen((_, response) => response.end(), '127.0.0.1', 0)
    for (const [other, its, itsFormer] of nodes)
      if ((await peersWith(t, its, itsFormer).tell(address, '/look')) === 200) reached.push(`${other} → ${name}`)
  }
  const strangers = ['before → has forgotten the old one', 'has forgotten the old one → before']
  const all = nodes.flatMap(([name]) => nodes.map(([other]) => `${other} → ${name}`))
  assert.deepEqual(
    all.filter((one) => !reached.includes(one)),
    strangers.toSorted((one, other) => all.indexOf(one) - all.indexOf(other)),
  )
})

test('a node that is not there is known by the reason', async (t) => {
  const server = peersWith(t, key)
  const address = await server.listen((_, response) => response.end(), '127.0.0.1', 0)
  await server.close()
  const failure: unknown = await peersWith(t, key)
    .call(address, call())
    .catch((error: unknown) => error)
  assert.equal((failure as { details: { reason: string } }).details.reason, 'ECONNREFUSED')
})
