/** Everything in the file as plain records, and back; see ../copy.ts. */
import { realpathSync } from 'node:fs'
import { AppError } from '../../errors.ts'
import { refuseUnfinished } from '../facts.ts'
import type { MessageRecord, StoredContact } from '../records.ts'
import { createTransfer, type CountedContact, type CountedMessage, type ExportedPage } from '../transfer.ts'
import type { NonceRow, Side, StoreTransfer, TransferName, TransferRecords } from '../transfer.ts'
import { openDatabase, type Database } from './database.ts'
import { createUnit } from './messages.ts'
import { factsLike, migrate, openFacts } from './schema.ts'
import type { Statements } from './statements.ts'
import { tables, type Table } from './tables.ts'

/** The synchronous steps of a side. */
interface Steps<R> {
  export(sql: Statements, after: string | null, limit: number): ExportedPage<R>
  write(sql: Statements, record: R): void
}

/** A table with row ids, in the order of insertion. */
function walked<R>(table: string, read: (sql: Statements, doc: unknown) => R): Steps<R>['export'] {
  const select = `SELECT rowid, doc FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ?+0`
  return (sql, after, limit) => {
    const rows = sql.tuples(select, Number(after ?? 0), limit)
    const [at] = rows.length === limit ? (rows.at(-1) ?? []) : []
    const records = rows.map(([, doc]) => read(sql, JSON.parse(String(doc))))
    return { records, next: at === undefined ? null : String(at) }
  }
}

function whole<R>(table: Table<R>): Steps<R> {
  return { export: walked(table.name, (_, record) => record as R), write: table.put }
}

function putMark(sql: Statements, accountId: string, key: string): void {
  sql.run('INSERT OR REPLACE INTO contact_marks (account_id, key) VALUES (?, ?)', accountId, key)
}

/** Contacts and the marks of messages are stored in one transaction, so that no mark lacks its message. */
const contacts: Steps<CountedContact> = {
  export: walked('contacts', (_, contact) => ({ contact: contact as StoredContact, counted: [] })),
  write: (sql, { contact, counted }) => {
    tables.contacts.put(sql, contact)
    for (const key of counted) putMark(sql, contact.accountId, key)
  },
}

/** The marks of a message begin with its id and a colon; the next character is the semicolon. */
const marksOf = 'SELECT key FROM contact_marks WHERE account_id = ? AND key > ? AND key < ?'

function readMessage(sql: Statements, doc: unknown): CountedMessage {
  const message = doc as MessageRecord
  const { id, accountId } = message
  const marks = sql.texts(marksOf, accountId, `${id}:`, `${id};`)
  return { message, counted: marks.map((key) => key.slice(id.length + 1)) }
}

function writeMessage(sql: Statements, { message, counted }: CountedMessage): void {
  const unit = createUnit(sql)
  unit.put(message)
  unit.flush()
  for (const kind of counted) putMark(sql, message.accountId, `${message.id}:${kind}`)
}

/** Nonces live for minutes, so one page has all. A valid nonce must not be usable in the other store. */
const nonces: Steps<NonceRow> = {
  export: (sql) => {
    const select = 'SELECT api_key, nonce, timestamp, expires_at FROM nonces WHERE expires_at > ?'
    const records = sql.tuples(select, Date.now()).map(([apiKey, nonce, timestamp, expiresAt]) => ({
      ...{ apiKey: String(apiKey), nonce: String(nonce) },
      ...{ timestamp: Number(timestamp), expiresAt: Number(expiresAt) },
    }))
    return { records, next: null }
  },
  write: (sql, { apiKey, nonce, timestamp, expiresAt }) => {
    const values = [apiKey, nonce, timestamp, expiresAt]
    sql.run('INSERT OR REPLACE INTO nonces (api_key, nonce, timestamp, expires_at) VALUES (?, ?, ?, ?)', ...values)
  },
}

const plain = Object.fromEntries(Object.values(tables).map((table) => [table.name, whole(table as Table<unknown>)]))
const steps = { ...plain, messages: { export: walked('messages', readMessage), write: writeMessage }, contacts, nonces }

function sideOf<N extends TransferName>(db: Database, name: N): Side<TransferRecords[N]> {
  const { export: exported, write } = (steps as unknown as Record<N, Steps<TransferRecords[N]>>)[name]
  const all = `SELECT count(*) FROM ${name}`
  return {
    count: () =>
      db.read(() => (name === 'nonces' ? db.number(`${all} WHERE expires_at > ?`, Date.now()) : db.number(all))),
    export: (after, limit) => db.read(() => exported(db, after, limit)),
    import: (records) => db.write(() => records.forEach((record) => write(db, record))),
  }
}

/** Creates a missing target. AppError `bad_request` for a missing source, `conflict` for one that is not whole. */
export async function openSqliteTransfer(path: string, role: 'source' | 'target'): Promise<StoreTransfer> {
  const db = openDatabase(path, 'normal', 2000)
  try {
    const version = await db.read(() => db.number('PRAGMA user_version'))
    if (role === 'source' && version === 0) throw new AppError('bad_request', `${path}: no such store`)
    await migrate(db, path)
    if (role === 'source') await checkWhole(db, path)
  } catch (error) {
    await db.close()
    throw error
  }
  return createTransfer({
    name: realpathSync(path),
    facts: openFacts(db),
    side: (collection) => sideOf(db, collection),
    close: () => db.close(),
  })
}

async function checkWhole(db: Database, path: string): Promise<void> {
  await refuseUnfinished(openFacts(db), path)
  const removals = await db.read(() => factsLike(db, 'removal '))
  if (removals.length === 0) return
  throw new AppError('conflict', `${path}: a removal was cut short: start the service on it once, then copy`)
}
