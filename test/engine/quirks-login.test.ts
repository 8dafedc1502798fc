/** Servers as they are, at the login: each refusal in its class, nothing waited for without end. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ErrorCode } from '../../engine/errors.ts'
import { failure, on, play } from '../support/imap-server/play.ts'
import { until } from '../support/until.ts'

suite('logging in', () => {
  test('row 1: an access token logs in; its end is no failure, and says what it is', async (t) => {
    const { server, open } = await play(t, {})
    await failure(open({ auth: { accessToken: 'token-0' } }), 'auth_rejected')
    const session = await open({ auth: { accessToken: 'token-1' } })
    await session.select('INBOX')
    const idling = session.idle(60_000, AbortSignal.timeout(10_000))
    await until('idle', () => server.connections.some(({ idling: on }) => on))
    server.say('* BYE Session invalidated - AccessTokenExpired')
    const error = await failure(idling, 'network')
    assert.match(error.message, /AccessTokenExpired$/)
    assert.deepEqual(
      session.events.map((event) => event.type === 'closed' && event.error === error),
      [true],
    )
  })

  test('row 2: throttled at once, with the wait that the server asks for', async (t) => {
    const text = 'BAD Request is throttled. Suggested Backoff Time: 299381 milliseconds'
    const { server, open } = await play(t, {
      command: ({ name }) => (name === 'SELECT' ? { tagged: text } : undefined),
    })
    const session = await open({ commandTimeoutMs: 30_000 })
    const started = performance.now()
    const error = await failure(session.select('INBOX'), 'throttled')
    assert.equal(error.retryAfterMs, 299_381)
    assert(performance.now() - started < 10_000)
    assert.equal(session.closed, true)
    server.hooks = { command: ({ name }) => (name === 'AUTHENTICATE' ? { tagged: text } : undefined) }
    assert.equal((await failure(open(), 'throttled')).retryAfterMs, 299_381)
    server.hooks = { greeting: () => '* BYE Too many requests, try again in 5 minutes' }
    assert.equal((await failure(open(), 'throttled')).retryAfterMs, 300_000)
  })

  test('row 3: authenticated but not connected is about permission, not about the password', async (t) => {
    for (const command of ['NAMESPACE', 'SELECT']) {
      const { open } = await play(t, {
        command: ({ name }) =>
          name === command ? { tagged: 'BAD User is authenticated but not connected.' } : undefined,
      })
      await failure(
        open().then((session) => session.select('INBOX')),
        'permission',
      )
    }
  })

  test('row 16: ID comes after the login, once, in ASCII, and before the first mailbox', async (t) => {
    const identified = new Set<number>()
    const { server, inbox, sent } = await play(t, {
      command({ name, user, connection }) {
        if (name === 'ID' && user) identified.add(connection)
        if (name === 'SELECT' && !identified.has(connection))
          return { tagged: 'NO SELECT Unsafe Login. Please contact kefu' }
        return undefined
      },
    })
    await inbox()
    const ids = sent().filter((line) => / ID /.test(line))
    assert.equal(ids.length, 1)
    assert.match(ids[0] ?? '', /^[\x20-\x7e]+$/)
    assert.equal(server.connections.length, 1)
  })

  test('row 20: connection limits, in whatever words they come', async (t) => {
    const said = [
      '* BYE Maximum number of connections from user+IP exceeded (mail_max_userip_connections=10)',
      '* BYE [ALERT] Too many connections',
    ]
    for (const line of said) {
      const { open } = await play(t, { greeting: () => line })
      await failure(open(), 'connection_limit')
    }
    const { open } = await play(t, {
      command: ({ name }) =>
        name === 'AUTHENTICATE' ? { tagged: 'NO [ALERT] Too many simultaneous connections. (Failure)' } : undefined,
    })
    await failure(open(), 'connection_limit')
  })

  test('logins that fail: each text in its class', async (t) => {
    const texts: readonly (readonly [string, ErrorCode])[] = [
      ['NO [AUTHENTICATIONFAILED] Invalid credentials (Failure)', 'auth_rejected'],
      ['NO LOGIN failed.', 'auth_rejected'],
      ['NO [UNAVAILABLE] Temporary authentication failure.', 'auth_unavailable'],
      ['NO [AUTHENTICATIONFAILED] LOGIN failed, unavailable or not', 'auth_rejected'],
      ['NO Server is temporarily busy, try again', 'auth_unavailable'],
      ['NO [LIMIT] LOGIN Rate limit hit', 'throttled'],
      ['NO [ALERT] Account exceeded command or bandwidth limits. (Failure)', 'throttled'],
      ['NO [ALERT] Your account is not enabled for IMAP use. Please visit your account settings', 'permission'],
      ['NO [CONTACTADMIN] Blocked', 'permission'],
      ['NO [PRIVACYREQUIRED] Encryption needed', 'tls'],
      ['BAD Invalid characters in atom', 'protocol'],
    ]
    for (const [tagged, code] of texts) {
      const { open } = await play(t, { command: ({ name }) => (name === 'AUTHENTICATE' ? { tagged } : undefined) })
      const error = await failure(open(), code)
      assert.equal(error.details['status'], tagged.split(' ')[0])
    }
  })

  test('a BYE in the place of an answer: its code counts, also when the server leaves the connection open', async (t) => {
    const byes: readonly (readonly [string, string, ErrorCode])[] = [
      ['greeting', '[UNAVAILABLE] Later', 'auth_unavailable'],
      ['AUTHENTICATE', '[THROTTLED] Not so fast', 'throttled'],
      ['AUTHENTICATE', '[AUTHENTICATIONFAILED] Bye', 'auth_rejected'],
      ['NAMESPACE', '[CONTACTADMIN] Blocked', 'permission'],
    ]
    for (const [where, said, code] of byes) {
      const bye = `* BYE ${said}`
      const greeting = (): string => (where === 'greeting' ? bye : '* OK ready')
      for (const close of [{ close: 'end' }, {}] as const) {
        const { open } = await play(t, { greeting, command: on(where, { lines: [bye], ...close }) })
        const error = await failure(open(), code)
        assert.equal(`[${String(error.details['responseCode'])}] ${String(error.details['response'])}`, said)
      }
    }
  })

  test('a server with no login method for us, and one that wants encryption first', async (t) => {
    const noOauth = await play(t, {}, ['IMAP4rev1', 'AUTH=PLAIN'])
    await failure(noOauth.open({ auth: { accessToken: 'token-1' } }), 'permission')
    const disabled = await play(t, {}, ['IMAP4rev1', 'LOGINDISABLED'])
    await failure(disabled.open(), 'tls')
    const plainLogin = await play(t, {}, ['IMAP4rev1'])
    assert.equal((await plainLogin.open()).closed, false)
  })

  test('silence ends in time: no greeting, no answer to the login; and a caller may give up', async (t) => {
    const quick = { connectTimeoutMs: 150, loginTimeoutMs: 150 }
    const mute = await play(t, { greeting: () => null })
    await failure(mute.open(quick), 'timeout')
    const stalled = await play(t, { command: ({ name }) => (name === 'AUTHENTICATE' ? {} : undefined) })
    await failure(stalled.open(quick), 'timeout')
    await until('both are gone', () => mute.server.connections.length + stalled.server.connections.length === 0)
  })
})
