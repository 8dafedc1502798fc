/** Tables of whole records: `doc` is the record as JSON, the columns beside it are what indexes need. */
import { definitions, type FieldOf, type Kind, type Kinds } from '../keyed.ts'
import type { ChangeRecord, FolderRecord, MessageRecord, OutboxRecord, StoredContact } from '../records.ts'
import { foldCase, folderRank, goneAt, isLive, lastStatus, subjectKeyOf } from '../rows.ts'
import type { Statements, Value } from './statements.ts'

type Columns = Readonly<Record<string, Value>>

export interface Table<R> {
  readonly name: string
  /** By the columns of its key. */
  get(sql: Statements, ...key: readonly Value[]): R | null
  insert(sql: Statements, record: R): void
  /** false = there is one with this key. */
  insertMissing(sql: Statements, record: R): boolean
  /** Over the one with the same key. */
  put(sql: Statements, record: R): void
  /** The record of one key, changed: writes the columns that differ, so that no other index is touched. */
  save(sql: Statements, before: R, after: R): void
}

function createTable<R>(name: string, key: readonly string[], columnsOf: (record: R) => Columns): Table<R> {
  const select = `SELECT doc FROM ${name} WHERE ${key.map((column) => `${column} = ?`).join(' AND ')}`
  const inserting = (verb: string, end = '') => {
    let text = ''
    return (sql: Statements, record: R): number => {
      const columns: Columns = { ...columnsOf(record), doc: JSON.stringify(record) }
      const names = Object.keys(columns)
      text ||= `${verb} INTO ${name} (${names.join()}) VALUES (${names.map(() => '?').join()}) ${end}`
      return sql.run(text, ...Object.values(columns))
    }
  }
  const insertMissing = inserting('INSERT', `ON CONFLICT (${key.join()}) DO NOTHING`)
  return {
    name,
    get: (sql, ...values) => sql.doc(select, ...values) as R | null,
    insert: inserting('INSERT'),
    insertMissing: (sql, record) => insertMissing(sql, record) === 1,
    put: inserting('INSERT OR REPLACE'),
    save: (sql, before, after) => {
      const [had, has] = [columnsOf(before), columnsOf(after)]
      const changed = Object.keys(has).filter((column) => has[column] !== had[column])
      const set = [...changed, 'doc'].map((column) => `${column} = ?`).join()
      sql.run(
        `UPDATE ${name} SET ${set} WHERE ${key.map((column) => `${column} = ?`).join(' AND ')}`,
        ...changed.map((column) => has[column] ?? null),
        JSON.stringify(after),
        ...key.map((column) => has[column] ?? null),
      )
    },
  }
}

/** createdAt → created_at */
export function columnOf(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** NULL would not be found by `=`: nothing is ''. */
export function columnValue(value: unknown): Value {
  return (value ?? '') as Value
}

/** The columns of these fields of a record. */
function fieldColumns<R>(fields: readonly FieldOf<R>[]): (record: R) => Columns {
  const named = fields.map((field) => [columnOf(field), field] as const)
  return (record) => Object.fromEntries(named.map(([column, field]) => [column, columnValue(record[field])]))
}

function keyedTable<K extends Kind>(kind: K): Table<Kinds[K]> {
  const { key, fields } = definitions[kind]
  return createTable<Kinds[K]>(kind, key.map(columnOf), fieldColumns<Kinds[K]>([...key, ...fields]))
}

/** As many bits as a number holds exactly. */
export function nextVersion(): number {
  return Math.floor(Math.random() * 2 ** 53)
}

const outboxIds = fieldColumns<OutboxRecord>([
  'id',
  'channelId',
  'webhookId',
  'developerId',
  'userId',
  'accountId',
  'messageId',
])

export const tables = {
  developers: keyedTable('developers'),
  users: keyedTable('users'),
  accounts: keyedTable('accounts'),
  webhooks: keyedTable('webhooks'),
  scans: keyedTable('scans'),
  tokens: keyedTable('tokens'),
  providers: keyedTable('providers'),
  calls: keyedTable('calls'),
  folders: createTable<FolderRecord>('folders', ['id'], ({ id, accountId, path }) => {
    return { id, account_id: accountId, rank: folderRank(path), path }
  }),
  messages: createTable<MessageRecord>('messages', ['id'], (message) => ({
    id: message.id,
    account_id: message.accountId,
    live: isLive(message) ? 1 : 0,
    sent_at: message.sentAt,
    gone_at: goneAt(message),
    attachments: message.attachments.length,
    email_message_id: message.emailMessageId,
    hosted_message_id: message.hostedMessageId,
    subject_key: subjectKeyOf(message),
    version: nextVersion(),
  })),
  changes: createTable<ChangeRecord>('changes', ['id'], ({ id, accountId, seq, messageId, at }) => {
    return { id, account_id: accountId, seq, message_id: messageId, at }
  }),
  outbox: createTable<OutboxRecord>('outbox', ['id'], (row) => ({
    ...outboxIds(row),
    kind: row.kind,
    state: row.state,
    lane: row.lane,
    created_at: row.createdAt,
    seq: row.seq,
    finished_at: row.finishedAt,
    last_status: lastStatus(row),
  })),
  contacts: createTable<StoredContact>('contacts', ['id'], (contact) => ({
    id: contact.id,
    user_id: contact.userId,
    total_count: contact.totalCount,
    direct_count: contact.directCount,
    indirect_count: contact.indirectCount,
    search_key: foldCase(`${contact.name}\n${contact.email}`),
  })),
} as const
