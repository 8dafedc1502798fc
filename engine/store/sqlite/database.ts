/**
 * The embedded database: one file, one connection for all that must survive a power loss, and a second one for what may be
 * lost in one (nonces, call log), whose commits do not wait for the disk.
 *
 * A write is one transaction. Writes that are asked for in the same turn of the event loop share one BEGIN … COMMIT, each in
 * its own savepoint, so that the disk is waited for once: a failing one undoes itself alone, and none is answered before
 * the common commit. All of a transaction runs without giving up the thread, so nothing ever sees half of one.
 */
import { DatabaseSync } from 'node:sqlite'
import { openError, storeError } from './errors.ts'
import { keepPrivate } from './file.ts'
import { createStatements, type Statements } from './statements.ts'

export type SyncMode = 'off' | 'normal' | 'full'

export interface Database extends Statements {
  read<T>(work: () => T): Promise<T>
  /** `work` may be undone, but is never run twice. */
  write<T>(work: () => T): Promise<T>
  /** Ends open writes, then the connection. */
  close(): void
}

/** A group of writes ends here, so that reads are not kept waiting. */
const groupMs = 10

/**
 * `busyMs`: longest wait for another process that holds the write lock. One line, with path and cause, when it cannot be
 * opened: AppError `bad_request` when the file is no SQLite database, `store_unavailable` otherwise.
 */
export function openDatabase(path: string, sync: SyncMode, busyMs: number): Database {
  let connection: DatabaseSync | null = null
  try {
    keepPrivate(path)
    connection = new DatabaseSync(path, { timeout: busyMs, enableForeignKeyConstraints: false })
    connection.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${sync}; PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -16000; PRAGMA journal_size_limit = 67108864`)
    return createDatabase(connection)
  } catch (error) {
    connection?.close()
    throw openError(error, path)
  }
}

interface Job {
  readonly run: () => void
  readonly settle: (failure: unknown) => void
}

function createDatabase(connection: DatabaseSync): Database {
  const statements = createStatements(connection)
  let queue: Job[] = []
  const flush = (): void => {
    const jobs = queue
    queue = []
    if (jobs.length === 0) return
    const left = runGroup(connection, statements, jobs)
    if (left.length === 0) return
    queue = [...left, ...queue]
    setImmediate(flush)
  }
  return {
    ...statements,
    read: (work) => settled(work),
    write: (work) =>
      new Promise((resolve, reject) => {
        if (queue.length === 0) setImmediate(flush)
        queue.push(jobOf(work, resolve, reject))
      }),
    close: () => {
      while (queue.length > 0) flush()
      connection.close()
    },
  }
}

function settled<T>(work: () => T): Promise<T> {
  return Promise.try(work).catch((error: unknown) => {
    throw storeError(error)
  })
}

/** `run` remembers what the work answered or threw; `settle` tells it once the group is committed, or failed as a whole. */
function jobOf<T>(work: () => T, resolve: (value: T) => void, reject: (error: Error) => void): Job {
  let outcome: { readonly value: T } | { readonly error: unknown } | null = null
  return {
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
function runGroup(connection: DatabaseSync, statements: Statements, jobs: readonly Job[]): Job[] {
  const until = performance.now() + groupMs
  let done = 0
  let failure: unknown = null
  try {
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
