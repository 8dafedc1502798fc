/**
 * Backups of the embedded store while it is in use: MAILROOM_DATA_DIR/backups/<time>.db. A file of that name is whole:
 * it is written under another name, and gets its own when the disk has it.
 */
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { AppError } from './errors.ts'
import type { Store } from './store/port.ts'

export interface Backup {
  readonly name: string
  readonly bytes: number
  readonly seconds: number
}

export type Backups = ReturnType<typeof createBackups>

interface Deps {
  readonly store: Pick<Store, 'backup'>
  readonly config: Pick<Config, 'MAILROOM_DATA_DIR'>
  readonly now?: () => number
}

const unfinished = '.part'

export function createBackups({ store, config, now = Date.now }: Deps) {
  const directory = join(config.MAILROOM_DATA_DIR, 'backups')
  let isRunning = false
  return {
    /** `conflict` while one is under way, `bad_request` with MongoDB. */
    async run(): Promise<Backup> {
      const { backup } = store
      if (backup === undefined)
        throw new AppError('bad_request', 'MONGODB_URI is set: back the database up with mongodump')
      if (isRunning) throw new AppError('conflict', 'a backup is under way: wait until it is made')
      isRunning = true
      try {
        return await make(backup, directory, now())
      } finally {
        isRunning = false
      }
    },
    /** When the newest was begun, in ms; null = there is none. */
    async lastAt(): Promise<number | null> {
      const names = await readdir(directory).catch(() => [])
      const times = names.map(timeOf).filter((at) => !Number.isNaN(at))
      return times.length === 0 ? null : Math.max(...times)
    },
  }
}

async function make(backup: NonNullable<Store['backup']>, directory: string, at: number): Promise<Backup> {
  const started = performance.now()
  await mkdir(directory, { mode: 0o700, recursive: true })
  // Left by a process that ended meanwhile.
  for (const name of await readdir(directory))
    if (name.includes(unfinished)) await rm(join(directory, name), { force: true })
  const name = nameOf(at)
  const part = join(directory, name + unfinished)
  try {
    await backup(part)
    const bytes = await synced(part)
    await rename(part, join(directory, name))
    await synced(directory)
    return { name, bytes, seconds: (performance.now() - started) / 1000 }
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

/** The disk has it. Answers its size. */
async function synced(path: string): Promise<number> {
  const file = await open(path)
  try {
    await file.sync()
    return (await file.stat()).size
  } finally {
    await file.close()
  }
}

/** 2026-11-22T14-30-00.123Z.db: a colon is no good in a file's name. */
function nameOf(at: number): string {
  return `${new Date(at).toISOString().replaceAll(':', '-')}.db`
}

/** NaN for what is no backup. */
function timeOf(name: string): number {
  return Date.parse(/^(\S{10}T\S+)\.db$/.exec(name)?.[1]?.replace(/T(\d\d)-(\d\d)-/, 'T$1:$2:') ?? '')
}
