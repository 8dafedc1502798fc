/** Backups of the store while it is written, and what is put in its place. Always on the embedded store. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { createBackups } from '../../engine/backup.ts'
import { readConfig } from '../../engine/config.ts'
import { isAppError } from '../../engine/errors.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { restoreStore } from '../../engine/restore.ts'
import { openSealedStore } from '../../engine/sealed-store.ts'
import { createDevelopers } from '../../engine/developers.ts'
import type { Store } from '../../engine/store/port.ts'
import type { CallLogRecord } from '../../engine/store/records.ts'
import { newId } from '../../engine/store/ids.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'mr-backup-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const configOf = (name: string) =>
  readConfig({
    MAILROOM_DATA_DIR: join(folder, name),
    MAILROOM_SQLITE_SYNC: 'off',
    MAILROOM_API_KEY: 'k',
    MAILROOM_API_SECRET: 's'.repeat(16),
  })

async function withStore<T>(name: string, work: (store: Store) => Promise<T>): Promise<T> {
  const config = configOf(name)
  const { store, sealer } = await openSealedStore(config, silentLogger, undefined, () => undefined)
  try {
    await createDevelopers({ store, sealer, config }).ensureFirst()
    return await work(store)
  } finally {
    await store.close()
  }
}

const call = (id: string): CallLogRecord => ({
  id,
  developerId: 'd',
  userId: null,
  at: Date.now(),
  method: 'GET',
  path: '/x'.repeat(500),
  status: 200,
  durationMs: 1,
})

const refused = (name: string, file: string, words: RegExp): void =>
  assert.throws(
    () => restoreStore(configOf(name), file),
    (error) => isAppError(error) && words.test(error.message) && !error.message.includes('.restore'),
  )

suite('backups', () => {
  const file = (): string => {
    const [name = ''] = readdirSync(join(folder, 'one', 'backups')).sort()
    return join(folder, 'one', 'backups', name)
  }
  let written = 0

  before(async () => {
    await withStore('one', async (store) => {
      const backups = createBackups({ store, config: configOf('one') })
      assert.equal(await backups.lastAt(), null)
      const add = async (): Promise<void> => {
        const rows = Array.from({ length: 500 }, () => call(newId()))
        await store.calls.append(rows)
        written += rows.length
      }
      for (let n = 0; n < 10; n += 1) await add()
      const begun = written
      let over = false
      const making = backups.run().finally(() => (over = true))
      await assert.rejects(backups.run(), (error) => isAppError(error, 'conflict'))
      while (!over) await add()
      const made = await making
      assert(written > begun, 'it was written meanwhile')
      assert.deepEqual(readdirSync(join(folder, 'one', 'backups')), [made.name])
      assert.equal(statSync(file()).size, made.bytes)
      assert.equal(statSync(file()).mode & 0o777, 0o600)
      const age = Date.now() - ((await backups.lastAt()) ?? 0)
      assert(age >= 0 && age < 60_000, String(age))
    })
  })

  test('one that was made under writes opens, and holds what was there at its beginning', async () => {
    const store = await createSqliteStore({ path: file(), sync: 'off' })
    const developer = await store.developers.first()
    const calls = await store.calls.list({ developerId: 'd' }, { limit: 100_000, offset: 0 })
    await store.close()
    assert(developer !== null)
    assert(calls.length >= 5000 && calls.length % 500 === 0 && calls.length <= written, String(calls.length))
  })

  test('the rest of one that was cut short goes with the next, and never counts', async () => {
    const directory = join(folder, 'one', 'backups')
    writeFileSync(join(directory, '2099-01-01T00-00-00.000Z.db.part'), 'half')
    await withStore('one', async (store) => {
      const backups = createBackups({ store, config: configOf('one') })
      assert(((await backups.lastAt()) ?? 0) < Date.now() + 1000)
      await backups.run()
    })
    assert.equal(readdirSync(directory).filter((name) => name.endsWith('.part')).length, 0)
  })

  test('a restore keeps the store that was there, and brings back what the backup holds', async () => {
    const kept = file()
    await withStore('one', (store) =>
      store.providers.put({
        developerId: 'd',
        consumerKey: 'later',
        type: 't',
        sealedSecret: '',
        shownSecret: '',
        createdAt: 1,
      }),
    )
    const before = readFileSync(kept)
    const { kept: aside } = restoreStore(configOf('one'), kept)
    assert.deepEqual(readFileSync(kept), before, 'the backup is left as it is')
    assert(aside !== null && statSync(join(folder, 'one', 'mailroom.sqlite')).mode % 0o1000 === 0o600)
    await withStore('one', async (store) => assert.deepEqual(await store.providers.list('d'), []))
    const old = await createSqliteStore({ path: aside, sync: 'off' })
    assert.equal((await old.providers.list('d')).length, 1)
    await old.close()
    assert.deepEqual(
      readdirSync(join(folder, 'one')).filter((name) => name.includes('.restore')),
      [],
    )
  })

  test('it is refused while the service runs, and of a file that is not fit', async () => {
    await withStore('one', () => {
      refused('one', file(), /in use by another process/)
      return Promise.resolve()
    })
    const path = join(folder, 'letter')
    writeFileSync(path, 'this is a letter, not a database\n'.repeat(100))
    refused('one', path, /letter cannot be read: file is not a database/)
    refused('one', join(folder, 'nothing'), /nothing: no such file/)
    const part = join(folder, 'part')
    writeFileSync(part, readFileSync(file()).subarray(0, 40_000))
    refused('one', part, /part (?:is damaged|cannot be read: .*malformed)/)
    await withStore('one', async (store) => assert((await store.developers.first()) !== null, 'left as it was'))
  })

  test('it is refused into another installation, and without the secret it was sealed with', async () => {
    await withStore('two', () => Promise.resolve())
    refused('two', file(), /another installation/)
    mkdirSync(join(folder, 'three'))
    refused('three', file(), /secret is missing/)
    writeFileSync(join(folder, 'three', 'secret'), 'ab'.repeat(32))
    refused('three', file(), /secret: not the one/)
    writeFileSync(join(folder, 'three', 'secret'), readFileSync(join(folder, 'one', 'secret')))
    assert.deepEqual(restoreStore(configOf('three'), file()), { kept: null })
    await withStore('three', async (store) => assert((await store.developers.first()) !== null))
    assert(!existsSync(join(folder, 'three', 'mailroom.sqlite.restore')))
  })

  test('with MongoDB the tool is named', async () => {
    const { run } = createBackups({ store: {}, config: configOf('one') })
    await assert.rejects(run(), (error) => isAppError(error, 'bad_request') && error.message.includes('mongodump'))
  })
})
