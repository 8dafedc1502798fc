/**
 * kill -9 of a start that brings an older store up to date. Every migration finds work in the older store. The next
 * start leaves the store as a start does that nobody kills.
 */
import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, suite, test } from 'node:test'
import { MongoClient, type Db, type Document } from 'mongodb'
import { migrations as mongoMigrations } from '../../engine/store/mongo/schema.ts'
import { openDatabase } from '../../engine/store/sqlite/database.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { migrations, newest, oldest } from '../../engine/store/sqlite/schema.ts'
import { messageKeys } from '../../engine/store/rows.ts'
import { outboxRecord, webhookRecord } from '../store/contract/records.ts'
import { testDatabase, type TestDatabase } from '../store/mongo-server.ts'
import { oldStore, writeMongo, writeSqlite, type OldStore } from '../store/old-store.ts'
import { address } from '../support/records.ts'
import { needs } from '../support/require.ts'
import { doneLine, fewKills, imported, killSpread, manyKills, runAndKill } from './kills.ts'

const messages = 400

/** Of a message to thousands of people. */
const recipients = 2500
const isWide = (index: number): boolean => index % 200 === 7

/**
 * The store of test/store with two pages of contacts for MongoDB, and with messages to thousands of people. All folders
 * of the second account are complete.
 */
function olderStore(): OldStore {
  const old = oldStore(2100)
  const second = old.accounts[1].id
  const to = Array.from({ length: recipients }, (_, index) => address(`p${index}@example.org`))
  return {
    ...old,
    folders: old.folders.map((folder) => {
      return folder.accountId === second ? { ...folder, cursor: { ...folder.cursor, backfillBelow: 0 } } : folder
    }),
    messages: old.messages.slice(0, messages).map((message, index) => {
      return isWide(index) ? { ...message, addresses: { ...message.addresses, to } } : message
    }),
  }
}

/** The keys of the message before the limit of address keys. */
function olderKeys(message: OldStore['messages'][number]): string[] {
  return messageKeys(message, Infinity)
}

suite('kill -9 of a migration of SQLite', { timeout: 300_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-kills-'))
  const old = join(directory, 'old.sqlite')
  const path = join(directory, 'mailroom.sqlite')
  /** Each migration prints its number when it is done; all are one transaction. */
  const program = `
const { createSqliteStore } = ${imported('engine/store/sqlite/index.ts')}
const { migrations } = ${imported('engine/store/sqlite/schema.ts')}
for (const [index, step] of migrations.entries()) {
  migrations[index] = (sql) => {
    if (typeof step === 'string') sql.script(step)
    else step(sql)
    console.log(index)
  }
}
const store = await createSqliteStore(${JSON.stringify({ path, sync: 'normal' })})
console.log('${doneLine}')
await store.close()`

  before(() => {
    const store = olderStore()
    writeSqlite(old, store)
    const database = new DatabaseSync(old)
    const insert = database.prepare('INSERT OR IGNORE INTO message_keys VALUES (?, ?, ?, ?)')
    database.exec('BEGIN')
    for (const message of store.messages)
      for (const key of olderKeys(message)) insert.run(message.accountId, key, message.sentAt, message.id)
    database.exec('COMMIT')
    database.close()
  })
  after(() => rmSync(directory, { recursive: true }))

  function putBack(): void {
    for (const rest of ['-wal', '-shm']) rmSync(path + rest, { force: true })
    copyFileSync(old, path)
  }

  function version(): unknown {
    using database = new DatabaseSync(path)
    return database.prepare('PRAGMA user_version').get()?.['user_version']
  }

  /** The schema and all rows, without the facts of the file. */
  function contents(): Record<string, unknown[]> {
    using database = new DatabaseSync(path)
    const schema = database
      .prepare("SELECT type, name, sql FROM sqlite_schema WHERE name <> 'facts' ORDER BY name")
      .all()
    const tables = schema.filter(({ type }) => type === 'table').map(({ name }) => String(name))
    return {
      schema,
      ...Object.fromEntries(tables.map((name) => [name, database.prepare(`SELECT * FROM ${name}`).all()])),
    }
  }

  test('each step has something to do', async () => {
    putBack()
    const database = openDatabase(path, 'off', 2000)
    let before = contents()
    for (const [index, step] of migrations.entries()) {
      if (step === '') continue
      if (typeof step === 'string') database.script(step)
      else step(database)
      const then = contents()
      assert.notDeepEqual(then, before, `migration ${index}`)
      before = then
    }
    await database.close()
  })

  test('the next start ends it', { timeout: 300_000 }, async () => {
    let whole: Record<string, unknown[]> | null = null
    await killSpread(manyKills, async (moment) => {
      putBack()
      const ended = await runAndKill(program, moment)
      const underWay = ended.underWay && version() === oldest.version
      await (await createSqliteStore({ path, sync: 'off' })).close()
      assert.equal(version(), newest)
      const now = contents()
      // The first start is not killed.
      assert.deepEqual(now, (whole ??= now))
      return { ...ended, underWay }
    })
  })
})

