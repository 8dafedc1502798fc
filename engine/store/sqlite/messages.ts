/** The index of mail: queries, lookups and lists, and the one way in which rows of messages change. */
import { attachmentReads } from '../aggregates.ts'
import type { KnownUid, MessageQuery, MessageStore, Page } from '../port.ts'
import type { MessageRecord, Place, Placement } from '../records.ts'
import { hidingKeys, isLive, liesAt, messageKeys, placeKeys, queryKeys, subjectNeedle } from '../rows.ts'
import type { Database, Row, Sql, Statements, Value } from './database.ts'
import { tables } from './tables.ts'

/*
 * A MessageQuery as one statement, in (sent_at, id) order by an index: the account's own, or that of one key. Each of
 * several alternatives has its own arm, which SQLite merges in order and without repeats, so that a page costs what it
 * holds. The other conditions are probes by primary key. Only ids, and more alternatives than `maxArms`, are sorted.
 */

const maxArms = 40

/** In order; null = nothing can match. */
export function messagePage(accountId: string, query: MessageQuery, page: Page): Sql | null {
  const order = query.order === 'asc' ? 'ASC' : 'DESC'
  const source = sourceOf(accountId, query)
  if (!source) return null
  // CROSS JOIN keeps the order of the inner page
  const sql =
    source.kind === 'messages'
      ? `SELECT m.doc FROM messages m WHERE ${source.where} ORDER BY m.sent_at ${order}, m.id ${order} LIMIT ?+0 OFFSET ?`
      : `SELECT m.doc FROM (${source.sql} ORDER BY sent_at ${order}, message_id ${order} LIMIT ?+0 OFFSET ?) hit
        CROSS JOIN messages m ON m.id = hit.message_id`
  return { sql, values: [...source.values, page.limit, page.offset] }
}

export function messageCount(accountId: string, query: MessageQuery): Sql | null {
  const source = sourceOf(accountId, query)
  if (!source) return null
  const from = source.kind === 'keys' ? `(${source.sql})` : `messages m WHERE ${source.where}`
  return { sql: `SELECT count(*) FROM ${from}`, values: source.values }
}

/** `where` over messages `m`, or a statement over the keys. */
type Source =
  | { readonly kind: 'messages'; readonly where: string; readonly values: readonly Value[] }
  | ({ readonly kind: 'keys' } & Sql)

function sourceOf(accountId: string, query: MessageQuery): Source | null {
  const { all, none } = queryKeys(query)
  if (all.some((keys) => keys.length === 0) || query.ids?.length === 0) return null
  const groups = [...all].sort((left, right) => breadth(left) - breadth(right))
  const driver = query.ids ? undefined : groups.shift()
  const beside = (sentAt: string, id: string): Conditions => conditions(accountId, query, { sentAt, id, groups, none })
  if (!driver) return fromMessages(accountId, query, beside('m.sent_at', 'm.id'))
  const arms = driver.length > maxArms ? [driver] : driver.map((key) => [key])
  const join = subjectNeedle(query) === null ? '' : 'CROSS JOIN messages m ON m.id = k.message_id'
  const parts = arms.map((keys) => keyArm(accountId, keys, join, beside('k.sent_at', 'k.message_id')))
  return {
    kind: 'keys',
    sql: parts.map((part) => part.sql).join(' UNION '),
    values: parts.flatMap((part) => part.values),
  }
}

/**
 * How many messages a group of keys is likely to have: the narrowest drives. A guess that costs time only, when wrong.
 */
function breadth(keys: readonly string[]): number {
  return Math.max(...keys.map(keyBreadth)) + keys.length / 1000
}

function keyBreadth(key: string): number {
  const [kind, value] = [key.slice(0, key.indexOf(':')), key.slice(key.indexOf(':') + 1)]
  if (key === 'a') return 3
  if (kind === 't') return 0
  if (kind === 'f') return 4
  if (!value.startsWith('@')) return 1
  return value.includes('.') ? 2 : 5
}

interface Conditions {
  readonly where: readonly string[]
  readonly values: readonly Value[]
}

function fromMessages(accountId: string, { ids }: MessageQuery, beside: Conditions): Source {
  // the + keeps the planner off the account's index: few ids are meant
  const own = ids
    ? ['+m.account_id = ?', '+m.live = 1', 'm.id IN (SELECT value FROM json_each(?))']
    : ['m.account_id = ?', 'm.live = 1']
  const values = [accountId, ...(ids ? [JSON.stringify(ids)] : []), ...beside.values]
  return { kind: 'messages', where: [...own, ...beside.where].join(' AND '), values }
}

function keyArm(accountId: string, keys: readonly string[], join: string, beside: Conditions): Sql {
  const several = keys.length > 1
  const match = several ? 'IN (SELECT value FROM json_each(?))' : '= ?'
  const where = ['k.account_id = ?', `k.key ${match}`, ...beside.where].join(' AND ')
  return {
    sql: `SELECT ${several ? 'DISTINCT ' : ''}k.sent_at AS sent_at, k.message_id AS message_id
      FROM message_keys k ${join} WHERE ${where}`,
    values: [accountId, several ? JSON.stringify(keys) : (keys[0] ?? ''), ...beside.values],
  }
}

