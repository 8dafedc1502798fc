/** What only the embedded store promises: its file, its schema version, its errors, and writes that share a commit. */
import assert from 'node:assert/strict'
import { mkdir, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { readConfig } from '../../engine/config.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { openStore } from '../../engine/sealed-store.ts'
import type { AddedMessage, Store } from '../../engine/store/port.ts'
import type { MessageRecord } from '../../engine/store/records.ts'
import { messageKeys } from '../../engine/store/rows.ts'
import { openDatabase } from '../../engine/store/sqlite/database.ts'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { newest, oldest } from '../../engine/store/sqlite/schema.ts'
import { createMailbox, rejectsWith, type Mailbox } from './contract/mailbox.ts'
import { accountRecord, developerRecord, userRecord } from './contract/records.ts'
import { sqliteFiles } from './sqlite-files.ts'

const { directory, newPath, withStore, remove } = sqliteFiles()
after(remove)

describe('the file', () => {
  test('keeps what was stored', async () => {
    const path = newPath()
    const user = userRecord('d'.repeat(24))
    await withStore(path, (store) => store.users.create(user))
    await withStore(path, async (store) => {
      assert.deepEqual(await store.users.get(user.developerId, user.id), user)
    })
  })

  for (const [what, version, hint] of [
    ['newer', newest + 1, 'use a newer Mailroom'],
    ['too old a', oldest.version - 1, '6e85fa0'],
  ] as const) {
    test(`of ${what} schema is refused with one line, and left as it is`, async () => {
      const path = newPath()
      await withStore(path, (store) => store.ping())
      const database = new DatabaseSync(path)
      database.exec(`PRAGMA user_version = ${version}`)
      const opened = createSqliteStore({ path, sync: 'off' })
      await rejectsWith(opened, 'bad_request')
      await assert.rejects(opened, ({ message }: Error) => {
        return message.includes(path) && message.includes(hint) && !message.includes('\n')
      })
      assert.equal(database.prepare('PRAGMA user_version').get()?.['user_version'], version)
      database.close()
    })
  }

  test('that cannot be opened is store_unavailable', async () => {
    await rejectsWith(
      createSqliteStore({ path: join(directory, 'no', 'such', 'x.sqlite'), sync: 'off' }),
      'store_unavailable',
    )
    const folder = join(directory, 'folder.sqlite')
    await mkdir(folder)
    await rejectsWith(createSqliteStore({ path: folder, sync: 'off' }), 'store_unavailable')
  })

  test('locked by another process is store_unavailable, and works again afterwards', async () => {
    const path = newPath()
    await withStore(path, async (store) => {
      const other = new DatabaseSync(path)
      other.exec('BEGIN IMMEDIATE')
      const developer = developerRecord()
      await rejectsWith(store.developers.create(developer), 'store_unavailable')
      assert.equal(await store.developers.get(developer.id), null, 'reads go on')
      other.exec('COMMIT')
      other.close()
      await store.developers.create(developer)
      assert.deepEqual(await store.developers.get(developer.id), developer)
    })
  })

  test('that is damaged is store_unavailable: a backup that takes its place ends it', async () => {
    const path = newPath()
    const whole = openDatabase(path, 'off', 50)
    await whole.write(() => whole.script(`CREATE TABLE t (a); INSERT INTO t VALUES (hex(zeroblob(20000)))`))
    await whole.close()
    const file = await open(path, 'r+')
    await file.write(Buffer.alloc(4096, 7), 0, 4096, 4096)
    await file.close()
    const damaged = openDatabase(path, 'off', 50)
    try {
      const told = { code: 'store_unavailable', details: { damaged: true } }
      await assert.rejects(
        damaged.read(() => damaged.tuples('SELECT a FROM t')),
        told,
      )
      await assert.rejects(
        damaged.write(() => damaged.run('INSERT INTO t VALUES (1)')),
        told,
      )
    } finally {
      await damaged.close()
    }
  })

  test('once closed answers store_unavailable', async () => {
    const store = await createSqliteStore({ path: newPath(), sync: 'off' })
    await store.close()
    await rejectsWith(store.ping(), 'store_unavailable')
    await rejectsWith(store.developers.create(developerRecord()), 'store_unavailable')
  })

  test('a close ends the writes that were asked for', async () => {
    const path = newPath()
    const developers = Array.from({ length: 20 }, () => developerRecord())
    const store = await createSqliteStore({ path, sync: 'off' })
    const writes = developers.map((developer) => store.developers.create(developer))
    await store.close()
    await Promise.all(writes)
    await withStore(path, async (again) => assert.equal(await again.developers.count(), 20))
  })

  test('is opened by the configuration in the data directory', async () => {
    const data = join(directory, 'new', 'data')
    const config = readConfig({ MAILROOM_DATA_DIR: data })
    const store = await openStore(config, silentLogger)
    assert.equal(store.kind, 'sqlite')
    await store.close()
    assert((await readdir(data)).includes('mailroom.sqlite'))
  })
})

describe('writes that share a commit', () => {
  test('fail alone', async () => {
    await withStore(newPath(), async (store) => {
      const user = userRecord('d'.repeat(24))
      await store.users.create(user)
      const [first, second, third] = [0, 1, 2].map((label) => accountRecord(user, { label: `l${label % 2}` }))
      assert(first && second && third)
      const answers = await Promise.allSettled([first, second, third].map((one) => store.accounts.create(one)))
      assert.deepEqual(
        answers.map((answer) => answer.status),
        ['fulfilled', 'fulfilled', 'rejected'],
      )
      assert.deepEqual(await store.accounts.listByUser(user.id), [first, second])
      assert.equal(await store.accounts.get(third.id), null)
      assert.deepEqual(await store.users.list(user.developerId, { email: third.email }, { limit: 9, offset: 0 }), [])
    })
  })

  test('are all answered when the transaction cannot begin', async () => {
    const path = newPath()
    const database = openDatabase(path, 'off', 50)
    await database.write(() => database.script('CREATE TABLE t (a INTEGER PRIMARY KEY)'))
    const blocker = new DatabaseSync(path)
    blocker.exec('BEGIN IMMEDIATE')
    const writes = [1, 2, 3].map((a) => database.write(() => database.run('INSERT INTO t VALUES (?)', a)))
    for (const answer of await Promise.allSettled(writes)) assert.equal(answer.status, 'rejected')
    blocker.exec('COMMIT')
    blocker.close()
    assert.equal(await database.write(() => database.run('INSERT INTO t VALUES (9)')), 1)
    assert.equal(database.number('SELECT count(*) FROM t'), 1)
    await database.close()
  })

  test('a long queue is done in groups, in order', async () => {
    const database = openDatabase(newPath(), 'off', 50)
    await database.write(() => database.script('CREATE TABLE t (a INTEGER PRIMARY KEY)'))
    const done: number[] = []
    const writes = Array.from({ length: 30 }, (_, a) =>
      database.write(() => {
        const until = performance.now() + 1
        while (performance.now() < until);
        done.push(a)
        return database.run('INSERT INTO t VALUES (?)', a)
      }),
    )
    await Promise.all(writes)
    assert.deepEqual(
      done,
      Array.from({ length: 30 }, (_, a) => a),
    )
    assert.equal(database.number('SELECT count(*) FROM t'), 30)
    await database.close()
  })
})

describe('index rows', () => {
  const where = fc.constantFrom('INBOX', 'Archive', 'Trash')
  const uid = fc.integer({ min: 1, max: 4 })
  const which = fc.integer({ min: 1, max: 3 })
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), which, where, uid }),
    fc.record({ kind: fc.constant('vanish' as const), where, uid }),
    fc.record({ kind: fc.constant('move' as const), which, where, uid, to: where, toUid: uid }),
    fc.record({ kind: fc.constant('flag' as const), which, where, uid }),
    fc.record({ kind: fc.constant('forget' as const), where }),
  )

  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

  async function take(store: Store, mailbox: Mailbox, facts: readonly AddedMessage[], one: Step): Promise<void> {
    const { id: accountId, epoch } = mailbox.account
    const { id: folderId } = await mailbox.folder(one.where)
    const chosen = 'which' in one ? facts[one.which - 1] : undefined
    const { placement } = mailbox.added(one.where, 'uid' in one ? one.uid : 1)
    if (one.kind === 'add' && chosen) await mailbox.apply(one.where, { added: [{ ...chosen, placement }] })
    if (one.kind === 'vanish') await mailbox.apply(one.where, { vanished: [one.uid] })
    if (one.kind === 'forget') await store.sync.forgetPlacements(accountId, epoch, folderId, '2', 2)
    if (one.kind === 'flag' && chosen) {
      const update = {
        messageId: chosen.id,
        uid: one.uid,
        flags: one.uid % 2 === 0 ? ['\\Deleted'] : ['\\Seen'],
        modseq: '7',
        rev: 1,
      }
      await mailbox.apply(one.where, { flagUpdates: [update] })
    }
    if (one.kind === 'move' && chosen) {
      const held = await store.messages.knownUids((await mailbox.folder(one.to)).id, '1', one.toUid, one.toUid)
      // a server never gives one UID to two messages
      const to = mailbox.added(one.to, one.toUid).placement
      if (held.length === 0) await mailbox.apply(one.to, { added: [{ ...chosen, placement: to }] })
      const reported = [{ messageId: chosen.id, folderId, uidValidity: '1', uid: one.uid }]
      await mailbox.apply(one.where, { vanished: [one.uid], reported })
    }
  }

  test('and lists follow from the records, whatever has happened', async () => {
    const path = newPath()
    await withStore(path, async (store) => {
      const database = new DatabaseSync(path, { readOnly: true })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
          const mailbox = await createMailbox(store)
          const facts = [1, 2, 3].map((name) => mailbox.added('INBOX', name))
          for (const one of steps) {
            await take(store, mailbox, facts, one)
            await assertListed(store, database, mailbox)
          }
          assertIndexed(database, mailbox.account.id)
          await store.accounts.remove(mailbox.account.id)
          assert.deepEqual(await store.messages.list(mailbox.account.id, {}, page), [])
        }),
        { numRuns: 60 },
      )
      database.close()
    })
  })
})

