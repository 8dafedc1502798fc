/** The test support itself, where a mistake in it would let other tests pass for nothing. */
import assert from 'node:assert/strict'
import { connect } from 'node:tls'
import { once } from 'node:events'
import { suite, test, type TestContext } from 'node:test'
import { percentile, summarise } from '../bench/lib/statistics.ts'
import { startCyrus } from './cyrus.ts'
import { startDovecot } from './dovecot.ts'
import { startGreenMail } from './greenmail.ts'
import { startPymap } from './pymap.ts'
import { mail } from './mail.ts'
import { openRawImap } from './raw-imap.ts'
import { developerRecord } from './records.ts'
import { needs } from './require.ts'
import { openTestStore } from './test-store.ts'
import { until } from './until.ts'

const environment = { ...process.env }

/** Until the test ends; a name may be set several times. */
function setEnv(t: TestContext, name: string, value: string | undefined): void {
  const set = (next: string | undefined): void => {
    if (next === undefined) Reflect.deleteProperty(process.env, name)
    else process.env[name] = next
  }
  set(value)
  t.after(() => set(environment[name]))
}

suite('test support', () => {
  test('a missing service is skipped by name, or fails where it is required', (t) => {
    setEnv(t, 'MONGODB_URI', undefined)
    setEnv(t, 'MAILROOM_REQUIRE', '')
    assert.match(needs('mongodb').skip ?? '', /MONGODB_URI is not set/)
    setEnv(t, 'MAILROOM_REQUIRE', 'dovecot, mongodb')
    assert.throws(() => needs('mongodb'), /MAILROOM_REQUIRE=dovecot,mongodb, but MONGODB_URI is not set/)
    setEnv(t, 'MONGODB_URI', 'mongodb://127.0.0.1:1/')
    assert.deepEqual(needs('mongodb'), {})
  })

  test('until answers what the probe answers, and gives up in time with the reason', async () => {
    let asked = 0
    assert.equal(await until('three', () => ++asked === 3 && 'yes', { everyMs: 1 }), 'yes')
    const never = until('never', () => Promise.reject(new Error('why not')), { withinMs: 30, everyMs: 5 })
    await assert.rejects(never, /never: not within 30 ms\nwhy not/)
  })

  test('a test store is of the kind that the variable says, and empty, whoever had its database before', async () => {
    const kind = process.env['MAILROOM_TEST_STORE'] === 'mongodb' ? 'mongodb' : 'sqlite'
    for (let turn = 0; turn < 3; turn += 1) {
      const { store, remove } = await openTestStore()
      assert.equal(store.kind, kind)
      assert.equal(await store.developers.count(), 0)
      await store.developers.create(developerRecord())
      await remove()
    }
  })

  test('percentiles by nearest rank', () => {
    const values = Array.from({ length: 200 }, (_, index) => 200 - index)
    assert.deepEqual(summarise(values), { count: 200, p50: 100, p99: 198, max: 200 })
    assert.equal(percentile([7], 1), 7)
    assert(Number.isNaN(percentile([], 50)))
  })
})

suite('a private Dovecot', needs('dovecot'), () => {
  for (const format of ['maildir', 'sdbox'] as const) {
    test(`${format}: any user with the one password, the usual folders, mail that outlives a kill`, async (t) => {
      const dovecot = await startDovecot({ format })
      t.after(() => dovecot.remove())
      const open = (user: string, password: string) => openRawImap({ ...dovecot, user, password })
      await assert.rejects(open('ann', 'wrong'), /AUTHENTICATIONFAILED/)
      await dovecot.append('ann', 'Sent', mail({ to: 'bob@mail.example', subject: 'kept' }), ['\\Seen'])
      await dovecot.kill()
      await dovecot.start()
      const ann = await dovecot.connect('ann')
      const folders = (await ann.command('LIST (SPECIAL-USE) "" *')).join('\n')
      for (const use of ['Drafts', 'Sent', 'Trash', 'Junk', 'Archive'])
        assert.match(folders, new RegExp(`\\\\${use}\\b`))
      assert((await ann.command('EXAMINE Sent')).includes('* 1 EXISTS'))
      assert.equal(await dovecot.connections(), 1)
      await ann.close()
      const bob = await dovecot.connect('bob')
      assert((await bob.command('EXAMINE Sent')).includes('* 0 EXISTS'))
      await bob.close()
    })
  }

  test('TLS on a port of its own', async (t) => {
    const dovecot = await startDovecot({ tls: true })
    t.after(() => dovecot.remove())
    assert(dovecot.tlsPort)
    const socket = connect({ host: dovecot.host, port: dovecot.tlsPort, rejectUnauthorized: false })
    t.after(() => socket.destroy())
    const [greeting] = (await once(socket, 'data')) as [Buffer]
    assert.match(greeting.toString(), /^\* OK/)
    assert.equal(socket.getPeerCertificate().subject.CN, 'localhost')
  })
})

for (const [service, startServer, keepsMail] of [
  ['cyrus', startCyrus, true],
  ['greenmail', startGreenMail, false],
  ['pymap', startPymap, false],
] as const) {
  suite(`a private ${service}`, needs(service), () => {
    test(`one password at a time, and mail that ${keepsMail ? 'outlives' : 'is gone after'} a restart`, async (t) => {
      const server = await startServer()
      t.after(() => server.remove())
      const user = 'ann@mail.example'
      const open = (password: string) => openRawImap({ ...server, user, password })
      await server.append(user, 'INBOX', mail({ to: user, subject: 'kept' }), ['\\Seen'])
      const first = server.password
      await assert.rejects(open('wrong'), /^Error: IMAP: NO/)
      await server.restart()
      const ann = await open(first)
      assert((await ann.command('EXAMINE INBOX')).includes(`* ${keepsMail ? 1 : 0} EXISTS`))
      await ann.close()
      await server.setPassword('another-one')
      await assert.rejects(open(first), /^Error: IMAP: NO/)
      await (await open('another-one')).close()
      await server.remove()
      await assert.rejects(open('another-one'), /ECONNREFUSED/)
    })
  })
}
