/**
 * The write-ahead log, without the event loop waiting for the disk: a writer waits for a sync in the thread pool, and a
 * reader thread moves the pages of the log into the file.
 */
import { open, type FileHandle } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { AppError } from '../../errors.ts'

/** Pages, as of SQLite's own checkpoints: 4 MB. */
const mostPages = 1000
/** Between two checkpoints: while a long read needs the log, none empties it. */
const pauseMs = 200

/** Syncs the log of this file. */
export function createSyncs(path: string) {
  let file: FileHandle | null = null
  return {
    /** Resolves when the disk has all that was committed before. Rejects with `store_unavailable`. */
    async sync(): Promise<void> {
      try {
        file ??= await open(`${path}-wal`, 'r+')
        await file.datasync()
      } catch (error) {
        const words = 'the disk did not take what was written'
        throw new AppError('store_unavailable', words, { cause: error, retryAfterMs: 5000 })
      }
    },
    close: async (): Promise<void> => file?.close(),
  }
}

/**
 * Returns a function to be called after each commit: when the log is long, a thread moves it. `lengthOf`: pages of the
 * log, and those of them that the file has.
 */
export function createCheckpoints(lengthOf: () => readonly [number, number], move: () => Promise<void>): () => void {
  let looking = false
  const look = async (): Promise<void> => {
    const [pages, moved] = lengthOf()
    if (pages < mostPages || pages === moved) return
    await move()
    await pause(pauseMs, undefined, { ref: false })
  }
  return () => {
    if (looking) return
    looking = true
    // What failed is tried again after the next commit.
    const done = (): void => void (looking = false)
    look().then(done, done)
  }
}
