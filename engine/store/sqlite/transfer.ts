/** Everything in the file as plain records, and back; see ../transfer.ts. */
import { realpathSync } from 'node:fs'
import { AppError } from '../../errors.ts'
import type {
  CountedContact,
  CountedMessage,
  ExportedPage,
  NonceRow,
  StoreTransfer,
  TransferName,
  TransferRecords,
} from '../transfer.ts'
import type { AccountRecord, MessageRecord, StoredContact, UserRecord } from '../records.ts'
import { folderRank, foldCase } from '../rows.ts'
import { indexAddresses } from './account-rows.ts'
import { openDatabase, type Database } from './database.ts'
import { copyNote, refuseUnfinished, saveCopyNote, storeIdentity } from './facts.ts'
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

/** A contact and the marks of its messages are one transaction here: there are none without their messages. */
function readContact(_: Statements, row: Row): CountedContact {
  return { contact: JSON.parse(String(row['doc'])) as StoredContact, counted: [] }
}

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
  for (const mark of counted) {
    const [accountId = '', key = ''] = mark.split(' ', 2)
    put(sql, 'contact_marks', { account_id: accountId, key })
  }
}

/** A message's marks begin with its id and a colon, which a semicolon follows. */
const marksOf = 'SELECT key FROM contact_marks WHERE account_id = ? AND key > ? AND key < ?'

function readMessage(sql: Statements, row: Row): CountedMessage {
  const message = JSON.parse(String(row['doc'])) as MessageRecord
  const { id, accountId } = message
  const marks = sql.rows(marksOf, accountId, `${id}:`, `${id};`)
  return { message, counted: marks.map((mark) => String(mark['key']).slice(id.length + 1)) }
}

function writeMessage(sql: Statements, { message, counted }: CountedMessage): void {
  const unit = createUnit(sql)
  unit.put(message)
  unit.flush()
  for (const kind of counted) {
    put(sql, 'contact_marks', { account_id: message.accountId, key: `${message.id}:${kind}` })
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
  messages: { export: walked('messages', readMessage), write: writeMessage },
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

/** Rows without a `doc` and without row ids: walked by their own key. One that is valid must not be used again elsewhere. */
const nonces: Side<NonceRow> = {
  export: (sql, after, limit) => {
    const [apiKey, nonce, timestamp] = after === null ? ['', '', -1] : (JSON.parse(after) as [string, string, number])
    const rows = sql.rows(
      `SELECT api_key, nonce, timestamp, expires_at FROM nonces WHERE (api_key, nonce, timestamp) > (?, ?, ?)
       AND expires_at > ? ORDER BY api_key, nonce, timestamp LIMIT ?`,
      apiKey,
      nonce,
      timestamp,
      Date.now(),
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

function createTransfer(db: Database, path: string): StoreTransfer {
  return {
    name: realpathSync(path),
    identity: () => storeIdentity(db),
    count: (collection) => db.read(() => db.number(...counting(collection))),
    export: <N extends TransferName>(collection: N, after: string | null, limit: number): Promise<ExportedPage<N>> =>
      db.read(() => sides[collection].export(db, after, limit)),
    import: <N extends TransferName>(collection: N, records: readonly TransferRecords[N][]) =>
      db.write(() => {
        for (const record of records) sides[collection].write(db, record)
      }),
    progress: () => copyNote(db),
    saveProgress: (note) => saveCopyNote(db, note),
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

/**
 * Opens the file: a target is made when it does not exist, a source has to be a store that is whole (`bad_request`, `conflict`
 * otherwise). Other errors as those of createSqliteStore.
 */
export async function openSqliteTransfer(path: string, role: 'source' | 'target'): Promise<StoreTransfer> {
  const db = openDatabase(path, 'normal', 2000)
  try {
    if (role === 'source') await checkSource(db, path)
    await migrate(db, path)
  } catch (error) {
    db.close()
    throw error
  }
  return createTransfer(db, path)
}

async function checkSource(db: Database, path: string): Promise<void> {
  const version = await db.read(() => db.number('PRAGMA user_version'))
  if (version === 0) throw new AppError('bad_request', `${path}: no such store`)
  await refuseUnfinished(db, path)
}
