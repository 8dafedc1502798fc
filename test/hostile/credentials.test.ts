/**
 * Credentials leave by no door: not to another server, not to another port, not under another name of the service. No
 * access token ends the line of its login, and no admin token gives more scopes than it has.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { en } from '../../api/connect/en.ts'
import { openSignInStage, type SignInStage } from '../connect/sign-in-stage.ts'
import { onwardOf } from '../connect/visitor.ts'
import { startAdminRig } from '../api/admin/rig.ts'
import { client, mailScope } from '../support/oidc.ts'
import { granted, startTokenEndpoint } from '../support/token-endpoint.ts'
import { userBody } from '../support/users.ts'
import { startLiteRig, type LiteRig, type TestMailbox } from '../api/lite/rig.ts'
import { say } from './stranger.ts'

/** A mail server of the attacker: it counts who connects, and greets nobody. */
async function openTrap() {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: () => server.close(),
  }
}

suite('credentials', () => {
  let rig: LiteRig
  let box: TestMailbox
  let trap: Awaited<ReturnType<typeof openTrap>>
  const parts = new AsyncDisposableStack()
  before(async () => {
    rig = await startLiteRig()
    parts.defer(() => rig.close())
    box = await rig.mailbox('anna')
    trap = await openTrap()
    parts.defer(() => void trap.close())
  })
  after(() => parts.disposeAsync())

  test('a stored password goes to no other server, port, TLS setting or username', async () => {
    const source = box.path.replace('/lite/users/', '/2.0/accounts/').replace('/email_accounts/', '/sources/')
    const changes = [
      { server: 'localhost' },
      { port: trap.port },
      { server: '127.0.0.2', port: trap.port },
      { use_ssl: 1 },
      { username: 'else@mail.example' },
    ]
    const known = await rig.ok('GET', box.path)
    const logins = rig.imap.accepted
    for (const path of [box.path, source]) {
      for (const change of changes) {
        for (const more of [{}, { force_status_check: 1 }, { status: 1 }]) {
          const answer = await rig.call('POST', path, { ...change, ...more })
          assert.equal(answer.status, 400, JSON.stringify(change))
          assert.match(String(answer.json['value']), /^password: is required/)
        }
      }
    }
    assert.deepEqual([trap.connections(), rig.imap.accepted], [0, logins])
    assert.deepEqual(await rig.ok('GET', box.path), known)
  })

  test('the settings as they are need no password, and after a failed edit another server still does', async () => {
    const { server, port, username } = await rig.ok('GET', box.path)
    assert.equal((await rig.ok('POST', box.path, { server, port, username }))['success'], true)
    const failed = await rig.ok('POST', box.path, { port: trap.port, password: 'typed for the trap' })
    assert.equal(failed['success'], false)
    const before = trap.connections()
    assert.equal((await rig.call('POST', box.path, { port: trap.port })).status, 400)
    assert.equal(trap.connections(), before)
  })

  test('nor does a refresh token: an account that logs in by OAuth names its grant anew', async () => {
    const endpoint = await startTokenEndpoint()
    parts.defer(() => endpoint.close())
    endpoint.answer(() => granted('access-olga'))
    const own = await startLiteRig({ env: { MAILROOM_OAUTH_TOKEN_URL_A: endpoint.url } })
    parts.defer(() => own.close())
    const key = { provider_consumer_key: 'client' }
    const provider = { type: 'PROVIDER_A_OAUTH2', ...key, provider_consumer_secret: 'a-long-enough-secret' }
    await own.ok('POST', '/lite/oauth_providers', provider)
    own.imap.addUser('olga@mail.example', { accessToken: 'access-olga' })
    const settings = userBody({ ...own.imap, password: 'ignored' }, 'olga@mail.example', {
      ...key,
      provider_refresh_token: 'refresh-olga',
    })
    const made = await own.ok('POST', '/lite/users', settings)
    assert.equal(made['success'], true, JSON.stringify(made))
    const asked = endpoint.asked.length
    for (const base of ['/lite/users', '/2.0/accounts']) {
      const path = `${base}/${String(made['id'])}/${base === '/lite/users' ? 'email_accounts' : 'sources'}/0`
      for (const change of [
        { server: 'localhost' },
        { port: trap.port },
        { use_ssl: 1 },
        { username: 'else' },
        { ...key, port: trap.port },
      ]) {
        const answer = await own.call('POST', path, change)
        assert.equal(answer.status, 400, `${path} ${JSON.stringify(change)}: ${answer.text}`)
        assert.match(String(answer.json['value']), /^provider_refresh_token: /)
      }
    }
    assert.equal(endpoint.asked.length, asked, 'no token was asked for')
  })

  test('console, wizard and consent answer under no name that somebody else has chosen', async () => {
    const made = await rig.ok('POST', '/lite/connect_tokens', { callback_url: 'https://app.example.com/done' })
    const wizard = `/connect/${String(made['token'])}`
    for (const path of ['/console', '/console/login', wizard, '/connect/oauth2callback?state=x']) {
      const answer = await say(`${rig.url}${path}`, { headers: { host: 'evil.example', accept: 'text/html' } })
      assert.equal(answer.status, 400, path)
      assert.match(answer.body, /Host: .*MAILROOM_PUBLIC_URL/)
      for (const host of ['localhost:3000', '127.0.0.1', '[::1]:3000']) {
        const own = await say(`${rig.url}${path}`, { headers: { host, accept: 'text/html' } })
        assert.doesNotMatch(own.body, /MAILROOM_PUBLIC_URL/, `${host}${path}`)
      }
    }
  })
})

