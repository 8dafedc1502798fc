/**
 * Very many connections to the service: those of developers go on, health is told, the rest is refused at once and
 * counted.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { openEventStream, type EventStream } from '../support/event-stream.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { until } from '../support/until.ts'
import { addressOf, destroyAll, hold, type Held } from './sockets.ts'
import { basicOf, say } from './stranger.ts'

const authorization = basicOf(apiKey, apiSecret)

/** Of mailroom_connections…, by their labels. */
async function metric({ service }: Stage, line: string): Promise<number> {
  const { body } = await say(`${service.url}/metrics`)
  return Number(
    body
      .split('\n')
      .find((one) => one.startsWith(`${line} `))
      ?.slice(line.length + 1) ?? Number.NaN,
  )
}

const overLimit = (stage: Stage, limit: string, outcome: string): Promise<number> =>
  metric(stage, `mailroom_connections_over_limit_total{limit="${limit}",outcome="${outcome}"}`)

const isServed = async ({ service }: Stage): Promise<boolean> =>
  (await say(`${service.url}/lite/users`, { headers: { authorization } }).catch(() => null))?.status === 200

const halfSent = ['POST /lite/users HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 100']

async function flood(
  stage: Stage,
  count: number,
  addresses: number,
  head: readonly string[],
  body = '',
): Promise<Held[]> {
  const held: Held[] = []
  for (let n = 0; n < count; n += 1) held.push(await hold(stage.service.url, addressOf(n % addresses), head, body))
  return held
}

suite('very many connections', () => {
  test('that ask nothing: those over a limit are closed, in all and of one address', async () => {
    await using parts = new AsyncDisposableStack()
    const stage = await openStage({
      env: { MAILROOM_CONNECTIONS_MAX: '50', MAILROOM_CONNECTIONS_PER_ADDRESS: '20' },
    })
    parts.defer(() => stage.remove())
    const one = await flood(stage, 60, 1, [])
    await until('of one address', () => one.filter(({ closed }) => !closed).length <= 20)
    assert.deepEqual([one[0]?.closed, one.at(-1)?.closed], [false, true], 'the newest')
    const many = await flood(stage, 200, 15, [])
    await until('in all', () => [...one, ...many].filter(({ closed }) => !closed).length <= 50)
    assert.equal((await say(`${stage.service.url}/healthz`)).status, 200)
    assert((await overLimit(stage, 'address', 'closed')) >= 20)
    assert((await overLimit(stage, 'all', 'closed')) >= 100)
    destroyAll([...one, ...many])
    await until('a place is free', () => isServed(stage))
  })

  test('with half of a call each: health is told within seconds, and a developer is served when they end', async () => {
    await using parts = new AsyncDisposableStack()
    const stage = await openStage({ env: { MAILROOM_CONNECTIONS_MAX: '50', MAILROOM_REQUEST_TIMEOUT: '5s' } })
    parts.defer(() => stage.remove())
    const held = await flood(stage, 200, 15, halfSent, '{"a":')
    await until('health is told', async () => (await say(`${stage.service.url}/healthz`)).status === 200)
    assert(held.filter(({ closed }) => !closed).length <= 66)
    await until('the halves are over', () => isServed(stage))
    assert((await metric(stage, 'mailroom_connections')) <= 51)
    destroyAll(held)
  })

  test('of a developer, all in use: none is closed, more are refused in clear words, and health is told', async () => {
    await using parts = new AsyncDisposableStack()
    const stage = await openStage({
      env: { MAILROOM_CONNECTIONS_MAX: '30', MAILROOM_CONNECTIONS_PER_ADDRESS: '100' },
    })
    parts.defer(() => stage.remove())
    const { service } = stage
    const users: string[] = []
    for (const name of ['ann', 'bob', 'eve'])
      users.push(String((await service.ok('POST', '/lite/users', { email: `${name}@mail.example` }))['id']))
    const watch = (n: number): Promise<EventStream> =>
      openEventStream(`${service.url}/lite/users/${users[n % 3]}/changes`, { authorization })
    const streams: EventStream[] = []
    for (let stream = await watch(0); stream.status === 200; stream = await watch(streams.length)) streams.push(stream)
    // The connections that made the users are kept alive, and have places too.
    assert(streams.length >= 27, `${streams.length} streams`)
    const silent = await flood(stage, 40, 2, [])
    await until('the silent ones over the limit are closed', () => silent.every(({ closed }) => closed))
    for (let n = 0; n < 5; n += 1) {
      const refused = await say(`${service.url}/lite/users`, { headers: { authorization } })
      assert.equal(refused.status, 503)
      assert.match(refused.body, /too many connections at once \(MAILROOM_CONNECTIONS_MAX\)/)
      assert.equal(refused.headers['retry-after'], '5')
      for (const path of ['/healthz', '/readyz', '/metrics'])
        assert.equal((await say(service.url + path)).status, 200, path)
    }
    assert(streams.every(({ ended }) => !ended))
    assert((await overLimit(stage, 'all', 'refused')) >= 5)
    streams.pop()?.close()
    await until('a place is free', () => isServed(stage))
    for (const stream of streams) stream.close()
  })

  test('of one client behind a trusted proxy: the others of the same proxy are served', async () => {
    await using parts = new AsyncDisposableStack()
    const env = { MAILROOM_TRUST_PROXY: '1', MAILROOM_CONNECTIONS_PER_ADDRESS: '5' }
    const stage = await openStage({ env })
    parts.defer(() => stage.remove())
    const { service } = stage
    const from = (address: string) => ({ authorization, 'x-forwarded-for': address })
    const user = String((await service.ok('POST', '/lite/users', { email: 'ann@mail.example' }))['id'])
    const streams: EventStream[] = []
    for (let n = 0; n < 5; n += 1)
      streams.push(await openEventStream(`${service.url}/lite/users/${user}/changes`, from(`192.0.2.1, 198.51.100.7`)))
    const list = (address: string) => say(`${service.url}/lite/users`, { headers: from(address) })
    const refused = await list('192.0.2.9, 198.51.100.7')
    assert.equal(refused.status, 429)
    assert.match(refused.body, /from this address \(MAILROOM_CONNECTIONS_PER_ADDRESS\)/)
    for (let n = 0; n < 10; n += 1) assert.equal((await list(`198.51.100.7, 203.0.113.${n}`)).status, 200)
    assert.equal(await overLimit(stage, 'address', 'refused'), 1)
    for (const stream of streams) stream.close()
    await until('its calls are over', async () => (await list('198.51.100.7')).status === 200)
  })
})
