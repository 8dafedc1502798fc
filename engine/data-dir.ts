/** The data directory: made at the first start, for its owner alone. */
import { chmodSync, existsSync, mkdirSync, readdirSync, statfsSync, statSync } from 'node:fs'
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

/** What is left to the service, which writes meanwhile. */
const spareBytes = 64 * 1_048_576

/** AppError `store_unavailable` when the disk of the directory has no room for a copy of the files. */
export function checkRoom(directory: string, files: readonly string[], what: string): void {
  const needed = files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), spareBytes)
  const at = existsSync(directory) ? directory : dirname(directory)
  const { bavail, bsize } = statfsSync(at)
  const mib = (bytes: number): string => `${Math.ceil(bytes / 1_048_576)} MiB`
  if (bavail * bsize >= needed) return
  const words = `no room for ${what}: it needs ${mib(needed)}, and ${mib(bavail * bsize)} are free at ${at}`
  throw new AppError('store_unavailable', words)
}

/** What Mailroom puts there, and what a file system of its own has. */
const ownFiles = /^(?:secret|held|backups|spool-.*|mailroom\.sqlite(?:[.-].*)?|lost\+found)$/

/**
 * A directory that is there, and that others can look into: logged, and closed to them when it is ours. It is when it
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
