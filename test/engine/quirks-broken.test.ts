/** Servers as they are: connections that stall, break or are not read; TLS. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { isAppError } from '../../engine/errors.ts'
import { selfSigned } from '../support/imap-server/certificate.ts'
import { createImapServer } from '../support/imap-server/index.ts'
import { closings, failure, fill, long, on, play } from '../support/imap-server/play.ts'
import { openTest } from '../support/imap-server/session.ts'
import { noPrlimit, withoutFiles } from '../support/no-files.ts'
import { standstill, until } from '../support/until.ts'

suite('a connection that fails', () => {
  test('row 22: no answer: the command and all who wait end in time, once', async (t) => {
    const { inbox } = await play(t, { command: on('NOOP', {}) })
    const session = await inbox()
    const [started, still] = [performance.now(), standstill()]
    const results = await Promise.allSettled([
      session.noop(),
      session.fetchFlags('1:*'),
      session.list({ status: true }),
    ])
    assert(performance.now() - started - still.lost() < 3000)
    still.stop()
    for (const result of results) {
      assert(result.status === 'rejected' && isAppError(result.reason, 'timeout'))
    }
    assert.equal(closings(session).length, 1)
  })

  test('a fault of ours while an answer is read ends the session, and names it', async (t) => {
    const { server, inbox } = await play(t)
    const session = await inbox()
    session.listen(({ type }) => {
      if (type === 'exists') throw new TypeError('a bug')
    })
    server.append('ann', 'INBOX', 'Subject: one\r\n\r\n')
    const error = await failure(session.noop(), 'internal')
    assert.equal(error.message, 'the response * 1 EXISTS could not be handled')
    assert(error.cause instanceof TypeError)
    assert.equal(session.closed, true)
  })

  test('row 22: a slow answer is waited for as long as bytes come', async (t) => {
    const { server, inbox } = await play(t)
    fill(server, 6)
    const session = await inbox(1000)
    const text = (n: number): string => `* ${n} FETCH (UID ${n} FLAGS ())`
    server.hooks = { command: ({ name }) => (name === 'UID FETCH' ? { lines: [text(1)], delayMs: 300 } : undefined) }
    const answer = session.fetchFlags('1:*')
    const dripping = (async () => {
      for (let n = 2; n <= 6; n += 1) {
        await new Promise((resolve) => setTimeout(resolve, 300))
        server.say(text(n))
      }
      const tag = server.log
        .map(({ line }) => /^C: (\S+) UID FETCH/.exec(line)?.[1])
        .findLast((found) => found !== undefined)
      server.say(`${tag ?? ''} OK done`)
    })()
    assert.equal((await answer).length, 6)
    await dripping
  })

  test('row 23: a reset at any moment is an error of the command, and ends nothing else', async (t) => {
    const moments = [
      'CAPABILITY',
      'AUTHENTICATE',
      'ID',
      'NAMESPACE',
      'ENABLE',
      'LIST',
      'SELECT',
      'UID FETCH',
      'UID STORE',
      'IDLE',
      'LOGOUT',
    ]
    for (const close of ['reset', 'end'] as const) {
      for (const moment of moments) {
        const { server } = await play(t, { command: on(moment, { close }) })
        fill(server, 1)
        const work = (async () => {
          const session = await openTest(t, server)
          await session.list({ status: true })
          await session.select('INBOX')
          await session.fetchIndex('1:*')
          await session.store(1, { add: ['\\Seen'], remove: [] })
          const idling = session.idle(50, long())
          await idling
          await session.close()
          assert.equal(closings(session).length, 1)
          throw new Error('went through')
        })()
        const error = await work.catch((thrown: unknown) => thrown)
        // A LOGOUT that fails is no failure, and CAPABILITY is in the greeting.
        if (moment === 'LOGOUT' || moment === 'CAPABILITY') assert.equal((error as Error).message, 'went through')
        else assert(isAppError(error, 'network'), `${moment} ${close}: ${String(error)}`)
      }
    }
  })

  test('row 23: everything at once: a server that drops fifty connections in all states', async (t) => {
    const { server, inbox } = await play(t)
    fill(server, 50)
    const sessions = await Promise.all(Array.from({ length: 50 }, () => inbox(2000)))
    const works = sessions.flatMap((session, index) => [
      index % 2 === 0 ? session.idle(60_000, long()) : session.fetchIndex('1:*'),
      session.list({ status: true }),
    ])
    server.dropConnections()
    for (const result of await Promise.allSettled(works)) {
      if (result.status === 'rejected') assert(isAppError(result.reason, 'network'), String(result.reason))
    }
    await until('all closed', () => sessions.every((session) => session.closed && closings(session).length === 1))
  })

  test('a BYE while nothing is asked ends the session with what it says', async (t) => {
    const { server, inbox } = await play(t)
    const session = await inbox()
    server.say('* BYE [UNAVAILABLE] Server shutting down.')
    await until('closed', () => session.closed)
    const [event] = session.events
    assert(event?.type === 'closed' && event.error?.code === 'network')
    assert.match(event.error.message, /shutting down/)
  })

  test('close does not wait for a server that does not answer', async (t) => {
    const { inbox } = await play(t, { command: on('LOGOUT', {}) })
    const session = await inbox(20_000)
    const started = performance.now()
    await session.close()
    assert(performance.now() - started < 10_000)
    assert.deepEqual(session.events, [{ type: 'closed', error: null }])
  })
})

test('no file left for a connection is a failure of ours', { skip: noPrlimit() }, async (t) => {
  const { open } = await play(t)
  await (await open()).close()
  await withoutFiles(() => failure(open(), 'busy'))
})

suite('TLS', () => {
  const trusted = selfSigned()
  const before = getCACertificates('default')

  test('implicit and STARTTLS with a certificate that is trusted; the name is checked', async (t) => {
    setDefaultCACertificates([...before, trusted.cert])
    t.after(() => setDefaultCACertificates(before))
    for (const mode of ['implicit', 'starttls'] as const) {
      const server = await createImapServer({ users: { ann: {} }, tls: { ...trusted, mode } })
      t.after(() => server.close())
      const useSsl = mode === 'implicit'
      const session = await openTest(t, server, { server: 'localhost', useSsl })
      fill(server, 1)
      await session.select('INBOX')
      const idling = session.idle(60_000, long())
      fill(server, 1)
      await until('exists', () => session.events.length > 0)
      assert.equal((await session.fetchIndex('1:*')).length, 2)
      await idling
      await session.close()
    }
  })

  test('an unknown certificate, one for another name, and no TLS at all', async (t) => {
    const foreign = selfSigned('mail.other.example')
    setDefaultCACertificates([...before, foreign.cert])
    t.after(() => setDefaultCACertificates(before))
    for (const mode of ['implicit', 'starttls'] as const) {
      const useSsl = mode === 'implicit'
      for (const certificate of [trusted, foreign]) {
        const server = await createImapServer({ users: { ann: {} }, tls: { ...certificate, mode } })
        t.after(() => server.close())
        const error = await failure(openTest(t, server, { server: 'localhost', useSsl }), 'tls')
        assert.match(String(error.details['errno']), certificate === trusted ? /SELF_SIGNED/ : /ALTNAME/)
      }
    }
    const { server: plain } = await play(t)
    await failure(openTest(t, plain, { useSsl: true }), 'tls')
  })

  test('a certificate that is trusted, and not fit for a server: OpenSSL has no code for most of what is wrong', async (t) => {
    const flawed = [
      { certificate: selfSigned('localhost', 'purpose'), said: /\(INVALID_PURPOSE\)$/ },
      { certificate: selfSigned('localhost', 'extension'), said: /\(unhandled critical extension\)$/ },
    ]
    setDefaultCACertificates([...before, ...flawed.map(({ certificate }) => certificate.cert)])
    t.after(() => setDefaultCACertificates(before))
    for (const { certificate, said } of flawed) {
      const server = await createImapServer({ users: { ann: {} }, tls: { ...certificate, mode: 'implicit' } })
      t.after(() => server.close())
      const error = await failure(openTest(t, server, { server: 'localhost', useSsl: true }), 'tls')
      assert.match(error.message, said)
    }
  })
})
