/** Processes that are at work in a database: beside others, or alone. */
import assert from 'node:assert/strict'
import { after, afterEach, before, suite, test } from 'node:test'
import { MongoClient } from 'mongodb'
import { silentLogger } from '../../engine/observe/log.ts'
import { openCollections, type Collections } from '../../engine/store/mongo/documents.ts'
import { createMongoStore } from '../../engine/store/mongo/index.ts'
import { join, openMembers, type Member, type NodeDoc } from '../../engine/store/mongo/members.ts'
import { openMongoTransfer } from '../../engine/store/mongo/transfer.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'
import { rejectsWith } from './contract/mailbox.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

suite('processes at work in a database', needs('mongodb'), () => {
  let database: TestDatabase
  let client: MongoClient
  let collections: Collections
  const joined: Member[] = []

  before(async () => {
    database = testDatabase()
    await database.open()
    client = await MongoClient.connect(database.uri)
    collections = openCollections(client.db())
  })
  afterEach(async () => {
    for (const member of joined.splice(0)) await member.release()
    await nodes().deleteMany({ place: 'elsewhere' })
  })
  after(async () => {
    await client.close()
    await database.remove()
  })

  const nodes = () => openMembers(collections).nodes
  const meta = () => client.db().collection<{ _id: string; [fact: string]: unknown }>('meta')
  /** Somebody on another machine, who is at work. */
  async function elsewhere(change: Partial<NodeDoc> = {}): Promise<{ readonly stop: () => Promise<void> }> {
    const fields = {
      place: 'elsewhere',
      pid: 1,
      waits: false,
      works: true,
      leaving: false,
      capacity: 1,
      load: 0,
      address: null,
    }
    const _id = `other${Math.random()}`
    await nodes().insertOne({ _id, beat: 0, ...fields, ...change })
    let stopped = false
    const beats = async (): Promise<void> => {
      while (!stopped) await nodes().updateOne({ _id }, { $inc: { beat: 1 } })
    }
    const work = beats()
    return {
      stop: async () => {
        stopped = true
        await work
      },
    }
  }
  async function enter(alone: boolean, signal?: AbortSignal, lost: () => void = () => undefined): Promise<Member> {
    const times = { beatMs: 20, silentMs: 1500 }
    const member = await join(collections, {
      alone: () => Promise.resolve(alone),
      log: silentLogger,
      lost,
      signal,
      ...times,
    })
    joined.push(member)
    return member
  }

  test('join beside one another, and are gone when they end', async () => {
    const [one, other] = [await enter(false), await enter(false)]
    const found = await nodes().find({ waits: false }).toArray()
    assert.deepEqual(new Set(found.map(({ _id }) => _id)), new Set([one.id, other.id]))
    await one.release()
    assert.equal(await nodes().countDocuments({ _id: one.id }), 0)
  })

  test('one that must be alone waits for who is at work, until that one is silent', async () => {
    const other = await elsewhere()
    let isIn = false
    const entering = enter(true).then((member) => {
      isIn = true
      return member
    })
    const before = (await nodes().findOne({ place: 'elsewhere' } as never))?.beat ?? 0
    const long = { withinMs: 60_000 }
    const beats = async (): Promise<boolean> =>
      ((await nodes().findOne({ place: 'elsewhere' } as never))?.beat ?? 0) > before + 100
    await until('it has shown that it lives for longer than the dead are silent', beats, long)
    assert.equal(isIn, false)
    await other.stop()
    await entering
    assert.equal(await nodes().countDocuments({ place: 'elsewhere' }), 0)
  })

  test('nobody joins one that is alone, until it is done', async () => {
    const alone = await enter(true)
    let isIn = 0
    const entering = [enter(false), enter(true)].map((one) => one.then(() => (isIn += 1)))
    const { beat } = (await nodes().findOne({ _id: alone.id })) ?? { beat: 0 }
    await until('some beats have gone', async () => ((await nodes().findOne({ _id: alone.id }))?.beat ?? 0) > beat + 20)
    assert.equal(isIn, 0)
    await alone.release()
    await Promise.race(entering)
    await joined.at(-1)?.release()
    await Promise.all(entering)
  })

  test('one that waits can be stopped, and leaves nothing', async () => {
    const other = await elsewhere()
    const stop = new AbortController()
    const entering = enter(true, stop.signal)
    stop.abort()
    await rejectsWith(entering, 'shutting_down')
    assert.equal(await nodes().countDocuments({ waits: true }), 0)
    await other.stop()
  })

  test('one that was killed on this machine is not waited for', async () => {
    const { place } = (await nodes().findOne({ _id: (await enter(false)).id })) ?? { place: '' }
    await joined.pop()?.release()
    // no process has this number: it is above the kernel's limit
    await elsewhere({ place, pid: 2 ** 22 + 1 }).then(({ stop }) => stop())
    await enter(true)
  })

  test('one that others have taken for dead hears of it', async () => {
    let lost = 0
    const member = await enter(false, undefined, () => (lost += 1))
    await nodes().deleteOne({ _id: member.id })
    await until('it knows', () => lost === 1)
    assert.equal(await member.beat(), false)
    assert.equal(lost, 1)
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
    assert.equal(await nodes().countDocuments({ waits: true }), 0)
    await other.stop()
  })

  test('a copy that others have taken for dead stops', async () => {
    const options = { uri: database.uri, role: 'target', timeoutMs: 5000, log: silentLogger, beatMs: 20 } as const
    const transfer = await openMongoTransfer(options)
    assert.deepEqual((await transfer.export('users', null, 10)).records, [])
    await nodes().deleteMany({ waits: true })
    const words = /another process has begun to serve the database$/
    await until('it knows', async () => {
      const failure: unknown = await transfer.export('users', null, 10).catch((error: unknown) => error)
      return failure instanceof Error && words.test(failure.message)
    })
    await assert.rejects(transfer.import('users', []), words)
    await transfer.close()
  })

  test('the schema is left alone while others are at work in the one before', async () => {
    const version = async (): Promise<unknown> => (await meta().findOne({ _id: 'schema' }))?.['version']
    const newest = await version()
    await meta().updateOne({ _id: 'schema' }, { $set: { version: Number(newest) - 1 } })
    const other = await elsewhere()
    const lines: string[] = []
    const log = { ...silentLogger, info: (_: unknown, text?: unknown) => void lines.push(String(text)) }
    const times = { beatMs: 20, silentMs: 500 }
    const opening = createMongoStore({
      uri: database.uri,
      pool: 3,
      timeoutMs: 5000,
      log,
      lost: () => undefined,
      ...times,
    })
    await until('it stands by', () => lines.includes('another process serves this database'))
    assert.equal(await version(), Number(newest) - 1)
    await other.stop()
    const store = await opening
    assert.equal(await version(), newest)
    await enter(false)
    await store.close()
  })

  test('a process of the version that served alone is waited for', async () => {
    await meta().insertOne({ _id: 'lead', owner: 'other', place: 'elsewhere', pid: 1, beat: 0 })
    let isIn = false
    const entering = enter(false).then(() => {
      isIn = true
    })
    for (let beat = 1; beat < 120; beat += 1) {
      await meta().updateOne({ _id: 'lead' }, { $set: { beat } })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.equal(isIn, false)
    await entering
    assert.equal(await meta().countDocuments({ _id: 'lead' }), 0)
  })

  test('a process of that version that beats again, just when it is taken for dead, is not taken over', async (t) => {
    await meta().insertOne({ _id: 'lead', owner: 'other', place: 'elsewhere', pid: 1, beat: 0 })
    const remove = collections.meta.deleteOne.bind(collections.meta)
    const beatFirst: typeof remove = async (where) => {
      await meta().updateOne({ _id: 'lead' }, { $set: { beat: 1 } })
      return remove(where)
    }
    const { mock } = t.mock.method(collections.meta, 'deleteOne', beatFirst, { times: 1 })
    let isIn = false
    const entering = enter(false).then(() => (isIn = true))
    await until('it is taken for dead', () => mock.callCount() === 1, { withinMs: 30_000 })
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.equal(isIn, false)
    assert.equal(await meta().countDocuments({ _id: 'lead' }), 1)
    await entering
    assert.equal(await meta().countDocuments({ _id: 'lead' }), 0)
  })
})
