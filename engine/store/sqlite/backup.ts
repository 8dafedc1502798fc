/** Whole copies of the file while it is in use, and what has to be in a file that is to take its place. */
import { backup, DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors.ts'
import type { DeveloperRecord } from '../records.ts'
import { keepPrivate, storeError } from './file.ts'
import { migrations } from './schema.ts'

/** Of one step; the event loop goes on meanwhile. */
const pagesAtOnce = 500

/**
 * Copies the store as it is now to `target`, over a connection of its own: its read transaction keeps later writes out
 * of the copy, and holds none of them up.
 */
export async function backupFile(path: string, target: string): Promise<void> {
  let source: DatabaseSync | null = null
  try {
    keepPrivate(target)
    source = new DatabaseSync(path, { readOnly: true })
    source.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
    await backup(source, target, { rate: pagesAtOnce })
  } catch (error) {
    throw storeError(error)
  } finally {
    source?.close()
  }
}

/** What tells one installation from another: its first developer. */
export type StoreOwner = Pick<DeveloperRecord, 'id' | 'sealedSecret'>

/**
 * Whose store the file is; null = it has no developer yet. `bad_request`, naming it `name`, when it is no whole store,
 * or a newer Mailroom's. It is opened for writing: what lies beside it, in its -wal, is in the file afterwards.
 */
export function inspectFile(path: string, name = path): StoreOwner | null {
  const unfit = (words: string, cause?: unknown): AppError => new AppError('bad_request', `${name} ${words}`, { cause })
  let db: DatabaseSync | null = null
  try {
    db = new DatabaseSync(path)
    const version = Number(db.prepare('PRAGMA user_version').get()?.['user_version'])
    if (version > migrations.length)
      throw unfit(`has schema version ${version}, newer than the ${migrations.length} this Mailroom knows`)
    const check = db.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
    if (check !== 'ok') throw unfit(`is damaged: ${String(check)}`)
    const tables = db.prepare(
      `SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('developers', 'outbox', 'messages')`,
    )
    if (version === 0 || tables.get()?.['n'] !== 3) throw unfit('is no store of Mailroom')
    const row = db.prepare('SELECT doc FROM developers ORDER BY id LIMIT 1').get()
    return row === undefined ? null : (JSON.parse(String(row['doc'])) as StoreOwner)
  } catch (error) {
    throw error instanceof AppError ? error : unfit(`cannot be read: ${(error as Error).message}`, error)
  } finally {
    db?.close()
  }
}
