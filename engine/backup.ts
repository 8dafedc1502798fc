/**
 * Backups of the embedded store while the service runs, and `mailroom restore FILE` while it is stopped. A backup is
 * MAILROOM_DATA_DIR/backups/<time>.db; it gets this name when it is complete and synced to disk.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { connectUrl, reconnectToken } from './connect/reconnect.ts'
import { checkRoom, makeDataDir } from './data-dir.ts'
import { AppError } from './errors.ts'
import { type Logger, silentLogger } from './observe/log.ts'
import { createSealer, formerKeys, readKey, secretFile } from './secrets/seal.ts'
import type { Store } from './store/port.ts'
import { inspectFile, keepConsents, keepRevoked, type StoreOwner } from './store/sqlite/backup.ts'
import { lockStore } from './store/sqlite/file.ts'

/** The last backup that this process began. */
export interface BackupState {
  readonly name: string
  /** null = not complete. */
  readonly bytes: number | null
  /** Time since its begin, or that it took. */
  readonly seconds: number
  readonly error: AppError | null
}

export type Backups = ReturnType<typeof createBackups>

interface Deps {
  readonly log: Logger
  readonly store: Pick<Store, 'backup' | 'settings'>
  readonly config: Pick<Config, 'MAILROOM_DATA_DIR'>
  readonly now?: () => number
}

const unfinished = '.part'
/** Setting with the time of the newest backup, whose file may have been moved away. */
const lastBackup = 'last-backup'

export function createBackups({ log, store, config, now = Date.now }: Deps) {
  const directory = join(config.MAILROOM_DATA_DIR, 'backups')
  let isRunning = false
  let latest: (() => BackupState) | null = null
  return {
    /** `conflict` during another backup, `bad_request` with MongoDB, `backup_failed` (also logged) with the reason. */
    async run() {
      const { backup } = store
      if (backup === undefined)
        throw new AppError('bad_request', 'MONGODB_URI is set: back the database up with mongodump')
      if (isRunning) throw new AppError('conflict', 'a backup is under way: wait until it is made')
      isRunning = true
      const [at, began] = [now(), performance.now()]
      const name = `${timeText(at)}.db`
      const seconds = (): number => (performance.now() - began) / 1000
      latest = () => ({ name, bytes: null, seconds: seconds(), error: null })
      try {
        // The -wal file has pages that the store file lacks.
        checkRoom(directory, [storeFile(config), `${storeFile(config)}-wal`], 'the backup')
        const bytes = await make(backup, directory, name)
        const made = { name, bytes, seconds: seconds() }
        latest = () => ({ ...made, error: null })
        await store.settings.put({ id: lastBackup, value: at, setAt: now() })
        return made
      } catch (thrown) {
        const error = new AppError('backup_failed', whyOf(thrown), { cause: thrown })
        log.error({ backup: name, err: thrown }, 'the backup was not made')
        latest = () => ({ name, bytes: null, seconds: seconds(), error })
        throw error
      } finally {
        isRunning = false
      }
    },
    /** null = this process has begun none. */
    latest: (): BackupState | null => latest?.() ?? null,
    /** Begin of the newest backup in ms since 1970, also when its file is gone; null = there was none. */
    async lastAt(): Promise<number | null> {
      const names = await readdir(directory).catch(() => [])
      const noted = (await store.settings.list()).filter(({ id }) => id === lastBackup).map(({ value }) => value)
      const times = [...names.map(timeOf).filter((at) => !Number.isNaN(at)), ...noted]
      return times.length === 0 ? null : Math.max(...times)
    },
  }
}

/** The message, with that of the cause: the store's own message lacks the disk's. */
function whyOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  return thrown.cause instanceof Error ? `${thrown.message}: ${thrown.cause.message}` : thrown.message
}

