/**
 * Message rows and the index rows that follow from them. A step reads records through a unit, changes them with the
 * pure functions of rows.ts, and writes each changed one once, with the difference of its placements and keys.
 */
import type { MessageRecord, Placement } from '../records.ts'
import { factKeys, folderKeys, isLive, liesAt, messageKeys, type Place } from '../rows.ts'
import type { Statements } from './statements.ts'
import { nextVersion, tables } from './tables.ts'

export interface Unit {
  /** Reads these in one go: what follows finds them in memory. */
  load(ids: readonly string[]): void
  /** As it is now, changes of this unit included. */
  get(id: string): MessageRecord | null
  put(record: MessageRecord): void
  flush(): void
}

const byIds = 'SELECT doc FROM messages WHERE id IN (SELECT value FROM json_each(?))'

export function createUnit(sql: Statements): Unit {
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
    load: (ids) => {
      const unknown = ids.filter((id) => !before.has(id))
      if (unknown.length === 0) return
      for (const id of unknown) before.set(id, null)
      const found = sql.docs(byIds, JSON.stringify(unknown)) as MessageRecord[]
      for (const record of found) before.set(record.id, record)
    },
    get: (id) => after.get(id) ?? stored(id),
    put: (record) => {
      after.set(record.id, record)
    },
    flush: () => {
      const accounts = new Set<string>()
      // first the places that are given up: another message of this unit may have taken one
      for (const record of after.values()) dropPlacements(sql, stored(record.id), record)
      for (const record of after.values()) {
        saveMessage(sql, stored(record.id), record)
        before.set(record.id, record)
        accounts.add(record.accountId)
      }
      after.clear()
      for (const accountId of accounts) touchMail(sql, accountId)
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

/** Of an account's mail as a whole; no row = none was ever written. */
export const mailVersion = 'SELECT version FROM mail_versions WHERE account_id = ?'

function touchMail(sql: Statements, accountId: string): void {
  sql.run('INSERT OR REPLACE INTO mail_versions (account_id, version) VALUES (?, ?)', accountId, nextVersion())
}

function dropPlacements(sql: Statements, before: MessageRecord | null, after: MessageRecord): void {
  for (const there of before?.placements ?? []) {
    if (!after.placements.some((placement) => liesAt(placement, there))) deletePlacement(sql, there)
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

export function deletePlacement(sql: Statements, place: Required<Place>): void {
  const { folderId, uidValidity, uid } = place
  sql.run('DELETE FROM placements WHERE folder_id = ? AND uid_validity = ? AND uid = ?', folderId, uidValidity, uid)
}

/** Only live messages have keys: the facts' keys come and go with life, the folders' keys with the placements. */
function saveKeys(sql: Statements, before: MessageRecord | null, after: MessageRecord): void {
  const had = before !== null && isLive(before)
  if (had && isLive(after)) {
    const old = folderKeys(before)
    const now = folderKeys(after)
    deleteKeys(sql, after, without(old, now))
    insertKeys(sql, after, without(now, old))
  } else if (had) deleteKeys(sql, after, [...folderKeys(before), ...factKeys(before)])
  else insertKeys(sql, after, messageKeys(after))
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

function insertKeys(sql: Statements, message: MessageRecord, keys: readonly string[]): void {
  if (keys.length === 0) return
  sql.run(keyRows.insert, message.accountId, message.sentAt, message.id, JSON.stringify(keys))
}

function deleteKeys(sql: Statements, message: MessageRecord, keys: readonly string[]): void {
  if (keys.length === 0) return
  sql.run(keyRows.remove, message.accountId, message.sentAt, message.id, JSON.stringify(keys))
}
