/**
 * The write-ahead log, without the event loop waiting for the disk: a writer waits for a sync in the thread pool, and a
 * reader thread moves the pages of the log into the file.
 */
import { open, type FileHandle } from 'node:fs/promises'
import { AppError } from '../../errors.ts'

/** 4 MB: as of SQLite's own checkpoints. */
const longPages = 1000
/** 32 MB: writes wait for the move, since a log begins anew only without a write meanwhile. */
const tooLongPages = 8000
/** Between two checkpoints. A checkpoint writes a page once, however often the log has the page. */
const pauseMs = 1000

/** Pages of the log, and those of them that the file has. */
export type LogLength = readonly [pages: number, moved: number]

interface LogDeps {
  readonly path: string
  /** Throws within a transaction. */
  readonly lengthOf: () => LogLength
  /** Moves the pages that no read needs, and syncs the file. */
  readonly move: () => Promise<LogLength>
}

export function createLog({ path, lengthOf, move }: LogDeps) {
  let file: FileHandle | null = null
  /** After a failed sync the system counts lost pages as written: only a sync of the file is worth something then. */
  let isDoubtful = false
  let moving: Promise<void> | null = null
  let nextMoveAt = 0

  async function syncFile(): Promise<void> {
    const [pages, moved] = await move()
    if (pages !== moved) throw new Error('a read needs the log')
    isDoubtful = false
  }

  const moved = (): void => {
    moving = null
    nextMoveAt = performance.now() + pauseMs
  }

  return {
    /** Resolves when the disk has all that was committed before. Rejects with `store_unavailable`. */
    async sync(): Promise<void> {
      try {
        if (isDoubtful) await syncFile()
        else await (file ??= await open(`${path}-wal`, 'r+')).datasync()
      } catch (error) {
        isDoubtful = true
        const words = 'the disk did not take what was written'
        throw new AppError('store_unavailable', words, { cause: error, retryAfterMs: 5000 })
      }
    },
    /** To be called after each commit: has a long log moved. Resolves when writes may go on. */
    async keepShort(): Promise<void> {
      const [pages, inFile] = lengthOf()
      const isTooLong = pages >= tooLongPages
      if (pages < longPages || pages === inFile || (!isTooLong && performance.now() < nextMoveAt)) return
      moving ??= move().then(moved, moved)
      if (isTooLong) await moving
    },
    close: async (): Promise<void> => file?.close(),
  }
}
