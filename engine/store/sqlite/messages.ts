/** The index of mail: lookups, lists, and our own writes of flags and places. */
import type { KnownUid, MessageQuery, MessageStore, Page } from '../port.ts'
import type { AttachmentRecord, MessageRecord } from '../records.ts'
import { countDeltas, relocateMessage, setMessageFlags } from '../rows.ts'
import type { Database } from './database.ts'
import { addCounts } from './folders.ts'
import { messageCount, messagePage } from './message-query.ts'
import { createUnit } from './message-rows.ts'
import { createRecords, createSightings, type Records } from './parsed.ts'
import type { Row, Statements } from './statements.ts'

export const messageLookups = {
  byMessageId: `SELECT doc FROM messages WHERE account_id = ? AND email_message_id = ?
    ORDER BY live DESC, sent_at DESC, id DESC LIMIT 1`,
  byHostedId: `SELECT doc FROM messages WHERE account_id = ? AND hosted_message_id = ?
    ORDER BY live DESC, sent_at DESC, id DESC LIMIT 1`,
  knownUids: `SELECT uid, message_id, flags, modseq, rev FROM placements
    WHERE folder_id = ? AND uid_validity = ? AND uid BETWEEN ? AND ? ORDER BY uid`,
  gone: 'SELECT doc FROM messages WHERE account_id = ? AND gone_at < ? ORDER BY gone_at, id LIMIT ?',
  newest: 'SELECT doc FROM messages WHERE account_id = ? AND live = 1 ORDER BY sent_at DESC, id DESC LIMIT ?',
  older: `SELECT doc FROM messages WHERE account_id = ? AND live = 1 AND (sent_at, id) < (?, ?)
    ORDER BY sent_at DESC, id DESC LIMIT ?`,
} as const

function readMessage(sql: Statements, accountId: string, id: string): MessageRecord | null {
  const record = sql.doc('SELECT doc FROM messages WHERE id = ?', id) as MessageRecord | null
  return record?.accountId === accountId ? record : null
}

function find(sql: Statements, accountId: string, reference: string): MessageRecord | null {
  return (
    readMessage(sql, accountId, reference) ??
    (sql.doc(messageLookups.byMessageId, accountId, reference) as MessageRecord | null) ??
    (sql.doc(messageLookups.byHostedId, accountId, reference) as MessageRecord | null)
  )
}

function byMessageIds(
  sql: Statements,
  accountId: string,
  references: readonly string[],
): ReadonlyMap<string, MessageRecord> {
  const found = new Map<string, MessageRecord>()
  for (const reference of new Set(references)) {
    const record = sql.doc(messageLookups.byMessageId, accountId, reference) as MessageRecord | null
    if (record) found.set(reference, record)
  }
  return found
}

/** What lists keep between two calls. */
interface Listed {
  readonly records: Records<MessageRecord>
  /** Pages that were asked for lately. */
  readonly pages: ReturnType<typeof createSightings>
}

/** A page that is asked for again comes without the documents, unless a message of it is new or has changed. */
function list(sql: Statements, listed: Listed, accountId: string, query: MessageQuery, page: Page): MessageRecord[] {
  const { records, pages } = listed
  const full = messagePage(accountId, query, page, 'm.id, m.version, m.doc')
  if (!full) return []
  if (pages.seen(`${full.values.map(String).join(' ')} ${full.sql.length}`)) {
    const heads = messagePage(accountId, query, page, 'm.id, m.version') ?? full
    const found = sql
      .tuples(heads.sql, ...heads.values)
      .map(([id, version]) => records.known(String(id), Number(version)))
    if (found.every((record) => record !== null)) return found
  }
  return sql
    .tuples(full.sql, ...full.values)
    .map(([id, version, text]) => records.read(String(id), Number(version), String(text)))
}

function count(sql: Statements, accountId: string, query: MessageQuery): number {
  const statement = messageCount(accountId, query)
  return statement ? sql.number(statement.sql, ...statement.values) : 0
}

interface Found {
  readonly message: MessageRecord
  readonly attachment: AttachmentRecord
}

