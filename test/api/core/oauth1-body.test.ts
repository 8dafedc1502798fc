/** oauth_body_hash: a body that no signature covers is covered by its hash, where the client sends one. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { sign, type SignerMethod } from '../../support/oauth-signer.ts'
import { echoRoutes } from './echo.ts'
import { apiKey, apiSecret, callRaw, type Answer } from './raw-call.ts'
import { startRig, type Rig } from './rig.ts'

const own = { key: apiKey, secret: apiSecret } as const
const json = '{"name":"Anna","when":"früh"}'
const multipart = '--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nAnna\r\n--x--\r\n'

suite('the hash of a body', () => {
  let rig: Rig
  before(async () => {
    rig = await startRig({ routes: echoRoutes, env: { MAILROOM_WRONG_KEYS: '3' } })
  })
  after(() => rig.close())

  const send = (sent: string, headers: Readonly<Record<string, string>>, type = 'application/json'): Promise<Answer> =>
    callRaw(rig.port, 'POST', '/lite/users', { headers: { ...headers, 'content-type': type }, body: sent })
  type Algorithm = 'sha1' | 'sha256' | 'sha512'
  const hashOf = (body: string, algorithm: Algorithm = 'sha1'): string =>
    createHash(algorithm).update(body).digest('base64')
  const signed = (body: string, algorithm: Algorithm = 'sha1', signatureMethod: SignerMethod = 'HMAC-SHA1') => {
    const call = { method: 'POST', baseUrl: rig.url, path: '/lite/users', bodyHash: hashOf(body, algorithm) }
    return sign(call, { ...own, signatureMethod }).headers
  }

  for (const method of ['HMAC-SHA1', 'HMAC-SHA256'] as const) {
    for (const algorithm of ['sha1', 'sha256'] as const) {
      test(`${algorithm} with ${method}: the body that was signed is taken, any other is not`, async () => {
        assert.match(signed(json)['authorization'] ?? '', /oauth_body_hash=/)
        const good = await send(json, signed(json, algorithm, method))
        assert.equal(good.status, 200, good.text)
        assert.equal((good.json.values as Record<string, string>).name, 'Anna')
        const other = await send(json.replace('Anna', 'Eve'), signed(json, algorithm, method))
        assert.equal(other.status, 401)
        assert.match(other.text, new RegExp(`oauth_body_hash is not the ${algorithm} of the body that came`))
      })
    }
  }

  test('a multipart body, and none at all', async () => {
    const good = await send(multipart, signed(multipart), 'multipart/form-data; boundary=x')
    assert.equal(good.status, 200, good.text)
    const other = await send(multipart.replace('Anna', 'Evey'), signed(multipart), 'multipart/form-data; boundary=x')
    assert.equal(other.status, 401)
    assert.equal((await send('', signed(''))).status, 200)
    assert.equal((await send('', signed(json))).status, 401, 'the body was taken away')
    assert.equal((await send(json, signed(''))).status, 401, 'a body was put in')
  })

  test('in the query it counts as well; a hash that is none is refused', async () => {
    for (const [bodyHash, status] of [
      [hashOf(json), 200],
      ['AAAA', 401],
      [hashOf(json, 'sha512'), 401],
      [createHash('sha1').update(json).digest('hex'), 401],
    ] as const) {
      const call = { method: 'POST', baseUrl: rig.url, path: '/lite/users', bodyHash }
      const { target } = sign(call, { ...own, carrier: 'query' })
      const options = { headers: { 'content-type': 'application/json' }, body: json }
      assert.equal((await callRaw(rig.port, 'POST', target, options)).status, status, bodyHash)
    }
  })

  test('a body that was changed is no guess at the secret, and spends no nonce', async () => {
    const headers = signed(json)
    for (let n = 0; n < 10; n += 1) assert.equal((await send(`${json} `, headers)).status, 401)
    assert.equal((await send(json, headers)).status, 200)
  })

  test('without a hash a body is taken as before', async () => {
    const { headers } = sign({ method: 'POST', baseUrl: rig.url, path: '/lite/users' }, own)
    assert.equal((await send(json, headers)).status, 200)
  })
})
