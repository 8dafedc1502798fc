/** The log of API calls: rows wait in a bounded buffer and go to the store in batches, beside the calls and never in their way. */
import type { CallLogRecord, CallLogStore, Logger } from '../engine/index.ts'

export interface CallLog {
  /** Never waits and never throws; over a full buffer the row is dropped and counted. */
  add(call: CallLogRecord): void
  /** Writes what is waiting. Resolves when it is written or given up. */
  flush(): Promise<void>
  /** Flushes and ends the timer. */
  close(): Promise<void>
}

interface Deps {
  readonly store: Pick<CallLogStore, 'append'>
  readonly log: Logger
  /** Rows in the buffer at most. */
  readonly capacity?: number
  readonly batch?: number
  readonly everyMs?: number
}

export function createCallLog({ store, log, capacity = 10_000, batch = 500, everyMs = 500 }: Deps): CallLog {
  let rows: CallLogRecord[] = []
  let dropped = 0
  let writing: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null

  async function write(): Promise<void> {
    while (rows.length > 0) {
      const part = rows.slice(0, batch)
      rows = rows.slice(batch)
      if (!(await append(store, log, part))) dropped += part.length
    }
    if (dropped > 0) log.warn({ rows: dropped }, 'rows of the call log were dropped')
    dropped = 0
  }

  function flush(): Promise<void> {
    if (timer !== null) clearTimeout(timer)
    timer = null
    writing ??= write().finally(() => (writing = null))
    return writing
  }

  return {
    add(call) {
      if (rows.length >= capacity) {
        dropped += 1
        return
      }
      rows.push(call)
      // write() takes along what is added while it runs, so a timer beside it has nothing to do.
      timer ??= setTimeout(() => void flush(), everyMs).unref()
    },
    flush,
    async close() {
      await flush()
      await flush()
    },
  }
}

async function append(store: Deps['store'], log: Logger, rows: readonly CallLogRecord[]): Promise<boolean> {
  try {
    await store.append(rows)
    return true
  } catch (error) {
    log.warn({ err: error, rows: rows.length }, 'call log not written')
    return false
  }
}
