/** Everything in the file as plain records, and back; see ../copy.ts. */
import { realpathSync } from 'node:fs'
import { AppError } from '../../errors.ts'
import { newId } from '../ids.ts'
import type { MessageRecord, StoredContact } from '../records.ts'
import type { CountedContact, CountedMessage, ExportedPage, NonceRow } from '../transfer.ts'
import type { StoreTransfer, TransferName, TransferRecords } from '../transfer.ts'
import { openDatabase, type Database } from './database.ts'
import { createUnit } from './messages.ts'
import { factsLike, migrate, readFact, refuseUnfinished, saveFact } from './schema.ts'
import type { Statements } from './statements.ts'
import { tables, type Table } from './tables.ts'

interface Side<R> {
  export(sql: Statements, after: string | null, limit: number): ExportedPage<R>
  write(sql: Statements, record: R): void
}

/** A table with row ids, in the order of insertion. */
function walked<R>(table: string, read: (sql: Statements, doc: unknown) => R): Side<R>['export'] {
  const select = `SELECT rowid, doc FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ?+0`
  return (sql, after, limit) => {
    const rows = sql.tuples(select, Number(after ?? 0), limit)
    const [at] = rows.length === limit ? (rows.at(-1) ?? []) : []
    const records = rows.map(([, doc]) => read(sql, JSON.parse(String(doc))))
    return { records, next: at === undefined ? null : String(at) }
  }
}

function whole<R>(table: Table<R>): Side<R> {
  return { export: walked(table.name, (_, record) => record as R), write: table.put }
}

function putMark(sql: Statements, accountId: string, key: string): void {
  sql.run('INSERT OR REPLACE INTO contact_marks (account_id, key) VALUES (?, ?)', accountId, key)
}

/** Contacts and the marks of messages are stored in one transaction, so that no mark lacks its message. */
const contacts: Side<CountedContact> = {
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
const nonces: Side<NonceRow> = {
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

type Sides = { readonly [N in TransferName]: Side<TransferRecords[N]> }

const plain = Object.fromEntries(Object.values(tables).map((table) => [table.name, whole(table as Table<unknown>)]))
const sides = { ...plain, messages: { export: walked('messages', readMessage), write: writeMessage }, contacts, nonces }

function sideOf<N extends TransferName>(name: N): Sides[N] {
  return (sides as unknown as Sides)[name]
}

function createTransfer(db: Database, path: string): StoreTransfer {
  return {
    name: realpathSync(path),
    identity: () =>
      db.write(() => {
        const id = readFact(db, 'identity') ?? newId()
        saveFact(db, 'identity', id)
        return id
      }),
    served: () => db.read(() => readFact(db, 'served')),
    count: (collection) => db.read(() => db.number(...counting(collection))),
    export: (collection, after, limit) => db.read(() => sideOf(collection).export(db, after, limit)),
    import: (collection, records) =>
      db.write(() => {
        for (const record of records) sideOf(collection).write(db, record)
      }),
    progress: () => db.read(() => readFact(db, 'copy')),
    saveProgress: (note) => db.write(() => saveFact(db, 'copy', note)),
    close: () => {
      db.close()
      return Promise.resolve()
    },
  }
}

function counting(collection: TransferName): [sql: string, ...values: number[]] {
  const all = `SELECT count(*) FROM ${collection}`
  return collection === 'nonces' ? [`${all} WHERE expires_at > ?`, Date.now()] : [all]
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
    db.close()
    throw error
  }
  return createTransfer(db, path)
}

async function checkWhole(db: Database, path: string): Promise<void> {
  await refuseUnfinished(db, path)
  const removals = await db.read(() => factsLike(db, 'removal '))
  if (removals.length === 0) return
  throw new AppError('conflict', `${path}: a removal was cut short: start the service on it once, then copy`)
}
