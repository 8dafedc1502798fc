/**
 * Runs long reads in reader threads, so that they do not hold the event loop: at most two, and one per developer while
 * others wait. Each thread has a read-only connection and sees all committed writes. Checkpoints run there, too. A
 * thread runs this module.
 */
import { platform, setPriority } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { AppError } from '../../errors.ts'
import { createFairQueue } from '../../fair-queue.ts'
import { Threads } from '../../threads.ts'
import { withinTime } from '../../waits.ts'
import type { LogLength } from './log.ts'
import type { Sql, Tuples } from './statements.ts'

/** The longest wait of a call. */
const callMs = 10_000
const placeMs = 600_000
const checkpoint = 'checkpoint'

interface ReaderThread {
  readonly readerOf: string
}

export type Readers = ReturnType<typeof createReaders>

export function createReaders(path: string, deadlineMs = callMs) {
  const workerData: ReaderThread = { readerOf: path }
  const threads = new Threads(new URL(import.meta.url), { name: 'reader', workerData })
  // One place, and a spare one for developers without a read. SQLite cannot be interrupted here: a read keeps its place
  // until it ends, even when the call has timed out.
  const late = 'the search took too long: ask for less, by dates or by a folder'
  const queue = createFairQueue({ places: 1, deadlineMs: placeMs, late })
  return {
    /** Returns all rows. `owner`: the id of the developer that reads. Rejects with `timeout` after `deadlineMs`. */
    read: (owner: string, { sql, values }: Sql): Promise<Tuples> => {
      const reading = queue.run({ developerId: owner, key: '', urgent: false }, async (signal) => {
        const answer = await threads.ask(await threads.take(), { sql, values }, signal)
        if (answer instanceof Error) throw answer
        return answer as Tuples
      })
      return withinTime(deadlineMs, reading, (): never => {
        throw new AppError('timeout', late)
      })
    },
    /** Moves the pages of the log that no read needs into the file, and syncs it. */
    checkpoint: async (): Promise<LogLength> => {
      const answer = await threads.ask(await threads.take(), checkpoint, AbortSignal.timeout(placeMs))
      if (answer instanceof Error) throw answer
      const [[, pages, moved] = []] = answer as Tuples
      return [Number(pages), Number(moved)]
    },
    close: () => threads.close(),
  }
}

function isReader(data: unknown): data is ReaderThread {
  return typeof data === 'object' && data !== null && 'readerOf' in data
}

if (parentPort !== null && isReader(workerData)) {
  const port = parentPort
  goAfterLoop()
  const path = workerData.readerOf
  const database = new DatabaseSync(path, { readOnly: true, timeout: 2000 })
  port.on('message', (task: Sql | typeof checkpoint) => {
    try {
      port.postMessage(task === checkpoint ? movedLog(path) : rowsOf(database, task))
    } catch (error) {
      port.postMessage(error)
    }
  })
  port.postMessage('ready')
}

/** The event loop goes before this thread where both want a processor. Only Linux has a priority for each thread. */
function goAfterLoop(): void {
  try {
    if (platform() === 'linux') setPriority(5)
  } catch {
    // The system refuses: all threads keep one priority.
  }
}

function rowsOf(database: DatabaseSync, { sql, values }: Sql): Tuples {
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement.all(...values) as unknown as Tuples
}

function movedLog(path: string): Tuples {
  using database = new DatabaseSync(path, { timeout: 2000 })
  database.exec('PRAGMA synchronous = normal')
  return rowsOf(database, { sql: 'PRAGMA wal_checkpoint(PASSIVE)', values: [] })
}
