/** The HTTP client by itself: the guard at connect time, limits, and the other two kinds of request. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer as createTlsServer } from 'node:https'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { after, before, suite, test, type TestContext } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { createHttpClient } from '../../../engine/net/http.ts'
import { selfSigned } from '../../support/imap-server/certificate.ts'
import { noPrlimit, withoutFiles } from '../../support/no-files.ts'
import { type Receiver, createReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'

const http = createHttpClient({ allowPrivate: true })
const guarded = createHttpClient({ allowPrivate: false })
const limits = { timeoutMs: 10_000, maxResponseBytes: 100 }
let receiver: Receiver

before(async () => {
  receiver = await createReceiver()
})
after(async () => {
  await http.close()
  await guarded.close()
  await receiver.close()
})

suite('the HTTP client', () => {
  test('literal and resolved private addresses are refused at connect time', async () => {
    const hosts = ['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1', '169.254.169.254', '10.1.2.3']
    for (const host of hosts) {
      const url = `http://${host}:${receiver.port}/guard`
      await assert.rejects(guarded.postJson(url, {}, '{}', limits), { code: 'private_address' }, host)
    }
    assert.equal(receiver.at('/guard').length, 0)
  })

  test('a guarded client does not use a connection that an open one made', async () => {
    await http.postJson(receiver.url('/pool'), {}, '{}', limits)
    await assert.rejects(guarded.postJson(receiver.url('/pool'), {}, '{}', limits), { code: 'private_address' })
    assert.equal(receiver.at('/pool').length, 1)
  })

  test('answers are cut, redirects not followed', async () => {
    receiver.script('/moved', [{ status: 307, headers: { location: '/target' }, body: 'y'.repeat(500) }])
    const answer = await http.get(receiver.url('/moved'), { accept: 'application/json' }, limits)
    assert.equal(answer.status, 307)
    assert.equal(answer.headers['location'], '/target')
    assert.equal(answer.body.length, 100)
    assert.equal(receiver.at('/target').length, 0)
  })

  /** Sockets that this process opens until the test ends. */
  function noted(t: TestContext): readonly Socket[] {
    const ours: Socket[] = []
    const note = (message: unknown): void => void ours.push((message as { readonly socket: Socket }).socket)
    subscribe('net.client.socket', note)
    t.after(() => unsubscribe('net.client.socket', note))
    return ours
  }

  test('one deadline over headers and body, at which the connection ends', async (t) => {
    for (const [path, how] of [
      ['/never', 'hang'],
      ['/drip', 'slow body'],
    ] as const) {
      receiver.script(path, [], how)
      const client = createHttpClient({ allowPrivate: true })
      t.after(() => client.close())
      const ours = noted(t)
      const since = performance.now()
      await assert.rejects(client.get(receiver.url(path), {}, { ...limits, timeoutMs: 300 }), { code: 'timeout' })
      assert.ok(performance.now() - since < 5000)
      assert.equal(ours.length, 1)
      await until('its connection ends', () => ours[0]?.destroyed, { withinMs: 5000 })
    }
  })

  test('connections are used again', async () => {
    const ports = new Set<number>()
    for (let turn = 0; turn < 20; turn += 1) await http.postForm(receiver.url('/form'), { a: 'b c', d: '&' }, limits)
    for (const request of receiver.at('/form')) {
      assert.equal(request.raw, 'a=b+c&d=%26')
      assert.equal(request.headers['content-type'], 'application/x-www-form-urlencoded')
      ports.add(request.remotePort)
    }
    // A second one may be opened while the first is being given back.
    assert.ok(ports.size <= 2, `${ports.size} connections for 20 requests`)
  })

  test('who answers and takes nothing more of the body is left, and the body is not kept', async (t) => {
    const theirs: Socket[] = []
    const answer = (): void =>
      void theirs.at(-1)?.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 0\r\n\r\n')
    const server = createServer((socket) => {
      theirs.push(socket.on('error', () => undefined).pause())
      answer()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const ours = noted(t)
    const client = createHttpClient({ allowPrivate: true, connectTimeoutMs: 1000 })
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
      assert.equal((await client.postJson(url, {}, Buffer.alloc(32 * 1_048_576), limits)).status, 200)
      assert.ok(ours.some(({ writableLength }) => writableLength > 1_048_576))
      // what it answers to the next ones does not count
      const next = setInterval(() => {
        client.postJson(url, {}, '{}', limits).catch(() => undefined)
        setTimeout(answer, 50)
      }, 200)
      try {
        await until('its connection ends', () => ours[0]?.destroyed)
      } finally {
        clearInterval(next)
      }
    } finally {
      await client.close()
      server.close()
    }
  })

  test('nobody listens: network, with the system’s code', async () => {
    const gone = await createReceiver()
    const url = gone.url('/')
    await gone.close()
    await assert.rejects(
      http.get(url, {}, limits),
      (error: Error & { code?: string; details?: { reason?: string } }) => {
        return error.code === 'network' && error.details?.reason === 'ECONNREFUSED'
      },
    )
  })

  test('a status that undici itself stumbles over is not HTTP, in words of ours', async (t) => {
    const server = createServer((socket) =>
      socket
        .on('error', () => undefined)
        .once('data', () => socket.end('HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n')),
    ).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    await assert.rejects(http.get(url, {}, limits), { code: 'protocol', message: 'the answer is not valid HTTP' })
  })

  test('a certificate that is trusted, and not fit for a server: tls, in the words of OpenSSL', async (t) => {
    const trusted = getCACertificates('default')
    t.after(() => setDefaultCACertificates(trusted))
    for (const [flaw, words] of [
      ['purpose', 'unsuitable certificate purpose'],
      ['extension', 'unhandled critical extension'],
    ] as const) {
      const certificate = selfSigned('localhost', flaw)
      setDefaultCACertificates([...trusted, certificate.cert])
      const server = createTlsServer(certificate).listen(0, '127.0.0.1')
      t.after(() => server.close())
      await once(server, 'listening')
      const url = `https://localhost:${(server.address() as AddressInfo).port}/`
      await assert.rejects(http.get(url, {}, limits), { code: 'tls', message: words })
    }
  })

  test(
    'no file left for a connection is a failure of ours, by address and by name',
    { skip: noPrlimit() },
    async () => {
      // One that keeps no connection open yet.
      const fresh = createHttpClient({ allowPrivate: true })
      // The first look-up of a process loads the system's resolver, without which no name exists.
      await lookup('localhost')
      await withoutFiles(async () => {
        for (const host of ['127.0.0.1', 'localhost'])
          await assert.rejects(fresh.get(`http://${host}:${receiver.port}/files`, {}, limits), { code: 'busy' }, host)
      })
      assert.equal((await fresh.get(receiver.url('/files'), {}, limits)).status, 200)
      await fresh.close()
    },
  )
})
