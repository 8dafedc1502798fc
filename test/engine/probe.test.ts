/**
 * The trial login: what it answers for every way it can fail, how long it takes at most, and that its log keeps
 * secrets.
 */
import assert from 'node:assert/strict'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { suite, test, type TestContext } from 'node:test'
import { createBudget } from '../../engine/budget.ts'
import { readConfig, type Config } from '../../engine/config.ts'
import { AppError } from '../../engine/errors.ts'
import { createHosts } from '../../engine/accounts/hosts.ts'
import { createTriedSessions, loginOf } from '../../engine/accounts/login.ts'
import { createProbe, type ProbeDeps } from '../../engine/accounts/trial.ts'
import { createLoginLimiter, type Login } from '../../engine/accounts/login-limiter.ts'
import { openSession } from '../../engine/accounts/session/index.ts'
import { createNames } from '../../engine/accounts/session/names.ts'
import type { Credential } from '../../engine/accounts/types.ts'
import { createImapServer, type Hooks } from '../support/imap-server/index.ts'
import { on } from '../support/imap-server/play.ts'
import { freePort } from '../support/port.ts'
import { until } from '../support/until.ts'

const config = readConfig({
  MAILROOM_ALLOW_PRIVATE: '1',
  MAILROOM_CONNECT_TIMEOUT: '5s',
  MAILROOM_LOGIN_TIMEOUT: '5s',
  MAILROOM_COMMAND_TIMEOUT: '5s',
  MAILROOM_CREATE_TIMEOUT: '8s',
})
/** For what has to be given up. */
const brief = { config: { ...config, MAILROOM_CREATE_TIMEOUT: 600 } }
const password = 's3cret "word" \\'

type Get = ProbeDeps['tokens']['get']

/** Access tokens that are given so. */
const given = (get: Get): Pick<ProbeDeps, 'tokens'> => ({ tokens: { get, forget: () => undefined } })

type Change = Partial<Omit<ProbeDeps, 'sync'>> & { readonly config?: Config }

function probeWith({ config: changed = config, ...change }: Change = {}) {
  const limiter = createLoginLimiter({ perMinute: 0 })
  const sync = { config: changed, budget: createBudget(2 ** 29) }
  const token = { accessToken: 'token-1', renewAt: 0, rotated: null }
  const hosts = createHosts(Date.now)
  const deps = { sync, openSession, limiter, hosts, tried: createTriedSessions() }
  return createProbe({ ...deps, ...given(() => Promise.resolve(token)), ...change })
}

async function serve(t: TestContext, hooks: Hooks = {}) {
  const server = await createImapServer({ users: { ann: { password, accessToken: 'token-1' } }, hooks })
  t.after(() => server.close())
  return { server, settings: { server: server.host, port: server.port, useSsl: false, username: 'ann' } }
}

const withPassword = (text = password) => ({ kind: 'password', password: text }) as const
const withToken = { kind: 'oauth2', refreshToken: 'refresh', providerKey: 'key' } as const

