/** The data directory: makes it, keeps it private, and checks its free space. */
import { chmodSync, existsSync, mkdirSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { AppError } from './errors.ts'
import type { Logger } from './observe/log.ts'

/** AppError `bad_request`, one line with `setting` and the cause, when the directory cannot be made. */
export function makeDataDir(directory: string, setting = 'MAILROOM_DATA_DIR'): void {
  try {
    make(resolve(directory))
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause)
    throw new AppError('bad_request', `${setting}: ${directory} cannot be used: ${words}`, { cause })
  }
}

/** Not a recursive mkdir, which never ends in a file system that answers ENOENT to every mkdir, such as /proc. */
function make(directory: string): void {
  const found = statSync(directory, { throwIfNoEntry: false })
  if (found?.isDirectory() === true) return
  if (found !== undefined) throw new Error(`${directory} is not a directory`)
  make(dirname(directory))
  mkdirSync(directory, { mode: 0o700 })
}

/** Space left for the service, which may write at the same time. */
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

/** Names of Mailroom's files, and lost+found of a file system of its own. */
const ownFiles = /^(?:secret|held|backups|spool-.*|mailroom\.sqlite(?:[.-].*)?|lost\+found)$/

/**
 * Logs that others can read the directory, and closes it to them if it belongs to this user and holds only our files.
 * Otherwise it may be /tmp or a home directory, set by mistake.
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
