/** Backups of the store while it is written, and what is put in its place. Always on the embedded store. */
import assert from 'node:assert/strict'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { createBackups, restoreStore } from '../../engine/backup.ts'
import { readConfig } from '../../engine/config.ts'
import { isAppError } from '../../engine/errors.ts'
import { createLogger, silentLogger } from '../../engine/observe/log.ts'
import { openSealedStore } from '../../engine/sealed-store.ts'
import { createDevelopers } from '../../engine/developers.ts'
import type { Store } from '../../engine/store/port.ts'
import type { AccountRecord, CallLogRecord } from '../../engine/store/records.ts'
import { newId } from '../../engine/store/ids.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { accountRecord, developerRecord, userRecord } from '../support/records.ts'

const folder = mkdtempSync(join(tmpdir(), 'mr-backup-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const told: string[] = []
const log = createLogger({ MAILROOM_LOG_LEVEL: 'error' }, { write: (line) => void told.push(line) })
const configOf = (name: string) =>
  readConfig({
    MAILROOM_DATA_DIR: join(folder, name),
    MAILROOM_SQLITE_SYNC: 'off',
    MAILROOM_API_KEY: 'k',
    MAILROOM_API_SECRET: 's'.repeat(16),
    // Some developers of these tests have no real secret.
    MAILROOM_SECRET_LOST: '1',
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
      const backups = createBackups({ log, store, config: configOf('one') })
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
      const backups = createBackups({ log, store, config: configOf('one') })
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

  test('what SQLite left beside a broken store goes with it: its log is not replayed into the restored one', async () => {
    const directory = join(folder, 'wal')
    mkdirSync(directory)
    writeFileSync(join(directory, 'secret'), readFileSync(join(folder, 'one', 'secret')))
    restoreStore(configOf('wal'), file())
    const path = join(directory, 'mailroom.sqlite')
    let log = Buffer.alloc(0)
    await withStore('wal', async (store) => {
      await store.calls.append(Array.from({ length: 50 }, () => call(newId())))
      // As after a crash: the log is there, and the file lacks what is in it.
      log = readFileSync(`${path}-wal`)
    })
    assert(log.length > 0)
    writeFileSync(`${path}-wal`, log)
    writeFileSync(path, 'broken')
    const { kept } = restoreStore(configOf('wal'), file())
    assert(kept !== null && !existsSync(`${path}-wal`))
    assert.deepEqual(readFileSync(`${kept}-wal`), log)
    assert.deepEqual(readFileSync(path), readFileSync(file()))
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
    const nothing = { kept: null, revoked: null, consents: 0, reconnect: [] }
    assert.deepEqual(restoreStore(configOf('three'), file()), nothing)
    await withStore('three', async (store) => assert((await store.developers.first()) !== null))
    assert(!existsSync(join(folder, 'three', 'mailroom.sqlite.restore')))
  })

  test('keys and tokens that were revoked since stay revoked, and it says which', async () => {
    const token = { id: 'a'.repeat(24), name: 't', hash: 'h', scopes: [], createdAt: 1, revokedAt: null }
    const later = (digit: string, revokedAt: number | null) =>
      developerRecord({ id: digit.padStart(24, 'f'), apiKey: digit, revokedAt })
    const [gone, before, fine] = [later('1', null), later('2', 3), later('3', null)]
    let path = ''
    await withStore('four', async (store) => {
      for (const developer of [gone, before, fine]) await store.developers.create(developer)
      await store.operators.put(token)
      const { name } = await createBackups({ log, store, config: configOf('four') }).run()
      path = join(folder, 'four', 'backups', name)
      await store.developers.edit(gone.id, { revokedAt: 5 })
      await store.operators.edit(token.id, { revokedAt: 6 })
      await store.operators.put({ ...token, id: 'b'.repeat(24), revokedAt: 7 })
    })
    const bytes = readFileSync(path)
    assert.deepEqual(restoreStore(configOf('four'), path).revoked, [`developer ${gone.id}`, `token ${token.id}`])
    assert.deepEqual(readFileSync(path), bytes)
    await withStore('four', async (store) => {
      const at = async (id: string) => (await store.developers.get(id))?.revokedAt ?? null
      assert.deepEqual([await at(gone.id), await at(before.id), await at(fine.id)], [5, 3, null])
      assert.deepEqual(await store.operators.list(), [{ ...token, revokedAt: 6 }])
    })
    rmSync(join(folder, 'four', 'mailroom.sqlite'))
    assert.equal(restoreStore(configOf('four'), path).revoked, null, 'nobody can say')
  })

  test('OAuth accounts keep their newer refresh token; of others it makes a link to sign in again', async () => {
    const oauth = { authType: 'oauth2', providerKey: 'p', sealedCredential: 'old' } as const
    let path = ''
    const user = userRecord('d'.repeat(24))
    const [rotated, same, moved, removed, plain] = [oauth, oauth, oauth, oauth, { sealedCredential: 'old' }].map(
      (patch) => accountRecord(user, patch),
    ) as [AccountRecord, AccountRecord, AccountRecord, AccountRecord, AccountRecord]
    await withStore('consents', async (store) => {
      await store.users.create(user)
      for (const account of [rotated, same, moved, removed, plain]) await store.accounts.create(account)
      const { name } = await createBackups({ log, store, config: configOf('consents') }).run()
      path = join(folder, 'consents', 'backups', name)
      for (const { id } of [rotated, plain]) await store.accounts.edit(id, { sealedCredential: 'new' })
      await store.accounts.edit(moved.id, { sealedCredential: 'new', server: 'imap.other.example' })
      await store.accounts.remove(removed.id)
    })
    const { consents, reconnect } = restoreStore(configOf('consents'), path)
    assert.equal(consents, 1)
    assert.deepEqual(new Set(reconnect.map(({ account }) => account)), new Set([moved.id, removed.id]))
    await withStore('consents', async (store) => {
      const sealed = async ({ id }: AccountRecord) => (await store.accounts.get(id))?.sealedCredential
      assert.deepEqual(await Promise.all([rotated, same, moved, removed, plain].map(sealed)), [
        'new',
        'old',
        'old',
        'old',
        'old',
      ])
      for (const { account, email, url } of reconnect) {
        const token = await store.tokens.find(/\/connect\/(\w+)$/.exec(url)?.[1] ?? '')
        assert(token !== null && token.expiresAt > Date.now() + 86_000_000, url)
        assert.deepEqual([token.accountId, token.email, token.userId], [account, email, user.id])
      }
    })
    rmSync(join(folder, 'consents', 'mailroom.sqlite'))
    assert.equal(restoreStore(configOf('consents'), path).reconnect.length, 4, 'nobody knows what was rotated since')
  })

  test('without room on the disk none is begun, and the words say how much is needed', async () => {
    mkdirSync(join(folder, 'five'))
    const huge = join(folder, 'five', 'mailroom.sqlite')
    writeFileSync(huge, '')
    truncateSync(huge, 2 ** 43)
    const settings = { list: () => Promise.resolve([]), put: () => assert.fail('put'), remove: () => assert.fail() }
    const store = { backup: () => assert.fail('begun'), settings }
    const backups = createBackups({ log, store, config: configOf('five') })
    told.length = 0
    const words = /^no room for the (?:backup|store): it needs 8388672 MiB, and \d+ MiB are free at /
    await assert.rejects(backups.run(), (error) => isAppError(error, 'backup_failed') && words.test(error.message))
    assert.match(backups.latest()?.error?.message ?? '', words)
    assert.match(told.join(), /"message":"no room for the backup: it needs .*the backup was not made/)
    refused('one', huge, words)
    assert(!readdirSync(join(folder, 'one')).some((name) => name.includes('.restore')))
  })

  test('run by root it leaves the files to the owner of the directory', { skip: process.getuid?.() !== 0 }, () => {
    const directory = join(folder, 'six')
    mkdirSync(directory)
    writeFileSync(join(directory, 'secret'), readFileSync(join(folder, 'one', 'secret')))
    chownSync(directory, 4711, 4712)
    refused('six', join(folder, 'two', 'mailroom.sqlite'), /secret: not the one/)
    restoreStore(configOf('six'), file())
    for (const name of ['mailroom.sqlite', 'mailroom.sqlite.lock']) {
      const { uid, gid } = statSync(join(directory, name))
      assert.deepEqual([uid, gid], [4711, 4712], name)
    }
  })

  test('when the newest was made is known when its file has been moved away', async () => {
    await withStore('one', async (store) => {
      const backups = createBackups({ log, store, config: configOf('one'), now: () => Date.now() + 60_000 })
      const { name } = await backups.run()
      const at = await backups.lastAt()
      rmSync(join(folder, 'one', 'backups', name))
      assert.equal(await backups.lastAt(), at)
    })
  })

  test('with MongoDB the tool is named', async () => {
    await withStore('one', async ({ settings }) => {
      const { run } = createBackups({ log, store: { settings }, config: configOf('one') })
      await assert.rejects(run(), (error) => isAppError(error, 'bad_request') && error.message.includes('mongodump'))
    })
  })
})
