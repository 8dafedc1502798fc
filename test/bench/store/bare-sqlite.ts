/**
 * node:sqlite by hand, on the adapter's schema: the floor of the embedded store. Columns, keys and ids are worked out
 * before the clock runs; what is left is what the same promises need:
 * - a batch is one BEGIN IMMEDIATE … COMMIT: compare epoch and cursor; each message, its place and its keys unless they
 *   are there; changes with the account's next numbers unless they are there; outbox rows; for flags read, change and
 *   write the row and its place; a mark for each counted delta, contacts read and written; the cursor;
 * - a claim reads the waiting rows, and in one transaction reads each again (it may have been skipped meanwhile) and
 *   writes it;
 * - documents are JSON text in SQLite: making and reading that text belongs to the driver's work, as BSON does
 *   elsewhere.
 * Statements are prepared once. Answers are promises, as everywhere in the service.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { SyncBatch } from '../../../engine/store/port.ts'
import type { FolderRecord, MessageRecord, OutboxRecord, StoredContact } from '../../../engine/store/records.ts'
import { withDelta } from '../../../engine/store/contacts.ts'
import { foldCase, goneAt, messageKeys, newMessage, sameCursor } from '../../../engine/store/rows.ts'
import { deliveredAttempt, type Bytes, type Contestant, type ListPage } from './contestant.ts'
import { byContact } from './mail.ts'

const sql = {
  epoch: 'SELECT epoch FROM accounts WHERE id = ?',
  folder: 'SELECT doc FROM folders WHERE id = ?',
  saveFolder: 'UPDATE folders SET doc = ? WHERE id = ?',
  addMessage: `INSERT INTO messages (id, account_id, live, sent_at, gone_at, attachments, email_message_id,
    hosted_message_id, subject_key, doc) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
  message: 'SELECT doc FROM messages WHERE id = ?',
  saveMessage: 'UPDATE messages SET live = 1, gone_at = NULL, doc = ? WHERE id = ?',
  addPlace: `INSERT INTO placements (folder_id, uid_validity, uid, message_id, flags, modseq, rev)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  savePlace:
    'UPDATE placements SET flags = ?, modseq = ?, rev = ? WHERE folder_id = ? AND uid_validity = ? AND uid = ?',
  addKeys: `INSERT OR IGNORE INTO message_keys (account_id, key, sent_at, message_id)
    SELECT ?1, value, ?2, ?3 FROM json_each(?4)`,
  lastSeq: 'SELECT max(seq) FROM changes WHERE account_id = ?',
  addChange: `INSERT INTO changes (id, account_id, seq, message_id, at, doc) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING`,
  addOutbox: `INSERT INTO outbox (id, channel_id, webhook_id, developer_id, user_id, account_id, message_id, kind, state, lane,
    created_at, seq, finished_at, last_status, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)
    ON CONFLICT (id) DO NOTHING`,
  mark: 'INSERT INTO contact_marks (account_id, key) VALUES (?, ?) ON CONFLICT DO NOTHING',
  contact: 'SELECT doc FROM contacts WHERE account_id = ? AND id = ?',
  saveContact: `INSERT INTO contacts (account_id, id, user_id, total_count, direct_count, indirect_count, search_key, doc)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account_id, id) DO UPDATE SET total_count = excluded.total_count,
    direct_count = excluded.direct_count, indirect_count = excluded.indirect_count, search_key = excluded.search_key,
    doc = excluded.doc`,
  all: `SELECT doc FROM messages WHERE account_id = ? AND live = 1 ORDER BY sent_at DESC, id DESC LIMIT ?+0 OFFSET ?`,
  ofFolder: `SELECT m.doc FROM (SELECT sent_at, message_id FROM message_keys WHERE account_id = ? AND key = ?
    ORDER BY sent_at DESC, message_id DESC LIMIT ?+0 OFFSET ?) hit CROSS JOIN messages m ON m.id = hit.message_id`,
  pending: `SELECT doc FROM outbox WHERE channel_id = ? AND state = 'pending' ORDER BY lane, created_at, seq, id LIMIT ?+0`,
  outbox: 'SELECT doc FROM outbox WHERE id = ?',
  saveOutbox: 'UPDATE outbox SET state = ?, finished_at = ?, last_status = ?, doc = ? WHERE id = ?',
} as const

type Prepared = { readonly [Name in keyof typeof sql]: StatementSync }

function prepareAll(database: DatabaseSync): Prepared {
  const entries = Object.entries(sql).map(([name, text]) => {
    const statement = database.prepare(text)
    statement.setReturnArrays(true)
    return [name, statement] as const
  })
  return Object.fromEntries(entries) as unknown as Prepared
}

function docOf(row: unknown): unknown {
  const text = (row as readonly [string] | undefined)?.[0]
  return text === undefined ? null : JSON.parse(text)
}

/** Rows with all columns worked out. */
function rowsOf(batch: SyncBatch) {
  const now = Date.now()
  const messages = batch.added.map((added) => {
    const record = newMessage(batch.accountId, added, now)
    return {
      record,
      place: added.placement,
      subjectKey: foldCase(record.subject),
      gone: goneAt(record),
      keys: messageKeys(record),
    }
  })
  const contacts = [...byContact(batch.contacts)].map(([id, deltas]) => ({
    id,
    deltas,
    searchKey: foldCase(`${deltas[0]?.name ?? ''}\n${deltas[0]?.email ?? ''}`),
  }))
  return { messages, contacts }
}

