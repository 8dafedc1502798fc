/**
 * Very many calls on few connections, and very many that become whole at the same moment: nobody else waits for them.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStage, type Stage } from '../e2e/stage.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { until } from '../support/until.ts'
import { beside, mostResidentMib, processorMs } from './bystanders.ts'
import { addressOf, destroyAll, hold, type Held } from './sockets.ts'
import { basicOf } from './stranger.ts'

const one = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: mail.example\r\n\r\n`

const texts = new WeakMap<Held, string>()

/** Sends it from an address of its own, and keeps all that comes. */
async function send(stage: Stage, number: number, calls: string): Promise<Held> {
  const held = await hold(stage.service.url, addressOf(number), [])
  held.socket.setEncoding('latin1')
  held.socket.on('data', (chunk: string) => texts.set(held, (texts.get(held) ?? '') + chunk))
  held.socket.write(calls)
  return held
}

/** Statuses of what came, in order. */
function statuses(held: Held): number[] {
  return [...(texts.get(held) ?? held.text).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
}

suite('very many calls at once', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage()
  })
  after(() => stage.remove())

  test('in one piece on a connection: 16 are answered, one is refused, and the connection ends', async () => {
    const { service } = stage
    const held: Held[] = []
    const waits = await beside(
      service,
      async () => {
        for (let n = 0; n < 20; n += 1) held.push(await send(stage, 0, one('/nowhere').repeat(1900)))
        await until('all ended', () => held.every(({ closed }) => closed))
      },
      10,
    )
    for (const each of held) assert.deepEqual(statuses(each), [...Array<number>(16).fill(404), 429])
    assert.match(texts.get(held[0] as Held) ?? '', /more than 16 calls wait on this connection/)
    assert(waits.health < 1000 && waits.list < 2000, JSON.stringify(waits))
    assert(waits.processor < 4000, `${waits.processor} ms of processor time`)
  })

  test('by clients that read no answer', async () => {
    const { service } = stage
    const held: Held[] = []
    const waits = await beside(
      service,
      async () => {
        for (let n = 0; n < 100; n += 1)
          held.push(await hold(service.url, addressOf(1), [], one('/lite/users').repeat(1500), true))
        await sleep(2000)
      },
      10,
    )
    destroyAll(held)
    assert(waits.health < 2000 && waits.list < 2000, JSON.stringify(waits))
    assert(waits.processor < 5000, `${waits.processor} ms of processor time`)
  })

  test('of a client that may: all are answered, in order', async () => {
    const paths = ['/healthz', '/nowhere', '/lite/users', '/healthz', '/lite/users', '/nowhere', '/healthz', '/healthz']
    const held = await send(stage, 2, [...paths, ...paths].map(one).join(''))
    const wanted = [200, 404, 401, 200, 401, 404, 200, 200]
    await until('all answers', () => statuses(held).length >= 16 || held.closed)
    assert.deepEqual(statuses(held), [...wanted, ...wanted])
    held.socket.write(one('/healthz'))
    await until('one more', () => statuses(held).length === 17)
    held.socket.destroy()
  })

  test('behind a call that does not end: they are not read', async () => {
    const { service } = stage
    const user = String((await service.ok('POST', '/lite/users', { email: 'ann@mail.example' }))['id'])
    const head = [
      `GET /lite/users/${user}/changes HTTP/1.1`,
      'Accept: text/event-stream',
      `Authorization: ${basicOf(apiKey, apiSecret)}`,
    ]
    const held = await hold(service.url, addressOf(3), head)
    await until('the stream', () => statuses(held).length === 1)
    const [used, memory] = [processorMs(service), mostResidentMib(service, true)]
    held.socket.write(one('/healthz').repeat(1_000_000))
    await sleep(1500)
    assert.deepEqual([statuses(held), held.closed], [[200], false])
    assert(processorMs(service) - used < 1000)
    assert(mostResidentMib(service) - memory < 64)
    assert(held.socket.writableLength > 1_000_000, 'most of it stays where it is')
    held.socket.destroy()
  })

  test('forms that become whole at the same moment', async () => {
    const { service } = stage
    const pairs = Array.from({ length: 960 }, (_, n) => `${n}%41%42%43=${'%41'.repeat(18)}`)
    const form = Buffer.from(pairs.join('&'))
    const head = [
      'POST /lite/users HTTP/1.1',
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${form.length}`,
    ]
    const held: Held[] = []
    for (let n = 0; n < 600; n += 1)
      held.push(await hold(service.url, addressOf(4 + (n % 4)), head, form.subarray(0, -1)))
    const waits = await beside(
      service,
      async () => {
        for (const { socket } of held) socket.write(form.subarray(-1))
        await until('all answers', () => held.every((each) => statuses(each).length === 1))
      },
      10,
    )
    assert(held.every((each) => statuses(each)[0] === 401))
    destroyAll(held)
    assert(waits.health < 1000 && waits.list < 1000, JSON.stringify(waits))
  })
})
