/**
 * A step that the server rolled back because of another one: taken again, and given up when that does not help. What
 * may pass is told apart from a mistake of ours.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { suite, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { MongoClient, MongoServerError } from 'mongodb'
import { guarded, isDuplicate } from '../../engine/store/mongo/errors.ts'
import { needs } from '../support/require.ts'
import { testDatabase } from './mongo-server.ts'

/** A step that fails with these codes, one each time, and goes well when there are no more. */
function failing(codes: readonly number[], message = 'no') {
  let tries = 0
  const step = (): Promise<number> => {
    const code = codes[tries++]
    return code === undefined ? Promise.resolve(tries) : Promise.reject(new MongoServerError({ message, code }))
  }
  return { ...guarded({ step }, 10_000), tries: () => tries }
}

const [writeConflict, serialization, deadlock, internal] = [112, 16_777_220, 16_908_292, 1]

suite('a step on MongoDB', () => {
  test('is taken again after a write conflict, a serialization failure and a deadlock', async () => {
    assert.equal(await failing([writeConflict, serialization, deadlock]).step(), 4)
    assert.equal(await failing([internal], 'deadlock detected').step(), 2)
    await assert.rejects(failing([internal], 'out of memory').step(), { code: 'store_unavailable' })
  })

  test('that is rolled back every time is store_unavailable', async () => {
    const { step, tries } = failing(Array.from({ length: 100 }, () => deadlock))
    await assert.rejects(step(), { code: 'store_unavailable' })
    assert.equal(tries(), 5)
  })

  test('that fails otherwise is taken once', async () => {
    const { step, tries } = failing([91])
    await assert.rejects(step(), { code: 'store_unavailable' })
    assert.equal(tries(), 1)
  })
})

/** What a socket says when it writes to a server that has ended it, and when the server does not speak TLS. */
async function socketErrors(): Promise<NodeJS.ErrnoException[]> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('no TLS')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(address !== null && typeof address === 'object')
  try {
    const where = { port: address.port, host: '127.0.0.1' }
    const ended = connect(where).resume()
    ended.once('finish', () => ended.write('late'))
    const failures = [ended, connectTls(where)].map(async (socket) => {
      const [error] = (await once(socket, 'error', { signal: AbortSignal.timeout(10_000) })) as [NodeJS.ErrnoException]
      return error
    })
    return await Promise.all(failures)
  } finally {
    server.close()
  }
}

/**
 * The driver hands on what a socket says while its write waits for room, as it is (kill -9 of the database under
 * writers: about once in twelve runs).
 */
suite('an error that the driver hands on as it is', () => {
  test('is store_unavailable when the connection broke, whether it names a system call or not', async () => {
    const errors = await socketErrors()
    assert.deepEqual(
      errors.map(({ code, syscall }) => [code, syscall]),
      [
        ['EPIPE', undefined],
        ['ERR_SSL_WRONG_VERSION_NUMBER', undefined],
      ],
    )
    for (const error of errors) {
      const { step } = guarded({ step: () => Promise.reject(error) }, 10_000)
      await assert.rejects(step(), { code: 'store_unavailable', retryAfterMs: 5000 })
    }
  })

  test('is internal when it is a mistake of ours', async () => {
    const wrongArgument = Object.assign(new TypeError('must be a string'), { code: 'ERR_INVALID_ARG_TYPE' })
    const outOfRange = Object.assign(new RangeError('too large'), { code: 'ERR_OUT_OF_RANGE' })
    for (const error of [wrongArgument, outOfRange, new Error('no code')]) {
      const { step } = guarded({ step: () => Promise.reject(error) }, 10_000)
      await assert.rejects(step(), { code: 'internal' })
    }
  })
})

suite('a duplicate key', needs('mongodb'), () => {
  test('is known by its index, of a single write and of a bulk', async () => {
    const database = testDatabase()
    const client = await MongoClient.connect(database.uri)
    try {
      const things = client.db().collection<{ _id: string; name: string }>('things')
      await things.createIndexes([{ key: { name: 1 }, name: 'things_by_name', unique: true }])
      const there = { _id: 'one', name: 'One' }
      await things.insertOne(there)
      const failure = (write: Promise<unknown>): Promise<unknown> => write.then(String, (error: unknown) => error)
      for (const [doc, index, other] of [
        [{ ...there, name: 'Two' }, '_id_', 'things_by_name'],
        [{ ...there, _id: 'two' }, 'things_by_name', '_id_'],
      ] as const) {
        for (const error of [await failure(things.insertOne(doc)), await failure(things.insertMany([doc]))]) {
          assert(isDuplicate(error, [index]), `${index}: ${String(error)}`)
          assert(!isDuplicate(error, [other]))
          assert(isDuplicate(error))
        }
      }
    } finally {
      await client.close()
      await database.remove()
    }
  })
})