const page = { limit: 25, offset: 0 }

/** Answers the live records. */
async function assertListed(store: Store, database: DatabaseSync, mailbox: Mailbox): Promise<MessageRecord[]> {
  const { id } = mailbox.account
  const { id: folderId } = await mailbox.folder('INBOX')
  const live = recordsOf(database, id)
    .filter(({ placements }) => placements.length > 0)
    .sort((one, other) => one.sentAt - other.sentAt || (one.id < other.id ? -1 : 1))
  const inbox = live.filter(({ placements }) => placements.some((place) => place.folderId === folderId))
  assert.deepEqual(await store.messages.list(id, { order: 'asc' }, page), live)
  assert.deepEqual(await store.messages.list(id, { folderId }, page), inbox.toReversed())
  return live
}

function recordsOf(database: DatabaseSync, accountId: string): MessageRecord[] {
  const rows = database.prepare('SELECT doc FROM messages WHERE account_id = ?').all(accountId)
  return rows.map((row) => JSON.parse(String(row['doc'])) as MessageRecord)
}

/** Compares every index row of the account with what its records say. */
function assertIndexed(database: DatabaseSync, accountId: string): void {
  const rows = database.prepare('SELECT live FROM messages WHERE account_id = ?').all(accountId)
  const records = recordsOf(database, accountId)
  const keys = database.prepare('SELECT key, sent_at, message_id FROM message_keys WHERE account_id = ?').all(accountId)
  assert.deepEqual(
    keys.map((row) => `${String(row['key'])} ${String(row['sent_at'])} ${String(row['message_id'])}`).sort(),
    records.flatMap((one) => messageKeys(one).map((key) => `${key} ${one.sentAt} ${one.id}`)).sort(),
  )
  assert.deepEqual(
    rows.map((row) => row['live']),
    records.map((record) => (record.placements.length > 0 ? 1 : 0)),
  )
  const places = database
    .prepare(
      `SELECT p.folder_id, p.uid, p.message_id, p.flags, p.rev FROM placements p
       JOIN folders f ON f.id = p.folder_id WHERE f.account_id = ?`,
    )
    .all(accountId)
  assert.deepEqual(
    places.map((row) => Object.values(row).join(' ')).sort(),
    records
      .flatMap((one) =>
        one.placements.map((at) => [at.folderId, at.uid, one.id, JSON.stringify(at.flags), at.rev].join(' ')),
      )
      .sort(),
  )
}