suite('a consent under way in another tab', () => {
  let stage: SignInStage
  let trap: Awaited<ReturnType<typeof openTrap>>
  const parts = new AsyncDisposableStack()
  before(async () => {
    stage = await openSignInStage('127.0.0.1')
    parts.defer(() => stage.remove())
    trap = await openTrap()
    parts.defer(() => void trap.close())
  })
  after(() => parts.disposeAsync())

  for (const [what, change] of [
    // Not a host of the provider.
    ['server', () => ({ server: 'localhost' })],
    ['port', () => ({ port: String(trap.port) })],
    ['TLS setting', () => ({ security: 'tls' })],
    ['username', () => ({ username: 'else@mail.example' })],
  ] as const)
    test(`gives no token to a login whose ${what} was changed meanwhile`, async () => {
      const { rig } = stage
      const start = await stage.begin()
      const answer = await stage.answerOf(start)
      const login = { server: '127.0.0.1', port: String(rig.imap.port), security: 'starttls', username: start.email }
      await start.visitor.open(`${start.path}/login`)
      await start.visitor.send(`${start.path}/login`, { ...login, ...change(), password: '' })
      const connections = () => [trap.connections(), rig.imap.accepted]
      const known = connections()
      const shown = await start.visitor.open(answer)
      const [typed = ''] = Object.values(change())
      assert.match(shown.text, new RegExp(`<input[^>]* value="${typed}"|<option value="${typed}"\\s+selected`))
      assert.deepEqual(connections(), known)
      assert.equal((await stage.view(start.token))['used'], 0)
    })
})

suite('an access token with a line break or another control character', () => {
  const bad = ['access\r\nA1 LOGOUT', 'access\n', 'user=x\u0001auth', 'acc\u00e9s']
  let stage: SignInStage
  let endpoint: Awaited<ReturnType<typeof startTokenEndpoint>>
  const parts = new AsyncDisposableStack()
  before(async () => {
    endpoint = await startTokenEndpoint()
    parts.defer(() => endpoint.close())
    // Without `openid`, which would need an ID token from this endpoint.
    const env = { MAILROOM_OAUTH_TOKEN_URL_A: endpoint.url, MAILROOM_OAUTH_SCOPE_A: mailScope }
    stage = await openSignInStage('127.0.0.1', env)
    parts.defer(() => stage.remove())
  })
  after(() => parts.disposeAsync())

  /** Lines in which a credential was sent to the mail server. */
  const logins = (): string[] =>
    stage.rig.imap.log.map(({ line }) => line).filter((line) => /AUTHENTICATE|LOGIN/.test(line))
  const users = () => stage.rig.list('/lite/users')

  test('is refused at the consent: no login is tried, nothing stored', async () => {
    const start = await stage.begin()
    stage.rig.imap.setAccessToken(start.email, () => Promise.resolve(true))
    for (const token of bad) {
      endpoint.answer(() => granted(token, { refresh_token: 'refresh-1' }))
      const shown = await start.visitor.open(await stage.answerOf(start))
      assert.ok(shown.text.includes(en.failures.provider_refuses), shown.text)
      assert.match(shown.text, /the access token has characters that none may have/)
      assert.deepEqual([logins(), await users(), (await stage.view(start.token))['used']], [[], [], 0])
    }
    endpoint.answer(() => granted('access', { refresh_token: 'refresh-1' }))
    assert.notEqual(onwardOf(await start.visitor.open(await stage.answerOf(start))), null)
    assert.notDeepEqual(logins(), [])
  })

  test('is refused at a refresh: no login is tried, nothing stored', async () => {
    const email = 'olga@mail.example'
    stage.rig.imap.addUser(email, { accessToken: () => Promise.resolve(true) })
    const [sent, known] = [logins(), await users()]
    const grant = { provider_consumer_key: client.id, provider_refresh_token: 'refresh-2' }
    const settings = userBody({ ...stage.rig.imap, password: 'ignored' }, email, grant)
    for (const token of bad) {
      endpoint.answer(() => granted(token))
      const refused = await stage.rig.ok('POST', '/lite/users', settings)
      assert.deepEqual([refused['success'], refused['feedback_code']], [false, 'auth_unavailable'])
      assert.deepEqual([logins(), await users()], [sent, known])
    }
    endpoint.answer(() => granted('access'))
    assert.equal((await stage.rig.ok('POST', '/lite/users', settings))['success'], true)
  })
})

test('an admin token gives no scope that it does not have itself', async (t) => {
  const rig = await startAdminRig()
  t.after(() => rig.close())
  for (const scopes of ['read', 'act', 'keys,act']) {
    const answer = await rig.as(rig.tokens.keys, 'POST', '/admin/tokens', { name: 'more', scopes })
    assert.deepEqual([answer.status, /lacks the scope/.test(String(answer.json['value']))], [403, true], scopes)
  }
  await rig.good('keys', 'POST', '/admin/tokens', { name: 'equal', scopes: 'keys' })
  const names = (await rig.engine.operators.tokens()).map(({ name }) => name)
  assert.deepEqual([names.includes('more'), names.includes('equal')], [false, true])
})
