/**
 * One process at a time: two engines on one file would both follow every account and tell every callback twice. The lock is
 * SQLite's own on an empty database beside the store, so the kernel releases it however the process ends.
 */
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../errors.ts'
import { isBusy, openError } from './errors.ts'
import { keepPrivate } from './file.ts'

/** A predecessor that is about to end is waited for; blocks the thread. */
const patienceMs = 1000

/**
 * Takes the lock of the store at `path`; answers how to release it. AppError `conflict` when another process, or this one,
 * holds it.
 */
export function lockStore(path: string): () => void {
  const file = `${path}.lock`
  let lock: DatabaseSync | null = null
  try {
    keepPrivate(file)
    lock = new DatabaseSync(file, { timeout: patienceMs })
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    lock?.close()
    if (!isBusy(error)) throw openError(error, file)
    throw new AppError('conflict', `${path} is in use by another process: stop that one first`, { cause: error })
  }
  const held = lock
  return () => {
    if (held.isOpen) held.close()
  }
}