interface Beside {
  /** Columns. */
  readonly sentAt: string
  readonly id: string
  readonly groups: readonly (readonly string[])[]
  readonly none: readonly string[]
}

/** All that is compared beside the driving key. */
function conditions(accountId: string, query: MessageQuery, { sentAt, id, groups, none }: Beside): Conditions {
  const where: string[] = []
  const values: Value[] = []
  const add = (sql: string, ...more: Value[]): void => {
    where.push(sql)
    values.push(...more)
  }
  if (query.sentFrom !== undefined) add(`${sentAt} >= ?`, query.sentFrom)
  if (query.sentUntil !== undefined) add(`${sentAt} <= ?`, query.sentUntil)
  const probe = (keys: readonly string[]): string =>
    `EXISTS (SELECT 1 FROM message_keys x WHERE x.account_id = ? AND x.key IN (${keys.map(() => '?').join()})
      AND x.sent_at = ${sentAt} AND x.message_id = ${id})`
  for (const keys of groups) add(probe(keys), accountId, ...keys)
  if (none.length > 0) add(`NOT ${probe(none)}`, accountId, ...none)
  const hiding = hidingKeys(query)
  if (hiding.length > 0) {
    const shown = shownPlace(id, query)
    add(`(NOT ${probe(hiding)} OR ${shown.sql})`, accountId, ...hiding, ...shown.values)
  }
  const needle = subjectNeedle(query)
  if (needle !== null) add('instr(m.subject_key, ?) > 0', needle)
  return { where, values }
}

/** One of its placements is not hidden: looked for in the message itself, of the few that may be hidden. */
function shownPlace(id: string, { hidden, folderId }: MessageQuery): Sql {
  const flagged = `EXISTS (SELECT 1 FROM json_each(p.value, '$.flags') WHERE json_each.value = '\\Deleted')`
  const where = [
    ...(folderId === undefined ? [] : [`p.value ->> 'folderId' = ?`]),
    `p.value ->> 'folderId' NOT IN (SELECT value FROM json_each(?))`,
    ...(hidden?.deleted === true ? [`NOT ${flagged}`] : []),
  ].join(' AND ')
  return {
    sql: `EXISTS (SELECT 1 FROM messages y CROSS JOIN json_each(y.doc, '$.placements') p WHERE y.id = ${id} AND ${where})`,
    values: [...(folderId === undefined ? [] : [folderId]), JSON.stringify(hidden?.folderIds ?? [])],
  }
}

/* Lookups. */

export const messageLookups = {
  byId: 'SELECT doc FROM messages WHERE id = ?',
  byMessageId: `SELECT doc FROM messages WHERE account_id = ? AND email_message_id = ?
    ORDER BY live DESC, sent_at DESC, id DESC LIMIT ?+0`,
  byHostedId: `SELECT doc FROM messages WHERE account_id = ? AND hosted_message_id = ?
    ORDER BY live DESC, sent_at DESC, id DESC LIMIT ?+0`,
  knownUids: `SELECT uid, message_id, flags, modseq, rev, generation FROM placements
    WHERE folder_id = ? AND uid_validity = ? AND uid BETWEEN ? AND ? ORDER BY uid`,
  gone: 'SELECT doc FROM messages WHERE account_id = ? AND gone_at < ? ORDER BY gone_at, id LIMIT ?+0',
  attachments: `SELECT coalesce(sum(m.attachments), 0) FROM message_keys k CROSS JOIN messages m ON m.id = k.message_id
    WHERE k.account_id = ? AND k.key = 'a'`,
  newest: 'SELECT doc FROM messages WHERE account_id = ? AND live = 1 ORDER BY sent_at DESC, id DESC LIMIT ?+0',
  older: `SELECT doc FROM messages WHERE account_id = ? AND live = 1 AND (sent_at, id) < (?, ?)
    ORDER BY sent_at DESC, id DESC LIMIT ?+0`,
} as const

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

