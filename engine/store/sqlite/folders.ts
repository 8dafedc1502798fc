/** Folders of an account: reconciles them with the server's list, and keeps their counts and completeness. */
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

/** Placements removed in one transaction when a folder is removed. */
const stepPlacements = 500

/** Folders written in one transaction: other writes wait for it. */
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
    // an interrupted replacement of the mailbox leaves placements without their folder
    if (stored === null) tables.folders.insert(sql, { ...folder, counts: countRows(sql, folder.id) })
    else if (JSON.stringify(folder) !== JSON.stringify(stored)) tables.folders.save(sql, stored, folder)
    turns ||= folder.selectable !== stored?.selectable
  }
  if (turns) settle(sql, accountId, now)
}

/** isWhole of folder-counts.ts, by the index of folders that are not complete. */
export const isWhole = `SELECT EXISTS (SELECT 1 FROM folders WHERE account_id = ?) AND NOT EXISTS (SELECT 1 FROM folders
  WHERE account_id = ? AND json_extract(doc, '$.selectable') AND json_extract(doc, '$.completeAt') IS NULL)`

/** Stores whether the account is complete, after a folder has changed. Returns whether that has changed. */
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

/** Placements of a folder with another UIDVALIDITY: two ranges of the primary key. */
export const others = `(SELECT message_id, uid_validity, uid FROM placements WHERE folder_id = ?1 AND uid_validity < ?2
  UNION ALL SELECT message_id, uid_validity, uid FROM placements WHERE folder_id = ?1 AND uid_validity > ?2)`

/**
 * Moves up to `limit` placements with another UIDVALIDITY than `keep` ('' = all placements) to `gone`. Returns how many
 * are left, at most `limit` + 1.
 */
export function forgetFolder(sql: Statements, folderId: string, keep: string, limit: number, at: number): number {
  const unit = createUnit(sql)
  for (const [id, uidValidity, uid] of sql.tuples(`SELECT * FROM ${others} LIMIT ?3`, folderId, keep, limit)) {
    const lost = { folderId, uidValidity: String(uidValidity), uid: Number(uid) }
    const messageId = String(id)
    const message = unit.get(messageId)
    if (message) unit.put(vanish(message, lost, at))
    // also without its message, since the caller repeats until none is left
    deletePlacement(sql, lost, messageId)
  }
  const changed = unit.flush().get(folderId)
  const folder = changed && tables.folders.get(sql, folderId)
  if (folder) tables.folders.save(sql, folder, { ...folder, counts: addCounts(folder.counts, changed) })
  return sql.number(`SELECT count(*) FROM (SELECT 1 FROM ${others} LIMIT ?3)`, folderId, keep, limit + 1)
}

/** Removes the placements in bounded steps, then the folder. */
async function removeFolder(db: Database, folder: FolderRecord, epoch: number, now: () => number): Promise<void> {
  const removeSome = (): boolean => {
    checkEpoch(db, folder.accountId, epoch)
    if (forgetFolder(db, folder.id, '', stepPlacements, now()) > 0) return false
    db.run('DELETE FROM folders WHERE id = ?', folder.id)
    settle(db, folder.accountId, now())
    return true
  }
  while (!(await db.write(removeSome)));
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
