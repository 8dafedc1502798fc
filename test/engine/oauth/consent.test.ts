/** Sign-in at a real OpenID provider on a local port: from the first redirect to tokens that refresh. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, suite, test } from 'node:test'
import { readConfig, type Store } from '../../../engine/index.ts'
import { createHttpClient, type HttpClient } from '../../../engine/net/http.ts'
import {
  type Consent,
  type ConsentAnswer,
  ConsentError,
  type ConsentReason,
  type ConsentWish,
  createConsent,
} from '../../../engine/oauth/consent.ts'
import { createOAuthServers } from '../../../engine/oauth/providers.ts'
import { createTokens } from '../../../engine/oauth/tokens.ts'
import { createSealer } from '../../../engine/secrets/seal.ts'
import { client, mailScope, type Oidc, scope, signIn, startOidc } from '../../support/oidc.ts'
import { openTestStore, type TestStore } from '../../support/test-store.ts'
import { granted, refused, startTokenEndpoint } from '../../support/token-endpoint.ts'

const developerId = 'd'.repeat(24)
const redirectUri = 'http://127.0.0.1:1/connect/oauth2callback'
const address = 'anna@mail.example'
const sealer = createSealer(Buffer.alloc(32, 1))
const browser = 'a value of a cookie'
const destination = '["imap.mail.example",993,true,"anna@mail.example"]'

suite('sign-in at an OAuth provider', () => {
  let opened: TestStore
  let store: Store
  let http: HttpClient
  let oidc: Oidc
  let now = Date.now()
  before(async () => {
    opened = await openTestStore()
    store = opened.store
    http = createHttpClient({ allowPrivate: true })
    oidc = await startOidc({ redirectUris: [redirectUri] })
    for (const consumerKey of [client.id, 'unknown there']) {
      const sealedSecret = sealer.seal(client.secret, `${developerId}:${consumerKey}`)
      const provider = { developerId, consumerKey, sealedSecret, shownSecret: '', createdAt: 1 }
      await store.providers.put({ ...provider, type: 'PROVIDER_A_OAUTH2' })
    }
  })
  beforeEach(() => {
    Object.assign(oidc.mood, { hangs: false, down: false, refreshTokens: true, withheld: [] })
    now = Date.now()
  })
  after(async () => {
    await oidc.close()
    await http.close()
    await opened.remove()
  })

  function open(env: Readonly<Record<string, string>> = {}) {
    const config = readConfig({
      MAILROOM_OAUTH_ISSUER_A: oidc.issuer,
      MAILROOM_OAUTH_SCOPE_A: scope,
      MAILROOM_OAUTH_PARAMS_A: 'prompt=consent',
      MAILROOM_OAUTH_TIMEOUT: '10s',
      MAILROOM_ALLOW_PRIVATE: '1',
      ...env,
    })
    const servers = createOAuthServers({ config, http })
    const tokens = createTokens({ store, sealer, servers })
    const consent = createConsent({ store, sealer, servers, tokens, now: () => now })
    const wish = {
      developerId,
      providerKey: client.id,
      redirectUri,
      loginHint: address,
      connectToken: 't1',
      destination,
      browser,
    }
    return {
      tokens,
      begin: (change: Partial<ConsentWish> = {}) => consent.begin({ ...wish, ...change }),
      finish: (callback: URL, change: Partial<ConsentAnswer> = {}): Promise<Consent> =>
        consent.finish({ redirectUri, browser, parameters: callback.searchParams, ...change }),
      /** From beginning to end as the end user does it. */
      async whole(says: 'yes' | 'no' = 'yes'): Promise<Consent> {
        const { url } = await consent.begin(wish)
        const callback = await signIn(url, redirectUri, address, says)
        return consent.finish({ redirectUri, browser, parameters: callback.searchParams })
      },
    }
  }

  const fails = (promise: Promise<unknown>, reason: ConsentReason, words?: RegExp): Promise<void> =>
    assert.rejects(promise, (error: unknown) => {
      assert(error instanceof ConsentError, String(error))
      assert.equal(error.reason, reason, `${error.message} ${String(error.cause)}`)
      if (words) assert.match(error.message, words)
      assert(!error.message.includes(client.secret))
      return true
    })

  test('asks for a code with PKCE, state and nonce, at the endpoint that the provider tells', async () => {
    const [first, second] = [await open().begin(), await open().begin({ loginHint: null })]
    const { searchParams: asked, origin } = new URL(first.url)
    assert.equal(origin, oidc.origin)
    assert.deepEqual(
      [...asked].filter(([name]) => !['state', 'nonce', 'code_challenge'].includes(name)).sort(),
      Object.entries({
        client_id: client.id,
        code_challenge_method: 'S256',
        login_hint: address,
        prompt: 'consent',
        redirect_uri: redirectUri,
        response_type: 'code',
        scope,
      }),
    )
    const other = new URL(second.url).searchParams
    assert.equal(other.get('login_hint'), null)
    for (const name of ['state', 'nonce', 'code_challenge']) {
      // The connect token behind the state leads the browser back to the node that knows of the sign-in.
      assert.match(String(asked.get(name)), name === 'state' ? /^[\w-]{43}\.\w+$/ : /^[\w-]{43}$/, name)
      assert.notEqual(asked.get(name), other.get(name), name)
    }
    assert.equal(first.state, asked.get('state'))
  })

  test('brings a refresh token, who signed in, and an access token that is used first', async () => {
    const flow = open()
    const before = oidc.asked.length
    const { refreshToken, ...rest } = await flow.whole()
    assert.deepEqual(rest, { connectToken: 't1', destination, providerKey: client.id, email: address })
    const grant = { refreshToken, providerKey: client.id }
    const { accessToken, rotated } = await flow.tokens.get(developerId, grant)
    assert.equal(rotated, null)
    assert(await oidc.accepts(address, accessToken))
    assert.deepEqual(oidc.asked.slice(before), ['authorization_code'])
    flow.tokens.forget(developerId, grant)
    const next = await flow.tokens.get(developerId, grant)
    assert.notEqual(next.accessToken, accessToken)
    assert(next.rotated !== null && (await oidc.accepts(address, next.accessToken)))
  })

  test('a provider whose refresh tokens are good once is never asked with one that was replaced', async () => {
    const flow = open()
    const { refreshToken } = await flow.whole()
    const first = { refreshToken, providerKey: client.id }
    let last = { accessToken: '', rotated: null as string | null }
    for (let round = 0; round < 3; round += 1) {
      flow.tokens.forget(developerId, first)
      last = await flow.tokens.get(developerId, first)
    }
    assert(await oidc.accepts(address, last.accessToken))
    const newest = await flow.tokens.get(developerId, { ...first, refreshToken: String(last.rotated) })
    assert.deepEqual([newest.accessToken, newest.rotated], [last.accessToken, null])
  })

  test('the end user who says no', () => fails(open().whole('no'), 'denied', /access_denied/))

  test('access to the mail that is not granted', async () => {
    oidc.mood.withheld = [mailScope]
    await fails(open({ MAILROOM_OAUTH_PARAMS_A: '' }).whole(), 'scope_missing', /https:\/\/mail\.example\/imap/)
  })

  test('a scope that the provider names in another case is granted', async (t) => {
    const endpoint = await startTokenEndpoint()
    t.after(() => endpoint.close())
    const flow = open({
      MAILROOM_OAUTH_AUTHORIZATION_URL_A: `${oidc.origin}/auth`,
      MAILROOM_OAUTH_TOKEN_URL_A: endpoint.url,
      MAILROOM_OAUTH_ISSUER_A: '',
      MAILROOM_OAUTH_SCOPE_A: 'Mail.Read https://mail.example/IMAP',
    })
    for (const [said, reason] of [
      ['mail.read HTTPS://MAIL.EXAMPLE/imap', null],
      ['MAIL.READ', 'scope_missing'],
    ] as const) {
      endpoint.answer(() => granted('access', { refresh_token: 'refresh', scope: said }))
      const { state } = await flow.begin()
      const done = flow.finish(new URL(`${redirectUri}?code=c&state=${state}`))
      if (reason === null) assert.equal((await done).refreshToken, 'refresh')
      else await fails(done, reason)
    }
  })

  test('no refresh token', async () => {
    oidc.mood.refreshTokens = false
    await fails(open().whole(), 'no_refresh_token')
  })

  test('a provider that is down, at the beginning and at the end', async () => {
    const flow = open()
    const { url } = await flow.begin()
    const callback = await signIn(url, redirectUri, address)
    oidc.mood.down = true
    await fails(flow.finish(callback), 'provider_down', /503/)
    await fails(open().begin(), 'provider_down')
    oidc.mood.down = false
    await flow.whole()
  })

  test('a token endpoint that hangs is given up in time', { timeout: 20_000 }, async () => {
    const flow = open({ MAILROOM_OAUTH_TIMEOUT: '3s' })
    const callback = await signIn((await flow.begin()).url, redirectUri, address)
    oidc.mood.hangs = true
    const started = performance.now()
    await fails(flow.finish(callback), 'provider_down', /3000 ms/)
    assert(performance.now() - started < 15_000)
  })

  test('a provider that does not know the client', async () => {
    const flow = open({ MAILROOM_OAUTH_TOKEN_URL_A: `${oidc.origin}/token` })
    const { state } = await flow.begin({ providerKey: 'unknown there' })
    const callback = new URL(`${redirectUri}?${new URLSearchParams({ state, code: 'x', iss: oidc.issuer }).toString()}`)
    await fails(flow.finish(callback), 'provider_refuses', /invalid_client/)
    await fails(flow.begin({ providerKey: 'not registered' }), 'not_registered')
  })

  const answered = async (flow: ReturnType<typeof open>): Promise<URL> =>
    signIn((await flow.begin()).url, redirectUri, address)

  test('a provider with a rate limit, at the end', async (t) => {
    const endpoint = await startTokenEndpoint()
    t.after(() => endpoint.close())
    const flow = open({ MAILROOM_OAUTH_TOKEN_URL_A: endpoint.url })
    for (const [answer, words] of [
      [refused('slow_down'), /slow_down/],
      [refused('invalid_request', 429), /invalid_request/],
      [{ status: 429, body: 'too many' }, /429/],
    ] as const) {
      endpoint.answer(() => answer)
      await fails(flow.finish(await answered(flow)), 'provider_down', words)
    }
  })

  test('the state is good once, also when the code was not', async () => {
    const flow = open()
    const callback = await answered(flow)
    await flow.finish(callback)
    await fails(flow.finish(callback), 'state_used')
    const { state } = await flow.begin()
    const wrong = new URL(`${redirectUri}?${new URLSearchParams({ state, code: 'x', iss: oidc.issuer }).toString()}`)
    await fails(flow.finish(wrong), 'state_expired', /invalid_grant/)
    await fails(flow.finish(wrong), 'state_used')
  })

  test('of two answers at the same time one counts', async () => {
    const flow = open()
    const callback = await answered(flow)
    const both = await Promise.allSettled([flow.finish(callback), flow.finish(callback)])
    assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  })

  test('the state is good for fifteen minutes', async () => {
    const flow = open()
    const [late, inTime] = [await answered(flow), await answered(flow)]
    now += 15 * 60_000 - 1
    await flow.finish(inTime)
    now += 1
    await fails(flow.finish(late), 'state_expired')
  })

  test('the state is this browser’s alone, and another one does not use it up', async () => {
    const flow = open()
    const callback = await answered(flow)
    await fails(flow.finish(callback, { browser: 'another cookie' }), 'other_browser')
    await fails(flow.finish(callback, { browser: null }), 'other_browser')
    await flow.finish(callback)
  })

  test('a state that nobody was given, or none, or at the page of the other provider', async () => {
    const flow = open()
    const callback = await answered(flow)
    await fails(flow.finish(new URL(`${redirectUri}?code=x&state=y`)), 'state_unknown')
    await fails(flow.finish(new URL(`${redirectUri}?code=x`)), 'state_unknown')
    const other = redirectUri.replace('oauth2callback', 'providerbcallback')
    await fails(flow.finish(callback, { redirectUri: other }), 'state_unknown')
    await fails(open().finish(callback), 'state_unknown')
  })

  test('an answer in the name of another issuer, or of none, is refused before the code is sent', async () => {
    for (const iss of ['https://evil.example', null]) {
      const flow = open()
      const callback = await answered(flow)
      const before = oidc.asked.length
      if (iss === null) callback.searchParams.delete('iss')
      else callback.searchParams.set('iss', iss)
      await fails(flow.finish(callback), 'answer_wrong')
      assert.equal(oidc.asked.length, before)
    }
  })

  test('a code of another sign-in is refused: PKCE and the nonce are its own', async () => {
    const flow = open()
    const [mine, theirs] = [await answered(flow), await answered(flow)]
    mine.searchParams.set('code', String(theirs.searchParams.get('code')))
    await fails(flow.finish(mine), 'state_expired', /invalid_grant/)
  })
})

