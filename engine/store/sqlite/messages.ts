/** The index of mail: lookups and lists, and the unit that all changes of message rows pass through. */
import { pickedReads } from '../aggregates.ts'
import { countChange, type CountChanges } from '../folder-counts.ts'
import type { KnownUid, MessageQuery, MessageStore, Page } from '../port.ts'
import type { MessageRecord, Place, Placement } from '../records.ts'
import { isLive, liesAt, messageKeys, placeKeys, wideMatches, type WideMatches } from '../rows.ts'
import type { Database, LongRead } from './database.ts'
import { foldedMatches, messageCount, messagePage } from './message-query.ts'
import type { Statements, Tuple } from './statements.ts'
import { tables } from './tables.ts'

const knownColumns = `SELECT uid, message_id, flags, modseq, rev, generation FROM placements
    WHERE folder_id = ? AND uid_validity = ?`

export const messageLookups = {
  byId: 'SELECT doc FROM messages WHERE id = ?',
  byMessageId: `SELECT doc FROM messages WHERE account_id = ? AND email_message_id = ?
    ORDER BY live DESC, sent_at DESC, id DESC LIMIT ?+0`,
  byHostedId: `SELECT doc FROM messages WHERE account_id = ? AND hosted_message_id = ?
    ORDER BY live DESC, sent_at DESC, id DESC LIMIT ?+0`,
  knownUids: `${knownColumns} AND uid BETWEEN ? AND ? ORDER BY uid`,
  knownAmong: `${knownColumns} AND uid IN (SELECT value FROM json_each(?)) ORDER BY uid`,
  gone: 'SELECT doc FROM messages WHERE account_id = ? AND gone_at < ? ORDER BY gone_at, id LIMIT ?+0',
  attachments: `SELECT coalesce(sum(m.attachments), 0) FROM message_keys k CROSS JOIN messages m ON m.id = k.message_id
    WHERE k.account_id = ? AND k.key = 'a'`,
  several: 'SELECT doc FROM messages WHERE id IN (SELECT value FROM json_each(?))',
  everywhere: `SELECT m.doc FROM accounts a CROSS JOIN messages m ON m.account_id = a.id
    WHERE m.email_message_id = ? LIMIT ?+0`,
  older: `SELECT doc FROM messages WHERE account_id = ? AND live = 1 AND (sent_at, id) < (?, ?)
    ORDER BY sent_at DESC, id DESC LIMIT ?+0`,
} as const

function knownUid([uid, messageId, flags, modseq, rev, generation]: Tuple): KnownUid {
  return {
    uid: Number(uid),
    messageId: String(messageId),
    flags: JSON.parse(String(flags)) as string[],
    modseq: String(modseq),
    rev: Number(rev),
    ...(generation === 0 ? {} : { generation: Number(generation) }),
  }
}

/** The single number of the read's result. */
async function numberOf(db: Database, read: LongRead | null): Promise<number> {
  return read === null ? 0 : Number((await db.readLong(read))[0])
}

/** The sum over all messages with attachments. */
function attachmentCount(accountId: string): LongRead | null {
  const read = messageCount(accountId, { hasAttachments: true })
  return read && { ...read, sql: messageLookups.attachments, values: [accountId] }
}

const allAccounts = { sql: 'SELECT id FROM accounts', values: [] }

function wideIn(db: Database, accountId: string, query: MessageQuery): Promise<WideMatches> {
  return wideMatches(query, async (texts) => (await db.readLong(foldedMatches(accountId, texts))) as string[])
}

export function createMessages(db: Database): MessageStore {
  const { byMessageId, byHostedId } = messageLookups
  const own = (accountId: string, id: string): MessageRecord | null => {
    const record = db.doc(messageLookups.byId, id) as MessageRecord | null
    return record?.accountId === accountId ? record : null
  }
  const lookUp = (lookup: string, accountId: string, reference: string, limit: number) =>
    db.docs(lookup, accountId, reference, limit) as MessageRecord[]
  const findAll = (accountId: string, reference: string, limit: number): MessageRecord[] => {
    const mine = own(accountId, reference)
    if (mine !== null) return [mine]
    const mail = lookUp(byMessageId, accountId, reference, limit)
    return mail.length > 0 ? mail : lookUp(byHostedId, accountId, reference, limit)
  }
  const list = async (accountId: string, query: MessageQuery, page: Page) => {
    const read = messagePage(accountId, query, page, await wideIn(db, accountId, query))
    return read ? ((await db.readLong(read)) as MessageRecord[]) : []
  }
  const count = async (accountId: string, query: MessageQuery) =>
    numberOf(db, messageCount(accountId, query, await wideIn(db, accountId, query)))
  return {
    list,
    ...pickedReads(list),
    knownUids: (folderId, uidValidity, from, to) =>
      db.read(() => db.tuples(messageLookups.knownUids, folderId, uidValidity, from, to).map(knownUid)),
    knownAmong: (folderId, uidValidity, uids) =>
      db.read(() => db.tuples(messageLookups.knownAmong, folderId, uidValidity, JSON.stringify(uids)).map(knownUid)),
    get: (accountId, id) => db.read(() => own(accountId, id)),
    byIds: (accountId, ids) => db.read(() => [...new Set(ids)].flatMap((id) => own(accountId, id) ?? [])),
    several: (ids) =>
      db.read(() => db.docs(messageLookups.several, JSON.stringify([...new Set(ids)])) as MessageRecord[]),
    everywhere: async (reference, limit) => {
      const read = { sql: messageLookups.everywhere, values: [reference, limit], owner: '', walk: allAccounts }
      return (await db.readLong(read)) as MessageRecord[]
    },
    find: (accountId, reference) => db.read(() => findAll(accountId, reference, 1)[0] ?? null),
    findAll: (accountId, reference, limit) => db.read(() => findAll(accountId, reference, limit)),
    byMessageIds: (accountId, references) =>
      db.read(() => {
        const found = [...new Set(references)].map((id) => [id, lookUp(byMessageId, accountId, id, 1)[0]] as const)
        return new Map(found.flatMap(([id, record]) => (record ? [[id, record] as const] : [])))
      }),
    count: (accountId, query = {}) => count(accountId, query),
    totals: async (accountId) => {
      const reads = [count(accountId, {}), numberOf(db, attachmentCount(accountId))] as const
      const [messages, attachments] = await Promise.all(reads)
      return { messages, attachments }
    },
    gone: (accountId, before, limit) =>
      db.read(() => db.docs(messageLookups.gone, accountId, before, limit) as MessageRecord[]),
    older: (accountId, after, limit) =>
      db.read(() => {
        const { sentAt, id } = after ?? { sentAt: Number.MAX_SAFE_INTEGER, id: '' }
        return db.docs(messageLookups.older, accountId, sentAt, id, limit) as MessageRecord[]
      }),
  }
}

