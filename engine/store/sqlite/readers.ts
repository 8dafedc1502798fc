/**
 * Runs long reads in reader threads, so that they do not hold the event loop: at most two, and one per developer while
 * others wait. Each thread has a connection that changes no data, and sees all committed writes. Checkpoints run there,
 * too.
 */
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { AppError } from '../../errors.ts'
import { createFairQueue } from '../../fair-queue.ts'
import { createThreads } from '../../threads.ts'
import { withinTime } from '../../scheduling.ts'
import type { LogLength } from './log.ts'
import type { Sql, Tuples } from './statements.ts'

/** The longest wait of a call. */
const callMs = 10_000
const placeMs = 600_000
const checkpointMs = 60_000
const checkpoint: Sql = { sql: 'PRAGMA wal_checkpoint(PASSIVE)', values: [] }

/** A statement for the database in this file. */
interface Task extends Sql {
  readonly path: string
}

export type Readers = ReturnType<typeof createReaders>

export function createReaders(path: string, deadlineMs = callMs) {
  // Two for reads, and one for checkpoints.
  const threads = createThreads(new URL(import.meta.url), 3)
  const ask = async ({ sql, values }: Sql, signal: AbortSignal): Promise<Tuples> => {
    const task: Task = { path, sql, values }
    return (await threads.run(task, { signal })) as Tuples
  }
  // One place, and a spare one for developers without a read. SQLite cannot be interrupted here: a read keeps its place
  // until it ends, even when the call has timed out.
  const late = 'the search took too long: ask for less, by dates or by a folder'
  const queue = createFairQueue({ places: 1, deadlineMs: placeMs, late })
  return {
    /** Returns all rows. `owner`: the id of the developer that reads. Rejects with `timeout` after `deadlineMs`. */
    read: (owner: string, asked: Sql): Promise<Tuples> => {
      const reading = queue.run({ developerId: owner, key: '', urgent: false }, (signal) => ask(asked, signal))
      return withinTime(deadlineMs, reading, (): never => {
        throw new AppError('timeout', late)
      })
    },
    /** Moves the pages of the log that no read needs into the file, and syncs it. */
    checkpoint: async (): Promise<LogLength> => {
      const [[, pages, moved] = []] = await ask(checkpoint, AbortSignal.timeout(checkpointMs))
      return [Number(pages), Number(moved)]
    },
    close: () => threads.destroy(),
  }
}

/** The connection of this thread. */
let database: DatabaseSync | null = null

/** Runs a task, in a thread. @public */
export function run({ path, sql, values }: Task): Tuples {
  database ??= openReader(path)
  const statement = database.prepare(sql)
  statement.setReturnArrays(true)
  return statement.all(...values) as unknown as Tuples
}

function openReader(path: string): DatabaseSync {
  // The mode permits writes, and never makes the file.
  const opened = new DatabaseSync(new URL('?mode=rw', pathToFileURL(path)), { timeout: 2000 })
  // Permits a checkpoint alone.
  opened.exec('PRAGMA query_only = on; PRAGMA synchronous = normal')
  return opened
}
