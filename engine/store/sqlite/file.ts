/** The files of the embedded store belong to its owner alone: they hold mail. */
import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs'

/** What SQLite puts beside the file, with the mode of the file; older ones may stand there with another. */
const companions = ['', '-wal', '-shm']

/**
 * Makes the file when it does not exist; takes the rights of group and others away. Throws what node:fs throws. A file that is
 * there is not opened: closing it would drop the locks that SQLite holds on it for this process (POSIX fcntl).
 */
export function keepPrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'wx', 0o600))
  for (const file of companions.map((ending) => path + ending)) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode
    if (mode !== undefined && (mode & 0o077) !== 0) chmodSync(file, 0o600)
  }
}
