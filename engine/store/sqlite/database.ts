/**
 * The embedded database: one file and one connection, since the commits of a second connection would empty the page
 * cache. Reads share a read transaction until the next write: the lock of a transaction costs more than most reads.
 *
 * Writes of the same turn of the event loop share one BEGIN … COMMIT. Each write has its own savepoint and fails alone;
 * its promise settles when the disk has the common commit. Transactions are synchronous, so no other code sees half of
 * one.
 */
import { DatabaseSync } from 'node:sqlite'
import { currentOwner, measured, workAsNobody } from '../../observe/loop.ts'
import type { Page } from '../port.ts'
import { keepPrivate, openError, storeError } from './file.ts'
import { createLog, type LogLength } from './log.ts'
import { createReaders, type Readers } from './readers.ts'
import { createStatements, parsedInSteps, type Sql, type Statements, type Tuples, type Value } from './statements.ts'

export type SyncMode = 'off' | 'normal' | 'full'

export type Database = ReturnType<typeof createDatabase>

/** A read that may scan many rows; a long scan runs in a reader thread. */
export interface LongRead extends Sql {
  /** The id of the developer that reads, or a query for the id. */
  readonly owner: string | Sql
  /** The rows to scan, in the order of an index; null = an index bounds the scan. */
  readonly walk: Sql | null
  /** The most rows of the walk to scan in the main thread; absent = `walkedHere`. */
  readonly most?: number
  /** The same read over the first `most` rows of the walk: the answer is complete with `enough` rows. */
  readonly quick?: Sql & { readonly enough: number }
}

/** The most rows scanned in the main thread, with few lookups each: 5 ms, or 25 ms when no page is in memory. */
export const walkedHere = 1000

/** Whether the page ends behind so many rows that even an index scan is long. */
export function isFar({ limit = 0, offset = 0 }: Partial<Page>): boolean {
  return limit + offset > walkedHere
}

/** The longest group of writes; reads wait for the group. */
const groupMs = 10

/** The longest shared read transaction; writes of other processes become visible with the next one. */
const sharedReadMs = 20

/**
 * `busyMs`: longest wait for another process that holds the write lock. Throws AppError `bad_request` when the file is
 * no SQLite database, `store_unavailable` when it cannot be opened; the message is one line with path and cause.
 */
