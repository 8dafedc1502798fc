/** Access tokens from refresh tokens, against a real token endpoint on a local port. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, suite, test } from 'node:test'
import { readConfig, type AppError, type ErrorCode, type Store } from '../../../engine/index.ts'
import { createHttpClient, type HttpClient } from '../../../engine/net/http.ts'
import { createOAuthServers } from '../../../engine/oauth/providers.ts'
import { createTokens, type Tokens } from '../../../engine/oauth/tokens.ts'
import { createSealer } from '../../../engine/secrets/seal.ts'
import { freePort } from '../../support/port.ts'
import { openTestStore, type TestStore } from '../../support/test-store.ts'
import { granted, refused, startTokenEndpoint, type TokenEndpoint } from '../../support/token-endpoint.ts'

const developerId = 'd'.repeat(24)
const credential = { refreshToken: 'refresh-1', providerKey: 'client-1' }
const secret = 'client-secret-1'

suite('access tokens', () => {
  const sealer = createSealer(Buffer.alloc(32, 1))
  let opened: TestStore
  let store: Store
  let http: HttpClient
  let endpoint: TokenEndpoint
  let now = 0
  let tokens: Tokens

  const open = (url: string): Tokens => {
    const config = readConfig({
      MAILROOM_OAUTH_TOKEN_URL_A: url,
      MAILROOM_ALLOW_PRIVATE: '1',
      MAILROOM_OAUTH_TIMEOUT: '20s',
    })
    return createTokens({ store, sealer, servers: createOAuthServers({ config, http }), now: () => now })
  }
  before(async () => {
    opened = await openTestStore()
    store = opened.store
    http = createHttpClient({ allowPrivate: true })
    const sealedSecret = sealer.seal(secret, `${developerId}:client-1`)
    const provider = { developerId, consumerKey: 'client-1', sealedSecret, shownSecret: '', createdAt: 1 }
    await store.providers.put({ ...provider, type: 'PROVIDER_A_OAUTH2' })
  })
  beforeEach(async () => {
    await (endpoint as TokenEndpoint | undefined)?.close()
    endpoint = await startTokenEndpoint()
    now = 1_700_000_000_000
    tokens = open(endpoint.url)
  })
  after(async () => {
    await endpoint.close()
    await http.close()
    await opened.remove()
  })

  const fails = (code: ErrorCode, words: RegExp): Promise<void> =>
    assert.rejects(tokens.get(developerId, credential), (error: AppError) => {
      assert.equal(error.code, code, error.message)
      assert.match(error.message, words)
      return true
    })

  test('are asked for with the refresh token, the key and the opened secret', async () => {
    endpoint.answer(() => granted('access-1'))
    const token = await tokens.get(developerId, credential)
    assert.deepEqual(token, { accessToken: 'access-1', renewAt: now + 54 * 60_000, rotated: null })
    assert.deepEqual(endpoint.asked, [
      { grant_type: 'refresh_token', refresh_token: 'refresh-1', client_id: 'client-1', client_secret: secret },
    ])
  })

  test('are kept until shortly before they end, and asked for once at a time', async () => {
    endpoint.answer((_form, count) => granted(`access-${count}`))
    const first = await Promise.all([1, 2, 3].map(() => tokens.get(developerId, credential)))
    assert.deepEqual([...new Set(first.map(({ accessToken }) => accessToken))], ['access-1'])
    now += 50 * 60_000
    assert.equal((await tokens.get(developerId, credential)).accessToken, 'access-1')
    now += 5 * 60_000
    assert.equal((await tokens.get(developerId, credential)).accessToken, 'access-2')
    assert.equal(endpoint.asked.length, 2)
  })

  test('that a mail server refused are asked for anew', async () => {
    endpoint.answer((_form, count) => granted(`access-${count}`))
    await tokens.get(developerId, credential)
    tokens.forget(developerId, credential)
    assert.equal((await tokens.get(developerId, credential)).accessToken, 'access-2')
  })

  test('come with the new refresh token when the provider rotates it, and either token finds them', async () => {
    endpoint.answer((_form, count) => granted(`access-${count}`, { refresh_token: `refresh-${count + 1}` }))
    const token = await tokens.get(developerId, credential)
    assert.equal(token.rotated, 'refresh-2')
    const next = await tokens.get(developerId, { ...credential, refreshToken: 'refresh-2' })
    assert.deepEqual([next.accessToken, next.rotated], ['access-1', null])
    assert.equal(endpoint.asked.length, 1)
  })

  test('the same refresh token again is no rotation', async () => {
    endpoint.answer(() => granted('access-1', { refresh_token: 'refresh-1' }))
    assert.equal((await tokens.get(developerId, credential)).rotated, null)
  })

  test('invalid_grant is consent_lost, with the words of the provider and without secrets', async () => {
    endpoint.answer(() => refused('invalid_grant'))
    await fails('consent_lost', /invalid_grant: it is invalid_grant/)
    endpoint.answer(() => granted('access-2'))
    assert.equal((await tokens.get(developerId, credential)).accessToken, 'access-2', 'a failure is not kept')
  })

  for (const error of ['invalid_client', 'unauthorized_client', 'invalid_scope']) {
    test(`${error} is permission`, async () => {
      endpoint.answer(() => refused(error, error === 'invalid_client' ? 401 : 400))
      await fails('permission', new RegExp(error))
    })
  }

  test('a 5xx, nonsense and silence are auth_unavailable', async () => {
    for (const answer of [
      { status: 503, body: 'try later' },
      refused('temporarily_unavailable', 500),
      { status: 200, body: '<html>' },
      { status: 200, body: { token_type: 'Bearer' } },
    ]) {
      endpoint.answer(() => answer)
      await fails('auth_unavailable', /does not answer as it should/)
    }
    tokens = open(`http://127.0.0.1:${await freePort()}/`)
    await fails('auth_unavailable', /does not answer as it should/)
  })

  test('a rate limit is no refusal, and says how long to wait', async () => {
    for (const error of ['temporarily_unavailable', 'server_error', 'slow_down']) {
      endpoint.answer(() => refused(error))
      await fails('auth_unavailable', new RegExp(error))
    }
    for (const [header, waitMs] of [
      ['120', 120_000],
      [new Date(now + 60_000).toUTCString(), 60_000],
      ['soon', null],
      ['9'.repeat(400), 86_400_000],
    ] as const)
      for (const answer of [refused('invalid_request', 429), { status: 429, body: 'too many' }]) {
        endpoint.answer(() => ({ ...answer, headers: { 'retry-after': header } }))
        const limited = { code: 'auth_unavailable', retryAfterMs: waitMs }
        await assert.rejects(tokens.get(developerId, credential), limited, header)
      }
  })

  test('a provider that is not registered any more is permission', async () => {
    await assert.rejects(tokens.get(developerId, { refreshToken: 'x', providerKey: 'gone' }), { code: 'permission' })
    await assert.rejects(tokens.get('e'.repeat(24), credential), { code: 'permission' }, 'another developer’s')
  })

  const register = async (ofDeveloper: string, consumerKey: string, itsSecret: string): Promise<void> => {
    const sealedSecret = sealer.seal(itsSecret, `${ofDeveloper}:${consumerKey}`)
    const provider = { developerId: ofDeveloper, consumerKey, sealedSecret, shownSecret: '', createdAt: 1 }
    await store.providers.put({ ...provider, type: 'PROVIDER_A_OAUTH2' })
  }

  test('are nobody else’s: another developer, or another provider, with the same refresh token asks for itself', async () => {
    const other = 'f'.repeat(24)
    await register(other, 'client-1', 'its own secret')
    await register(developerId, 'client-2', 'second secret')
    endpoint.answer(({ client_secret }) => (client_secret === secret ? granted('access-1') : refused('invalid_grant')))
    const asked = await Promise.allSettled([
      tokens.get(developerId, credential),
      tokens.get(other, credential),
      tokens.get(developerId, { ...credential, providerKey: 'client-2' }),
    ])
    assert.deepEqual(
      asked.map((one) => (one.status === 'fulfilled' ? one.value.accessToken : (one.reason as AppError).code)),
      ['access-1', 'consent_lost', 'consent_lost'],
    )
    await assert.rejects(tokens.get(other, credential), { code: 'consent_lost' })
    tokens.forget(other, credential)
    assert.equal((await tokens.get(developerId, credential)).accessToken, 'access-1')
    assert.equal(endpoint.asked.filter(({ client_secret }) => client_secret === secret).length, 1)
  })

  test('end with the provider: when it is removed, and when its secret is replaced', async () => {
    await register(developerId, 'client-3', 'third secret')
    const own = { ...credential, providerKey: 'client-3' }
    endpoint.answer((_form, count) => granted(`access-${count}`))
    assert.equal((await tokens.get(developerId, own)).accessToken, 'access-1')
    await register(developerId, 'client-3', 'new secret')
    assert.equal((await tokens.get(developerId, own)).accessToken, 'access-2')
    assert.equal(endpoint.asked.at(-1)?.['client_secret'], 'new secret')
    await store.providers.remove(developerId, 'client-3')
    await assert.rejects(tokens.get(developerId, own), { code: 'permission' })
  })

  test('a private token endpoint is not asked unless that is allowed', async (t) => {
    const config = readConfig({ MAILROOM_OAUTH_TOKEN_URL_A: endpoint.url.replace('http:', 'https:') })
    const http = createHttpClient({ allowPrivate: config.MAILROOM_ALLOW_PRIVATE })
    t.after(() => http.close())
    const guarded = createTokens({ store, sealer, servers: createOAuthServers({ config, http }) })
    await assert.rejects(guarded.get(developerId, credential), { code: 'auth_unavailable' })
    assert.equal(endpoint.asked.length, 0)
  })
})