type Rows = ReturnType<typeof rowsOf>

function compare(on: Prepared, batch: SyncBatch): FolderRecord {
  const epoch = (on.epoch.get(batch.accountId) as unknown as readonly [number] | undefined)?.[0]
  const folder = docOf(on.folder.get(batch.folderId)) as FolderRecord | null
  if (epoch !== batch.epoch || folder === null || !sameCursor(folder.cursor, batch.cursorBefore))
    throw new Error('lease')
  return folder
}

function addMessages(on: Prepared, { messages }: Rows): void {
  for (const { record, place, subjectKey, gone, keys } of messages) {
    const { id, accountId, sentAt, attachments, emailMessageId, hostedMessageId } = record
    const parts = attachments.length
    const doc = JSON.stringify(record)
    on.addMessage.run(id, accountId, sentAt, gone, parts, emailMessageId, hostedMessageId, subjectKey, doc)
    const { folderId, uidValidity, uid, flags, modseq, rev } = place
    on.addPlace.run(folderId, uidValidity, uid, id, JSON.stringify(flags), modseq, rev)
    on.addKeys.run(accountId, sentAt, id, JSON.stringify(keys))
  }
}

/** Answers the numbers given, by change. */
function addChanges(on: Prepared, { accountId, changes }: SyncBatch): Map<string, number> {
  const numbers = new Map<string, number>()
  if (changes.length === 0) return numbers
  let seq = (on.lastSeq.get(accountId) as unknown as readonly [number | null])[0] ?? 0
  for (const draft of changes) {
    const change = { ...draft, seq: seq + 1 }
    if (
      on.addChange.run(change.id, accountId, change.seq, change.messageId, change.at, JSON.stringify(change))
        .changes === 0
    )
      continue
    seq += 1
    numbers.set(change.id, seq)
  }
  return numbers
}

function addOutbox(on: Prepared, batch: SyncBatch, numbers: ReadonlyMap<string, number>): void {
  for (const draft of batch.outbox) {
    const row = { ...draft, seq: numbers.get(draft.changeId ?? '') ?? draft.seq }
    const { id, channelId, webhookId, developerId, userId, accountId, messageId, kind, state, lane, createdAt, seq } =
      row
    const doc = JSON.stringify(row)
    const owner = [id, channelId, webhookId ?? '', developerId, userId ?? '', accountId ?? '', messageId ?? ''] as const
    on.addOutbox.run(...owner, kind, state, lane, createdAt, seq, doc)
  }
}

