/**
 * Streams over the command connection: nobody waits for their readers, and they outlive what happens between two
 * chunks.
 */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { suite, test, type TestContext } from 'node:test'
import { isAppError } from '../../../engine/errors.ts'
import { chunkBytes } from '../../../engine/accounts/commands/reading.ts'
import { until } from '../../support/until.ts'
import { accountId, letter } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

const raw = Buffer.from(
  letter('big').replace(/\r?\n/g, '\r\n') + randomBytes(3_000_000).toString('base64').replace(/.{76}/g, '$&\r\n'),
)
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

const start = (t: TestContext, timeout = '20s'): Promise<Running> =>
  watchingAccounts(t, { settings: { MAILROOM_COMMAND_TIMEOUT: timeout } }, ({ server }) => {
    server.append('ann', 'INBOX', raw)
    server.append('ann', 'INBOX', letter('small'))
  })

/** Chunks that were asked of the server. */
const asked = ({ server }: Running): number =>
  server.log.filter(({ line }) => /^C: .*BODY\.PEEK\[\]<\d+/.test(line)).length

async function streamed(running: Running): Promise<Readable> {
  const stream = await running.accounts.streamRaw(await running.message('big'))
  stream.on('error', () => undefined)
  return stream
}

suite('a stream', () => {
  test('that is not read holds up neither commands nor mail in other folders, and asks for no more', async (t) => {
    const running = await start(t, '10s')
    const streams = [await streamed(running), await streamed(running), await streamed(running)]
    for (const stream of streams) stream.read(0)
    const small = await running.message('small')
    const [at] = small.placements
    assert(at)
    assert.deepEqual(await running.accounts.setFlags(small, at, { add: ['\\Seen'], remove: [] }), ['\\Seen'])
    running.server.append('ann', 'Archive', letter('elsewhere'))
    await until('mail in another folder', async () => (await running.subjects('Archive')).includes('elsewhere'))
    assert(asked(running) <= 2 * streams.length, `${asked(running)} chunks`)
    for (const stream of streams) assert.equal(stream.destroyed, false)
    for (const stream of streams) assert.equal(sha256(await buffer(stream)), sha256(raw))
  })

  test('that is not read for long is cut off, and nothing else with it', async (t) => {
    const running = await start(t, '5s')
    const stream = await streamed(running)
    const errors: unknown[] = []
    stream.on('error', (error) => errors.push(error))
    stream.read(0)
    await until('cut', () => stream.destroyed, { withinMs: 20_000 })
    assert(isAppError(errors[0], 'timeout'), String(errors[0]))
    assert.equal(sha256(await buffer(await streamed(running))), sha256(raw))
  })

  test('that is given up asks for nothing more', async (t) => {
    const running = await start(t)
    const stream = await streamed(running)
    stream.read(0)
    stream.destroy()
    await running.accounts.syncFolder(accountId, 'Archive')
    assert(asked(running) <= 2, `${asked(running)} chunks`)
  })

  test('goes on where its message was moved to', async (t) => {
    const running = await start(t)
    const message = await running.message('big')
    const [at] = message.placements
    assert(at)
    const stream = await streamed(running)
    await running.accounts.move(message, at, await running.folder('Archive'))
    assert.equal(sha256(await buffer(stream)), sha256(raw))
  })

  test('goes on over a new connection', async (t) => {
    const running = await start(t)
    const stream = await streamed(running)
    running.accounts.wake(accountId)
    await until('a new session', () => running.server.accepted > 2)
    await running.tagged('watching')
    assert.equal(sha256(await buffer(stream)), sha256(raw))
  })

  test('ends with an error where its message has gone, and never as if it were whole', async (t) => {
    const running = await start(t)
    const message = await running.message('big')
    const stream = await streamed(running)
    running.server.expunge('ann', 'INBOX', 1)
    await assert.rejects(buffer(stream), (error) => isAppError(error, 'not_found'))
    const folder = await running.accounts.syncFolder(accountId, 'INBOX').then(() => running.folder('INBOX'))
    assert.equal(folder.counts.messages, 1)
    await assert.rejects(running.accounts.streamRaw(message), (error) => isAppError(error, 'not_found'))
  })
})

test('a command whose turn does not come in time says so, and is not carried out later', async (t) => {
  const running = await start(t, '4s')
  const held = Promise.withResolvers<undefined>()
  running.server.hooks = {
    command: ({ name, text }) => {
      if (name !== 'UID FETCH' || !text.includes(`<0.${chunkBytes}>`)) return undefined
      held.resolve(undefined)
      // Bytes come, so the session goes on, and the answer does not.
      return { lines: ['* OK still at work'], delayMs: 3000, proceed: true }
    },
  }
  const small = await running.message('small')
  const [at] = small.placements
  assert(at)
  const big = await running.message('big')
  const streams = Promise.allSettled([1, 2, 3].map(() => running.accounts.streamRaw(big)))
  await held.promise
  const error: unknown = await running.accounts
    .setFlags(small, at, { add: ['\\Seen'], remove: [] })
    .catch((thrown: unknown) => thrown)
  assert(isAppError(error, 'timeout'), String(error))
  assert.match(error.message, /^the connection to the mail server is busy with other work of this account$/)
  for (const stream of await streams) if (stream.status === 'fulfilled') stream.value.destroy()
  running.server.hooks = {}
  await running.accounts.syncFolder(accountId, 'INBOX')
  assert.deepEqual((await running.message('small')).placements[0]?.flags, [])
})
