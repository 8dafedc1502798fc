/** Answers that take long or are long: deadlines, streams, clients that go away. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { after, before, suite, test } from 'node:test'
import { z } from 'zod'
import { defineRoute, JsonText, StreamAnswer, type Call, type Route } from '../../../api/route.ts'
import { AppError } from '../../../engine/index.ts'
import { standstill, until } from '../../support/until.ts'
import { connectRaw } from './raw-http.ts'
import { basic } from './raw-call.ts'
import { startRig, type Rig } from './rig.ts'

const seen = { aborted: [] as string[], destroyed: [] as string[] }

function route(path: string, response: 'binary' | 'json', handler: (call: Call) => Promise<unknown>): Route {
  return defineRoute(`GET ${path}`, {
    auth: 'developer',
    summary: path,
    tag: 'test',
    response: response === 'json' ? z.object({ ok: z.boolean() }) : response,
    handler: (_input, call) => handler(call) as Promise<JsonText>,
  })
}

const big = randomBytes(5_000_000)
const bytes = { 'Content-Type': 'application/octet-stream', 'Content-Disposition': 'attachment; filename="a.bin"' }

/** A stream that says when it was destroyed. */
function watched(name: string, stream: Readable): Readable {
  stream.once('close', () => seen.destroyed.push(name))
  return stream
}

function never(name: string): Readable {
  return watched(name, new Readable({ read: () => undefined }))
}

function endless(name: string): Readable {
  const stream = watched(name, new Readable({ read: () => stream.push(`data: ${'x'.repeat(60_000)}\n\n`) }))
  return stream
}

async function* twoThenFail(): AsyncGenerator<Buffer> {
  yield Buffer.from('first ')
  await pause(20)
  yield Buffer.from('second ')
  await pause(20)
  throw new AppError('network', 'connection lost')
}

async function untilAborted(call: Call): Promise<never> {
  await once(call.signal, 'abort')
  seen.aborted.push(call.requestId)
  throw new AppError('timeout', 'stopped')
}

const routes: readonly Route[] = [
  route('/json', 'json', () => Promise.resolve(new JsonText('{"ok":true}'))),
  route('/json/wrong', 'json', () => Promise.resolve(new JsonText('{"ok":1}'))),
  route('/nothing', 'json', () => Promise.resolve(undefined)),
  route('/buffer', 'binary', () => Promise.resolve(new StreamAnswer(big, bytes))),
  route('/text', 'binary', () =>
    Promise.resolve(new StreamAnswer('naïve', { 'Content-Type': 'text/plain; charset=utf-8' })),
  ),
  route('/stream', 'binary', () =>
    Promise.resolve(new StreamAnswer(Readable.from([big.subarray(0, 1_000_000), big.subarray(1_000_000)]), bytes)),
  ),
  route('/stream/empty', 'binary', () => Promise.resolve(new StreamAnswer(Readable.from([]), bytes))),
  route('/stream/fails-first', 'binary', () =>
    Promise.resolve(
      new StreamAnswer(
        new Readable({
          read() {
            this.destroy(new AppError('network', 'connection lost'))
          },
        }),
        bytes,
      ),
    ),
  ),
  route('/stream/failed', 'binary', async () => {
    const failed = new Readable({ read: () => undefined })
    failed.destroy(new AppError('network', 'connection lost'))
    await once(failed, 'error')
    return new StreamAnswer(failed, bytes)
  }),
  route('/stream/fails-later', 'binary', () =>
    Promise.resolve(new StreamAnswer(Readable.from(twoThenFail()), { ...bytes, 'Content-Length': '100' })),
  ),
  route('/stream/never', 'binary', () => Promise.resolve(new StreamAnswer(never('never'), bytes))),
  route('/stream/stalls', 'binary', () => {
    const stalls = never('stalls')
    stalls.push('begun')
    return Promise.resolve(new StreamAnswer(stalls, bytes))
  }),
  route('/events', 'binary', () => {
    const events = never('events')
    setTimeout(() => events.push('data: late\n\n'), 3000).unref()
    return Promise.resolve(new StreamAnswer(events, { 'Content-Type': 'text/event-stream' }))
  }),
  route('/events/many', 'binary', () => {
    return Promise.resolve(new StreamAnswer(endless('many events'), { 'Content-Type': 'text/event-stream' }))
  }),
  route('/stream/many', 'binary', () => Promise.resolve(new StreamAnswer(endless('many bytes'), bytes))),
  route('/slow', 'json', untilAborted),
  route('/deaf', 'json', async () => {
    await pause(3000)
    return new StreamAnswer(never('deaf'), bytes)
  }),
]

