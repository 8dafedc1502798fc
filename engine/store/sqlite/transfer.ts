/** Everything in the file as plain records, and back; see ../transfer.ts. */
import type {
  CountedContact,
  ExportedPage,
  NonceRow,
  StoreTransfer,
  TransferName,
  TransferRecords,
} from '../transfer.ts'
import type { AccountRecord, ContactRecord, UserRecord } from '../records.ts'
import { folderRank, foldCase } from '../rows.ts'
import { indexAddresses } from './account-rows.ts'
import { openDatabase, type Database } from './database.ts'
import { createUnit } from './message-rows.ts'
import { migrate } from './migrations.ts'
import { insertOutbox, saveOutbox } from './outbox-rows.ts'
import type { Row, Statements, Value } from './statements.ts'

/** One collection's way out and in. */
interface Side<R> {
  export(sql: Statements, after: string | null, limit: number): { readonly records: R[]; readonly next: string | null }
  write(sql: Statements, record: R): void
}

/** A table with row ids, walked in the order of insertion. */
function walked<R>(table: string, read: (sql: Statements, row: Row) => R): Side<R>['export'] {
  const select = `SELECT rowid AS at, doc FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ?`
  return (sql, after, limit) => {
    const rows = sql.rows(select, Number(after ?? 0), limit)
    const last = rows.length === limit ? rows.at(-1) : undefined
    return { records: rows.map((row) => read(sql, row)), next: last ? String(last['at']) : null }
  }
}

/** One whose `doc` is the whole record. */
function whole<R>(table: string, write: (sql: Statements, record: R) => void): Side<R> {
  return { export: walked(table, (_, row) => JSON.parse(String(row['doc'])) as R), write }
}

/** Writes one row over that with the same key. */
function put(sql: Statements, table: string, columns: Readonly<Record<string, Value>>): void {
  const names = Object.keys(columns)
  const marks = names.map(() => '?').join()
  sql.run(`INSERT OR REPLACE INTO ${table} (${names.join()}) VALUES (${marks})`, ...Object.values(columns))
}

function writeAccount(sql: Statements, account: AccountRecord): void {
  const { id, userId, label, status, epoch, createdAt } = account
  const doc = JSON.stringify(account)
  put(sql, 'accounts', { id, user_id: userId, label, status, epoch, created_at: createdAt, doc })
  const user = sql.doc('SELECT doc FROM users WHERE id = ?', userId) as UserRecord | null
  const owner = user ?? account
  const { developerId } = owner
  indexAddresses(sql, { id: userId, developerId, createdAt: owner.createdAt }, id, [account.email])
}

const marksOf = `SELECT m.key AS key FROM accounts a CROSS JOIN contact_marks m ON m.account_id = a.id AND m.contact_id = ?2
  WHERE a.user_id = ?1`

function readContact(sql: Statements, row: Row): CountedContact {
  const contact = JSON.parse(String(row['doc'])) as ContactRecord
  return { contact, counted: sql.rows(marksOf, contact.userId, contact.id).map((mark) => String(mark['key'])) }
}

/** A key begins with its message, which says whose account it is; of one that is gone nothing can be counted again. */
function writeContact(sql: Statements, { contact, counted }: CountedContact): void {
  const { id, userId, totalCount, directCount, indirectCount } = contact
  put(sql, 'contacts', {
    id,
    user_id: userId,
    total_count: totalCount,
    direct_count: directCount,
    indirect_count: indirectCount,
    search_key: foldCase(`${contact.name}\n${contact.email}`),
    doc: JSON.stringify(contact),
  })
  for (const key of counted) {
    const owner = sql.row('SELECT account_id FROM messages WHERE id = ?', key.slice(0, key.lastIndexOf(':')))
    if (!owner) continue
    put(sql, 'contact_marks', { account_id: String(owner['account_id']), contact_id: id, key })
  }
}

const people = {
  developers: whole<TransferRecords['developers']>('developers', (sql, record) =>
    put(sql, 'developers', { id: record.id, api_key: record.apiKey, doc: JSON.stringify(record) }),
  ),
  users: whole<UserRecord>('users', (sql, user) => {
    const { id, developerId, createdAt } = user
    put(sql, 'users', { id, developer_id: developerId, created_at: createdAt, doc: JSON.stringify(user) })
    indexAddresses(sql, user, '', user.emailAddresses)
  }),
  accounts: whole<AccountRecord>('accounts', writeAccount),
  contacts: { export: walked('contacts', readContact), write: writeContact },
  tokens: whole<TransferRecords['tokens']>('tokens', (sql, record) => {
    const { token, developerId, userId, accountId, version, createdAt } = record
    const owners = { developer_id: developerId, user_id: userId ?? '', account_id: accountId ?? '' }
    put(sql, 'tokens', { token, ...owners, version, created_at: createdAt, doc: JSON.stringify(record) })
  }),
  providers: whole<TransferRecords['providers']>('providers', (sql, record) => {
    const { developerId, consumerKey, createdAt } = record
    const key = { developer_id: developerId, consumer_key: consumerKey }
    put(sql, 'providers', { ...key, created_at: createdAt, doc: JSON.stringify(record) })
  }),
}

