/** One process at a time serves a database; the others stand by and take over. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { silentLogger } from '../../engine/observe/log.ts'
import { openCollections, type Collections } from '../../engine/store/mongo/documents.ts'
import { takeLead, type Lead } from '../../engine/store/mongo/lead.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import { openMongoTransfer } from '../../engine/store/mongo/transfer.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { rejectsWith } from './contract/mailbox.ts'
import { createProxy, type Proxy } from './mongo-proxy.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

suite('who serves a database', needs('mongodb'), () => {
  let database: TestDatabase
  let proxy: Proxy
  let client: MongoClient
  let through: MongoClient
  let collections: Collections

  before(async () => {
    database = testDatabase()
    await database.open()
    proxy = await createProxy(database.uri)
    client = await MongoClient.connect(database.uri)
    const impatient = { socketTimeoutMS: 500, serverSelectionTimeoutMS: 300 }
    through = await until('a connection', () => MongoClient.connect(proxy.uri, impatient))
    collections = openCollections(client.db())
  })
  after(async () => {
    await client.close()
    await through.close()
    await database.remove()
    await proxy.close()
  })

  const meta = () =>
    client.db().collection<{ _id: string; owner: string; place: string; pid: number; beat: number }>('meta')
  const holder = () => meta().findOne({ _id: 'lead' })
  /** Somebody on another machine, who is at work. */
  async function elsewhere(): Promise<{ readonly stop: () => Promise<void> }> {
    const other = { owner: 'other', place: 'elsewhere', pid: 1, beat: 0 }
    await meta().updateOne({ _id: 'lead' }, { $set: other }, { upsert: true })
    let work = Promise.resolve()
    const timer = setInterval(() => {
      work = meta()
        .updateOne({ _id: 'lead', owner: 'other' }, { $inc: { beat: 1 } })
        .then(
          () => undefined,
          () => undefined,
        )
    }, 20)
    return {
      stop: async () => {
        clearInterval(timer)
        await work
      },
    }
  }
  function join(options: { signal?: AbortSignal; on?: Collections; lost?: () => void } = {}) {
    const state: { lead: Lead | null; lost: number } = { lead: null, lost: 0 }
    const joining = takeLead(options.on ?? collections, {
      log: silentLogger,
      lost: () => (state.lost += 1),
      beatMs: 20,
      silentMs: 5000,
      ...(options.signal ? { signal: options.signal } : {}),
    })
    const joined = joining.then((lead) => (state.lead = lead))
    return { state, joined }
  }

  test('one that ends hands over at once', async () => {
    const first = join()
    const lead = await first.joined
    assert.equal((await holder())?.pid, process.pid)
    await lead.release()
    await lead.release()
    const second = join()
    await (await second.joined).release()
    assert.deepEqual([first.state.lost, second.state.lost], [0, 0])
  })

  test('one that is at work is not disturbed, and is replaced when it falls silent', async () => {
    const other = await elsewhere()
    const { state, joined } = join()
    const { beat } = (await holder()) ?? { beat: 0 }
    await until(
      'it has shown that it lives for longer than the dead are silent',
      async () => {
        const now = await holder()
        return now?.owner === 'other' && now.beat > beat + 260
      },
      { withinMs: 60_000 },
    )
    assert.equal(state.lead, null)
    await other.stop()
    await (await joined).release()
  })

  test('one that stands by can be stopped', async () => {
    const other = await elsewhere()
    const stop = new AbortController()
    const { joined } = join({ signal: stop.signal })
    stop.abort()
    await rejectsWith(joined, 'shutting_down')
    await other.stop()
    await meta().updateOne({ _id: 'lead' }, { $set: { owner: '' } })
  })

  test('one that was killed on this machine is replaced at once, one of another with its number is not', async () => {
    const { state, joined } = join()
    const { place } = (await joined, (await holder()) ?? { place: '' })
    // no process has this number: it is above the kernel's limit
    const dead = { owner: 'dead', pid: 2 ** 22 + 1, beat: 0 }
    await meta().updateOne({ _id: 'lead' }, { $set: { ...dead, place } })
    await until('the one that was replaced knows', () => state.lost === 1)
    await (await join().joined).release()
    const other = await elsewhere()
    await meta().updateOne({ _id: 'lead' }, { $set: { pid: dead.pid } })
    const waiting = join()
    const { beat } = (await holder()) ?? { beat: 0 }
    await until('it goes on', async () => ((await holder())?.beat ?? 0) > beat + 20)
    assert.equal(waiting.state.lead, null)
    await other.stop()
    await (await waiting.joined).release()
  })

  test('an outage makes nobody dead', async () => {
    const other = await elsewhere()
    const waiting = join({ on: openCollections(through.db()) })
    proxy.die()
    const { beat } = (await holder()) ?? { beat: 0 }
    const beats = async (): Promise<number> => (await holder())?.beat ?? 0
    const long = { withinMs: 60_000 }
    await until('the outage is longer than the dead are silent', async () => (await beats()) > beat + 260, long)
    proxy.revive()
    const after = await beats()
    await until('it is heard again', async () => (await beats()) > after + 260, long)
    assert.equal(waiting.state.lead, null)
    await other.stop()
    await (await waiting.joined).release()
  })

  test('two that wait for the same one do not both get it', async () => {
    const other = await elsewhere()
    const both = [join(), join()]
    await other.stop()
    const first = await Promise.race(both.map(({ joined }) => joined))
    assert.equal(both.filter(({ state }) => state.lead !== null).length, 1)
    await first.release()
    await Promise.all(both.map(async ({ joined }) => (await joined).release()))
  })

  test('patience with one that is at work ends, in words', async () => {
    const other = await elsewhere()
    const quick = { timeoutMs: 5000, log: silentLogger, patienceMs: 100, beatMs: 20 }
    for (const role of ['source', 'target'] as const) {
      await assert.rejects(openMongoTransfer({ ...quick, uri: database.uri, role }), {
        code: 'conflict',
        message: /^127\.0\.0\.1:\d+\/\w+ is served by another process \(1 at elsewhere\): stop that one first$/,
      })
    }
    await other.stop()
    await meta().updateOne({ _id: 'lead' }, { $set: { owner: '' } })
  })

  test('a copy that another process takes the database from stops', async () => {
    const transfer = await openMongoTransfer({
      uri: database.uri,
      role: 'target',
      timeoutMs: 5000,
      log: silentLogger,
      beatMs: 20,
    })
    assert.deepEqual((await transfer.export('users', null, 10)).records, [])
    await meta().updateOne({ _id: 'lead' }, { $set: { owner: 'other', place: 'elsewhere' } })
    const words = /another process has begun to serve the database$/
    await until('it knows', async () => {
      const failure: unknown = await transfer.export('users', null, 10).catch((error: unknown) => error)
      return failure instanceof Error && words.test(failure.message)
    })
    await assert.rejects(transfer.import('users', []), words)
    await transfer.close()
    assert.equal((await holder())?.owner, 'other')
    await meta().updateOne({ _id: 'lead' }, { $set: { owner: '' } })
  })

  test('who stands by leaves the schema alone until it is its turn', async () => {
    const schema = client.db().collection<{ _id: string; version: number }>('meta')
    const version = async (): Promise<number> => (await schema.findOne({ _id: 'schema' }))?.version ?? 0
    const newest = await version()
    await schema.updateOne({ _id: 'schema' }, { $set: { version: 1 } })
    const other = await elsewhere()
    const lines: string[] = []
    const log = { ...silentLogger, info: (_: unknown, text?: unknown) => void lines.push(String(text)) }
    const opening = createMongoStore({ uri: database.uri, pool: 3, timeoutMs: 5000, log, lost: () => undefined })
    await until('it stands by', () => lines.includes('another process serves this database'))
    assert.equal(await version(), 1)
    await other.stop()
    await meta().updateOne({ _id: 'lead' }, { $set: { owner: '' } })
    const store = await opening
    assert.equal(await version(), newest)
    await store.close()
  })

  test('a store opened for an engine waits for its turn, and gives it back when it is closed', async () => {
    const options = { uri: database.uri, pool: 3, timeoutMs: 5000, log: silentLogger, lost: () => undefined }
    const store = await createMongoStore(options)
    assert.equal((await holder())?.pid, process.pid)
    await store.ping()
    await store.close()
    assert.equal((await holder())?.owner, '')
  })
})