export function openDatabase(path: string, sync: SyncMode, busyMs: number): Database {
  let connection: DatabaseSync | null = null
  try {
    keepPrivate(path)
    connection = new DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: false })
    // A commit waits for the disk in log.ts. Only a log of 64 MB is moved into the file by a commit.
    connection.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${sync === 'off' ? 'off' : 'normal'};
      PRAGMA temp_store = MEMORY; PRAGMA cache_size = -8000; PRAGMA wal_autocheckpoint = 16384;
      PRAGMA journal_size_limit = 67108864`)
    return createDatabase(connection, sync, path)
  } catch (error) {
    connection?.close()
    throw openError(error, path)
  }
}

interface Job {
  /** Whether the commit waits for the disk, as far as the database does at all. */
  readonly synced: boolean
  readonly run: () => void
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

function createDatabase(connection: DatabaseSync, sync: SyncMode, path: string) {
  const statements = createStatements(connection)
  const readers = createReaders(path)
  const lengthOf = (): LogLength => {
    const [, pages, moved] = statements.tuple('PRAGMA wal_checkpoint(NOOP)') ?? []
    return [Number(pages), Number(moved)]
  }
  const log = createLog({ path, lengthOf, move: readers.checkpoint })
  const write = createWrites((jobs) => runGroup(connection, statements, jobs), log, sync === 'full')
  const shareRead = readSharing(connection, statements)
  // eslint-disable-next-line @typescript-eslint/require-await -- a rejection, never a throw
  const read = async <T>(work: () => T): Promise<T> => {
    try {
      shareRead()
      return measured(work)
    } catch (error) {
      throw storeError(error)
    }
  }
  return {
    ...statements,
    read,
    /** First column of every row, parsed as JSON; see LongRead. */
    readLong: (asked: LongRead) => readLong(asked, statements, read, readers),
    /** Runs `work` once. A failed commit undoes it; after a failed sync it may be there or not. */
    write: <T>(work: () => T) => write(work, true),
    /** A write whose commit does not wait for the disk: a power loss may undo it, a crash of the process does not. */
    writeUnsynced: <T>(work: () => T) => write(work, false),
    async close(): Promise<void> {
      // This write is behind all others, so they have ended when it ends.
      await write(() => undefined, true).catch(() => undefined)
      await Promise.allSettled([readers.close(), log.close()])
      // The last connection to close moves the log into the file and removes it.
      connection.close()
    },
  }
}

/**
 * The returned function adds a write. Writes wait for a group of their own, which begins when the disk has the group
 * before: a slow disk makes groups larger. `isFull`: writes wait for the disk.
 */
function createWrites(commit: (jobs: readonly Job[]) => Group, log: ReturnType<typeof createLog>, isFull: boolean) {
  let queue: Job[] = []
  let isBusy = false
  const settle = async (written: readonly Job[]): Promise<void> => {
    try {
      if (isFull && written.some(({ synced }) => synced)) await log.sync()
      for (const { resolve } of written) resolve()
    } catch (error) {
      for (const { reject } of written) reject(storeError(error))
    }
  }
  const next = (): void => {
    isBusy = queue.length > 0
    if (isBusy) setImmediate(() => void flush())
  }
  const flush = async (): Promise<void> => {
    try {
      const jobs = queue
      queue = []
      const { written, left } = commit(jobs)
      queue = [...left, ...queue]
      await Promise.all([settle(written), written.length > 0 && log.keepShort()])
    } finally {
      next()
    }
  }
  return <T>(work: () => T, synced: boolean): Promise<T> =>
    new Promise((resolve, reject) => {
      const owner = currentOwner()
      let value: T
      const run = (): void => void (value = measured(work, owner))
      queue.push({ synced, run, resolve: () => resolve(value), reject })
      if (!isBusy) workAsNobody(next)
    })
}

async function readLong(
  asked: LongRead,
  statements: Statements,
  read: <T>(work: () => T) => Promise<T>,
  readers: Readers,
): Promise<unknown[]> {
  const { owner, walk, most = walkedHere, quick } = asked
  const run = ({ sql, values }: Sql): Tuples => statements.tuples(sql, ...values)
  const here = await read(() => {
    const found = quick === undefined ? null : run(quick)
    if (found !== null && found.length >= (quick?.enough ?? 0)) return { rows: found }
    const isLong = walk !== null && statements.tuple(`${walk.sql} LIMIT 1 OFFSET ${most}`, ...walk.values) !== undefined
    if (!isLong) return { rows: found ?? run(asked) }
    return { by: typeof owner === 'string' ? owner : String(run(owner)[0]?.[0]) }
  })
  if ('rows' in here) return parsedInSteps(here.rows)
  try {
    return await parsedInSteps(await readers.read(here.by, { sql: asked.sql, values: asked.values }))
  } catch (error) {
    throw storeError(error)
  }
}

/** Before each read: opens a transaction unless a young one is open. */
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

interface Group {
  /** Committed. */
  readonly written: readonly Job[]
  readonly left: readonly Job[]
}

/** Runs jobs in one transaction until the time is up. */
function runGroup(connection: DatabaseSync, statements: Statements, jobs: readonly Job[]): Group {
  const until = performance.now() + groupMs
  const written: Job[] = []
  let done = 0
  try {
    if (connection.isTransaction) statements.run('COMMIT')
    statements.run('BEGIN IMMEDIATE')
    do {
      const job = jobs[done]
      if (!job) break
      done += 1
      if (hasWritten(connection, statements, job, jobs.length === 1)) written.push(job)
    } while (performance.now() < until)
    statements.run('COMMIT')
    return { written, left: jobs.slice(done) }
  } catch (error) {
    if (connection.isOpen && connection.isTransaction) statements.run('ROLLBACK')
    // without a BEGIN no job has run: all fail alike
    const failed = done === 0 ? jobs : jobs.slice(0, done)
    for (const job of failed) job.reject(storeError(error))
    return { written: [], left: jobs.slice(failed.length) }
  }
}

/** A failed job undoes itself; when SQLite has undone the whole transaction (disk full), the group fails too. */
function hasWritten(connection: DatabaseSync, statements: Statements, job: Job, isAlone: boolean): boolean {
  // A savepoint copies every changed page. Where a job is alone, its failure undoes the transaction.
  if (!isAlone) statements.run('SAVEPOINT job')
  try {
    job.run()
  } catch (error) {
    if (isAlone || !connection.isTransaction) throw error
    job.reject(storeError(error))
    statements.script('ROLLBACK TO job; RELEASE job')
    return false
  }
  if (!isAlone) statements.run('RELEASE job')
  return true
}

const deletedAtOnce = 1000

/** Repeats a bounded DELETE until no row is left. Returns the number of deleted rows. */
export async function drain(db: Database, sql: string, ...values: readonly Value[]): Promise<number> {
  for (let total = 0; ;) {
    const deleted = await db.write(() => db.run(sql, ...values, deletedAtOnce))
    total += deleted
    if (deleted < deletedAtOnce) return total
  }
}

/** A DELETE of at most `?` rows; the table has row ids. */
export function deleteWhere(table: string, condition: string): string {
  return `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE ${condition} LIMIT ?+0)`
}
