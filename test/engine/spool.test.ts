/** A message in a file without a name, and its way to a mail server: piece by piece, whole, or not at all. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { suite, test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../engine/errors.ts'
import { removeSpools, spool, withCrlf, type Literal } from '../../engine/spool.ts'
import { play } from '../support/imap-server/play.ts'
import { literalOf } from '../support/mail.ts'

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'mr-spool-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function bytesOf(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

suite('a spooled message', () => {
  test('that a killed process left goes at a start, and nothing else does', async (t) => {
    const path = directory(t)
    await using held = await spool(Readable.from([Buffer.from('under way')]), { directory: path, most: 100 })
    for (const name of [`spool-${'a'.repeat(24)}`, 'spool-of-somebody', 'secret']) writeFileSync(join(path, name), '')
    removeSpools(path)
    assert.deepEqual(readdirSync(path).toSorted(), ['secret', 'spool-of-somebody'])
    assert.equal(String(await bytesOf(held.read())), 'under way')
    removeSpools(join(path, 'not there'))
  })

  test('holds what came, any number of times, and leaves no file behind', async (t) => {
    const path = directory(t)
    const bytes = Buffer.from(Array.from({ length: 200_001 }, (_, n) => n % 251))
    const pieces = [bytes.subarray(0, 7), bytes.subarray(7, 70_000), bytes.subarray(70_000)]
    await using held = await spool(Readable.from(pieces), { directory: path, most: bytes.length })
    assert.deepEqual(readdirSync(path), [], 'its file has no name while it is used')
    assert.equal(held.size, bytes.length)
    assert.equal(held.digest, createHash('sha256').update(bytes).digest('hex'))
    assert.equal(held.hasNul, true)
    assert.deepEqual(held.head, bytes.subarray(0, 65_536))
    for (let n = 0; n < 2; n += 1) assert((await bytesOf(held.read())).equals(bytes))
  })

  test('is held for work that has begun, and for none that begins afterwards', async (t) => {
    const held = await spool(Readable.from([Buffer.from('abc')]), { directory: directory(t), most: 3 })
    const disposed = Promise.withResolvers<undefined>()
    const reading = held.holding(async () => {
      await disposed.promise
      return bytesOf(held.read())
    })
    await held[Symbol.asyncDispose]()
    disposed.resolve(undefined)
    assert.equal((await reading).toString(), 'abc')
    await assert.rejects(held.read()[Symbol.asyncIterator]().next(), { code: 'EBADF' })
    await assert.rejects(
      held.holding(() => assert.fail('begun')),
      { code: 'timeout' },
    )
  })

  test('one byte too many is too_large, and nothing stays', async (t) => {
    const path = directory(t)
    const work = spool(Readable.from([Buffer.alloc(10), Buffer.alloc(1)]), { directory: path, most: 10 })
    await assert.rejects(work, { code: 'too_large', message: 'message: larger than 10 bytes' })
    assert.deepEqual(readdirSync(path), [])
  })

  test('an error of the source is the error, and a directory that cannot be used says so', async (t) => {
    const broken = Readable.from(
      (async function* () {
        yield Buffer.from('a')
        await Promise.resolve()
        throw new AppError('timeout', 'too slow')
      })(),
    )
    await assert.rejects(spool(broken, { directory: directory(t), most: 10 }), { code: 'timeout' })
    const file = import.meta.filename
    const work = spool(Readable.from([]), { directory: file, most: 10 })
    await assert.rejects(work, { code: 'store_unavailable', message: /MAILROOM_DATA_DIR/ })
  })
})

test('every LF gets its CR, wherever the pieces are cut', async () => {
  const piece = fc.array(fc.constantFrom('\r', '\n', 'a', '\r\n'), { maxLength: 6 }).map((all) => all.join(''))
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
      const source = Readable.from(pieces.filter((one) => one !== '').map((one) => Buffer.from(one)))
      const text = (await bytesOf(withCrlf(source))).toString()
      assert.equal(text, pieces.join('').replaceAll(/(?<!\r)\n/g, '\r\n'))
    }),
  )
})

suite('APPEND of a stream', () => {
  test('megabytes in pieces arrive as they are', async (t) => {
    const { server, open } = await play(t)
    const session = await open({ commandTimeoutMs: 5000 })
    const line = `${'0123456789abcdef'.repeat(4)}\r\n`
    const raw = `Subject: long\r\n\r\n${line.repeat(64 * 1024)}`
    await using held = await spool(Readable.from([Buffer.from(raw)]), { directory: directory(t), most: Infinity })
    const { newUid } = await session.append('Sent', held, ['\\Seen'], 0)
    assert.equal(newUid, 1)
    assert.equal(server.folder('ann', 'Sent').messages[0]?.raw.toString('latin1'), raw)
    assert.equal((await session.select('Sent')).exists, 1, 'the session goes on')
  })

  test('one that breaks off ends the session: the server has nothing of it', async (t) => {
    const { server, open } = await play(t)
    const session = await open({ commandTimeoutMs: 5000 })
    const half: Literal = {
      size: 1000,
      hasNul: false,
      async *read() {
        yield Buffer.from('Subject: half\r\n')
        await Promise.resolve()
        throw new AppError('store_unavailable', 'the disk is gone')
      },
    }
    await assert.rejects(session.append('Sent', half, [], 0), { code: 'store_unavailable' })
    assert.equal(session.closed, true)
    assert.deepEqual(server.folder('ann', 'Sent').messages, [])
  })

  test('a server that never asks for it is given up', async (t) => {
    const { server, open } = await play(t)
    const session = await open({ commandTimeoutMs: 200 })
    server.hooks = { send: (response) => (response.toString().startsWith('+') ? null : response) }
    await assert.rejects(session.append('Sent', literalOf('a: b\r\n\r\n'), [], 0), { code: 'timeout' })
  })

  test('a search by size and Message-ID', async (t) => {
    const { server, inbox } = await play(t)
    const raw = (id: string, text: string): string => `Message-ID: <${id}@x.example>\r\nSubject: s\r\n\r\n${text}`
    for (const one of [raw('a', 'one'), raw('b', 'two'), raw('a', 'three')]) server.append('ann', 'INBOX', one)
    const session = await inbox()
    const { length } = raw('a', 'one')
    assert.deepEqual(await session.searchLike(length, 'a@x.example'), [1])
    assert.deepEqual(await session.searchLike(length, null), [1, 2])
    assert.deepEqual(await session.searchLike(length + 1, null), [])
    assert.deepEqual(await session.searchLike(length + 2, 'a@x.example'), [3])
  })
})
