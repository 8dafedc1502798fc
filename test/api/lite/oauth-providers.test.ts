/** OAuth providers, and a whole email account that logs in by XOAUTH2 with a refresh token. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { granted, refused, startTokenEndpoint, type TokenEndpoint } from '../../support/token-endpoint.ts'
import { until } from '../../support/until.ts'
import { startLiteRig, type Json, type LiteRig } from './rig.ts'

const secret = 'GOCSPX-0123456789-xyz'
const base = '/lite/oauth_providers'

suite('OAuth providers', () => {
  let rig: LiteRig
  let endpoint: TokenEndpoint
  before(async () => {
    endpoint = await startTokenEndpoint()
    rig = await startLiteRig({
      env: { MAILROOM_OAUTH_TOKEN_URL_A: endpoint.url, MAILROOM_BACKOFF_AUTH: '50ms', MAILROOM_STRIKES: '2' },
    })
  })
  after(async () => {
    await rig.close()
    await endpoint.close()
  })

  const register = (key: string, type = 'PROVIDER_A_OAUTH2'): Promise<Json> =>
    rig.ok('POST', base, { type, provider_consumer_key: key, provider_consumer_secret: secret })

  for (const [type, sent] of [
    ['PROVIDER_A_OAUTH2'],
    ['PROVIDER_B_CONNECT'],
    ['GMAIL_OAUTH2'],
    ['MSLIVECONNECT'],
    ['GMAIL'],
    ['GMAIL_OAUTH2', 'gmail_oauth2'],
  ] as const) {
    test(`${sent ?? type} is answered as it was registered, its secret abbreviated`, async () => {
      const key = `${sent ?? type}.apps.example/1`
      const resource_url = `${rig.url}${base}/${encodeURIComponent(key)}`
      assert.deepEqual(await register(key, sent ?? type), { success: true, provider_consumer_key: key, resource_url })
      const view = { type, provider_consumer_key: key, provider_consumer_secret: 'GOC[...]xyz', resource_url }
      assert.deepEqual(await rig.ok('GET', `${base}/${encodeURIComponent(key)}`), view)
      assert.deepEqual((await rig.list(base)).at(-1), view)
      assert.deepEqual(await rig.ok('DELETE', `${base}/${encodeURIComponent(key)}`), { success: true })
      assert.equal((await rig.call('GET', `${base}/${encodeURIComponent(key)}`)).status, 404)
      assert.equal((await rig.call('DELETE', `${base}/${encodeURIComponent(key)}`)).status, 404)
    })
  }

  test('the stored secret is sealed, for this developer and key', async () => {
    await register('sealed')
    const { engine } = rig
    const found = await engine.developers.authenticate('frame-key')
    const developerId = String(found?.developer.id)
    const record = await engine.store.providers.get(developerId, 'sealed')
    assert(record !== null && !JSON.stringify(record).includes(secret))
    assert.equal(engine.sealer.open(record.sealedSecret, `${developerId}:sealed`), secret)
  })

  test('a list has pages', async () => {
    for (const key of ['page 1', 'page 2', 'page 3']) await register(key)
    const whole = await rig.list(base)
    assert.deepEqual(await rig.list(`${base}?limit=2&offset=1`), whole.slice(1, 3))
    assert.deepEqual(await rig.list(`${base}?offset=${whole.length}`), [])
    for (const { provider_consumer_key: key } of whole)
      await rig.ok('DELETE', `${base}/${encodeURIComponent(String(key))}`)
  })

  test('a short secret is not shown at all', async () => {
    await rig.ok('POST', base, { type: 'GMAIL_OAUTH2', provider_consumer_key: 'k', provider_consumer_secret: 'abcdef' })
    assert.equal((await rig.ok('GET', `${base}/k`))['provider_consumer_secret'], '[...]')
  })

  for (const name of ['type', 'provider_consumer_key', 'provider_consumer_secret']) {
    test(`without ${name} it is 400, and named`, async () => {
      const all: Json = { type: 'GMAIL_OAUTH2', provider_consumer_key: 'k', provider_consumer_secret: 's' }
      const body = Object.fromEntries(Object.entries(all).filter(([key]) => key !== name))
      const answer = await rig.call('POST', base, body)
      assert.equal(answer.status, 400)
      assert.match(String(answer.json['value']), new RegExp(`^${name}: `))
    })
  }

  test('another type is 400', async () => {
    const body = { type: 'TWITTER', provider_consumer_key: 'k', provider_consumer_secret: 's' }
    assert.equal((await rig.call('POST', base, body)).status, 400)
  })

  const oauthUser = (name: string, extra: Json = {}): Promise<Json> =>
    rig.ok('POST', '/lite/users', {
      email: `${name}@mail.example`,
      server: rig.imap.host,
      port: rig.imap.port,
      use_ssl: 0,
      username: `${name}@mail.example`,
      type: 'imap',
      password: 'ignored',
      provider_refresh_token: `refresh-${name}`,
      provider_consumer_key: 'client',
      ...extra,
    })

  test('an account with a key that is not registered is 400', async () => {
    const body = { provider_refresh_token: 'x', provider_consumer_key: 'unknown', email: 'a@b.example', server: 'x' }
    const answer = await rig.call('POST', '/lite/users', {
      ...body,
      username: 'a',
      use_ssl: 1,
      port: 993,
      type: 'imap',
    })
    assert.equal(answer.status, 400)
    assert.match(String(answer.json['value']), /^provider_consumer_key: /)
  })

  test('an account logs in by XOAUTH2, and a rotated refresh token is stored', async () => {
    await register('client', 'GMAIL')
    rig.imap.addUser('olga@mail.example', { accessToken: 'access-olga', password: 'not used' })
    endpoint.answer(({ refresh_token: token }) => granted(`access-olga`, { refresh_token: `${String(token)}+` }))
    const made = await oauthUser('olga')
    assert.equal(made['success'], true, JSON.stringify(made))
    const path = `/lite/users/${String(made['id'])}/email_accounts/0`
    assert.equal((await rig.ok('GET', path))['authentication_type'], 'oauth2')
    const [account] = await rig.engine.store.accounts.listByUser(String(made['id']))
    assert(account !== undefined)
    const stored = async (): Promise<unknown> => {
      const record = await rig.engine.store.accounts.get(account.id)
      return record === null ? null : (JSON.parse(rig.engine.sealer.open(record.sealedCredential, account.id)) as Json)
    }
    await until('the rotated token in the store', async () => JSON.stringify(await stored()).includes('refresh-olga+'))
    await until('folders', async () => (await rig.list(`${path}/folders`)).length > 0)
    const asked = endpoint.asked.filter((form) => String(form['refresh_token']).startsWith('refresh-olga'))
    assert.equal(asked.length, 1, 'one token for the trial, the connection and every command')
    assert(rig.imap.log.some(({ line }) => line.includes('AUTHENTICATE XOAUTH2')))
  })

  test('a refused grant is a soft failure that says so, and nothing is created', async () => {
    await register('client')
    endpoint.answer(() => refused('invalid_grant'))
    const before = (await rig.list('/lite/users?limit=100')).length
    const made = await oauthUser('rita')
    assert.equal(made['success'], false)
    assert.equal(made['feedback_code'], 'consent_lost')
    assert.match(String(made['feedback']), /invalid_grant/)
    assert(!JSON.stringify(made).includes('refresh-rita') && !JSON.stringify(made).includes(secret))
    assert.equal((await rig.list('/lite/users?limit=100')).length, before)
  })

  test('an access token that the mail server refuses is not used again, and lost consent disables the account', async () => {
    await register('client')
    rig.imap.addUser('nora@mail.example', { accessToken: 'access-1' })
    let current = 'access-1'
    endpoint.answer(() => granted(current))
    const made = await oauthUser('nora')
    assert.equal(made['success'], true, JSON.stringify(made))
    const path = `/lite/users/${String(made['id'])}/email_accounts/0`
    await until('folders', async () => (await rig.list(`${path}/folders`)).length > 0)
    // The provider ends the token early: the account asks for the next one by itself.
    current = 'access-2'
    rig.imap.setAccessToken('nora@mail.example', 'access-2')
    rig.imap.dropConnections('nora@mail.example')
    const [account] = await rig.engine.store.accounts.listByUser(String(made['id']))
    const watching = (): boolean =>
      rig.imap.connections.some(({ user }) => user === 'nora@mail.example') &&
      (rig.engine.accounts.view(String(account?.id))?.tags.includes('watching') ?? false)
    await until('the account with the new token', watching)
    assert.equal((await rig.ok('GET', path))['status'], 'OK')
    // The owner withdraws the consent.
    endpoint.answer(() => refused('invalid_grant'))
    rig.imap.setAccessToken('nora@mail.example', 'access-3')
    rig.imap.dropConnections('nora@mail.example')
    const view = await until('DISABLED', async () => {
      const one = await rig.ok('GET', path)
      return one['status'] === 'DISABLED' ? one : null
    })
    assert.match(String(view['status_message']), /consent|invalid_grant/)
    // And gives it again: a new refresh token heals it.
    current = 'access-3'
    endpoint.answer(() => granted(current))
    const edited = await rig.ok('POST', path, {
      provider_refresh_token: 'refresh-new',
      provider_consumer_key: 'client',
    })
    assert.equal(edited['success'], true, JSON.stringify(edited))
    await until('OK', async () => (await rig.ok('GET', path))['status'] === 'OK')
  })
})