suite('a provider whose issuer names the tenant', () => {
  test('is taken at its word only where the pattern leaves room', async (t) => {
    const { store, remove } = await openTestStore()
    t.after(remove)
    const http = createHttpClient({ allowPrivate: true })
    t.after(() => http.close())
    const oidc = await startOidc({ redirectUris: [redirectUri], path: '/tenant-7/v2.0' })
    t.after(() => oidc.close())
    const sealedSecret = sealer.seal(client.secret, `${developerId}:${client.id}`)
    const provider = { developerId, consumerKey: client.id, sealedSecret, shownSecret: '', createdAt: 1 }
    await store.providers.put({ ...provider, type: 'PROVIDER_B_CONNECT' })
    for (const [issuer, reason] of [
      [`${oidc.origin}/{tenantid}/v2.0`, null],
      [`${oidc.origin}/{tenantid}/v1.0`, 'answer_wrong'],
    ] as const) {
      const config = readConfig({
        MAILROOM_OAUTH_ISSUER_B: issuer,
        MAILROOM_OAUTH_AUTHORIZATION_URL_B: `${oidc.origin}/auth`,
        MAILROOM_OAUTH_TOKEN_URL_B: `${oidc.origin}/token`,
        MAILROOM_OAUTH_SCOPE_B: scope,
        MAILROOM_OAUTH_PARAMS_B: 'prompt=consent',
        MAILROOM_ALLOW_PRIVATE: '1',
      })
      const servers = createOAuthServers({ config, http })
      const tokens = createTokens({ store, sealer, servers })
      const consent = createConsent({ store, sealer, servers, tokens })
      const wish = {
        developerId,
        providerKey: client.id,
        redirectUri,
        loginHint: null,
        connectToken: 't',
        destination,
        browser,
      }
      const { url } = await consent.begin(wish)
      const { searchParams: parameters } = await signIn(url, redirectUri, address)
      // Provider B sends no issuer with its answer.
      parameters.delete('iss')
      const done = consent.finish({ redirectUri, browser, parameters })
      if (reason !== null) await assert.rejects(done, { reason })
      else {
        const { refreshToken } = await done
        const grant = { refreshToken, providerKey: client.id }
        tokens.forget(developerId, grant)
        assert(await oidc.accepts(address, (await tokens.get(developerId, grant)).accessToken))
      }
    }
  })
})
