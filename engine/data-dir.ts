/** The data directory: made at the first start, for its owner alone. */
import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { AppError } from './errors.ts'
import type { Logger } from './observe/log.ts'

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

/** What Mailroom puts there, and what a file system of its own has. */
const ownFiles = /^(?:secret|held|backups|mailroom\.sqlite(?:[.-].*)?|lost\+found)$/

/**
 * A directory that is there, and that others can look into: told, and closed to them when it is ours. It is when it
 * belongs to us and holds nothing else: /tmp or somebody's home, taken for the data directory by mistake, stays as it
 * is.
 */
export function keepDirPrivate(directory: string, log: Logger): void {
  const found = statSync(directory, { throwIfNoEntry: false })
  if (found?.isDirectory() !== true || (found.mode & 0o077) === 0) return
  try {
    const ours = found.uid === process.getuid?.() && readdirSync(directory).every((name) => ownFiles.test(name))
    if (ours) chmodSync(directory, 0o700)
    if (ours) log.warn({ directory }, 'others could look into the data directory: it is closed to them now (0700)')
    else log.warn({ directory }, 'others can look into the data directory: chmod 700')
  } catch (error) {
    log.warn({ directory, err: error }, 'others can look into the data directory: chmod 700')
  }
}
