/** The probe of a domain’s hosts, against IMAP servers on loopback: which host counts, and when the probe ends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { createHostProbe } from '../../../engine/discovery/host-probe.ts'
import { selfSigned } from '../../support/imap-server/certificate.ts'
import { createImapServer, type ImapServerOptions } from '../../support/imap-server/index.ts'
import { freePort } from '../../support/port.ts'

const certificate = selfSigned('mail.own.example')

async function imap(t: TestContext, mode: 'implicit' | 'starttls', more: Partial<ImapServerOptions> = {}) {
  const server = await createImapServer({ users: {}, tls: { ...certificate, mode }, ...more })
  t.after(() => server.close())
  return server
}

/** A host that answers `said` to each connection and each line. */
async function play(t: TestContext, ...said: readonly string[]): Promise<number> {
  const open: Socket[] = []
  const server = createServer((socket) => {
    open.push(socket.on('error', () => undefined))
    const rest = [...said]
    const next = (): void => void socket.write(rest.shift() ?? '')
    next()
    socket.on('data', next)
  }).listen(0, '127.0.0.1')
  t.after(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

interface Options {
  readonly tls?: number
  readonly startTls?: number
  readonly hosts?: readonly string[]
  readonly exchanges?: readonly string[]
  readonly allowPrivate?: boolean
  readonly ca?: string
  /** A name whose look-up never ends. */
  readonly hangs?: string
}

async function probe(options: Options) {
  const { hosts = ['mail.own.example'], exchanges = [], allowPrivate = true, ca = certificate.cert } = options
  const { tls = await freePort(), startTls = await freePort() } = options
  const lookup = (name: string) =>
    name === options.hangs
      ? new Promise<never>(() => undefined)
      : hosts.includes(name)
        ? Promise.resolve([{ address: '127.0.0.1', family: 4 }])
        : Promise.reject(Object.assign(new Error(name), { code: 'ENOTFOUND' }))
  const run = createHostProbe({ allowPrivate, lookup, ca, ports: { tls, startTls }, timeoutMs: 1000 })
  const found = await run('own.example', exchanges)
  return found.map(({ server, port, useSsl }) => [server, port, useSsl])
}

suite('the probe of hosts', () => {
  test('finds TLS first, and STARTTLS where there is no TLS', async (t) => {
    const [secure, upgraded] = [await imap(t, 'implicit'), await imap(t, 'starttls')]
    const [tls, startTls] = [secure.port, upgraded.port]
    assert.deepEqual(await probe({ tls, startTls }), [['mail.own.example', tls, true]])
    assert.equal(upgraded.accepted, 0)
    assert.deepEqual(await probe({ startTls }), [['mail.own.example', startTls, false]])
    assert.deepEqual(await probe({ tls: await play(t), startTls }), [['mail.own.example', startTls, false]])
  })

  test('PREAUTH is a greeting under TLS, and rules STARTTLS out without it', async (t) => {
    const hooks = { greeting: () => '* PREAUTH ready' }
    const { port: tls } = await imap(t, 'implicit', { hooks })
    assert.equal((await probe({ tls })).length, 1)
    assert.deepEqual(await probe({ startTls: (await imap(t, 'starttls', { hooks })).port }), [])
  })

  test('a certificate of another name, or of nobody who is trusted, does not count', async (t) => {
    const ports = { tls: (await imap(t, 'implicit')).port, startTls: (await imap(t, 'starttls')).port }
    assert.deepEqual(await probe({ ...ports, hosts: ['imap.own.example', 'own.example'] }), [])
    assert.deepEqual(await probe({ ...ports, ca: selfSigned('mail.own.example').cert }), [])
  })

  test('another protocol, no STARTTLS, and bytes injected behind its answer do not count', async (t) => {
    for (const said of [
      ['220 ready\r\n', 'a OK\r\n'],
      ['* BYE\r\n', 'a OK\r\n'],
      ['* OK\r\n', 'a NO\r\n'],
      ['* OK\r\n', 'a OK\r\n* CAPABILITY X\r\n'],
      ['x'.repeat(5000)],
    ])
      assert.deepEqual(await probe({ startTls: await play(t, ...said) }).catch(() => []), [])
    const { port: tls } = await imap(t, 'implicit', { hooks: { greeting: () => '+OK POP3 ready' } })
    assert.deepEqual(await probe({ tls }), [])
  })

  test('two mail exchangers are asked, and no third one', async (t) => {
    const elsewhere = selfSigned('mx.host.example')
    const other = await imap(t, 'implicit', { tls: { ...elsewhere, mode: 'implicit' } })
    const mx = { tls: other.port, ca: elsewhere.cert, hosts: ['mx.host.example'] }
    assert.deepEqual(await probe({ ...mx, exchanges: ['a.example', 'mx.host.example'] }), [
      ['mx.host.example', other.port, true],
    ])
    assert.deepEqual(await probe({ ...mx, exchanges: ['a.example', 'b.example', 'mx.host.example'] }), [])
  })

  test('a private address gets no connection unless it is allowed', async (t) => {
    const [secure, upgraded] = [await imap(t, 'implicit'), await imap(t, 'starttls')]
    assert.deepEqual(await probe({ tls: secure.port, startTls: upgraded.port, allowPrivate: false }), [])
    assert.deepEqual([secure.accepted, upgraded.accepted], [0, 0])
  })

  test('hosts that hang end in time, say so, and do not hide one that answers', async (t) => {
    const silent = await play(t)
    await assert.rejects(probe({ tls: silent, startTls: silent }), { name: 'TimeoutError' })
    const { port: tls } = await imap(t, 'implicit')
    assert.deepEqual(await probe({ tls, hangs: 'imap.own.example' }), [['mail.own.example', tls, true]])
  })
})
