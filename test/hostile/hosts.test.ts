/**
 * The Host header is whatever a stranger writes: it gets into no page that others see, and costs no page of its own.
 */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { processorMs } from './bystanders.ts'
import { apiKey, apiSecret } from '../support/service.ts'
import { basicOf, say, type Heard } from './stranger.ts'

const documents = ['/docs', '/openapi.json']
const link = '/downloads/a/b/0?expires=1&signature=x'
const pages = ['/console', '/console/login', '/connect', '/connect/unknown', '/connect/oauth2callback?state=x', link]

suite('a Host that is not ours', () => {
  let stage: Stage
  before(async () => {
    stage = await openStage({ env: { MAILROOM_TRUST_PROXY: '1' } })
  })
  after(() => stage.remove())

  const ask = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Heard> =>
    say(stage.service.url + path, { headers })
  test('is in no document; the base URL is the one of the service', async () => {
    for (const path of documents) {
      const usual = await ask(path)
      assert(usual.body.includes(stage.service.url))
      for (const name of ['host', 'x-forwarded-host']) {
        const { status, body } = await ask(path, { [name]: 'evil.example' })
        assert.equal(status, 200)
        assert.equal(body, usual.body, 'the same for everybody')
      }
    }
  })

  test('that is no address by its shape alone is a 400 like another one, wherever a page or a link is made of it', async () => {
    const authorization = basicOf(apiKey, apiSecret)
    for (const host of ['256.1.1.1', 'localhost:99999', '[:::::1]', '999999999999', '1.2.3.4.5'])
      for (const name of ['host', 'x-forwarded-host'])
        for (const path of [...pages, '/lite/users']) {
          const { status, body } = await ask(path, { [name]: host, accept: 'text/html', authorization })
          assert.equal(status, 400, `${name}: ${host} ${path}`)
          assert.match(body, /Host: not a host name/)
        }
  })

  test('gets no page, whether a caller or a trusted proxy says it', async () => {
    for (const name of ['host', 'x-forwarded-host'])
      for (const path of pages) {
        const { status, body } = await ask(path, { [name]: 'evil.example', accept: 'text/html' })
        assert.equal(status, 400, `${name} ${path}`)
        assert.match(body, /Host: not a name of this service/)
      }
  })

  test('many names cost about what one does', async () => {
    const cost = async (host: (n: number) => string): Promise<number> => {
      const started = processorMs(stage.service)
      for (let n = 0; n < 100; n += 1) for (const path of documents) await ask(path, { host: host(n) })
      return processorMs(stage.service) - started
    }
    await cost(() => 'one.example')
    const one = await cost(() => 'one.example')
    const many = await cost((n) => `host-${n}.example`)
    // A page of its own for each name takes many times as long.
    assert(many < 5 * one + 1000, `${one} ms for one name, ${many} ms for 100`)
  })

  test('MAILROOM_HOST is a name of the service', async () => {
    const page = () => ask('/connect/unknown', { host: '0.0.0.0', accept: 'text/html' })
    assert.equal((await page()).status, 400)
    await stage.service.stop()
    await stage.service.start({ MAILROOM_HOST: '0.0.0.0' })
    assert.equal((await page()).status, 404)
  })

  test('MAILROOM_PUBLIC_URL goes before all', async () => {
    const { service } = stage
    await service.stop()
    await service.start({ MAILROOM_PUBLIC_URL: 'https://mail.example.com/base/' })
    for (const path of documents) {
      const { body } = await ask(path, { host: 'evil.example', 'x-forwarded-host': 'evil.example' })
      assert(body.includes('https://mail.example.com/base') && !body.includes('evil.example'))
      assert(!body.includes('base//'), 'no slash twice')
    }
  })
})
