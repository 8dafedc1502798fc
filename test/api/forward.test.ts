/** Calls that one node passes on to another, while users change hands. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createForwarding } from '../../api/forward.ts'
import type { Engine } from '../../engine/index.ts'
import { createPeers } from '../../engine/net/peers.ts'
import { until } from '../support/until.ts'

test('a write is answered by the owner that hands the user over, and not waited for when that one is gone', async (t) => {
  const peers = createPeers(Buffer.alloc(32, 7))
  t.after(() => peers.close())
  const asked: string[] = []
  const held: (() => void)[] = []
  const node = async (name: string, isSlow: boolean): Promise<string> => {
    const own = createPeers(Buffer.alloc(32, 7))
    t.after(() => own.close())
    const listener: RequestListener = (request, response) => {
      asked.push(`${request.method ?? ''} ${name}`)
      if (isSlow) held.push(() => response.end(name))
      else response.end(name)
    }
    return own.listen(listener, '127.0.0.1', 0)
  }
  const [before, after] = [await node('before', true), await node('after', false)]
  let owner = before
  let others = [before, after]
  const nodes = {
    ...{ ownsAll: () => false, ownsAny: () => false, address: () => null },
    ...{ ownerOf: () => ({ address: owner }), others: () => others, look: () => Promise.resolve() },
  }
  const config = { MAILROOM_REQUEST_TIMEOUT: 60_000, MAILROOM_TRUST_PROXY: false }
  const engine = { store: { nodes }, peers, config } as unknown as Engine
  const app = (): void => assert.fail('nobody owns anything here')
  const front = createServer(createForwarding(engine).outer(app, 'all', () => '')).listen(0, '127.0.0.1')
  t.after(() => front.close())
  await once(front, 'listening')
  const call = async (method: string): Promise<string> => {
    const { port } = front.address() as AddressInfo
    const answer = await fetch(`http://127.0.0.1:${port}/lite/users/${'a'.repeat(24)}`, { method })
    return answer.ok ? answer.text() : String(answer.status)
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
