/** Guessing at keys and secrets of the running service: an address that guesses waits, everybody else does not. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { openStage, type Stage } from '../e2e/stage.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { sign } from '../support/oauth-signer.ts'
import { until } from '../support/until.ts'
import { beside } from './bystanders.ts'
import { basicOf, say, type Heard } from './stranger.ts'

const right = basicOf(apiKey, apiSecret)

suite('guessing at keys', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage({ env: { MAILROOM_TRUST_PROXY: '1' } })
  })
  after(() => stage.remove())

  const users = (): string => `${stage.service.url}/lite/users`
  const call = (from: string, authorization: string, headers: Readonly<Record<string, string>> = {}): Promise<Heard> =>
    say(users(), { from, headers: { authorization, ...headers } })
  const signedWith = (secret: string): string => {
    const call = { method: 'GET', baseUrl: stage.service.url, path: '/lite/users' }
    return sign(call, { key: apiKey, secret }).headers['authorization'] ?? ''
  }

  /** Guesses, and waits as it is told to, until the wait is long enough for what is looked at next. */
  async function untilItWaits(guess: (n: number) => Promise<Heard>): Promise<void> {
    for (let n = 0, waitSeconds = 0; waitSeconds < 4; n += 1) {
      assert(n < 250, 'nobody has to wait')
      await setTimeout(waitSeconds * 1000)
      waitSeconds = Number((await guess(n)).headers['retry-after'] ?? 0)
    }
  }

  const guesses: Readonly<Record<string, (n: number) => string>> = {
    'Basic, one key': (n) => basicOf(apiKey, `guess ${n}`),
    'Basic, many keys': (n) => basicOf(`key-${n}`, 'guess'),
    'Bearer, one key': (n) => `Bearer ${apiKey}.guess${n}`,
    'Bearer, many keys': (n) => `Bearer k${n}.a.b.c.d.e.f.g.h`,
    'OAuth signatures': (n) => signedWith(`guess ${n}`),
  }
  // Most of their time is waiting as they are told to.
  suite('one address each', { concurrency: true }, () => {
    for (const [index, [name, guess]] of Object.entries(guesses).entries()) {
      test(`${name}: the address waits, the developer at another one does not`, async () => {
        const from = `127.0.1.${index + 1}`
        const free = name.includes('many') ? 100 : 10
        let refused = 0
        await beside(stage.service, async () => {
          // Until the wait is long enough for what is looked at next, however slow this machine is.
          for (let n = 0, waitSeconds = 0; waitSeconds < 4; n += 1) {
            const { status, headers, body } = await call(from, guess(n))
            if (status === 401) refused += 1
            else {
              assert.equal(status, 429)
              assert(refused >= free, `a wait after ${refused} guesses`)
              assert.match(
                body,
                /Authorization: too many wrong keys or signatures from this address; try again in \d+ s/,
              )
              waitSeconds = Number(headers['retry-after'])
            }
          }
        })
        assert(refused <= free + 4, `${refused} guesses were answered`)
        assert.equal((await call(from, right)).status, 429, 'nobody is told whether a guess is right')
        assert.equal((await call('127.0.0.1', right)).status, 200)
        assert.equal((await say(`${stage.service.url}/healthz`, { from })).status, 200)
        await until('the wait is over', async () => (await call(from, right)).status === 200, { withinMs: 20_000 })
      })
    }
  })

  test('behind a trusted proxy the address is the one that the proxy wrote, not what the client did', async () => {
    const via = (forwarded: string, authorization: string): Promise<Heard> =>
      call('127.0.0.1', authorization, { 'x-forwarded-for': forwarded })
    await untilItWaits((n) => via(`10.0.0.${n % 250}, 203.0.113.7`, basicOf(apiKey, 'guess')))
    assert.equal((await via('10.9.9.9, 203.0.113.7', right)).status, 429)
    assert.equal((await via('203.0.113.7:4711', right)).status, 429, 'some proxies write the port')
    assert.equal((await via('203.0.113.7, 203.0.113.8', right)).status, 200)
    assert.equal((await call('127.0.0.1', right)).status, 200, 'the proxy itself has guessed nothing')
    await untilItWaits((n) => via(`2001:db8:1:2::${n}`, basicOf(apiKey, 'guess')))
    assert.equal((await via('[2001:db8:1:2:ffff::1]:80', right)).status, 429, 'a /64 network is one client')
    assert.equal((await via('2001:db8:1:3::1', right)).status, 200)
  })

  test('who is not behind a trusted proxy cannot choose its address', async () => {
    const { service } = stage
    await service.stop()
    await service.start({ MAILROOM_TRUST_PROXY: '0' })
    await untilItWaits((n) =>
      call('127.0.2.1', basicOf(apiKey, 'guess'), { 'x-forwarded-for': `203.0.113.${n % 250}` }),
    )
    assert.equal((await call('127.0.2.1', right, { 'x-forwarded-for': '198.51.100.1' })).status, 429)
    assert.equal((await call('127.0.0.1', right)).status, 200)
  })
})
