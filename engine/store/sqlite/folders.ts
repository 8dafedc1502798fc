/** Folders of an account: what the server lists, and how far each has been read. */
import { folderId } from '../ids.ts'
import type { FolderStore, ListedFolder } from '../port.ts'
import type { FolderRecord } from '../records.ts'
import { folderRank, listedFolder } from '../rows.ts'
import { checkEpoch } from './account-rows.ts'
import type { Database } from './database.ts'
import { forgetFolder } from './forget.ts'
import { createLists, createRecords } from './parsed.ts'
import type { Statements } from './statements.ts'

export const folderList = 'SELECT doc FROM folders WHERE account_id = ? ORDER BY rank, path'

/** Placements taken away in one transaction when a folder goes. */
const stepPlacements = 500

export function readFolder(sql: Statements, id: string): FolderRecord | null {
  return sql.doc('SELECT doc FROM folders WHERE id = ?', id) as FolderRecord | null
}

export function saveFolder(sql: Statements, folder: FolderRecord): void {
  sql.run('UPDATE folders SET doc = ? WHERE id = ?', JSON.stringify(folder), folder.id)
}

/** Rows written in one transaction: nobody waits long for it, however many folders there are. */
const stepFolders = 250

function upsertListed(sql: Statements, accountId: string, epoch: number, listed: readonly ListedFolder[]): void {
  checkEpoch(sql, accountId, epoch)
  for (const item of listed) {
    const id = folderId(accountId, item.path)
    const stored = readFolder(sql, id)
    const doc = JSON.stringify(listedFolder(accountId, epoch, stored, item))
    if (stored !== null && doc === JSON.stringify(stored)) continue
    sql.run(
      `INSERT INTO folders (id, account_id, rank, path, doc) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`,
      id,
      accountId,
      folderRank(item.path),
      item.path,
      doc,
    )
  }
}

/** The placements first, in bounded steps, then the folder. */
async function removeFolder(db: Database, folder: FolderRecord, epoch: number, now: () => number): Promise<void> {
  for (;;) {
    const left = await db.write(() => {
      checkEpoch(db, folder.accountId, epoch)
      const rest = forgetFolder(db, folder.id, null, stepPlacements, now())
      if (rest === 0) db.run('DELETE FROM folders WHERE id = ?', folder.id)
      return rest
    })
    if (left === 0) return
  }
}

export function createFolders(db: Database, now: () => number): FolderStore {
  const edit = (id: string, patch: Partial<FolderRecord>) =>
    db.write(() => {
      const folder = readFolder(db, id)
      if (folder) saveFolder(db, { ...folder, ...patch })
    })
  const lists = createLists<FolderRecord>(2000)
  const records = createRecords<FolderRecord>({ max: 2000, maxChars: 4_194_304 })
  const list = (accountId: string) =>
    db.read(() => lists.of(accountId, db.texts(folderList, accountId)) as FolderRecord[])
  return {
    list,
    byPath: (accountId, path) =>
      db.read(() => {
        const id = folderId(accountId, path)
        const text = db.text('SELECT doc FROM folders WHERE id = ?', id)
        return text === null ? null : records.of(id, text)
      }),
    reconcile: async (accountId, epoch, listed, complete) => {
      for (let from = 0; from === 0 || from < listed.length; from += stepFolders) {
        const step = listed.slice(from, from + stepFolders)
        await db.write(() => upsertListed(db, accountId, epoch, step))
      }
      const there = new Set(listed.map(({ path }) => path))
      const missing = complete ? (await list(accountId)).filter(({ path }) => !there.has(path)) : []
      for (const folder of missing) await removeFolder(db, folder, epoch, now)
      return list(accountId)
    },
    setCounts: (id, { messages, unseen }) => edit(id, { messages, unseen }),
    setParked: (id, failures, parkedUntil) => edit(id, { failures, parkedUntil }),
  }
}