function setFlags(on: Prepared, batch: SyncBatch): void {
  const { uidValidity } = batch.cursorAfter
  for (const { messageId, uid, flags, modseq, rev } of batch.flagUpdates) {
    const record = docOf(on.message.get(messageId)) as MessageRecord | null
    if (record === null) continue
    const placements = record.placements.map((there) => (there.uid === uid ? { ...there, flags, modseq, rev } : there))
    on.saveMessage.run(JSON.stringify({ ...record, placements }), messageId)
    on.savePlace.run(JSON.stringify(flags), modseq, rev, batch.folderId, uidValidity, uid)
  }
}

function countContacts(on: Prepared, accountId: string, { contacts }: Rows): void {
  for (const { id, deltas, searchKey } of contacts) {
    const fresh = deltas.filter(({ key }) => on.mark.run(accountId, key).changes === 1)
    const contact = fresh.reduce<StoredContact | null>(
      (stored, delta) => withDelta(accountId, stored, delta),
      docOf(on.contact.get(accountId, id)) as StoredContact | null,
    )
    if (contact === null || fresh.length === 0) continue
    const { userId, totalCount, directCount, indirectCount } = contact
    on.saveContact.run(
      accountId,
      id,
      userId,
      totalCount,
      directCount,
      indirectCount,
      searchKey,
      JSON.stringify(contact),
    )
  }
}

function apply(database: DatabaseSync, on: Prepared, batch: SyncBatch, rows: Rows): void {
  database.exec('BEGIN IMMEDIATE')
  const folder = compare(on, batch)
  addMessages(on, rows)
  addOutbox(on, batch, addChanges(on, batch))
  setFlags(on, batch)
  countContacts(on, batch.accountId, rows)
  on.saveFolder.run(JSON.stringify({ ...folder, cursor: batch.cursorAfter }), folder.id)
  database.exec('COMMIT')
}

function claim(database: DatabaseSync, on: Prepared, channelId: string, limit: number): number {
  const rows = on.pending.all(channelId, limit).map((row) => docOf(row) as OutboxRecord | null)
  const at = Date.now()
  database.exec('BEGIN IMMEDIATE')
  for (const id of rows.flatMap((row) => row?.id ?? [])) {
    const row = docOf(on.outbox.get(id)) as OutboxRecord | null
    if (row === null) continue
    const attempts = [...row.attempts, deliveredAttempt(at)]
    const done = { ...row, state: 'delivered', attempts, attemptCount: row.attemptCount + 1, dueAt: at, finishedAt: at }
    on.saveOutbox.run('delivered', at, 200, JSON.stringify(done), id)
  }
  database.exec('COMMIT')
  return rows.length
}

function page(on: Prepared, { accountId, folderId, limit, offset }: ListPage): number {
  const rows =
    folderId === null
      ? on.all.all(accountId, limit, offset)
      : on.ofFolder.all(accountId, `f:${folderId}`, limit, offset)
  return rows.map((row) => docOf(row) as MessageRecord | null).length
}

/** The settings of the adapter's own connection. */
export function openBare(path: string, sync: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 2000, enableForeignKeyConstraints: false })
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${sync}; PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -8000; PRAGMA journal_size_limit = 67108864`)
  return database
}

export function fileBytes(database: DatabaseSync): Bytes {
  const number = (sql: string): number => Number(Object.values(database.prepare(sql).get() ?? {})[0])
  const indexes = number(
    "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE type = 'index')",
  )
  return { data: number('PRAGMA page_count') * number('PRAGMA page_size') - indexes, indexes }
}

export function bareSqlite(path: string, sync: string): Contestant {
  const database = openBare(path, sync)
  const on = prepareAll(database)
  return {
    prepare: (batch) => {
      const rows = rowsOf(batch)
      return () => Promise.try(() => apply(database, on, batch, rows))
    },
    page: (wanted) => Promise.try(() => page(on, wanted)),
    message: (accountId, id) =>
      Promise.try(() => (docOf(on.message.get(id)) as MessageRecord | null)?.accountId === accountId),
    claim: (channelId, limit) => Promise.try(() => claim(database, on, channelId, limit)),
    bytes: () => Promise.try(() => fileBytes(database)),
    close: () => Promise.try(() => database.close()),
  }
}
