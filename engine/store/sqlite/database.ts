/**
 * The embedded database: one file and one connection, since another one would undo its cache of pages with every
 * commit. Reads share a read transaction up to the next write: taking its lock costs more than most of them.
 *
 * A write is one transaction. Those asked for in the same turn of the event loop share one BEGIN … COMMIT, each in its
 * own savepoint, so that the disk is waited for once: a failing one undoes itself alone, and none is answered before
 * the common commit. A transaction never gives up the thread, so nothing sees half of one.
 */
import { DatabaseSync } from 'node:sqlite'
import { currentOwner, measured, workAsNobody } from '../../observe/loop.ts'
import type { Page } from '../port.ts'
import { keepPrivate, openError, storeError } from './file.ts'
import { createReaders, type Readers } from './readers.ts'
import { createStatements, parsed, type Sql, type Statements, type Tuples, type Value } from './statements.ts'

export type SyncMode = 'off' | 'normal' | 'full'

export interface Database extends Statements {
  read<T>(work: () => T): Promise<T>
  /** First column of every row, parsed as JSON; see LongRead. */
  readLong(read: LongRead): Promise<unknown[]>
  /** `work` may be undone, but is never run twice. */
  write<T>(work: () => T): Promise<T>
  /**
   * The same for what a power loss may take (a crash of the process does not): its commit does not wait for the disk.
   */
  writeUnsynced<T>(work: () => T): Promise<T>
  close(): void
}

/** A read whose work no index bounds: it runs in another thread where it might hold the loop. */
export interface LongRead extends Sql {
  /** The developer whose read it is. */
  readonly owner: string | Sql
  /** The rows that it looks through, in the order of an index; null = an index bounds its work. */
  readonly walk: Sql | null
  /** The same read of the first `walkedHere` rows of the walk: whole when it answers so many rows. */
  readonly quick?: Sql & { readonly enough: number }
}

/** Rows looked through in the main thread: 5 ms, and 25 ms where none of their pages is in memory. */
export const walkedHere = 1000

/** A page behind so many rows, which an index walks too. */
export function isFar({ limit = 0, offset = 0 }: Partial<Page>): boolean {
  return limit + offset > walkedHere
}

/** A group of writes ends here, so that reads are not kept waiting. */
const groupMs = 10

/** What another process wrote is seen no later than this. */
const sharedReadMs = 20

/**
 * `busyMs`: longest wait for another process that holds the write lock. One line, with path and cause, when it cannot
 * be opened: AppError `bad_request` when the file is no SQLite database, `store_unavailable` otherwise.
 */
