/** Mail to thousands of people in a file of before its keys were bounded. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createSqliteStore } from '../../engine/store/sqlite/index.ts'
import { noAddresses } from '../support/records.ts'
import { createMailbox } from './contract/mailbox.ts'
import { messageFacts } from './contract/records.ts'

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
  database.exec('PRAGMA user_version = 14')
  const second = await createSqliteStore({ path, sync: 'off' })
  assert.deepEqual(keys(), kept)
  await second.close()
  database.close()
})
