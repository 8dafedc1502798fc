/** Limits of callers over two processes: it does not matter which one is asked. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openEventStream, type EventStream } from '../support/event-stream.ts'
import { needs } from '../support/require.ts'
import { apiKey, apiSecret, startService, type Service } from '../support/service.ts'
import { databaseOn, dropDatabase } from '../support/store-choice.ts'
import { until } from '../support/until.ts'

const callsPerHour = 1000
const wrongKeys = 10
const basic = (secret: string) => `Basic ${Buffer.from(`${apiKey}:${secret}`).toString('base64')}`

suite('limits over two processes', { timeout: 240_000, ...needs('mongodb') }, () => {
  const services: Service[] = []
  let mongoUri = ''

  before(async () => {
    mongoUri = databaseOn(process.env['MONGODB_URI'] ?? '', `mailroom_nodes_${randomBytes(4).toString('hex')}`)
    const env = {
      MAILROOM_SECRET: 'ab'.repeat(32),
      MAILROOM_RATE_CALLS_PER_HOUR: String(callsPerHour),
      MAILROOM_WRONG_KEYS: String(wrongKeys),
    }
    for (let count = 0; count < 2; count += 1) services.push(await startService({ mongoUri, env }))
    await until('both own slots', () => services.every((one) => one.log().includes('slots claimed')))
    let asked = 0
    const hearsOther = async (at: number): Promise<boolean> => callsPerHour - (await callOf(at)).left > asked
    await until('they know each other', async () => {
      asked += 1
      const heard = [await hearsOther(0), await hearsOther(1)]
      return heard.every(Boolean)
    })
  })
  after(async () => {
    for (const service of services) await service.remove()
    await dropDatabase(mongoUri)
  })

  const serviceOf = (at: number): Service => services[at % services.length] as Service
  async function callOf(at: number) {
    const { status, headers } = await serviceOf(at).api('GET', '/lite/users?limit=1')
    return { status, left: Number(headers.get('x-ratelimit-remaining')) }
  }

  test('event streams of a developer', async (t) => {
    const users: string[] = []
    for (let at = 0; at < 13; at += 1) users.push(String((await serviceOf(at).ok('POST', '/lite/users', {}))['id']))
    const open = async (at: number): Promise<EventStream> => {
      const url = `${serviceOf(at).url}/lite/users/${users[at % users.length]}/changes`
      const stream = await openEventStream(url, { authorization: basic(apiSecret) })
      t.after(() => stream.close())
      return stream
    }
    const streams: EventStream[] = []
    for (let at = 0; at < 200; at += 1) streams.push(await open(at))
    assert.deepEqual([...new Set(streams.map(({ status }) => status))], [200])
    await until('more are refused by both', async () => {
      const more = [await open(0), await open(1)]
      for (const one of more) one.close()
      return more.every(({ status }) => status === 429)
    })
    for (const stream of streams.slice(0, 20)) stream.close()
    await until('there is room at both', async () => (await open(0)).status === 200 && (await open(1)).status === 200)
  })

  test('calls of a key', async () => {
    const { left: before } = await callOf(0)
    let answered = 0
    for (let refused = false; !refused && answered < 2 * callsPerHour;) {
      const calls = await Promise.all([0, 1, 2, 3].map(callOf))
      answered += calls.filter(({ status }) => status === 200).length
      refused = calls.some(({ status }) => status === 429)
    }
    assert.ok(Math.abs(answered - before) <= callsPerHour / 10, `${answered} calls where ${before} were left`)
    for (const at of [0, 1]) await until('both refuse', async () => (await callOf(at)).status === 429)
  })

  test('wrong keys of an address', async () => {
    const guess = async (at: number) =>
      (await fetch(`${serviceOf(at).url}/lite/users`, { headers: { authorization: basic('wrong') } })).status
    let wrong = 0
    // Each process hears of the guesses at the other one before the next guess.
    for (; (await guess(wrong)) === 401; wrong += 1) await pause(300)
    assert.ok(wrong <= wrongKeys + 2, `${wrong} guesses`)
    for (const at of [0, 1]) await until('both wait', async () => (await guess(at)) === 429)
  })
})
