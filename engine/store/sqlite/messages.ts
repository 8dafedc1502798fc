/** The index of mail: lookups and lists. */
import { attachmentReads } from '../aggregates.ts'
import type { KnownUid, MessageQuery, MessageStore, Page } from '../port.ts'
import type { MessageRecord } from '../records.ts'
import type { Database } from './database.ts'
import { messageCount, messagePage } from './message-query.ts'
import { mailVersion } from './message-rows.ts'
import { createPages, createRecords, type Pages, type Records } from './parsed.ts'
import type { Row, Statements } from './statements.ts'

export const messageLookups = {
  byId: 'SELECT id, version, doc FROM messages WHERE id = ?',
  byMessageId: `SELECT id, version, doc FROM messages WHERE account_id = ? AND email_message_id = ?
    ORDER BY live DESC, sent_at DESC, id DESC LIMIT 1`,
  byHostedId: `SELECT id, version, doc FROM messages WHERE account_id = ? AND hosted_message_id = ?
    ORDER BY live DESC, sent_at DESC, id DESC LIMIT 1`,
  knownUids: `SELECT uid, message_id, flags, modseq, rev, generation FROM placements
    WHERE folder_id = ? AND uid_validity = ? AND uid BETWEEN ? AND ? ORDER BY uid`,
  gone: 'SELECT doc FROM messages WHERE account_id = ? AND gone_at < ? ORDER BY gone_at, id LIMIT ?',
  newest: 'SELECT doc FROM messages WHERE account_id = ? AND live = 1 ORDER BY sent_at DESC, id DESC LIMIT ?',
  older: `SELECT doc FROM messages WHERE account_id = ? AND live = 1 AND (sent_at, id) < (?, ?)
    ORDER BY sent_at DESC, id DESC LIMIT ?`,
} as const

type Kept = Records<MessageRecord>

function lookUp(sql: Statements, records: Kept, lookup: string, ...values: readonly string[]): MessageRecord | null {
  const [row] = sql.tuples(lookup, ...values)
  return row === undefined ? null : records.read(String(row[0]), Number(row[1]), String(row[2]))
}

function readMessage(sql: Statements, records: Kept, accountId: string, id: string): MessageRecord | null {
  const record = lookUp(sql, records, messageLookups.byId, id)
  return record?.accountId === accountId ? record : null
}

function find(sql: Statements, records: Kept, accountId: string, reference: string): MessageRecord | null {
  return (
    readMessage(sql, records, accountId, reference) ??
    lookUp(sql, records, messageLookups.byMessageId, accountId, reference) ??
    lookUp(sql, records, messageLookups.byHostedId, accountId, reference)
  )
}

function byMessageIds(
  sql: Statements,
  records: Kept,
  accountId: string,
  references: readonly string[],
): ReadonlyMap<string, MessageRecord> {
  const found = new Map<string, MessageRecord>()
  for (const reference of new Set(references)) {
    const record = lookUp(sql, records, messageLookups.byMessageId, accountId, reference)
    if (record) found.set(reference, record)
  }
  return found
}

interface Listed {
  readonly records: Kept
  readonly pages: Pages<MessageRecord>
}

/** While the account's mail is unchanged a kept page needs no row; else known documents are not read again. */
function list(
  sql: Statements,
  { records, pages }: Listed,
  accountId: string,
  query: MessageQuery,
  page: Page,
): readonly MessageRecord[] {
  const plain = messagePage(accountId, query, page, 'm.doc')
  if (!plain) return []
  const rows = (columns: string) => {
    const { sql: text, values } = messagePage(accountId, query, page, columns) ?? plain
    return sql.tuples(text, ...values)
  }
  const read = {
    passing: () => sql.docs(plain.sql, ...plain.values) as MessageRecord[],
    kept: () =>
      rows('m.id, m.version, m.doc').map(([id, of, text]) => records.read(String(id), Number(of), String(text))),
    changed: () => {
      const found = rows('m.id, m.version').map(([id, of]) => records.known(String(id), Number(of)))
      return found.every((record) => record !== null) ? found : read.kept()
    },
  }
  // a search's ids are long, and asked for once
  if (query.ids) return read.passing()
  return pages.of(`${plain.sql}\n${JSON.stringify(plain.values)}`, sql.number(mailVersion, accountId), read)
}

function count(sql: Statements, accountId: string, query: MessageQuery): number {
  const statement = messageCount(accountId, query)
  return statement ? sql.number(statement.sql, ...statement.values) : 0
}

function knownUid(row: Row): KnownUid {
  const generation = Number(row['generation'])
  return {
    uid: Number(row['uid']),
    messageId: String(row['message_id']),
    flags: JSON.parse(String(row['flags'])) as string[],
    modseq: String(row['modseq']),
    rev: Number(row['rev']),
    ...(generation === 0 ? {} : { generation }),
  }
}

export function createMessages(db: Database): MessageStore {
  const reads = createReads(db)
  return {
    ...reads,
    ...attachmentReads(reads.list),
    knownUids: (folderId, uidValidity, from, to) =>
      db.read(() => db.rows(messageLookups.knownUids, folderId, uidValidity, from, to).map(knownUid)),
  }
}

/** A list of 25 is mostly the same 25 as last time. */
const keptRecords = { max: 5000, maxChars: 16_777_216 }
const keptPages = { max: 5000, maxChars: 8_388_608 }

function createReads(db: Database): Omit<MessageStore, 'knownUids' | 'attachments'> {
  const records = createRecords<MessageRecord>(keptRecords)
  const listed = {
    records,
    pages: createPages<MessageRecord>({ ...keptPages, charsOf: ({ id }) => records.charsOf(id) }),
  }
  return {
    get: (accountId, id) => db.read(() => readMessage(db, records, accountId, id)),
    byIds: (accountId, ids) =>
      db.read(() => [...new Set(ids)].flatMap((id) => readMessage(db, records, accountId, id) ?? [])),
    find: (accountId, reference) => db.read(() => find(db, records, accountId, reference)),
    byMessageIds: (accountId, references) => db.read(() => byMessageIds(db, records, accountId, references)),
    list: (accountId, query, page) => db.read(() => list(db, listed, accountId, query, page)),
    count: (accountId, query) => db.read(() => count(db, accountId, query ?? {})),
    gone: (accountId, before, limit) =>
      db.read(() => db.docs(messageLookups.gone, accountId, before, limit) as MessageRecord[]),
    older: (accountId, after, limit) =>
      db.read(() => {
        if (!after) return db.docs(messageLookups.newest, accountId, limit) as MessageRecord[]
        return db.docs(messageLookups.older, accountId, after.sentAt, after.id, limit) as MessageRecord[]
      }),
  }
}