suite('the trial login', () => {
  test('lets in, and leaves no connection behind', async (t) => {
    const { server, settings } = await serve(t)
    for (const credential of [withPassword(), withToken]) {
      const result = await probeWith()('dev', settings, credential)
      assert(result.ok, JSON.stringify(result))
      assert.match(result.log, /^S: \* OK .*ready$/m)
      assert.match(result.log, /^C: \S+ LIST/m)
    }
    await until('closed', () => server.connections.length === 0)
  })

  test('is one of the logins of its host, unless it never had its turn', async (t) => {
    const { settings } = await serve(t)
    const hosts = createHosts(Date.now)
    await probeWith({ hosts })('dev', settings, withPassword())
    await probeWith({ hosts })('dev', settings, withPassword('wrong'))
    const refused = given(() => Promise.reject(new AppError('consent_lost', 'no')))
    await probeWith({ hosts, ...refused })('dev', settings, withToken)
    assert.deepEqual(hosts.logins(settings.server), { ok: 1, auth_rejected: 1 })
  })

  test('its log holds no secret, also when the server echoes it', async (t) => {
    const encoded = Buffer.from(`\0ann\0${password}`).toString('base64')
    const { settings } = await serve(t, {
      command: ({ name }) =>
        name === 'AUTHENTICATE' ? { tagged: `NO [AUTHENTICATIONFAILED] ${password} is wrong, ${encoded}` } : undefined,
    })
    const result = await probeWith()('dev', settings, withPassword())
    assert(!result.ok)
    assert.equal(result.failure, 'auth_rejected')
    for (const secret of [password, 's3cret', Buffer.from(password).toString('base64')]) {
      assert(!result.log.includes(secret), result.log)
      assert(!result.message.includes(secret), result.message)
    }
    const { settings: plain } = await serve(t)
    assert(!(await probeWith()('dev', plain, withToken)).log.includes('token-1'))
  })

  test('each failure by its name', async (t) => {
    const { server, settings } = await serve(t)
    const failureOf = async (
      change: Partial<typeof settings>,
      credential: Parameters<ReturnType<typeof probeWith>>[2] = withPassword(),
      deps: Change = {},
    ) => {
      const result = await probeWith(deps)('dev', { ...settings, ...change }, credential)
      assert(!result.ok)
      assert(result.message !== '' && result.log.includes(result.message))
      return result.failure
    }
    assert.equal(await failureOf({}, withPassword('wrong')), 'auth_rejected')
    assert.equal(await failureOf({ port: await freePort() }), 'connection_refused')
    assert.equal(await failureOf({ server: 'no-such-host.invalid' }), 'host_not_found')
    assert.equal(await failureOf({ useSsl: true }), 'tls')
    const publicOnly = { config: { ...config, MAILROOM_ALLOW_PRIVATE: false } }
    assert.equal(await failureOf({}, withPassword(), publicOnly), 'private_address')
    const revoked = given(() => Promise.reject(new AppError('consent_lost', 'withdrawn')))
    assert.equal(await failureOf({}, withToken, revoked), 'consent_lost')
    server.hooks = { greeting: () => '* BYE Too many connections' }
    assert.equal(await failureOf({}), 'connection_limit')
    server.hooks = { command: on('AUTHENTICATE', { lines: ['* BYE [THROTTLED] Not so fast'] }) }
    assert.equal(await failureOf({}), 'throttled', 'though the server waits for us to close')
    for (const greeting of ['HTTP/1.1 400 Bad Request\r\n\r\n', '220 mx.example ESMTP ready', '220-mx', '+OK POP3']) {
      server.hooks = { greeting: () => greeting }
      assert.equal(await failureOf({}), 'protocol', greeting)
    }
  })

  test('a failure of ours says nothing about the mailbox: it is no answer', async (t) => {
    const { server, settings } = await serve(t)
    const away = new AppError('store_unavailable', 'the database cannot be used now')
    const probe = probeWith(given(() => Promise.reject(away)))
    await assert.rejects(probe('dev', settings, withToken), away)
    assert.deepEqual(server.log, [])
  })

  test('the refresh token that has taken the place of the former one is kept before the login, whatever comes of it', async (t) => {
    const { settings } = await serve(t)
    const rotating = given(() => Promise.resolve({ accessToken: 'token-1', renewAt: 0, rotated: 'refresh-2' }))
    const said: unknown[] = []
    const openSession = (): Promise<never> => {
      said.push('login')
      return Promise.reject(new AppError('busy', 'no file left'))
    }
    const keep = (credential: unknown): Promise<void> => Promise.resolve(void said.push(credential))
    const probe = probeWith({ ...rotating, openSession })
    await assert.rejects(probe('dev', settings, withToken, { onRotated: keep }), { code: 'busy' })
    assert.deepEqual(said, [{ ...withToken, refreshToken: 'refresh-2' }, 'login'])
  })

  test('an access token that the mail server refused is not used again', async (t) => {
    const { settings } = await serve(t)
    let count = 0
    const token = () => Promise.resolve({ accessToken: `token-${count}`, renewAt: Infinity, rotated: null })
    const probe = probeWith({ tokens: { get: token, forget: () => (count += 1) } })
    const first = await probe('dev', settings, withToken)
    assert(!first.ok && first.failure === 'auth_rejected')
    assert((await probe('dev', settings, withToken)).ok)
  })

  test('its session waits for the account, under the credential that the provider has rotated', async (t) => {
    const { server, settings } = await serve(t)
    const token = { accessToken: 'token-1', renewAt: 1, rotated: 'newer' }
    const tried = createTriedSessions()
    t.after(() => tried.close())
    const probe = probeWith({ tried, ...given(() => Promise.resolve(token)) })
    assert((await probe('dev', settings, withToken, { staysOpen: true })).ok)
    const bearer = () => ({ owner: { developerId: 'dev', part: 'ann' }, names: createNames(), onLine: undefined })
    const take = (developerId: string, credential: Credential) =>
      tried.take({ ...settings, id: 'ann' }, loginOf(developerId, settings, credential), bearer)
    const newest = { ...withToken, refreshToken: 'newer' }
    assert.equal(take('dev', withToken), null)
    assert.equal(take('another', newest), null)
    const taken = take('dev', newest)
    assert.equal(taken?.tokenRenewAt, 1)
    assert.equal(server.connections.length, 1)
    assert.equal(take('dev', newest), null, 'taken once')
    await taken.session.close()
  })

  test('its session is closed when no account takes it, or the service ends', async (t) => {
    const { server, settings } = await serve(t)
    for (const ms of [100, 60_000]) {
      const tried = createTriedSessions(ms)
      const probe = () => probeWith({ tried })('dev', settings, withPassword(), { staysOpen: true })
      assert((await probe()).ok)
      assert((await probe()).ok)
      assert.equal(server.connections.length, 1, 'a further trial ends the session of the one before')
      if (ms > 100) tried.close()
      await until('closed', () => server.connections.length === 0)
      if (ms > 100) assert((await probe()).ok)
      await until('closed', () => server.connections.length === 0)
    }
  })

  test('ends in time with a host that hangs at any point', async (t) => {
    const mute = createServer()
    mute.listen(0, '127.0.0.1')
    await once(mute, 'listening')
    t.after(() => mute.close())
    const moments: Hooks[] = ['AUTHENTICATE', 'NAMESPACE', 'LIST'].map((moment) => ({
      command: ({ name }) => (name === moment ? {} : undefined),
    }))
    const places = await Promise.all(moments.map((hooks) => serve(t, hooks)))
    const settings = places.map((place) => place.settings)
    settings.push({ server: '127.0.0.1', port: (mute.address() as AddressInfo).port, useSsl: false, username: 'ann' })
    const slow = {
      config: {
        ...brief.config,
        MAILROOM_CONNECT_TIMEOUT: 60_000,
        MAILROOM_LOGIN_TIMEOUT: 60_000,
        MAILROOM_COMMAND_TIMEOUT: 60_000,
      },
    }
    const started = performance.now()
    const probe = probeWith(slow)
    const open = { staysOpen: true }
    const results = await Promise.all(settings.map((place) => probe('dev', place, withPassword(), open)))
    assert(performance.now() - started < 8000)
    for (const result of results) assert(!result.ok && result.failure === 'timeout')
    const never = given(() => new Promise(() => undefined))
    const token = await probeWith({ ...brief, ...never })('dev', places[0]?.settings ?? assert.fail(), withToken)
    assert(!token.ok && token.failure === 'timeout')
    await until('closed', () => places.every(({ server }) => server.connections.length === 0))
  })

  test('five wrong passwords stand in nobody else’s way; our own limit says so in its own words, without dialling', async (t) => {
    let dialled = 0
    const greeting = (): string => `* OK ready ${(dialled += 1)}`
    const { settings } = await serve(t, { greeting })
    const logins = createLoginLimiter({ perMinute: 30 })
    const probe = probeWith({ limiter: logins })
    for (let n = 0; n < 5; n += 1) {
      const result = await probe('dev', { ...settings, username: 'eve' }, withPassword('wrong'))
      assert(!result.ok && result.failure === 'auth_rejected', JSON.stringify(result))
    }
    assert.equal(dialled, 5)
    const slowed = await probe('dev', { ...settings, username: 'eve' }, withPassword('wrong'))
    assert(!slowed.ok)
    assert.equal(slowed.failure, 'throttled')
    assert.match(
      slowed.message,
      /^the mail server rejected 5 logins of this username within 10 minutes, so it is asked less often; try again in (?:1\d|20) s$/,
    )
    assert(slowed.retryAfterMs !== undefined && slowed.retryAfterMs > 15_000)
    assert.equal(dialled, 5)
    const other = await probe('dev', settings, withPassword())
    assert(other.ok, JSON.stringify(other))
  })

  test('the right password does not wait for the failures of the wrong one', async (t) => {
    const { settings } = await serve(t)
    const probe = probeWith({ limiter: createLoginLimiter({ perMinute: 50 }) })
    for (let n = 0; n < 6; n += 1) assert(!(await probe('dev', settings, withPassword('wrong'))).ok)
    const right = await probe('dev', settings, withPassword())
    assert(right.ok, JSON.stringify(right))
  })

  test('who waits for a turn that does not come is told the same', async (t) => {
    const { settings } = await serve(t)
    const logins = { ...createLoginLimiter({ perMinute: 1 }), delay: () => 0 }
    assert((await probeWith({ limiter: logins })('dev', settings, withPassword())).ok)
    const result = await probeWith({ ...brief, limiter: logins })('dev', settings, withPassword())
    assert(!result.ok && result.failure === 'throttled', JSON.stringify(result))
  })

  test('a refused connection was not lost', async (t) => {
    const { settings } = await serve(t)
    const result = await probeWith()('dev', { ...settings, port: await freePort() }, withPassword())
    assert.match(result.ok ? '' : result.message, /^connection refused/)
  })

  test('a rejected login counts against the host and the username, a silent one does not', async (t) => {
    const { settings } = await serve(t)
    const failed: Login[] = []
    const logins = {
      ...createLoginLimiter({ perMinute: 0 }),
      failed: (login: Login) => void failed.push(login),
    }
    await probeWith({ limiter: logins })('dev', settings, withPassword('wrong'))
    await probeWith({ limiter: logins })('dev', { ...settings, port: await freePort() }, withPassword())
    assert.deepEqual(failed, [{ host: '127.0.0.1', developerId: 'dev', username: 'ann', secret: 'wrong' }])
  })
})
