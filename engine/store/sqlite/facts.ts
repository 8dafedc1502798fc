/** Facts about the file itself: its identity, and the note of an unfinished copy into it. The first one makes the table. */
import { AppError } from '../../errors.ts'
import { newId } from '../ids.ts'
import type { Database } from './database.ts'
import type { Statements } from './statements.ts'

const table = 'CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID'

function readFact(sql: Statements, name: string): string | null {
  if (sql.number(`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'facts'`) === 0) return null
  return sql.text('SELECT value FROM facts WHERE name = ?', name)
}

function saveFact(sql: Statements, name: string, value: string | null): void {
  sql.script(table)
  if (value === null) sql.run('DELETE FROM facts WHERE name = ?', name)
  else sql.run('INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)', name, value)
}

/** What names the store wherever it lies: given once, at random. */
export function storeIdentity(db: Database): Promise<string> {
  return db.write(() => {
    const id = readFact(db, 'identity') ?? newId()
    saveFact(db, 'identity', id)
    return id
  })
}

/** What an unfinished copy into this store has noted of its progress; null = none is under way. */
export function copyNote(db: Database): Promise<string | null> {
  return db.read(() => readFact(db, 'copy'))
}

export function saveCopyNote(db: Database, note: string | null): Promise<void> {
  return db.write(() => saveFact(db, 'copy', note))
}

/** A write, and the disk has it. With `room` there is space for so many more bytes, or it rejects. */
export async function probeWrite(db: Database, room: number, now: () => number): Promise<void> {
  const save = (value: string): Promise<void> => db.write(() => saveFact(db, 'probe', value))
  if (room > 0) await save('.'.repeat(room))
  await save(String(now()))
}

/** Half a store is none. AppError `conflict`, one line. */
export async function refuseUnfinished(db: Database, path: string): Promise<void> {
  if ((await copyNote(db)) === null) return
  throw new AppError(
    'conflict',
    `${path} is the target of an unfinished copy: run the same copy again until it is whole`,
  )
}