suite('answers', () => {
  let rig: Rig
  before(async () => {
    rig = await startRig({ routes, env: { MAILROOM_REQUEST_TIMEOUT: '2s' } })
  })
  after(() => rig.close())

  test('prepared JSON goes out as it is, and is checked like any other', async () => {
    assert.equal((await rig.call('GET', '/json')).text, '{"ok":true}')
    assert.equal((await rig.call('GET', '/json/wrong')).status, 500)
    assert.equal((await rig.call('GET', '/nothing')).status, 500)
  })

  for (const path of ['/buffer', '/stream']) {
    test(`${path} gives the bytes and headers of the answer`, async () => {
      const { status, headers, hash } = await download(rig.port, path)
      assert.equal(status, 200)
      assert.equal(hash, createHash('sha256').update(big).digest('hex'))
      assert.equal(headers['content-type'], 'application/octet-stream')
      assert.equal(headers['content-disposition'], 'attachment; filename="a.bin"')
    })
  }

  test('text keeps its own type; an empty stream is an empty answer; HEAD sends no body', async () => {
    const answer = await rig.call('GET', '/text')
    assert.equal(answer.text, 'naïve')
    assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8')
    const empty = await rig.call('GET', '/stream/empty')
    assert.deepEqual([empty.status, empty.text], [200, ''])
    for (const path of ['/stream', '/buffer']) {
      const head = await rig.call('HEAD', path)
      assert.deepEqual([head.status, head.text, head.headers['content-type']], [200, '', 'application/octet-stream'])
    }
  })

  for (const path of ['/stream/fails-first', '/stream/failed']) {
    test(`${path}: an error before the first byte is an error answer`, async () => {
      const answer = await rig.call('GET', path)
      assert.equal(answer.status, 503)
      assert.deepEqual(answer.json, { type: 'error', value: 'connection lost' })
      assert.equal(answer.headers['content-type'], 'application/json')
      assert.equal(answer.headers['content-disposition'], undefined)
    })
  }

  test('an error in the middle breaks the connection: nobody takes a part for the whole', async () => {
    await assert.rejects(rig.call('GET', '/stream/fails-later'), /aborted|hang up|ECONNRESET/)
  })

  // Each waits for seconds, of a stream or a call that no other one has.
  suite('that take long', { concurrency: true }, () => {
    test('a stream without a first byte is a 504 within the deadline, and is destroyed', async () => {
      const answer = await rig.call('GET', '/stream/never')
      assert.equal(answer.status, 504)
      await until('destroyed', () => seen.destroyed.includes('never'))
    })

    test('a stream that stalls is given up', async () => {
      await assert.rejects(rig.call('GET', '/stream/stalls'), /aborted|hang up|ECONNRESET/)
      await until('destroyed', () => seen.destroyed.includes('stalls'))
    })

    test('events: headers at once, and no deadline', async () => {
      const client = await connectRaw(rig.port)
      client.write(`GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic}\r\n\r\n`)
      assert.ok(!(await client.expect(/text\/event-stream/, 1500)).includes('late'))
      await client.expect(/data: late/)
      client.socket.destroy()
      await until('destroyed', () => seen.destroyed.includes('events'))
    })

    for (const [path, name] of [
      ['/events/many', 'many events'],
      ['/stream/many', 'many bytes'],
    ] as const)
      test(`what the client does not take of ${path} ends`, async () => {
        const client = await connectRaw(rig.port)
        client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic}\r\n\r\n`)
        await client.expect(/: x/)
        client.socket.pause()
        try {
          await until('destroyed', () => seen.destroyed.includes(name))
        } finally {
          client.socket.destroy()
        }
      })

    test('a handler over the deadline: 504 with Retry-After, and its signal aborts', async () => {
      const startedAt = performance.now()
      const answer = await rig.call('GET', '/slow')
      assert.equal(answer.status, 504)
      assert.equal(answer.headers['retry-after'], '10')
      assert.match(String(answer.json.value), /^no answer within 2 s/)
      assert.ok(performance.now() - startedAt < 10_000)
      await until('aborted', () => seen.aborted.includes(String(answer.headers['x-request-id'])))
    })

    for (const before of ['/json', '/nowhere', '/stream/empty'])
      test(`a call that waits for the answer of ${before} on its connection has its whole time`, async () => {
        const client = await connectRaw(rig.port)
        const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic}\r\n\r\n`
        client.write(ask(before) + ask('/slow') + ask('/json'))
        await client.expect(/HTTP\/1\.1 504 [^]+"ok":true}$/)
        client.socket.destroy()
      })

    test('a handler that does not hear: 504 all the same, and its late stream is destroyed', async () => {
      assert.equal((await rig.call('GET', '/deaf')).status, 504)
      await until('destroyed', () => seen.destroyed.includes('deaf'))
    })
  })

  test('a client that goes away aborts the handler, and ends the stream', async () => {
    const before = seen.aborted.length
    const slow = await connectRaw(rig.port)
    slow.write(`GET /slow HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic}\r\n\r\n`)
    const stalled = await connectRaw(rig.port)
    seen.destroyed.length = 0
    stalled.write(`GET /stream/stalls HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic}\r\n\r\n`)
    await stalled.expect(/begun/)
    const [startedAt, still] = [performance.now(), standstill()]
    slow.socket.destroy()
    stalled.socket.destroy()
    await until('both noticed', () => seen.aborted.length > before && seen.destroyed.includes('stalls'))
    assert.ok(performance.now() - startedAt - still.lost() < 1500, 'sooner than the deadline')
    still.stop()
  })
})

async function download(port: number, path: string) {
  const call = request({ host: '127.0.0.1', port, path, headers: { authorization: basic }, agent: false }).end()
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number
    headers: Record<string, unknown>
    hash: string
  }>()
  call.once('error', reject)
  call.once('response', (response) => {
    const hash = createHash('sha256')
    response.on('data', (chunk: Buffer) => hash.update(chunk))
    response.once('error', reject)
    response.once('end', () =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, hash: hash.digest('hex') }),
    )
  })
  return promise
}
