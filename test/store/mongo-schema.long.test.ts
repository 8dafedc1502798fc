/** Collections, indexes and schema version: made at start, again and again, by one node or several. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { MongoClient, type Db } from 'mongodb'
import { isAppError } from '../../engine/errors.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { openCollections } from '../../engine/store/mongo/documents.ts'
import { indexes, migrate, migrations, type Migration } from '../../engine/store/mongo/schema.ts'
import { needs } from '../support/require.ts'
import { sharedSlot, slotOf } from '../../engine/store/slots.ts'
import { createMailbox } from './contract/mailbox.ts'
import { addressed } from './contract/records.ts'
import { testDatabase, type TestDatabase } from './mongo-server.ts'

/** Of commit 6e85fa0. */
const oldest = 3

suite('the schema of the database', needs('mongodb'), () => {
  let database: TestDatabase
  let client: MongoClient
  let db: Db

  before(async () => {
    database = testDatabase()
    client = await MongoClient.connect(database.uri)
    db = client.db()
  })
  after(async () => {
    await client.close()
    await database.remove()
  })

  async function version(): Promise<unknown> {
    return (await openCollections(db).meta.findOne({ _id: 'schema' }))?.['version']
  }

  test('nodes that start together on an empty database make every index once', async () => {
    const stores = await Promise.all([database.open(), database.open(), database.open()])
    await Promise.all(stores.map((store) => store.ping()))
    await database.open()
    for (const [name, wanted] of Object.entries(indexes)) {
      const there = (await db.collection(name).indexes()).map((index) => String(index['name']))
      assert.deepEqual(there.sort(), ['_id_', ...wanted.map((index) => String(index.name))].sort(), name)
    }
    assert.equal(await version(), oldest + migrations.length)
  })

  test('accounts, webhooks and callbacks of an earlier version get the slot of their user, or of their developer', async () => {
    const { users, developers, accounts, webhooks, outbox, meta } = openCollections(db)
    const [userId, developerId] = ['u1', 'd1']
    await users.insertOne({ _id: userId, developerId } as never)
    await developers.insertOne({ _id: developerId } as never)
    await accounts.insertOne({ _id: 'a1', userId, label: 'l' } as never)
    await webhooks.insertMany([
      { _id: 'w1', userId },
      { _id: 'w2', userId: null, developerId },
    ] as never[])
    const rows = [
      { _id: 'o1', userId, developerId, state: 'pending' },
      { _id: 'o2', userId: null, developerId },
    ]
    await outbox.insertMany(rows as never[])
    await meta.updateOne({ _id: 'schema' }, { $set: { version: 5 } })
    await database.open()
    const slots = async (collection: object): Promise<unknown> => {
      const docs = await (collection as typeof outbox).find({}).sort({ _id: 1 }).toArray()
      return docs.map(({ slot }) => slot)
    }
    assert.deepEqual(await slots(accounts), [slotOf(userId)])
    assert.deepEqual(await slots(webhooks), [slotOf(userId), sharedSlot])
    assert.deepEqual(await slots(outbox), [slotOf(userId), slotOf(developerId)])
    for (const collection of [users, developers, accounts, webhooks, outbox]) await collection.deleteMany({})
  })

  test('messages of an earlier version to thousands of people are found by each', async () => {
    const store = await database.open()
    const mailbox = await createMailbox(store)
    const to = Array.from({ length: 2500 }, (_, n) => `p${n}@example.com`)
    await mailbox.fill('INBOX', [addressed({ to }), addressed({ to: ['p2400@example.com'] })])
    const { messages, meta } = openCollections(db)
    const mine = { accountId: mailbox.account.id }
    const stored = async () => (await messages.find(mine).toArray()).map(({ keys }) => [...keys].sort()).sort()
    const kept = await stored()
    const { modifiedCount } = await messages.updateMany(mine, { $pull: { keys: { $regex: '^\\+' } } })
    assert.equal(modifiedCount, 1)
    await meta.updateOne({ _id: 'schema' }, { $set: { version: oldest + migrations.length - 1 } })
    const found = await (await database.open()).messages.count(mailbox.account.id, { to: ['p2400@example.com'] })
    assert.equal(found, 2)
    assert.deepEqual(await stored(), kept)
  })

  test('folders of an earlier version get their counts, and whether they are complete', async () => {
    const store = await database.open()
    const mailbox = await createMailbox(store)
    const added = ['\\Seen', '\\Flagged'].map((flag, index) => mailbox.added('INBOX', index + 1, {}, { flags: [flag] }))
    await mailbox.apply('INBOX', { added })
    const stored = await store.folders.list(mailbox.account.id)
    assert.deepEqual(stored[0]?.counts, { messages: 2, unseen: 1 })
    const { folders, meta } = openCollections(db)
    await folders.updateMany({}, { $unset: { counts: 1, completeAt: 1 } })
    await meta.updateOne({ _id: 'schema' }, { $set: { version: 3 } })
    const again = await database.open()
    const [inbox, ...others] = await again.folders.list(mailbox.account.id)
    assert.deepEqual(inbox, { ...stored[0], completeAt: inbox?.cursor?.comparedAt })
    assert.deepEqual(others, stored.slice(1))
  })

  test('steps forward are taken in order, each once, and one that failed is taken again', async () => {
    await openCollections(db).meta.updateOne({ _id: 'schema' }, { $set: { version: oldest } })
    const taken: string[] = []
    let broken = true
    const step = (name: string, work: () => void = () => undefined): Migration => ({
      name,
      up: (): Promise<void> => {
        work()
        taken.push(name)
        return Promise.resolve()
      },
    })
    const steps = [
      step('first'),
      step('second', () => {
        if (broken) throw new Error('the disk is full')
      }),
      step('third'),
    ]
    const go = (): Promise<void> => migrate(db, { collections: openCollections(db) }, silentLogger, steps)
    await assert.rejects(go, /the disk is full/)
    assert.equal(await version(), oldest + 1)
    broken = false
    await go()
    await go()
    assert.deepEqual(taken, ['first', 'second', 'third'])
    assert.equal(await version(), oldest + 3)
    const older = migrate(db, { collections: openCollections(db) }, silentLogger, steps.slice(0, 1))
    await assert.rejects(older, (error) => isAppError(error, 'bad_request'))
    await openCollections(db).meta.updateOne({ _id: 'schema' }, { $set: { version: oldest - 1 } })
    await assert.rejects(go, /6e85fa0/)
  })
})
