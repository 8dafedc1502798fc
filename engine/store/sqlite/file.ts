/** Mode, lock and errors of the database file. Errors are classified by SQLite's result code, never by message. */
import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors.ts'

/** Endings of the files that SQLite creates, with the mode of the first; older files may have another mode. */
const companions = ['', '-wal', '-shm']

/**
 * Creates the file when it does not exist, and removes the rights of group and others. Throws errors of node:fs. An
 * existing file is not opened: closing it would drop SQLite's locks of this process (POSIX fcntl).
 */
export function keepPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'wx', 0o600))
  for (const file of companions.map((ending) => path + ending)) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode
    if (mode !== undefined && (mode & 0o077) !== 0) chmodSync(file, 0o600)
  }
}

/** The longest wait for a former process that is about to end; blocks the thread. */
const patienceMs = 1000

/**
 * Locks the store for one process: two engines on one file would sync every account and send every callback twice. The
 * lock is SQLite's own on an empty database beside the store, so the kernel releases it however the process ends.
 * Returns the function that releases the lock. AppError `conflict` when another process, or this one, holds it.
 */
export function lockStore(path: string): () => void {
  const file = `${path}.lock`
  try {
    using opened = new DisposableStack()
    keepPrivate(file)
    const lock = opened.use(new DatabaseSync(file, { timeout: patienceMs }))
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    const held = opened.move()
    return () => held.dispose()
  } catch (error) {
    if (!isBusy(error)) throw openError(error, file)
    throw new AppError('conflict', `${path} is in use by another process: stop that one first`, { cause: error })
  }
}

/** Opens a store under the lock. `close` of the store releases the lock. */
export async function openLocked<T extends { close(): Promise<void> }>(
  path: string,
  open: () => Promise<T>,
): Promise<T> {
  const release = lockStore(path)
  try {
    const opened = await open()
    return { ...opened, close: () => opened.close().finally(release) }
  } catch (error) {
    release()
    throw error
  }
}

/** Primary result codes of an unusable database: busy, locked, out of memory, read-only, io, damaged, full, … */
const unavailable = new Set([5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 26])
const notADatabase = 26
const damaged = new Set([11, notADatabase])
/** Extended codes of unique violations: UNIQUE and PRIMARY KEY. */
const unique = new Set([2067, 1555])

/** The AppError of any error of a step. `details.damaged`: only a backup helps. */
export function storeError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const code = resultCode(error)
  if (code !== null && unique.has(code)) return new AppError('conflict', 'exists already', { cause: error })
  if (code !== null && unavailable.has(code & 0xff)) {
    const details = damaged.has(code & 0xff) ? { damaged: true } : {}
    const words = 'the database cannot be used now'
    return new AppError('store_unavailable', words, { cause: error, retryAfterMs: 5000, details })
  }
  if (isClosed(error)) return new AppError('store_unavailable', 'the database is closed', { cause: error })
  return new AppError('internal', 'the database refused a statement', { cause: error })
}

function isBusy(error: unknown): boolean {
  return ((resultCode(error) ?? 0) & 0xff) === 5
}

export function openError(error: unknown, path: string): AppError {
  if (error instanceof AppError) return error
  if (resultCode(error) === notADatabase) {
    return new AppError('bad_request', `${path} is not an SQLite database`, { cause: error })
  }
  const cause = error instanceof Error ? error.message : String(error)
  return new AppError('store_unavailable', `${path} cannot be opened: ${cause}`, { cause: error, retryAfterMs: 5000 })
}

/** SQLite's extended result code; null for other errors. */
function resultCode(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error)) return null
  return typeof error.errcode === 'number' ? error.errcode : null
}

function isClosed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_INVALID_STATE'
}
