/**
 * What a wrong call gets from the running service: a status, a reason that names the fault, and no half-made record.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { readConfig } from '../../engine/config.ts'
import { freePort } from '../support/port.ts'
import { apiKey, apiSecret, type Json, type Service } from '../support/service.ts'
import { userBody } from '../support/users.ts'
import { openStage, type Stage } from './stage.ts'

const nowhere = { host: '127.0.0.1', port: 1, password: 'secret' }

async function assertNothingCreated(service: Service): Promise<void> {
  assert.deepEqual(await service.list('/lite/users?limit=100'), [])
}

suite('bad input', () => {
  let stage: Stage
  let service: Service
  before(async () => {
    stage = await openStage({ env: { MAILROOM_CREATE_TIMEOUT: '5s' } })
    service = stage.service
  })
  after(() => stage.remove())

  const refused = async (status: number, words: RegExp, method: string, path: string, body?: Json): Promise<void> => {
    const answer = await service.api(method, path, body)
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    assert.equal(answer.headers.get('content-type'), 'application/json')
    const { type, value } = answer.body as Json
    assert.equal(type, 'error')
    assert.match(String(value), words)
  }
  const unknown = 'f'.repeat(24)

  test('unknown ids are 404 and named', async () => {
    const words = new RegExp(`${unknown} is invalid`)
    await refused(404, words, 'GET', `/lite/users/${unknown}`)
    await refused(404, words, 'DELETE', `/lite/users/${unknown}`)
    await refused(404, words, 'GET', `/lite/users/${unknown}/email_accounts/0/messages`)
    await refused(404, words, 'POST', `/lite/users/${unknown}/webhooks`, { callback_url: 'http://127.0.0.1:1/' })
    await refused(404, /./, 'GET', '/no/such/path')
  })

  for (const name of ['server', 'username', 'port', 'password']) {
    test(`a user without ${name} is 400 and names it`, async () => {
      const whole = userBody(nowhere, 'jane@mail.example')
      const body = Object.fromEntries(Object.entries(whole).filter(([key]) => key !== name))
      await refused(400, new RegExp(name), 'POST', '/lite/users', body)
      await assertNothingCreated(service)
    })
  }

  for (const [name, value] of [
    ['port', 'x'],
    ['port', 70_000],
    ['use_ssl', 'maybe'],
    ['type', 'pop3'],
    ['status_callback_url', 'ftp://x.example/'],
  ] as const) {
    test(`${name}=${value} is 400 and names it`, async () => {
      await refused(
        400,
        new RegExp(name),
        'POST',
        '/lite/users',
        userBody(nowhere, 'jane@mail.example', { [name]: value }),
      )
      await assertNothingCreated(service)
    })
  }

  test('a body that is not JSON is 400, one over 1 MiB is 413', async () => {
    const post = (body: string) =>
      fetch(`${service.url}/lite/users`, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/json',
          authorization: `Basic ${btoa(`${apiKey}:${apiSecret}`)}`,
        },
      })
    assert.equal((await post('{"email":')).status, 400)
    assert.equal((await post(JSON.stringify({ email: 'x'.repeat(1_048_576) }))).status, 413)
    await assertNothingCreated(service)
  })

  test('no key, a wrong key and a wrong secret are 401', async () => {
    for (const authorization of [
      undefined,
      'Basic Zm9vOmJhcg==',
      `Basic ${btoa(`${apiKey}:wrong`)}`,
      `Bearer ${apiKey}.wrong`,
    ]) {
      const init = authorization === undefined ? {} : { headers: { authorization } }
      const answer = await fetch(`${service.url}/lite/users`, init)
      assert.equal(answer.status, 401, String(authorization))
      assert.equal(((await answer.json()) as Json)['type'], 'error')
    }
  })

  test('a wrong OAuth signature is 401 with the base string that the server computed', async () => {
    const parameters = {
      oauth_consumer_key: apiKey,
      oauth_nonce: 'n1',
      oauth_signature: 'AAAA',
      oauth_signature_method: 'HMAC-SHA1',
      oauth_timestamp: String(Math.floor(Date.now() / 1000)),
      oauth_version: '1.0',
    }
    const header = Object.entries(parameters).map(([name, value]) => `${name}="${encodeURIComponent(value)}"`)
    const answer = await fetch(`${service.url}/lite/users?limit=5`, {
      headers: { authorization: `OAuth ${header.join(', ')}` },
    })
    const body = (await answer.json()) as Json
    assert.equal(answer.status, 401)
    assert.equal(body['code'], 105)
    const base = `GET&${encodeURIComponent(`${service.url}/lite/users`)}&limit%3D5%26oauth_consumer_key%3D${apiKey}`
    assert(String(body['value']).includes(base), String(body['value']))
  })

  test('a port where nobody listens is a soft failure at once', async () => {
    const body = userBody({ ...nowhere, port: await freePort() }, 'jane@mail.example')
    const answer = await service.ok('POST', '/lite/users', body)
    assert.equal(answer['success'], false)
    assert.equal(answer['feedback_code'], 'connection_refused')
    await assertNothingCreated(service)
  })

  test('a host that never answers is a soft failure within the time for creations, which is 20 s', async (t) => {
    assert.equal(readConfig({}).MAILROOM_CREATE_TIMEOUT, 20_000)
    const sockets: Socket[] = []
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    t.after(() => {
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    const began = performance.now()
    const port = (silent.address() as AddressInfo).port
    const answer = await service.ok('POST', '/lite/users', userBody({ ...nowhere, port }, 'jane@mail.example'))
    assert.equal(answer['success'], false)
    assert.equal(answer['feedback_code'], 'timeout')
    assert(performance.now() - began < 9500, 'in time')
    await assertNothingCreated(service)
  })
})

suite('private addresses', () => {
  let stage: Stage
  let service: Service
  before(async () => {
    stage = await openStage({ env: { MAILROOM_ALLOW_PRIVATE: '0' } })
    service = stage.service
  })
  after(() => stage.remove())

  for (const host of [
    '127.0.0.1',
    '10.1.2.3',
    '192.168.0.1',
    '169.254.169.254',
    '::1',
    '::ffff:127.0.0.1',
    'localhost',
  ]) {
    test(`a mail server at ${host} is refused with a reason`, async () => {
      const { status, body } = await service.api(
        'POST',
        '/lite/users',
        userBody({ ...nowhere, host }, 'jane@mail.example'),
      )
      const { value, success, feedback_code: code } = body as Json
      if (status === 200) assert.deepEqual([success, code], [false, 'private_address'])
      else {
        assert.equal(status, 400, JSON.stringify(body))
        assert.match(String(value), /private|loopback|public/i)
      }
      await assertNothingCreated(service)
    })
  }

  test('so is a callback URL, and there is no webhook afterwards', async () => {
    const id = String((await service.ok('POST', '/lite/users', { email: 'jane@mail.example' }))['id'])
    for (const url of ['http://127.0.0.1/x', 'http://[::1]/x', 'https://10.0.0.8/x', 'http://2130706433/x']) {
      const { status, body } = await service.api('POST', `/lite/users/${id}/webhooks`, { callback_url: url })
      assert.equal(status, 400, JSON.stringify(body))
      assert.match(String((body as Json)['value']), /private|loopback|public/i)
    }
    assert.deepEqual(await service.list(`/lite/users/${id}/webhooks`), [])
  })
})
