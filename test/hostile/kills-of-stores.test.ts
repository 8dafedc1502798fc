/**
 * kill -9 of what works on a whole store: the copy to another store, the migration of an older one. What is there
 * afterwards is made whole by the next run, with nothing lost and nothing twice.
 */
import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { MongoClient } from 'mongodb'
import { runStoreCommand, transferNames } from '../../engine/store/copy.ts'
import type { StoreTransfer } from '../../engine/store/transfer.ts'
import { openCollections } from '../../engine/store/mongo/documents.ts'
import { migrations } from '../../engine/store/mongo/schema.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { openSqliteTransfer } from '../../engine/store/sqlite/transfer.ts'
import { createMailbox, type Mailbox } from '../store/contract/mailbox.ts'
import { fill, mongoPlace, sqlitePlace, type Place } from '../store/copy-places.ts'
import { testDatabase, type TestDatabase } from '../store/mongo-server.ts'
import { needs } from '../support/require.ts'
import { emptyDatabase } from '../support/store-choice.ts'
import { killSpread, runAndKill, type Ended } from './kills.ts'

const root = join(import.meta.dirname, '../..')

const imported = (file: string): string => `await import(${JSON.stringify(pathToFileURL(join(root, file)).href)})`

const programOf = (code: string): string[] => ['--input-type=module', '--eval', code]

/** What `npm run store` runs: a program without the rest of the service starts in a third of the time. */
const copying = (args: readonly string[]): string => `
const { runStoreCommand } = ${imported('engine/store/copy.ts')}
process.exitCode = await runStoreCommand(${JSON.stringify(args)}, console.log)`

/** Every record of every collection, in the order of the export. */
async function allOf(open: () => Promise<StoreTransfer>): Promise<Record<string, unknown[]>> {
  const store = await open()
  const all: Record<string, unknown[]> = {}
  for (const name of transferNames) {
    const records: unknown[] = []
    let at: string | null = null
    do {
      const page: Awaited<ReturnType<typeof store.export>> = await store.export(name, at, 500)
      records.push(...page.records)
      at = page.next
    } while (at !== null)
    all[name] = records
  }
  await store.close()
  return all
}

suite('kill -9 of a copy: the next one makes it whole', { timeout: 600_000 }, () => {
  let source: Place
  before(async () => {
    source = await sqlitePlace()
    const store = await source.store()
    for (let mailbox = 0; mailbox < 12; mailbox += 1) await fill(store)
    await store.close()
  })
  after(() => source.remove())

  /** By a process that is killed, and by another one to its end. */
  async function copyTwice(target: Place, afterMs: number): Promise<Ended> {
    const args = ['copy', '--from', source.address, '--to', target.address]
    const ended = await runAndKill(programOf(copying(args)), afterMs)
    // A copy that was whole already is refused: what is there decides.
    if (ended.killed) await runStoreCommand(args, () => undefined)
    return ended
  }

  /** One target for all rounds is emptied after each of them. */
  async function killCopies(target: Place, empty: () => Promise<unknown>): Promise<void> {
    let whole: Record<string, unknown[]> | null = null
    try {
      await killSpread(async (afterMs) => {
        const ended = await copyTwice(target, afterMs)
        const copied = await allOf(() => target.transfer('source'))
        // The first one is not killed.
        assert.deepEqual(copied, (whole ??= copied))
        await empty()
        return ended
      })
    } finally {
      await target.remove()
    }
  }

  test('to SQLite', { timeout: 300_000 }, async () => {
    const target = await sqlitePlace()
    await killCopies(target, () => target.remove())
  })

  test('to MongoDB', { timeout: 300_000, ...needs('mongodb') }, async () => {
    const target = await mongoPlace()
    await killCopies(target, () => emptyDatabase(target.address))
  })
})

/** Messages flagged \\Deleted, as `fillInbox` makes them. */
const flagged = 3000

/** A program that opens the store, and so brings it up to date, and closes it. */
const opening = (kind: string, open: string, options: object): string => `
const { ${open} } = ${imported(`engine/store/${kind}/index.ts`)}
const { silentLogger: log } = ${imported('engine/observe/log.ts')}
console.log('opens')
await (await ${open}({ log, ...${JSON.stringify(options)} })).close()`

suite('kill -9 of a migration of SQLite', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-kills-'))
  const old = join(directory, 'old.sqlite')
  const path = join(directory, 'mailroom.sqlite')
  const program = opening('sqlite', 'createSqliteStore', { path })
  let before12: Record<string, unknown[]>
  before(async () => {
    const store = await createSqliteStore({ path: old, sync: 'off' })
    const mailbox = await createMailbox(store)
    for (let from = 0; from < flagged; from += 500) await fillInbox(mailbox, from)
    await store.close()
    before12 = await allOf(() => openSqliteTransfer(old, 'source'))
    const database = new DatabaseSync(old)
    database.exec("DELETE FROM message_keys WHERE key = 'd'")
    database.exec('DROP TABLE audit; PRAGMA user_version = 12')
    database.close()
  })
  after(() => rmSync(directory, { recursive: true }))

  test('the next start ends it', { timeout: 300_000 }, async () => {
    await killSpread(async (afterMs) => {
      for (const rest of ['-wal', '-shm']) rmSync(path + rest, { force: true })
      copyFileSync(old, path)
      const ended = await runAndKill(programOf(program), afterMs)
      await (await createSqliteStore({ path, sync: 'off' })).close()
      assert.deepEqual(await allOf(() => openSqliteTransfer(path, 'source')), before12)
      const database = new DatabaseSync(path)
      const deleted = database.prepare("SELECT count(*) AS n FROM message_keys WHERE key = 'd'").get()
      database.close()
      assert.equal(deleted?.['n'], flagged)
      return ended
    })
  })
})

suite('kill -9 of a migration of MongoDB', { timeout: 300_000, ...needs('mongodb') }, () => {
  let database: TestDatabase
  let client: MongoClient
  before(async () => {
    database = testDatabase()
    client = await MongoClient.connect(database.uri)
    const store = await database.open()
    const mailbox = await createMailbox(store)
    for (let from = 0; from < flagged; from += 500) await fillInbox(mailbox, from)
    await store.close()
  })
  after(async () => {
    await client.close()
    await database.remove()
  })

  test('the next start ends it', { timeout: 300_000 }, async () => {
    const { messages, meta } = openCollections(client.db())
    const program = opening('mongo', 'createMongoStore', { uri: database.uri, pool: 10, timeoutMs: 10_000 })
    await killSpread(async (afterMs) => {
      await messages.updateMany({}, { $pull: { keys: 'd' } })
      await meta.updateOne({ _id: 'schema' }, { $set: { version: 1 } })
      const ended = await runAndKill(programOf(program), afterMs)
      await (await database.open()).close()
      const keys = await messages.find({}, { projection: { keys: 1 } }).toArray()
      assert.equal(keys.length, flagged)
      assert(keys.every((one) => one.keys.filter((key) => key === 'd').length === 1))
      assert.equal((await meta.findOne({ _id: 'schema' }))?.['version'], migrations.length + 1)
      return ended
    })
  })
})

function fillInbox(mailbox: Mailbox, from: number): Promise<unknown> {
  const flags = ['\\Deleted']
  const added = Array.from({ length: 500 }, (_, index) => mailbox.added('INBOX', from + index + 1, {}, { flags }))
  return mailbox.apply('INBOX', { added })
}
