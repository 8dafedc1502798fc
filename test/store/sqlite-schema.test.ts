/** Files of older schemas, brought up to date by their first opening. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test } from 'node:test'
import { freshCursor } from '../../engine/store/rows.ts'
import { migrations } from '../../engine/store/sqlite/schema.ts'
import { createMailbox } from './contract/mailbox.ts'
import { accountRecord, userRecord } from './contract/records.ts'
import { sqliteFiles } from './sqlite-files.ts'

const { newPath, withStore, remove } = sqliteFiles()
after(remove)

describe('a file', () => {
  test('of an older schema keeps what its contacts have been counted for', async () => {
    const path = newPath()
    const old = new DatabaseSync(path)
    for (const step of migrations.slice(0, 2)) old.exec(String(step))
    const mark = old.prepare('INSERT INTO contact_marks (account_id, contact_id, key) VALUES (?, ?, ?)')
    for (const contact of ['c1', 'c2']) mark.run('a', contact, 'm1:r')
    mark.run('a', 'c1', 'm1:d')
    old.exec('PRAGMA user_version = 2')
    old.close()
    await withStore(path, (store) => store.ping())
    const database = new DatabaseSync(path)
    const marks = database.prepare('SELECT account_id, key FROM contact_marks ORDER BY key').all()
    assert.deepEqual(
      marks.map((row) => [row['account_id'], row['key']]),
      [
        ['a', 'm1:d'],
        ['a', 'm1:r'],
      ],
    )
    database.close()
  })

  test('of an older schema knows every placement as the first use of its UID', async () => {
    const path = newPath()
    const old = new DatabaseSync(path)
    for (const step of migrations.slice(0, 7)) old.exec(String(step))
    old
      .prepare('INSERT INTO placements VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run('inbox', '1', 5, 'm1', JSON.stringify(['\\Seen']), '9', 2)
    old.exec('PRAGMA user_version = 7')
    old.close()
    await withStore(path, async (store) => {
      const known = { uid: 5, messageId: 'm1', flags: ['\\Seen'], modseq: '9', rev: 2 }
      assert.deepEqual(await store.messages.knownUids('inbox', '1', 1, 9), [known])
    })
  })

  test('of an older schema knows hosts, developers and addresses of its accounts', async () => {
    const path = newPath()
    const user = userRecord('d'.repeat(24))
    const account = accountRecord(user, { email: 'Jürgen@Example.com', server: 'imap.old.example' })
    await withStore(path, (store) => store.users.createWithAccount(user, account))
    const old = new DatabaseSync(path)
    const indexes = ['accounts_of_server', 'accounts_of_developer', 'accounts_by_condition']
    const columns = ['developer_id', 'server', 'email_key', 'condition', 'since']
    for (const index of indexes) old.exec(`DROP INDEX ${index}`)
    for (const column of columns) old.exec(`ALTER TABLE accounts DROP COLUMN ${column}`)
    old.exec('DROP TABLE settings')
    old.exec('DROP TABLE audit; PRAGMA user_version = 9')
    old.close()
    await withStore(path, async (store) => {
      const condition = { is: 'down', since: account.createdAt }
      const place = { id: account.id, server: 'imap.old.example', developerId: user.developerId, condition }
      for (const filter of [{ text: 'JÜRGEN@' }, { server: 'imap.old.example' }, { developerId: user.developerId }])
        assert.deepEqual(await store.accounts.places(filter), [place])
    })
  })

  test('of an older schema knows which messages are flagged \\Deleted', async () => {
    const path = newPath()
    const flagged = await withStore(path, async (store) => {
      const mailbox = await createMailbox(store)
      const flags = ['\\Deleted', '\\Seen', '$Deleted"'] as const
      const added = flags.map((flag, index) => mailbox.added('INBOX', index + 1, {}, { flags: [flag] }))
      await mailbox.apply('INBOX', { added })
      return added[0]?.id
    })
    const database = new DatabaseSync(path)
    assert.equal(database.prepare("DELETE FROM message_keys WHERE key = 'd'").run().changes, 1)
    database.exec('DROP TABLE audit; PRAGMA user_version = 12')
    await withStore(path, (store) => store.ping())
    const keyed = database.prepare("SELECT message_id FROM message_keys WHERE key = 'd'").all()
    assert.deepEqual(
      keyed.map((row) => row['message_id']),
      [flagged],
    )
    database.close()
  })

  test('of an older schema knows the counts of its folders, and which are complete', async () => {
    const path = newPath()
    const folders = await withStore(path, async (store) => {
      const mailbox = await createMailbox(store)
      const added = ['\\Seen', '\\Flagged'].map((flag, index) =>
        mailbox.added('INBOX', index + 1, {}, { flags: [flag] }),
      )
      await mailbox.apply('INBOX', { added })
      await mailbox.apply('Trash', { cursorAfter: { ...freshCursor('1'), uidNext: 9, backfillBelow: 9 } })
      return store.folders.list(mailbox.account.id)
    })
    assert.deepEqual(folders[0]?.counts, { messages: 2, unseen: 1 })
    const old = new DatabaseSync(path)
    old.exec(`UPDATE folders SET doc = json_remove(doc, '$.counts', '$.completeAt')`)
    old.exec('PRAGMA user_version = 17')
    old.close()
    await withStore(path, async (store) => {
      const [inbox, archive, trash] = await store.folders.list(folders[0]?.accountId ?? '')
      assert.deepEqual(inbox, { ...folders[0], completeAt: inbox?.cursor?.comparedAt })
      assert.deepEqual([archive, trash], folders.slice(1))
    })
  })
})
