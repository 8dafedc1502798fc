/** `mailroom restore FILE`: puts a backup in the place of the embedded store, while the service is stopped. */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { makeDataDir } from './data-dir.ts'
import { AppError } from './errors.ts'
import { silentLogger } from './observe/log.ts'
import { formerKeys, readKey, secretFile } from './secrets/key.ts'
import { createSealer } from './secrets/seal.ts'
import { inspectFile, type StoreOwner } from './store/sqlite/backup.ts'
import { lockStore } from './store/sqlite/file.ts'

/** What SQLite keeps beside a file. */
const companions = ['-wal', '-shm']

/**
 * Checks the file, and that it is this installation's; then it takes the place of the store, which is kept beside it.
 * Answers where; null = there was none. `conflict` while the service runs, `bad_request` for a file that is not fit.
 */
export function restoreStore(config: Config, file: string, now = Date.now()): { readonly kept: string | null } {
  if (config.MONGODB_URI !== null)
    throw new AppError('bad_request', 'MONGODB_URI is set: restore the database with mongorestore')
  if (!existsSync(file)) throw new AppError('bad_request', `${file}: no such file`)
  const directory = config.MAILROOM_DATA_DIR
  makeDataDir(directory)
  const path = join(directory, 'mailroom.sqlite')
  const part = `${path}.restore`
  const release = lockStore(path)
  try {
    clear(part)
    copyFileSync(file, part)
    chmodSync(part, 0o600)
    const owner = inspectFile(part, file)
    checkOwner(config, file, owner, currentOwner(path))
    sync(part)
    const kept = putAside(path, `${path}.before-${new Date(now).toISOString().replaceAll(':', '-')}`)
    renameSync(part, path)
    sync(directory)
    return { kept }
  } finally {
    clear(part)
    release()
  }
}

function clear(part: string): void {
  for (const ending of ['', ...companions]) rmSync(part + ending, { force: true })
}

/** null also when the store is so broken that it does not say. */
function currentOwner(path: string): StoreOwner | null {
  try {
    return existsSync(path) ? inspectFile(path) : null
  } catch {
    return null
  }
}

function checkOwner(config: Config, file: string, owner: StoreOwner | null, current: StoreOwner | null): void {
  if (owner === null) return
  if (current !== null && current.id !== owner.id) {
    const words = `${file} is a backup of another installation: restore it into a MAILROOM_DATA_DIR of its own`
    throw new AppError('bad_request', words)
  }
  const key = readKey(config, silentLogger)
  const source = config.MAILROOM_SECRET === null ? secretFile(config) : 'MAILROOM_SECRET'
  if (key === null)
    throw new AppError('bad_request', `${source} is missing: the backup was sealed with it, bring it back first`)
  try {
    createSealer(key, formerKeys(config)).open(owner.sealedSecret, owner.id)
  } catch (cause) {
    throw new AppError('bad_request', `${source}: not the one that ${file} was sealed with`, { cause })
  }
}

/** At no moment is there no store. What SQLite left beside it goes with it. */
function putAside(path: string, kept: string): string | null {
  if (!existsSync(path)) return null
  linkSync(path, kept)
  for (const ending of companions) if (existsSync(path + ending)) renameSync(path + ending, kept + ending)
  return kept
}

function sync(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}
