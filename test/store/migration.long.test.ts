/** A store of commit 6e85fa0 with 10,000 messages is brought up to date, also when that is cut short. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { AppError } from '../../engine/errors.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { openCollections } from '../../engine/store/mongo/documents.ts'
import { migrate } from '../../engine/store/mongo/schema.ts'
import type { Store } from '../../engine/store/port.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { newest, oldest } from '../../engine/store/sqlite/schema.ts'
import { needs } from '../support/require.ts'
import { createProxy, diesIn } from './mongo-proxy.ts'
import { testDatabase } from './mongo-server.ts'
import { contactsOf, oldStore, writeMongo, writeSqlite, type OldStore } from './old-store.ts'

const page = { limit: 5000, offset: 0 }

/** Counts, completeness and contacts are those of the rows; an account that is removed takes its contacts along. */
async function assertMigrated(store: Store, old: OldStore, note = ''): Promise<void> {
  const [first, second] = old.accounts
  const byId = <R extends { readonly id: string }>(rows: readonly R[]) =>
    rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const nothing = { messages: 0, unseen: 0 }
  for (const { id } of old.accounts) {
    for (const folder of await store.folders.list(id)) {
      const counts = id === first.id ? old.counts[folder.path as keyof typeof old.counts] : nothing
      assert.deepEqual(folder.counts, counts, `${note} ${folder.path}`)
      assert.equal(folder.completeAt, folder.path === 'Trash' ? null : folder.cursor?.comparedAt)
    }
  }
  // Trash of both is being read.
  for (const { id } of old.accounts) assert.equal((await store.accounts.get(id))?.completeAt ?? null, null)
  const list = () => store.contacts.list(old.user.id, 'total_count', 'desc', page)
  const all = contactsOf(old, [first.id, second.id])
  assert.deepEqual(byId(await list()), byId(all), note)
  const firstPage = all.toSorted((a, b) => b.totalCount - a.totalCount || (a.id < b.id ? 1 : -1)).slice(3, 13)
  assert.deepEqual(await store.contacts.list(old.user.id, 'total_count', 'desc', { limit: 10, offset: 3 }), firstPage)
  assert.deepEqual(
    byId(await store.contacts.search(old.user.id, 'P 12', page)),
    byId(all.filter(({ name }) => name.startsWith('P 12'))),
  )
  await store.accounts.remove(second.id)
  assert.deepEqual(byId(await list()), byId(contactsOf(old, [first.id])), note)
}

suite('a store of 6e85fa0', () => {
  test('in SQLite: 10,000 messages, killed in the middle and opened again', async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'mailroom-migration-'))
    t.after(() => rm(directory, { recursive: true, force: true }))
    const path = join(directory, 'mailroom.sqlite')
    const old = oldStore(10_000)
    writeSqlite(path, old)
    const version = (): unknown => {
      const database = new DatabaseSync(path)
      try {
        return database.prepare('PRAGMA user_version').get()?.['user_version']
      } finally {
        database.close()
      }
    }
    const opening = `import { createSqliteStore } from '${new URL('../../engine/store/sqlite/index.ts', import.meta.url).href}'
      console.log('begun'); await createSqliteStore({ path: process.argv[1], sync: 'normal' })`
    for (const ms of [5, 20, 60]) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', opening, path], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      await once(child.stdout, 'data')
      await pause(ms)
      child.kill('SIGKILL')
      await once(child, 'exit')
      assert([oldest.version, newest].includes(Number(version())), `version ${String(version())} after ${ms} ms`)
    }
    const store = await createSqliteStore({ path, sync: 'off' })
    t.after(() => store.close())
    assert.equal(version(), newest)
    await assertMigrated(store, old)
  })

  test('in MongoDB: 10,000 messages', needs('mongodb'), async (t) => {
    const database = testDatabase()
    const client = await MongoClient.connect(database.uri)
    t.after(async () => {
      await client.close()
      await database.remove()
    })
    const old = oldStore(10_000)
    await writeMongo(client.db(), old)
    await assertMigrated(await database.open(), old)
    assert.equal(await client.db().collection('contacts').countDocuments({ applied: /^m / }), 1000)
  })

  test('in MongoDB, cut short before and after each write', needs('mongodb'), async () => {
    let cuts = 0
    for (const lost of [false, true]) {
      for (let died = true, writes = 1; died; writes += 1) {
        const database = testDatabase()
        const proxy = await createProxy(database.uri)
        const [client, victim] = await Promise.all(
          [database, proxy].map(({ uri }) => MongoClient.connect(uri, impatient)),
        )
        assert(client && victim)
        const old = oldStore(60)
        await writeMongo(client.db(), old)
        const work = () =>
          migrate(victim.db(), { collections: openCollections(victim.db()) }, silentLogger).catch((cause: unknown) => {
            throw new AppError('store_unavailable', 'cut short', { cause })
          })
        died = await diesIn(proxy, writes, lost, work)
        cuts += died ? 1 : 0
        await assertMigrated(await database.open(), old, `${writes} writes`)
        await Promise.all([client.close(), victim.close(), database.remove(), proxy.close()])
      }
    }
    // folders, version, contacts in, contacts out, version: each before or after
    assert(cuts >= 8, `${cuts} cuts`)
  })
})

const impatient = { serverSelectionTimeoutMS: 2500, socketTimeoutMS: 2500 }
