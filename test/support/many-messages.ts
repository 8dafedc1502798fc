/** A large mailbox, put into a store as copies of one of its messages. */
import { DatabaseSync } from 'node:sqlite'
import { MongoClient } from 'mongodb'
import { openCollections } from '../../engine/store/mongo/documents.ts'

/**
 * In the folder of that message; `from` also one of `s0@many.example` to `s999@many.example`. The older half is one
 * thread; each newer message is a thread of its own.
 */
export function copyMessages(path: string, messageId: string, count: number, prefix = ''): void {
  const database = new DatabaseSync(path)
  database.exec('PRAGMA synchronous = off; BEGIN IMMEDIATE')
  database.exec(`CREATE TEMP TABLE copies AS
    WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    SELECT i, '${prefix}' || printf('%031x', i) AS id FROM n`)
  const insert = database.prepare(`INSERT INTO messages (id, account_id, live, sent_at, attachments, email_message_id,
      hosted_message_id, subject_key, doc)
    SELECT c.id, account_id, live, sent_at + c.i, attachments, c.id, hosted_message_id, subject_key || ' ' || c.i,
      json_set(doc, '$.id', c.id, '$.sentAt', sent_at + c.i, '$.threadId', 't' || max(c.i, ${count / 2}))
    FROM copies c, messages m WHERE m.id = ?`)
  insert.run(messageId)
  const keys = database.prepare(`INSERT OR IGNORE INTO message_keys (account_id, key, sent_at, message_id)
    SELECT k.account_id, CASE WHEN substr(k.key, 1, 2) = 't:' THEN 't:t' || max(c.i, ${count / 2}) ELSE k.key END, k.sent_at + c.i, c.id
      FROM message_keys k, copies c WHERE k.message_id = ?1
    UNION ALL
    SELECT m.account_id, 'from:s' || (c.i % 1000) || '@many.example', m.sent_at + c.i, c.id
      FROM messages m, copies c WHERE m.id = ?1`)
  keys.run(messageId)
  const places = database.prepare(`INSERT INTO placements (folder_id, uid_validity, uid, message_id, flags, modseq, rev)
    SELECT folder_id, uid_validity, uid + c.i, c.id, flags, modseq, rev FROM copies c, placements WHERE message_id = ?`)
  places.run(messageId)
  database.exec('COMMIT')
  database.close()
}

/** The same in a database. */
export async function copyMessagesOnMongo(uri: string, messageId: string, count: number): Promise<void> {
  await using client = await MongoClient.connect(uri)
  const { messages } = openCollections(client.db())
  const doc = await messages.findOne({ _id: messageId })
  if (doc === null) throw new Error(`no message ${messageId}`)
  const copyOf = (i: number): typeof doc => {
    const id = i.toString(16).padStart(31, '0')
    const threadId = `t${Math.max(i, count / 2)}`
    const keys = doc.keys.map((key) => (key.startsWith('t:') ? `t:${threadId}` : key))
    return {
      ...doc,
      ...{ _id: id, emailMessageId: id, threadId, sentAt: doc.sentAt + i },
      ...{ subjectKey: `${doc.subjectKey} ${i}`, keys: [...keys, `from:s${i % 1000}@many.example`] },
      placements: doc.placements.map((place) => ({ ...place, uid: place.uid + i })),
    }
  }
  const atOnce = 2000
  const starts = Array.from({ length: Math.ceil(count / atOnce) }, (_, n) => n * atOnce + 1)[Symbol.iterator]()
  const insert = async (): Promise<void> => {
    for (const from of starts) {
      const some = Array.from({ length: Math.min(atOnce, count - from + 1) }, (_, n) => copyOf(from + n))
      await messages.insertMany(some, { ordered: false })
    }
  }
  await Promise.all([insert(), insert()])
}

/** Copies of one row that differ in their id. */
export function copyRows(
  path: string,
  table: 'calls' | 'contacts' | 'outbox' | 'users',
  id: string,
  count: number,
): void {
  const database = new DatabaseSync(path)
  const columns = database.prepare('SELECT name FROM pragma_table_info(?)').all(table)
  const names = columns.map(({ name }) => String(name)).filter((name) => name !== 'id')
  const insert = database.prepare(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
    INSERT INTO ${table} (id, ${names.join()}) SELECT printf('%024x', n.i), ${names.join()} FROM n, ${table} WHERE id = ?`)
  insert.run(count, id)
  database.close()
}
