/** Calls that one node passes on to another, while users change hands. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable, type Writable } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import { createForwarding } from '../../api/forward.ts'
import { lookPath, type Engine, type Owner } from '../../engine/index.ts'
import { createPeers } from '../../engine/net/peers.ts'
import { until } from '../support/until.ts'
import { callRaw } from './core/raw-call.ts'

const path = `/lite/users/${'a'.repeat(24)}`
const key = Buffer.alloc(32, 7)

/** A node that owns nothing, and its port for clients. */
async function startFront(
  t: TestContext,
  known: { readonly ownerOf: () => Owner; readonly others?: () => string[]; readonly timeoutMs?: number },
): Promise<number> {
  const peers = createPeers(key)
  t.after(() => peers.close())
  const { ownerOf, others = () => [], timeoutMs = 60_000 } = known
  const none = { ownsAll: () => false, ownsAny: () => false, address: () => null }
  const nodes = { ...none, ownerOf, others, look: () => Promise.resolve() }
  const config = { MAILROOM_REQUEST_TIMEOUT: timeoutMs, MAILROOM_TRUST_PROXY: false }
  const engine = { store: { nodes }, peers, config } as unknown as Engine
  const app = (): void => assert.fail('nobody owns anything here')
  const front = createServer(createForwarding(engine).outer(app, 'all', () => '')).listen(0, '127.0.0.1')
  t.after(() => {
    front.closeAllConnections()
    front.close()
  })
  await once(front, 'listening')
  return (front.address() as AddressInfo).port
}

/** The address of a node that answers calls. */
async function startNode(t: TestContext, listener: RequestListener): Promise<string> {
  const own = createPeers(key)
  t.after(() => own.close())
  return own.listen(listener, '127.0.0.1', 0)
}

test('a write is answered by the owner that hands the user over, and not waited for when that one is gone', async (t) => {
  const asked: string[] = []
  const held: (() => void)[] = []
  const node = (name: string, isSlow: boolean): Promise<string> =>
    startNode(t, ({ method = '' }, response) => {
      asked.push(`${method} ${name}`)
      if (isSlow) held.push(() => response.end(name))
      else response.end(name)
    })
  const [before, after] = [await node('before', true), await node('after', false)]
  let owner = before
  let others = [before, after]
  const port = await startFront(t, { ownerOf: () => ({ address: owner }), others: () => others })
  const call = async (method: string): Promise<string> => {
    const { status, text } = await callRaw(port, method, path)
    return status === 200 ? text : String(status)
  }
  const begin = async (method: string): Promise<{ readonly answer: Promise<string> }> => {
    owner = before
    const answer = call(method)
    await until('it is asked', () => asked.splice(0).length > 0)
    owner = after
    return { answer }
  }

  const read = await begin('GET')
  assert.equal(await read.answer, 'after')
  asked.length = 0
  const handed = await begin('POST')
  // Longer than it takes to ask the successor, had it been a read.
  assert.equal(await call('GET'), 'after')
  const other = await begin('GET')
  assert.equal(await other.answer, 'after')
  held.splice(0).forEach((answer) => answer())
  assert.equal(await handed.answer, 'before')
  asked.length = 0
  const lost = await begin('POST')
  others = [after]
  assert.equal(await lost.answer, '503')
})

const mib = 1_048_576

suite('a call about a user without an owner', () => {
  for (const [what, method, body] of [
    ['a read', 'GET', undefined],
    ['a write', 'POST', '{}'],
    ['an upload that is streamed', 'POST', Buffer.alloc(mib)],
  ] as const)
    test(`${what} waits until its deadline, and is told when to come again`, async (t) => {
      const timeoutMs = 600
      const port = await startFront(t, { ownerOf: () => null, timeoutMs })
      const began = performance.now()
      const { status, headers, json } = await callRaw(port, method, path, body === undefined ? {} : { body })
      const tookMs = performance.now() - began
      assert.equal(status, 503)
      assert.equal(headers['retry-after'], '2')
      assert.equal(headers['content-type'], 'application/json')
      const value = 'the user is being handed over to another process; try again'
      assert.deepEqual(json, { type: 'error', value })
      assert(tookMs >= timeoutMs, `answered after ${tookMs} ms`)
    })

  test('is answered by an owner that comes before the deadline', async (t) => {
    const address = await startNode(t, (_, response) => response.end('here'))
    let owner: Owner = null
    const port = await startFront(t, { ownerOf: () => owner })
    const answer = callRaw(port, 'GET', path)
    setTimeout(() => (owner = { address }), 300)
    assert.equal((await answer).text, 'here')
  })
})

suite('bytes through another node', () => {
  const length = 96 * mib
  /** Bytes that three sockets on the way, and Node's own buffers, may hold. */
  const mostHeld = 40 * mib
  const stillMs = 500

  interface Source {
    readonly stream: Readable
    /** Bytes that were taken from it. */
    readonly taken: () => number
    readonly hash: () => string
  }

  /** Another content in each chunk. */
  function source(): Source {
    const hash = createHash('sha256')
    let taken = 0
    function* chunks(): Generator<Buffer> {
      while (taken < length) {
        const chunk = Buffer.alloc(65_536, taken / 65_536)
        hash.update(chunk)
        taken += chunk.length
        yield chunk
      }
    }
    return {
      stream: Readable.from(chunks(), { objectMode: false }),
      taken: () => taken,
      hash: () => hash.digest('hex'),
    }
  }

  async function hashOf(bytes: Readable): Promise<string> {
    const hash = createHash('sha256')
    for await (const chunk of bytes) hash.update(chunk as Buffer)
    return hash.digest('hex')
  }

  /** Resolves when nobody takes any more. */
  async function still({ taken }: Source): Promise<number> {
    let [seen, since] = [-1, performance.now()]
    await until('the source stands still', () => {
      if (taken() !== seen) [seen, since] = [taken(), performance.now()]
      return taken() > 0 && performance.now() - since > stillMs
    })
    return seen
  }

  test('a large answer waits for a client that reads slowly, and arrives whole', async (t) => {
    const sent = source()
    const address = await startNode(t, (_, response) => void sent.stream.pipe(response))
    const port = await startFront(t, { ownerOf: () => ({ address }), others: () => [address] })
    const [response] = (await once(request({ port, path, agent: false }).end(), 'response')) as [IncomingMessage]
    const held = await still(sent)
    assert(held < mostHeld, `${held / mib} MiB are on the way`)
    assert.equal(await hashOf(response), sent.hash())
    assert.equal(sent.taken(), length)
  })

  test('a large body waits for a node that reads slowly, and arrives whole', async (t) => {
    const reading = Promise.withResolvers<undefined>()
    const address = await startNode(t, (call, response) => {
      if (call.url === lookPath) response.end()
      else void reading.promise.then(async () => response.end(await hashOf(call)))
    })
    const port = await startFront(t, { ownerOf: () => ({ address }), others: () => [address] })
    const sent = source()
    const headers = { 'content-length': length }
    const call: Writable = request({ port, path, method: 'POST', agent: false, headers })
    const answered = once(call, 'response')
    sent.stream.pipe(call)
    const held = await still(sent)
    assert(held < mostHeld, `${held / mib} MiB are on the way`)
    reading.resolve(undefined)
    const [response] = (await answered) as [IncomingMessage]
    const text = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString()
    assert.equal(text, sent.hash())
    assert.equal(sent.taken(), length)
  })
})
