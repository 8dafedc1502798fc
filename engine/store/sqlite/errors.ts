/** Errors of node:sqlite as the house's own: told apart by SQLite's result code, never by their message. */
import { AppError } from '../../errors.ts'

/** Primary result codes that mean "the database cannot serve now": busy, locked, out of memory, read-only, io, full, … */
const unavailable = new Set([5, 6, 7, 8, 9, 10, 13, 14, 15, 26])
/** Extended codes of unique violations: UNIQUE and PRIMARY KEY. */
const unique = new Set([2067, 1555])

/** Any error of a step; AppErrors pass through. */
export function storeError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const code = resultCode(error)
  if (code !== null && unique.has(code)) return new AppError('conflict', 'exists already', { cause: error })
  if (code !== null && unavailable.has(code & 0xff)) {
    return new AppError('store_unavailable', 'the database cannot be used now', { cause: error, retryAfterMs: 5000 })
  }
  if (isClosed(error)) return new AppError('store_unavailable', 'the database is closed', { cause: error })
  return new AppError('internal', 'the database refused a statement', { cause: error })
}

/** SQLITE_BUSY: another connection holds a lock. */
export function isBusy(error: unknown): boolean {
  return ((resultCode(error) ?? 0) & 0xff) === 5
}

/** SQLITE_NOTADB. */
const notADatabase = 26

/** An error while the file was opened: the line names the file and the cause. */
export function openError(error: unknown, path: string): AppError {
  if (error instanceof AppError) return error
  if (resultCode(error) === notADatabase) {
    return new AppError('bad_request', `${path} is not an SQLite database`, { cause: error })
  }
  const cause = error instanceof Error ? error.message : String(error)
  return new AppError('store_unavailable', `${path} cannot be opened: ${cause}`, { cause: error, retryAfterMs: 5000 })
}

/** SQLite's extended result code; null when the error is not SQLite's. */
function resultCode(error: unknown): number | null {
  if (!(error instanceof Error) || !('errcode' in error)) return null
  return typeof error.errcode === 'number' ? error.errcode : null
}

function isClosed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_INVALID_STATE'
}