function count(sql: Statements, accountId: string, query: MessageQuery): number {
  const statement = messageCount(accountId, query)
  return statement ? sql.number(statement.sql, ...statement.values) : 0
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
  const list = (accountId: string, query: MessageQuery, page: Page) =>
    db.read(() => {
      const statement = messagePage(accountId, query, page)
      return statement ? (db.docs(statement.sql, ...statement.values) as MessageRecord[]) : []
    })
  return {
    list,
    ...attachmentReads(list),
    knownUids: (folderId, uidValidity, from, to) =>
      db.read(() => db.rows(messageLookups.knownUids, folderId, uidValidity, from, to).map(knownUid)),
    get: (accountId, id) => db.read(() => own(accountId, id)),
    byIds: (accountId, ids) => db.read(() => [...new Set(ids)].flatMap((id) => own(accountId, id) ?? [])),
    find: (accountId, reference) => db.read(() => findAll(accountId, reference, 1)[0] ?? null),
    findAll: (accountId, reference, limit) => db.read(() => findAll(accountId, reference, limit)),
    byMessageIds: (accountId, references) =>
      db.read(() => {
        const found = [...new Set(references)].map((id) => [id, lookUp(byMessageId, accountId, id, 1)[0]] as const)
        return new Map(found.flatMap(([id, record]) => (record ? [[id, record] as const] : [])))
      }),
    count: (accountId, query) => db.read(() => count(db, accountId, query ?? {})),
    totals: (accountId) =>
      db.read(() => ({
        messages: count(db, accountId, {}),
        attachments: db.number(messageLookups.attachments, accountId),
      })),
    gone: (accountId, before, limit) =>
      db.read(() => db.docs(messageLookups.gone, accountId, before, limit) as MessageRecord[]),
    older: (accountId, after, limit) =>
      db.read(() => {
        if (!after) return db.docs(messageLookups.newest, accountId, limit) as MessageRecord[]
        return db.docs(messageLookups.older, accountId, after.sentAt, after.id, limit) as MessageRecord[]
      }),
  }
}

/*
 * Rows, and the index rows that follow from them. A step reads records through a unit, changes them with the pure
 * functions of rows.ts, and writes each changed one once, with the difference of its placements and keys.
 */

const byIds = 'SELECT doc FROM messages WHERE id IN (SELECT value FROM json_each(?))'

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
    /** Reads these in one go: what follows finds them in memory. */
    load: (ids: readonly string[]): void => {
      const unknown = ids.filter((id) => !before.has(id))
      if (unknown.length === 0) return
      for (const id of unknown) before.set(id, null)
      const found = sql.docs(byIds, JSON.stringify(unknown)) as MessageRecord[]
      for (const record of found) before.set(record.id, record)
    },
    /** As it is now, changes of this unit included. */
    get: (id: string) => after.get(id) ?? stored(id),
    put: (record: MessageRecord) => void after.set(record.id, record),
    flush: (): void => {
      // first the places that are given up: another message of this unit may have taken one
      for (const record of after.values()) dropPlacements(sql, stored(record.id), record)
      for (const record of after.values()) {
        saveMessage(sql, stored(record.id), record)
        before.set(record.id, record)
      }
      after.clear()
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

/** Its own alone: a copy that writes over may have given the place to another message before. */
function dropPlacements(sql: Statements, before: MessageRecord | null, after: MessageRecord): void {
  for (const there of before?.placements ?? []) {
    if (!after.placements.some((placement) => liesAt(placement, there))) deletePlacement(sql, there, after.id)
  }
}

function savePlacements(sql: Statements, before: readonly Placement[], after: MessageRecord): void {
  for (const there of after.placements) {
    if (before.includes(there)) continue
    sql.run(
      `INSERT OR REPLACE INTO placements (folder_id, uid_validity, uid, message_id, flags, modseq, rev, generation)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      there.folderId,
      there.uidValidity,
      there.uid,
      after.id,
      JSON.stringify(there.flags),
      there.modseq,
      there.rev,
      there.generation ?? 0,
    )
  }
}

const placementDelete = 'DELETE FROM placements WHERE folder_id = ? AND uid_validity = ? AND uid = ? AND message_id = ?'

export function deletePlacement(sql: Statements, { folderId, uidValidity, uid }: Place, messageId: string): void {
  sql.run(placementDelete, folderId, uidValidity, uid, messageId)
}

/** Only live messages have keys: the facts' keys come and go with life, the others with the placements. */
function saveKeys(sql: Statements, before: MessageRecord | null, after: MessageRecord): void {
  const had = before !== null && isLive(before)
  if (had && isLive(after)) {
    const old = placeKeys(before)
    const now = placeKeys(after)
    changeKeys(sql, keyRows.remove, after, without(old, now))
    changeKeys(sql, keyRows.insert, after, without(now, old))
  } else if (had) changeKeys(sql, keyRows.remove, after, messageKeys(before))
  else changeKeys(sql, keyRows.insert, after, messageKeys(after))
}

function without(keys: readonly string[], others: readonly string[]): string[] {
  return keys.filter((key) => !others.includes(key))
}

/** One statement for all keys of a message: there may be thousands. */
export const keyRows = {
  insert: `INSERT OR IGNORE INTO message_keys (account_id, key, sent_at, message_id)
    SELECT ?1, value, ?2, ?3 FROM json_each(?4)`,
  remove: `DELETE FROM message_keys WHERE account_id = ?1 AND sent_at = ?2 AND message_id = ?3
    AND key IN (SELECT value FROM json_each(?4))`,
} as const

function changeKeys(sql: Statements, statement: string, message: MessageRecord, keys: readonly string[]): void {
  if (keys.length === 0) return
  sql.run(statement, message.accountId, message.sentAt, message.id, JSON.stringify(keys))
}
