/** Logins in clear text: where MAILROOM_PLAINTEXT allows none, nothing secret is sent, whatever the server says. */
import assert from 'node:assert/strict'
import { after, before, suite, test, type TestContext } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { SessionOptions } from '../../engine/accounts/session-types.ts'
import { selfSigned } from '../support/imap-server/certificate.ts'
import { createImapServer, type Hooks, type ImapServer } from '../support/imap-server/index.ts'
import { failure, on } from '../support/imap-server/play.ts'
import { openTest } from '../support/imap-server/session.ts'

const trusted = selfSigned()
const isPrivate = (): boolean => false
const token = { auth: { accessToken: 'token-1' } }

/** As the test's server is on loopback: a public address is one that is judged so. */
const strict: Readonly<Record<string, Partial<SessionOptions>>> = {
  'never, at loopback': { plaintext: 'never' },
  'private, at a public address': { plaintext: 'private', isPrivate },
  'private, at a public address, with an access token': { plaintext: 'private', isPrivate, ...token },
}

async function serve(t: TestContext, hooks: Hooks, mode: 'starttls' | 'implicit' | null): Promise<ImapServer> {
  const tls = mode === null ? {} : { tls: { ...trusted, mode } }
  const server = await createImapServer({ users: { ann: { accessToken: 'token-1' } }, hooks, ...tls })
  t.after(() => server.close())
  return server
}

/** What came from the client, over TLS or not. */
const heard = (server: ImapServer): string[] =>
  server.log.filter(({ line }) => line.startsWith('C: ')).map(({ line }) => line)

function assertNothingSecret(server: ImapServer): void {
  assert(!heard(server).some((line) => /LOGIN|AUTHENTICATE|secret|token/i.test(line)), heard(server).join('\n'))
}

suite('a login in clear text', () => {
  const usual = getCACertificates('default')
  before(() => setDefaultCACertificates([...usual, trusted.cert]))
  after(() => setDefaultCACertificates(usual))

  const stripped: Readonly<Record<string, { readonly hooks: Hooks; readonly offered: boolean }>> = {
    'no STARTTLS': { hooks: {}, offered: false },
    'STARTTLS refused with NO': {
      hooks: { command: on('STARTTLS', { tagged: 'NO not now' }) },
      offered: true,
    },
    'STARTTLS refused with BAD': {
      hooks: { command: on('STARTTLS', { tagged: 'BAD what?' }) },
      offered: true,
    },
    'PREAUTH, as if no login were needed': {
      hooks: { greeting: () => '* PREAUTH [CAPABILITY IMAP4rev1] welcome' },
      offered: false,
    },
    'an answer that goes on in clear text': {
      hooks: { command: on('STARTTLS', { lines: ['* CAPABILITY IMAP4rev1 AUTH=PLAIN'], tagged: 'NO' }) },
      offered: true,
    },
  }
  for (const [policy, options] of Object.entries(strict)) {
    for (const [name, { hooks, offered }] of Object.entries(stripped)) {
      test(`${policy}: refused at ${name}`, async (t) => {
        const server = await serve(t, hooks, offered ? 'starttls' : null)
        const error = await failure(openTest(t, server, { server: 'localhost', ...options }), 'tls')
        assert.match(error.message, /does not do STARTTLS, and MAILROOM_PLAINTEXT=(never|private) allows/)
        assertNothingSecret(server)
      })
    }

    test(`${policy}: STARTTLS and TLS log in`, async (t) => {
      for (const mode of ['starttls', 'implicit'] as const) {
        const server = await serve(t, {}, mode)
        const session = await openTest(t, server, { server: 'localhost', useSsl: mode === 'implicit', ...options })
        await session.noop()
        assert(heard(server).some((line) => /AUTHENTICATE/.test(line)))
        await session.close()
      }
    })
  }

  test('a server that goes away instead of upgrading is a network failure, not one of the setting', async (t) => {
    for (const close of ['reset', 'end'] as const) {
      const server = await serve(t, { command: on('STARTTLS', { close }) }, 'starttls')
      await failure(openTest(t, server, { server: 'localhost', plaintext: 'never' }), 'network')
      assertNothingSecret(server)
    }
    const bye = { lines: ['* BYE Too many connections'], close: 'end' } as const
    const server = await serve(t, { command: on('STARTTLS', bye) }, 'starttls')
    await failure(openTest(t, server, { server: 'localhost', plaintext: 'never' }), 'connection_limit')
  })

  test('private allows it at loopback, always everywhere; STARTTLS is taken where it is offered', async (t) => {
    for (const options of [{ plaintext: 'private' }, { plaintext: 'always', isPrivate }] as const) {
      const plain = await serve(t, {}, null)
      await openTest(t, plain, options)
      const upgraded = await serve(t, {}, 'starttls')
      await openTest(t, upgraded, { server: 'localhost', ...options })
      assert(heard(upgraded).some((line) => /STARTTLS/.test(line)))
    }
  })
})