/** Makes the backup and returns its size. */
async function make(backup: NonNullable<Store['backup']>, directory: string, name: string): Promise<number> {
  await mkdir(directory, { mode: 0o700, recursive: true })
  // Parts left by a process that was killed.
  for (const name of await readdir(directory))
    if (name.includes(unfinished)) await rm(join(directory, name), { force: true })
  const part = join(directory, name + unfinished)
  try {
    await backup(part)
    const bytes = await synced(part)
    await rename(part, join(directory, name))
    await synced(directory)
    return bytes
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

function storeFile({ MAILROOM_DATA_DIR: directory }: Pick<Config, 'MAILROOM_DATA_DIR'>): string {
  return join(directory, 'mailroom.sqlite')
}

/** Syncs the file to disk and returns its size. */
async function synced(path: string): Promise<number> {
  const file = await open(path)
  try {
    await file.sync()
    return (await file.stat()).size
  } finally {
    await file.close()
  }
}

/** 2026-11-22T14-30-00.123Z: some file systems refuse a colon in a name. */
function timeText(at: number): string {
  return new Date(at).toISOString().replaceAll(':', '-')
}

/** Time of a backup by its name; NaN for any other file. */
function timeOf(name: string): number {
  return Date.parse(/^(\S{10}T\S+)\.db$/.exec(name)?.[1]?.replace(/T(\d\d)-(\d\d)-/, 'T$1:$2:') ?? '')
}

/** Endings of the files that SQLite keeps beside a store. */
const companions = ['-wal', '-shm']

/**
 * Replaces the store by a backup of this installation, and keeps the former store beside it. Keys and tokens that the
 * former store has revoked stay revoked, and its refresh tokens stay in use. `conflict` while the service runs,
 * `bad_request` for a file that cannot be restored.
 */
export function restoreStore(config: Config, file: string) {
  if (config.MONGODB_URI !== null)
    throw new AppError('bad_request', 'MONGODB_URI is set: restore the database with mongorestore')
  if (!existsSync(file)) throw new AppError('bad_request', `${file}: no such file`)
  const directory = config.MAILROOM_DATA_DIR
  makeDataDir(directory)
  const path = storeFile(config)
  const part = `${path}.restore`
  const release = lockStore(path)
  try {
    giveToOwner(directory, `${path}.lock`)
    clear(part)
    checkRoom(directory, [file], 'the store')
    copyFileSync(file, part)
    chmodSync(part, 0o600)
    const owner = inspectFile(part, file)
    const current = currentOwner(path)
    checkOwner(config, file, owner, current)
    const revoked = current === null ? null : keepRevoked(part, path)
    const now = Date.now()
    const consents = keepConsents(part, current === null ? null : path, (account) => reconnectToken(account, now))
    giveToOwner(directory, part)
    sync(part)
    const kept = putAside(path, `${path}.before-${timeText(now)}`)
    renameSync(part, path)
    sync(directory)
    const baseUrl = config.MAILROOM_PUBLIC_URL ?? `http://${config.MAILROOM_HOST}:${config.MAILROOM_PORT}`
    const reconnect = consents.made.map(({ accountId: account, email, token }) => {
      return { account, email, url: connectUrl(baseUrl, token) }
    })
    return {
      /** File of the former store; null = there was none. */
      kept,
      /** Keys and tokens in force in the backup that stay revoked; null = the former store could not be read. */
      revoked,
      /** Number of email accounts that keep the newer refresh token of the former store. */
      consents: consents.kept,
      /** Email accounts whose refresh token may have been replaced since the backup: their users sign in again. */
      reconnect,
    }
  } finally {
    clear(part)
    release()
  }
}

function clear(part: string): void {
  for (const ending of ['', ...companions]) rmSync(part + ending, { force: true })
}

/** null also when the store is damaged. */
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

/** Keeps the store, and the files of SQLite beside it, under another name. A link: `path` exists all the time. */
function putAside(path: string, kept: string): string | null {
  if (!existsSync(path)) return null
  linkSync(path, kept)
  for (const ending of companions) if (existsSync(path + ending)) renameSync(path + ending, kept + ending)
  return kept
}

/** After `sudo mailroom restore` the service must be able to open the file. */
function giveToOwner(directory: string, file: string): void {
  const { uid, gid } = statSync(directory)
  if (process.getuid?.() === 0) chownSync(file, uid, gid)
}

function sync(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}