/**
 * A unit reads messages, takes changed ones (by the pure functions of rows.ts), and writes each changed message once,
 * with the difference of its placements and keys.
 */
export function createUnit(sql: Statements) {
  const before = new Map<string, MessageRecord | null>()
  const after = new Map<string, MessageRecord>()
  const stored = (id: string): MessageRecord | null => {
    const known = before.get(id)
    if (known !== undefined) return known
    const record = tables.messages.get(sql, id)
    before.set(id, record)
    return record
  }
  return {
    /** Reads messages by one query, so that `get` and `flush` find them in memory. */
    load: (ids: readonly string[]): void => {
      const unknown = ids.filter((id) => !before.has(id))
      if (unknown.length === 0) return
      for (const id of unknown) before.set(id, null)
      const found = sql.docs(messageLookups.several, JSON.stringify(unknown)) as MessageRecord[]
      for (const record of found) before.set(record.id, record)
    },
    /** The message, with the changes of this unit. */
    get: (id: string) => after.get(id) ?? stored(id),
    put: (record: MessageRecord) => void after.set(record.id, record),
    /** Writes the changed messages. Returns the changes of folder counts. */
    flush: (): CountChanges => {
      const changes: CountChanges = new Map()
      // lost placements first: another message of this unit may have the same place
      for (const record of after.values()) dropPlacements(sql, stored(record.id), record)
      for (const record of after.values()) {
        const was = stored(record.id)
        countChange(changes, was?.placements ?? [], record.placements)
        saveMessage(sql, was, record)
        before.set(record.id, record)
      }
      after.clear()
      return changes
    },
  }
}

function saveMessage(sql: Statements, before: MessageRecord | null, after: MessageRecord): void {
  if (before === after) return
  if (before) tables.messages.save(sql, before, after)
  else tables.messages.insert(sql, after)
  savePlacements(sql, before?.placements ?? [], after)
  saveKeys(sql, before, after)
}

/** Deletes placements of this message alone: an import may have given the place to another message before. */
function dropPlacements(sql: Statements, before: MessageRecord | null, after: MessageRecord): void {
  for (const there of before?.placements ?? []) {
    if (!after.placements.some((placement) => liesAt(placement, there))) deletePlacement(sql, there, after.id)
  }
}

const placementInsert = `INSERT OR REPLACE INTO placements
  (folder_id, uid_validity, uid, message_id, flags, modseq, rev, generation) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`

function savePlacements(sql: Statements, before: readonly Placement[], { id, placements }: MessageRecord): void {
  for (const placement of placements) {
    if (before.includes(placement)) continue
    const { folderId, uidValidity, uid, flags, modseq, rev, generation = 0 } = placement
    sql.run(placementInsert, folderId, uidValidity, uid, id, JSON.stringify(flags), modseq, rev, generation)
  }
}

const placementDelete = 'DELETE FROM placements WHERE folder_id = ? AND uid_validity = ? AND uid = ? AND message_id = ?'

export function deletePlacement(sql: Statements, { folderId, uidValidity, uid }: Place, messageId: string): void {
  sql.run(placementDelete, folderId, uidValidity, uid, messageId)
}

/** Only live messages have keys. Keys of facts change when a message gets or loses its only placement. */
function saveKeys(sql: Statements, before: MessageRecord | null, after: MessageRecord): void {
  // two live states differ in the keys of their placements alone
  const keysOf = before !== null && isLive(before) && isLive(after) ? placeKeys : messageKeys
  const old = before === null ? [] : keysOf(before)
  const now = keysOf(after)
  changeKeys(sql, keyRows.remove, after, without(old, now))
  changeKeys(sql, keyRows.insert, after, without(now, old))
}

function without(keys: readonly string[], others: readonly string[]): string[] {
  return keys.filter((key) => !others.includes(key))
}

/** A message may have thousands of keys: one statement writes all of them. */
export const keyRows = {
  insert: `INSERT OR IGNORE INTO message_keys (account_id, key, sent_at, message_id)
    SELECT ?1, value, ?2, ?3 FROM json_each(?4)`,
  remove: `DELETE FROM message_keys WHERE account_id = ?1 AND sent_at = ?2 AND message_id = ?3
    AND key IN (SELECT value FROM json_each(?4))`,
} as const

export function changeKeys(sql: Statements, statement: string, message: MessageRecord, keys: readonly string[]): void {
  if (keys.length === 0) return
  sql.run(statement, message.accountId, message.sentAt, message.id, JSON.stringify(keys))
}