const mail = {
  folders: whole<TransferRecords['folders']>('folders', (sql, folder) => {
    const { id, accountId, path } = folder
    put(sql, 'folders', { id, account_id: accountId, rank: folderRank(path), path, doc: JSON.stringify(folder) })
  }),
  messages: whole<TransferRecords['messages']>('messages', (sql, message) => {
    const unit = createUnit(sql)
    unit.put(message)
    unit.flush()
  }),
  changes: whole<TransferRecords['changes']>('changes', (sql, change) => {
    const { id, accountId, seq, messageId, at } = change
    put(sql, 'changes', { id, account_id: accountId, seq, message_id: messageId, at, doc: JSON.stringify(change) })
  }),
}

const callbacks = {
  webhooks: whole<TransferRecords['webhooks']>('webhooks', (sql, webhook) => {
    const { id, developerId, userId, createdAt } = webhook
    const owner = { developer_id: developerId, user_id: userId ?? '' }
    put(sql, 'webhooks', { id, ...owner, created_at: createdAt, doc: JSON.stringify(webhook) })
  }),
  scans: whole<TransferRecords['scans']>('scans', (sql, scan) =>
    put(sql, 'scans', { webhook_id: scan.webhookId, account_id: scan.accountId, doc: JSON.stringify(scan) }),
  ),
  outbox: whole<TransferRecords['outbox']>('outbox', (sql, row) => {
    if (insertOutbox(sql, [row]).length === 0) saveOutbox(sql, row)
  }),
  calls: whole<TransferRecords['calls']>('calls', (sql, call) => {
    const { id, developerId, userId, at, method, path, status } = call
    const owner = { developer_id: developerId, user_id: userId ?? '' }
    put(sql, 'calls', { id, ...owner, at, method, path, status, doc: JSON.stringify(call) })
  }),
}

/** Rows without a `doc` and without row ids: walked by their own key. */
const nonces: Side<NonceRow> = {
  export: (sql, after, limit) => {
    const [apiKey, nonce, timestamp] = after === null ? ['', '', -1] : (JSON.parse(after) as [string, string, number])
    const rows = sql.rows(
      `SELECT api_key, nonce, timestamp, expires_at FROM nonces WHERE (api_key, nonce, timestamp) > (?, ?, ?)
       ORDER BY api_key, nonce, timestamp LIMIT ?`,
      apiKey,
      nonce,
      timestamp,
      limit,
    )
    const records = rows.map((row): NonceRow => ({
      apiKey: String(row['api_key']),
      nonce: String(row['nonce']),
      timestamp: Number(row['timestamp']),
      expiresAt: Number(row['expires_at']),
    }))
    const last = records.length === limit ? records.at(-1) : undefined
    return { records, next: last ? JSON.stringify([last.apiKey, last.nonce, last.timestamp]) : null }
  },
  write: (sql, { apiKey, nonce, timestamp, expiresAt }) =>
    put(sql, 'nonces', { api_key: apiKey, nonce, timestamp, expires_at: expiresAt }),
}

type Sides = { readonly [N in TransferName]: Side<TransferRecords[N]> }
const sides: Sides = { ...people, ...mail, ...callbacks, nonces }

const notes = `CREATE TABLE IF NOT EXISTS copy_notes (note TEXT NOT NULL)`

function createTransfer(db: Database, path: string): StoreTransfer {
  return {
    name: path,
    count: (collection) => db.read(() => db.number(`SELECT count(*) FROM ${collection}`)),
    export: <N extends TransferName>(collection: N, after: string | null, limit: number): Promise<ExportedPage<N>> =>
      db.read(() => sides[collection].export(db, after, limit)),
    import: <N extends TransferName>(collection: N, records: readonly TransferRecords[N][]) =>
      db.write(() => {
        for (const record of records) sides[collection].write(db, record)
      }),
    progress: () =>
      db.read(() => {
        db.script(notes)
        const row = db.row('SELECT note FROM copy_notes')
        return row ? String(row['note']) : null
      }),
    saveProgress: (note) =>
      db.write(() => {
        db.script(notes)
        db.run('DELETE FROM copy_notes')
        if (note !== null) db.run('INSERT INTO copy_notes (note) VALUES (?)', note)
      }),
    close: () => {
      db.close()
      return Promise.resolve()
    },
  }
}

/** Opens the file, made when it does not exist. Errors as those of createSqliteStore. */
export async function openSqliteTransfer(path: string): Promise<StoreTransfer> {
  const db = openDatabase(path, 'normal', 2000)
  try {
    await migrate(db, path)
  } catch (error) {
    db.close()
    throw error
  }
  return createTransfer(db, path)
}
