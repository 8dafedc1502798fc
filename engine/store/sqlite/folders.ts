/** Folders of an account: what the server lists, and how far each has been read. */
import { folderBasics, type KeyedCollections } from '../aggregates.ts'
import { addCounts } from '../folder-counts.ts'
import { folderId } from '../ids.ts'
import type { FolderStore, ListedFolder } from '../port.ts'
import type { FolderCounts, FolderRecord } from '../records.ts'
import { listedFolder, vanish } from '../rows.ts'
import { checkEpoch } from './accounts.ts'
import type { Database } from './database.ts'
import { createUnit, deletePlacement } from './messages.ts'
import type { Statements } from './statements.ts'
import { tables } from './tables.ts'

export const folderList = 'SELECT doc FROM folders WHERE account_id = ? ORDER BY rank, path'

/** Placements taken away in one transaction when a folder goes. */
const stepPlacements = 500

/** Rows written in one transaction: others wait for it only shortly, however many folders there are. */
const stepFolders = 250

function upsertListed(
  sql: Statements,
  accountId: string,
  epoch: number,
  listed: readonly ListedFolder[],
  now: number,
): void {
  checkEpoch(sql, accountId, epoch)
  let turns = false
  for (const item of listed) {
    const stored = tables.folders.get(sql, folderId(accountId, item.path))
    const folder = listedFolder(accountId, epoch, stored, item)
    // A replacement of the mailbox that was cut short leaves placements without their folder.
    if (stored === null) tables.folders.insert(sql, { ...folder, counts: countRows(sql, folder.id) })
    else if (JSON.stringify(folder) !== JSON.stringify(stored)) tables.folders.save(sql, stored, folder)
    turns ||= folder.selectable !== stored?.selectable
  }
  if (turns) settle(sql, accountId, now)
}

/** As isWhole of folder-counts.ts, out of the index of the folders that are not complete. */
export const isWhole = `SELECT EXISTS (SELECT 1 FROM folders WHERE account_id = ?) AND NOT EXISTS (SELECT 1 FROM folders
  WHERE account_id = ? AND json_extract(doc, '$.selectable') AND json_extract(doc, '$.completeAt') IS NULL)`

/** Writes whether the account is complete, after a folder has become so or is no more. Answers whether that is new. */
export function settle(sql: Statements, accountId: string, now: number): boolean {
  const account = tables.accounts.get(sql, accountId)
  const whole = sql.number(isWhole, accountId, accountId) === 1
  if (account === null || whole === (typeof account.completeAt === 'number')) return false
  tables.accounts.save(sql, account, { ...account, completeAt: whole ? now : null })
  return true
}

const placementCounts = `SELECT count(*), count(*) FILTER (WHERE NOT EXISTS
  (SELECT 1 FROM json_each(flags) WHERE value = '\\Seen')) FROM placements WHERE folder_id = ?`

function countRows(sql: Statements, folderId: string): FolderCounts {
  const [[messages, unseen] = []] = sql.tuples(placementCounts, folderId)
  return { messages: Number(messages), unseen: Number(unseen) }
}

/** Placements of a folder but for one UIDVALIDITY: two ranges of the key on either side of it. */
export const others = `(SELECT message_id, uid_validity, uid FROM placements WHERE folder_id = ?1 AND uid_validity < ?2
  UNION ALL SELECT message_id, uid_validity, uid FROM placements WHERE folder_id = ?1 AND uid_validity > ?2)`

/** Moves up to `limit` places in the folder to `gone`. Answers how many are left, at most `limit` + 1. */
export function forgetFolder(
  sql: Statements,
  folderId: string,
  keepUidValidity: string | null,
  limit: number,
  at: number,
): number {
  // no UIDVALIDITY is the empty string: it keeps nothing
  const keep = keepUidValidity ?? ''
  const unit = createUnit(sql)
  for (const row of sql.rows(`SELECT message_id, uid_validity, uid FROM ${others} LIMIT ?3`, folderId, keep, limit)) {
    const lost = { folderId, uidValidity: String(row['uid_validity']), uid: Number(row['uid']) }
    const messageId = String(row['message_id'])
    const message = unit.get(messageId)
    if (message) unit.put(vanish(message, lost, at))
    // the row goes in any case: the caller repeats until none is left
    deletePlacement(sql, lost, messageId)
  }
  const changed = unit.flush().get(folderId)
  const folder = changed && tables.folders.get(sql, folderId)
  if (folder) tables.folders.save(sql, folder, { ...folder, counts: addCounts(folder.counts, changed) })
  return sql.number(`SELECT count(*) FROM (SELECT 1 FROM ${others} LIMIT ?3)`, folderId, keep, limit + 1)
}

/** The placements first, in bounded steps, then the folder. */
async function removeFolder(db: Database, folder: FolderRecord, epoch: number, now: () => number): Promise<void> {
  for (;;) {
    const left = await db.write(() => {
      checkEpoch(db, folder.accountId, epoch)
      const rest = forgetFolder(db, folder.id, null, stepPlacements, now())
      if (rest > 0) return rest
      db.run('DELETE FROM folders WHERE id = ?', folder.id)
      settle(db, folder.accountId, now())
      return rest
    })
    if (left === 0) return
  }
}

export function createFolders(db: Database, keyed: KeyedCollections, now: () => number): FolderStore {
  const list = (accountId: string) => db.read(() => db.docs(folderList, accountId) as FolderRecord[])
  return {
    ...folderBasics(keyed),
    list,
    reconcile: async (accountId, epoch, listed, complete) => {
      for (let from = 0; from === 0 || from < listed.length; from += stepFolders) {
        const step = listed.slice(from, from + stepFolders)
        await db.write(() => upsertListed(db, accountId, epoch, step, now()))
      }
      const there = new Set(listed.map(({ path }) => path))
      const missing = complete ? (await list(accountId)).filter(({ path }) => !there.has(path)) : []
      for (const folder of missing) await removeFolder(db, folder, epoch, now)
      return list(accountId)
    },
  }
}