export function openDatabase(path: string, sync: SyncMode, busyMs: number): Database {
  let connection: DatabaseSync | null = null
  try {
    keepPrivate(path)
    connection = new DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: false })
    connection.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${sync}; PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -16000; PRAGMA journal_size_limit = 67108864`)
    return createDatabase(connection, sync, createReaders(path))
  } catch (error) {
    connection?.close()
    throw openError(error, path)
  }
}

interface Job {
  /** Its commit waits for the disk, as far as the database does at all. */
  readonly synced: boolean
  readonly run: () => void
  readonly settle: (failure: unknown) => void
}

function createDatabase(connection: DatabaseSync, sync: SyncMode, readers: Readers): Database {
  const statements = createStatements(connection)
  const syncFor = syncSwitch(statements, sync)
  let queue: Job[] = []
  const flush = (): void => {
    const jobs = queue
    queue = []
    if (jobs.length === 0) return
    const left = runGroup(connection, statements, jobs, syncFor)
    if (left.length === 0) return
    queue = [...left, ...queue]
    setImmediate(flush)
  }
  const write = <T>(work: () => T, synced: boolean): Promise<T> =>
    new Promise((resolve, reject) => {
      if (queue.length === 0) workAsNobody(() => setImmediate(flush))
      const owner = currentOwner()
      queue.push(jobOf(() => measured(work, owner), synced, resolve, reject))
    })
  const shareRead = readSharing(connection, statements)
  const read = <T>(work: () => T): Promise<T> => settled(work, shareRead)
  return {
    ...statements,
    read,
    readLong: (asked) => readLong(asked, { statements, read, readers }),
    write: (work) => write(work, true),
    writeUnsynced: (work) => write(work, false),
    close: () => {
      while (queue.length > 0) flush()
      connection.close()
      void readers.close()
    },
  }
}

interface Ways extends Pick<Database, 'read'> {
  readonly statements: Statements
  readonly readers: Readers
}

async function readLong(asked: LongRead, { statements, read, readers }: Ways): Promise<unknown[]> {
  const { owner, walk, quick } = asked
  const run = ({ sql, values }: Sql): Tuples => statements.tuples(sql, ...values)
  const here = await read(() => {
    const found = quick === undefined ? null : run(quick)
    if (found !== null && found.length >= (quick?.enough ?? 0)) return { rows: found }
    const isLong = walk !== null && statements.row(`${walk.sql} LIMIT 1 OFFSET ${walkedHere}`, ...walk.values) !== null
    if (!isLong) return { rows: found ?? run(asked) }
    return { by: typeof owner === 'string' ? owner : String(run(owner)[0]?.[0]) }
  })
  if ('rows' in here) return parsed(here.rows)
  try {
    return parsed(await readers.read(here.by, { sql: asked.sql, values: asked.values }))
  } catch (error) {
    throw storeError(error)
  }
}

/** Between transactions: whether the next commit waits for the disk. One that does takes along those before it. */
function syncSwitch(statements: Statements, sync: SyncMode): (jobs: readonly Job[]) => void {
  let current = sync
  return (jobs) => {
    const wanted = sync === 'full' && !jobs.some(({ synced }) => synced) ? 'normal' : sync
    if (wanted !== current) statements.run(`PRAGMA synchronous = ${wanted}`)
    current = wanted
  }
}

// eslint-disable-next-line @typescript-eslint/require-await -- a rejection, never a throw
async function settled<T>(work: () => T, before: () => void): Promise<T> {
  try {
    before()
    return measured(work)
  } catch (error) {
    throw storeError(error)
  }
}

/** Before each read: a transaction is open, and not for too long. */
function readSharing(connection: DatabaseSync, statements: Statements): () => void {
  let until = 0
  return () => {
    const time = performance.now()
    if (connection.isTransaction && time < until) return
    if (connection.isTransaction) statements.run('COMMIT')
    statements.run('BEGIN')
    until = time + sharedReadMs
  }
}

/** `run` remembers the outcome; `settle` answers it once the group is committed, or failed as a whole. */
function jobOf<T>(work: () => T, synced: boolean, resolve: (value: T) => void, reject: (error: Error) => void): Job {
  let outcome: { readonly value: T } | { readonly error: unknown } | null = null
  return {
    synced,
    run: () => {
      try {
        outcome = { value: work() }
      } catch (error) {
        outcome = { error }
        throw error
      }
    },
    settle: (failure) => {
      if (outcome && 'error' in outcome) reject(storeError(outcome.error))
      else if (failure !== null || !outcome) reject(storeError(failure))
      else resolve(outcome.value)
    },
  }
}

/** Runs jobs in one transaction until the time is up; answers those that are left. */
function runGroup(
  connection: DatabaseSync,
  statements: Statements,
  jobs: readonly Job[],
  syncFor: (jobs: readonly Job[]) => void,
): Job[] {
  const until = performance.now() + groupMs
  let done = 0
  let failure: unknown = null
  try {
    if (connection.isTransaction) statements.run('COMMIT')
    syncFor(jobs)
    statements.run('BEGIN IMMEDIATE')
    do {
      const job = jobs[done]
      if (!job) break
      done += 1
      // alone it needs no savepoint, which costs a copy of every page it changes: its failure is the transaction's
      if (jobs.length === 1) job.run()
      else runInSavepoint(connection, statements, job)
    } while (performance.now() < until)
    statements.run('COMMIT')
  } catch (error) {
    failure = error
    if (connection.isOpen && connection.isTransaction) statements.run('ROLLBACK')
  }
  // without a BEGIN no job has run: all fail alike
  const finished = done === 0 ? jobs : jobs.slice(0, done)
  for (const job of finished) job.settle(failure)
  return jobs.slice(finished.length)
}

/** A failing job undoes itself; when SQLite has undone the whole transaction (disk full), the group fails with it. */
function runInSavepoint(connection: DatabaseSync, statements: Statements, job: Job): void {
  statements.run('SAVEPOINT job')
  try {
    job.run()
  } catch (error) {
    if (!connection.isTransaction) throw error
    statements.run('ROLLBACK TO job')
  }
  statements.run('RELEASE job')
}

const deletedAtOnce = 1000

/** Repeats a bounded DELETE until it finds nothing. Answers how many rows went. */
export async function drain(db: Database, sql: string, ...values: readonly Value[]): Promise<number> {
  for (let total = 0; ;) {
    const deleted = await db.write(() => db.run(sql, ...values, deletedAtOnce))
    total += deleted
    if (deleted < deletedAtOnce) return total
  }
}

/** DELETE of at most `?` rows of a table with row ids. */
export function deleteWhere(table: string, condition: string): string {
  return `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${condition} LIMIT ?+0)`
}