/** Collections of MongoDB in which migrations change rows. */
const changed = ['accounts', 'folders', 'messages', 'contacts', 'webhooks', 'outbox'] as const

/** The index of older contacts that a migration drops. */
const oldIndex = { name: 'contacts_of_account', key: { 'byAccount.accountId': 1 } } as const

/** Application-level webhooks and those of a user, with callbacks of both: without slots. */
function hooksOf({ developer, user }: OldStore): Record<'webhooks' | 'outbox', Document[]> {
  const webhooks = Array.from({ length: 40 }, (_, index) => {
    return webhookRecord(developer.id, { userId: index % 2 === 0 ? user.id : null })
  })
  const outbox = webhooks.flatMap((webhook) =>
    Array.from({ length: 5 }, () => outboxRecord(webhook, { userId: webhook.userId })),
  )
  const docs = (records: readonly { readonly id: string }[]) =>
    records.map(({ id: _id, ...fields }) => ({ _id, ...fields }))
  return { webhooks: docs(webhooks), outbox: docs(outbox) }
}

suite('kill -9 of a migration of MongoDB', { timeout: 300_000, ...needs('mongodb') }, () => {
  /** Of commit 6e85fa0. */
  const oldVersion = 3
  const newVersion = oldVersion + mongoMigrations.length
  let database: TestDatabase
  let client: MongoClient
  let db: Db
  let older: Record<(typeof changed)[number], Document[]>

  /** All rows of what migrations change; `v` of contacts is random. */
  async function contents(): Promise<Record<string, Document[]>> {
    const all = changed.map(async (name) => {
      const rows = db.collection(name).find({}, { projection: name === 'contacts' ? { v: 0 } : {} })
      return [name, await rows.sort({ _id: 1 }).toArray()] as const
    })
    return Object.fromEntries(await Promise.all(all))
  }

  async function putBack(): Promise<void> {
    for (const name of changed) {
      await db.collection(name).deleteMany({})
      await db.collection(name).insertMany(older[name])
    }
    await db.collection('contacts').createIndexes([oldIndex])
    await db.collection('meta').updateOne({ _id: 'schema' as never }, { $set: { version: oldVersion } })
  }

  async function version(): Promise<number> {
    return Number((await db.collection('meta').findOne({ _id: 'schema' as never }))?.['version'])
  }

  before(async () => {
    database = testDatabase()
    client = await MongoClient.connect(database.uri)
    db = client.db()
    const store = olderStore()
    await writeMongo(db, store)
    const keys = new Map(store.messages.map((message) => [message.id, olderKeys(message)]))
    const { accounts, folders, messages, contacts } = (await contents()) as typeof older
    older = {
      accounts,
      folders,
      messages: messages.map((doc) => ({ ...doc, keys: keys.get(String(doc['_id'])) })),
      contacts,
      ...hooksOf(store),
    }
  })
  after(async () => {
    await client.close()
    await database.remove()
  })

  test('each step has something to do', async () => {
    await putBack()
    const all = async () => {
      const indexes = await Promise.all(changed.map((name) => db.collection(name).indexes()))
      return { indexes, ...(await contents()) }
    }
    let before = await all()
    for (const step of mongoMigrations) {
      await step.up(db)
      const then = await all()
      assert.notDeepEqual(then, before, step.name)
      before = then
    }
  })

  test('the next start ends it', { timeout: 300_000 }, async () => {
    const options = { uri: database.uri, pool: 10, timeoutMs: 10_000 }
    const program = `
const { createMongoStore } = ${imported('engine/store/mongo/index.ts')}
const { silentLogger } = ${imported('engine/observe/log.ts')}
const info = ({ step, version }, text) => {
  if (text === 'database migrated') console.log(version === ${newVersion} ? '${doneLine}' : step)
}
await (await createMongoStore({ log: { ...silentLogger, info }, ...${JSON.stringify(options)} })).close()`
    let whole: Record<string, Document[]> | null = null
    await killSpread(fewKills, async (moment) => {
      await putBack()
      const ended = await runAndKill(program, moment)
      const underWay = ended.underWay && (await version()) < newVersion
      await (await database.open()).close()
      assert.equal(await version(), newVersion)
      const now = await contents()
      // The first start is not killed.
      assert.deepEqual(now, (whole ??= now))
      return { ...ended, underWay }
    })
  })
})