/** Messages read at once while attachments are looked for. */
const attachmentStep = 100

/** Walks messages newest first, skips whole ones by their number of attachments, and parses only those of the page. */
function attachments(sql: Statements, accountId: string, query: MessageQuery, page: Page): Found[] {
  const found: Found[] = []
  let skip = page.offset
  for (let offset = 0; ; offset += attachmentStep) {
    const wanted = { ...query, hasAttachments: true }
    const step = { limit: attachmentStep, offset }
    const statement = messagePage(accountId, wanted, step, 'm.attachments AS number, m.doc AS doc')
    const rows = statement ? sql.rows(statement.sql, ...statement.values) : []
    for (const row of rows) {
      const number = Number(row['number'])
      if (skip < number) {
        const message = JSON.parse(String(row['doc'])) as MessageRecord
        found.push(...message.attachments.slice(skip).map((attachment) => ({ message, attachment })))
      }
      skip = Math.max(0, skip - number)
      if (found.length >= page.limit) return found.slice(0, page.limit)
    }
    if (rows.length < attachmentStep) return found
  }
}

function knownUid(row: Row): KnownUid {
  return {
    uid: Number(row['uid']),
    messageId: String(row['message_id']),
    flags: JSON.parse(String(row['flags'])) as string[],
    modseq: String(row['modseq']),
    rev: Number(row['rev']),
  }
}

export function createMessages(db: Database): MessageStore {
  return {
    ...createReads(db),
    ...createWrites(db),
    knownUids: (folderId, uidValidity, from, to) =>
      db.read(() => db.rows(messageLookups.knownUids, folderId, uidValidity, from, to).map(knownUid)),
  }
}

type Writes = Pick<MessageStore, 'setFlags' | 'relocate'>

function createWrites(db: Database): Writes {
  /** Reads, changes and writes one record, with the counts of its folders; null when there is none or the change has no place to happen. */
  const change = (
    accountId: string,
    id: string,
    step: (record: MessageRecord) => MessageRecord | null,
  ): Promise<MessageRecord | null> =>
    db.write(() => {
      const unit = createUnit(db)
      const record = unit.get(id)
      const changed = record?.accountId === accountId ? step(record) : null
      if (!record || !changed) return null
      unit.put(changed)
      unit.flush()
      for (const delta of countDeltas(record, changed)) addCounts(db, delta)
      return changed
    })
  return {
    setFlags: (accountId, id, at, flags, modseq) =>
      change(accountId, id, (record) => setMessageFlags(record, at, flags, modseq)),
    relocate: (accountId, id, from, to) => change(accountId, id, (record) => relocateMessage(record, from, to)),
  }
}

/** A list of 25 is mostly the same 25 as last time. */
const keptRecords = { max: 5000, maxChars: 16_777_216 }
const keptPages = 5000

function createReads(db: Database): Omit<MessageStore, 'knownUids' | keyof Writes> {
  const listed: Listed = { records: createRecords(keptRecords), pages: createSightings(keptPages) }
  return {
    get: (accountId, id) => db.read(() => readMessage(db, accountId, id)),
    byIds: (accountId, ids) => db.read(() => [...new Set(ids)].flatMap((id) => readMessage(db, accountId, id) ?? [])),
    find: (accountId, reference) => db.read(() => find(db, accountId, reference)),
    byMessageIds: (accountId, references) => db.read(() => byMessageIds(db, accountId, references)),
    list: (accountId, query, page) => db.read(() => list(db, listed, accountId, query, page)),
    count: (accountId, query) => db.read(() => count(db, accountId, query ?? {})),
    gone: (accountId, before, limit) =>
      db.read(() => db.docs(messageLookups.gone, accountId, before, limit) as MessageRecord[]),
    older: (accountId, after, limit) =>
      db.read(() => {
        if (!after) return db.docs(messageLookups.newest, accountId, limit) as MessageRecord[]
        return db.docs(messageLookups.older, accountId, after.sentAt, after.id, limit) as MessageRecord[]
      }),
    attachments: (accountId, query, page) => db.read(() => attachments(db, accountId, query, page)),
  }
}
