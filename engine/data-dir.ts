/** The data directory: made at the first start, for its owner alone. */
import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { AppError } from './errors.ts'

/** AppError `bad_request`, one line with `setting` and the cause, when it is not there and cannot be made. */
export function makeDataDir(directory: string, setting = 'MAILROOM_DATA_DIR'): void {
  try {
    make(resolve(directory))
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause)
    throw new AppError('bad_request', `${setting}: ${directory} cannot be used: ${words}`, { cause })
  }
}

/**
 * From the nearest parent that exists, one by one: a recursive mkdir does not end where a file system says ENOENT to a
 * directory that it does not want to have, as /proc does.
 */
function make(directory: string): void {
  const found = statSync(directory, { throwIfNoEntry: false })
  if (found?.isDirectory() === true) return
  if (found !== undefined) throw new Error(`${directory} is not a directory`)
  make(dirname(directory))
  mkdirSync(directory, { mode: 0o700 })
}
