/** What later schemas store less of, in a file of an earlier one. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { oldest } from '../../engine/store/sqlite/schema.ts'
import { noAddresses } from '../support/records.ts'
import { createMailbox } from './contract/mailbox.ts'
import { epochStart, messageFacts } from './contract/records.ts'

test('a file of an older schema keeps no more keys of a message than its writes do', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-keys-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'store.sqlite')
  const to = Array.from({ length: 2500 }, (_, n) => ({ name: '', email: `p${n}@example.com` }))
  const first = await createSqliteStore({ path, sync: 'off' })
  const mailbox = await createMailbox(first)
  await mailbox.fill('INBOX', [messageFacts({ addresses: { ...noAddresses, to } })])
  await first.close()

  const database = new DatabaseSync(path)
  const keys = (): string[] =>
    database
      .prepare('SELECT key FROM message_keys')
      .all()
      .map(({ key }) => String(key))
  const kept = keys()
  const surplus = database.prepare(`INSERT INTO message_keys (account_id, key, sent_at, message_id)
    SELECT account_id, 'to:p2400@example.com', sent_at, id FROM messages`)
  assert.equal(surplus.run().changes, 1)
  database.exec("DELETE FROM message_keys WHERE key < ','")
  assert.ok(keys().length < kept.length)
  database.exec('DROP TABLE audit; PRAGMA user_version = 14')
  const second = await createSqliteStore({ path, sync: 'off' })
  assert.deepEqual(keys(), kept)
  await second.close()
  database.close()
})

test('a file of an older schema has the path of a call once', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'mr-calls-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'store.sqlite')
  const [developerId, called] = ['d'.repeat(24), `/lite/users/${'x'.repeat(2000)}`]
  const call = { developerId, userId: null, at: epochStart, method: 'GET', status: 200, durationMs: 1 }
  const old = new DatabaseSync(path)
  old.exec(oldest.script)
  old
    .prepare('INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
    .run('a', developerId, '', epochStart, 'GET', called, 200, JSON.stringify({ ...call, id: 'a', path: called }))
  old.exec(`PRAGMA user_version = ${oldest.version}`)
  old.close()
  const store = await createSqliteStore({ path, sync: 'off' })
  await store.calls.append([
    { ...call, id: 'b', path: called },
    { ...call, id: 'c', path: '/lite/users' },
  ])
  const found = await store.calls.list({ developerId, path: called }, { limit: 9, offset: 0 })
  assert.deepEqual(
    found.map(({ id }) => id),
    ['b', 'a'],
  )
  await store.close()
  const database = new DatabaseSync(path)
  const stored = database
    .prepare('PRAGMA table_xinfo(calls)')
    .all()
    .filter((column) => column['hidden'] === 0)
  const bytes = stored.map((column) => `octet_length(${String(column['name'])})`).join('+')
  for (const row of database.prepare(`SELECT ${bytes} AS bytes FROM calls WHERE id <> 'c'`).all())
    assert.ok(Number(row['bytes']) < 1.2 * called.length, `${String(row['bytes'])} bytes`)
  database.close()
})
