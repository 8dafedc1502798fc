/** The server at the level of bytes: 100-continue, broken HTTP, slow clients. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { until } from '../../support/until.ts'
import { echoRoutes } from './echo.ts'
import { connectRaw } from './raw-http.ts'
import { basic } from './raw-call.ts'
import { startRig, type Rig } from './rig.ts'

const head = (first: string, ...headers: string[]): string =>
  [first, 'Host: mail.example', `Authorization: ${basic}`, ...headers, '', ''].join('\r\n')

/** Status, headers and JSON body of the only answer. */
function parseAnswer(text: string): { status: number; type: string; body: Record<string, unknown> } {
  const [top = '', body = ''] = text.split('\r\n\r\n')
  const type = /^content-type: (.*)$/im.exec(top)?.[1] ?? ''
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(top)?.[1]), type, body: JSON.parse(body) as Record<string, unknown> }
}

suite('server', () => {
  let rig: Rig
  before(async () => {
    rig = await startRig({
      routes: echoRoutes,
      env: { MAILROOM_REQUEST_TIMEOUT: '2s', MAILROOM_BODY_LIMIT: '2048' },
    })
  })
  after(() => rig.close())

  test('Expect: 100-continue gets its 100, then the answer', async () => {
    const client = await connectRaw(rig.port)
    client.write(
      head('POST /lite/users HTTP/1.1', 'Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 12'),
    )
    assert.equal(await client.expect(/100 Continue\r\n\r\n/), 'HTTP/1.1 100 Continue\r\n\r\n')
    client.write('{"a":"anna"}')
    assert.match(await client.expect(/anna/), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
    client.socket.destroy()
  })

  test('a body that is announced too large gets 413 instead of 100', async () => {
    const client = await connectRaw(rig.port)
    client.write(head('POST /lite/users HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 5000'))
    const answer = parseAnswer(await client.closed())
    assert.equal(answer.status, 413)
    assert.match(String(answer.body.value), /2048 bytes/)
  })

  test('an unknown path gets 404 instead of 100', async () => {
    const client = await connectRaw(rig.port)
    client.write(head('POST /nothing HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 5'))
    await client.expect(/^HTTP\/1\.1 404/)
    client.socket.destroy()
  })

  test('any other Expect is a call like others: Node does not answer it past our limits', async () => {
    const client = await connectRaw(rig.port)
    client.write(head('GET /nothing HTTP/1.1', 'Expect: more'))
    await client.expect(/^HTTP\/1\.1 404 [^]*"type":"error"/)
    client.socket.destroy()
  })

  for (const [name, headers] of [
    ['Content-Length first', ['Content-Length: 0', 'Transfer-Encoding: chunked']],
    ['Transfer-Encoding first', ['Transfer-Encoding: chunked', 'Content-Length: 0']],
  ] as const) {
    test(`chunked with Content-Length: 0, ${name}: a clean 400 that says what to do`, async () => {
      const client = await connectRaw(rig.port)
      client.write(`${head('POST /lite/users HTTP/1.1', ...headers)}0\r\n\r\n`)
      const { status, type, body } = parseAnswer(await client.closed())
      assert.deepEqual({ status, type, kind: body.type }, { status: 400, type: 'application/json', kind: 'error' })
      assert.match(String(body.value), /Transfer-Encoding/)
    })
  }

  test('an empty chunked POST is answered', async () => {
    const client = await connectRaw(rig.port)
    client.write(
      `${head('POST /lite/users HTTP/1.1', 'Transfer-Encoding: chunked', 'Content-Type: application/json')}0\r\n\r\n`,
    )
    await client.expect(/^HTTP\/1\.1 200/)
    client.socket.destroy()
  })

  const broken: readonly (readonly [string, string, number])[] = [
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['a bad length', head('POST /lite/users HTTP/1.1', 'Content-Length: x'), 400],
    ['two lengths', head('POST /lite/users HTTP/1.1', 'Content-Length: 1', 'Content-Length: 2'), 400],
    ['headers without end', head('GET /lite/users HTTP/1.1', `X-Long: ${'x'.repeat(40_000)}`), 431],
    ['raw bytes in the path', Buffer.from(head('GET /lite/users/Köln HTTP/1.1')).toString('latin1'), 400],
    ['no Host', 'GET /lite/users HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  ]
  for (const [name, bytes, status] of broken) {
    test(`${name} is answered ${status}`, async () => {
      const client = await connectRaw(rig.port)
      client.write(bytes)
      const answer = parseAnswer(await client.closed())
      assert.equal(answer.status, status)
      assert.equal(answer.type, 'application/json')
      assert.equal(answer.body.type, 'error')
    })
  }

  test('HTTP/1.0 without Host is answered', async () => {
    const client = await connectRaw(rig.port)
    client.write(`GET /lite/users HTTP/1.0\r\nAuthorization: ${basic}\r\n\r\n`)
    assert.match(await client.closed(), /^HTTP\/1\.1 200/)
  })

  test('headers that dribble in are given up with 408', async () => {
    const client = await connectRaw(rig.port)
    client.write('GET /lite/users HTTP/1.1\r\nHost: x\r\n')
    const dribble = setInterval(() => client.write('X-Slow: 1\r\n'), 100)
    try {
      const answer = parseAnswer(await client.closed())
      assert.equal(answer.status, 408)
      assert.equal(answer.body.type, 'error')
    } finally {
      clearInterval(dribble)
      client.socket.destroy()
    }
  })

  test('a body that dribbles in is given up, and others are served meanwhile', async () => {
    const client = await connectRaw(rig.port)
    client.write(head('POST /lite/users HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 1000'))
    const dribble = setInterval(() => client.write(' '), 100)
    try {
      assert.equal((await rig.call('GET', '/lite/users')).status, 200)
      assert.equal(parseAnswer(await client.closed()).status, 408)
    } finally {
      clearInterval(dribble)
      client.socket.destroy()
    }
  })

  test('who takes no answer is cut off, also when the answers are errors', async () => {
    let [sent, out, ended] = [0, 0, false]
    const client = connect(rig.port, '127.0.0.1').pause()
    client.on('error', () => undefined)
    const ask = (): void => {
      sent += 8
      client.write(head('GET /nowhere HTTP/1.1').repeat(8))
    }
    const count = (_request: IncomingMessage, response: ServerResponse): void => {
      response.once('finish', () => {
        out += 1
        if (out === sent) ask()
      })
    }
    rig.server.on('request', count)
    rig.server.once('connection', (socket) => socket.once('close', () => (ended = true)))
    try {
      ask()
      await until('the end of the connection', () => ended, { explain: () => `${out} of ${sent}` })
      assert(out < sent, 'one answer waited')
    } finally {
      rig.server.off('request', count)
      client.destroy()
    }
  })

  test('a client that goes away in the middle of its body harms nobody', async () => {
    for (let count = 0; count < 20; count += 1) {
      const client = await connectRaw(rig.port)
      client.write(
        `${head('POST /lite/users HTTP/1.1', 'Content-Type: application/json', 'Content-Length: 1000')}{"a":`,
      )
      client.socket.resetAndDestroy()
    }
    assert.equal((await rig.call('GET', '/lite/users')).status, 200)
  })
})
