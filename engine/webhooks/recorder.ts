/**
 * Results of attempts on their way into the store, several in one step: while one write is under way, the next ones gather.
 * A result is tried until the store takes it, because the next row of its account waits for it: sending on without the record
 * would let a restart send out of order.
 */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { AppError, toAppError } from '../errors.ts'
import type { Logger } from '../observe/log.ts'
import type { OutboxResult, OutboxStore } from '../store/port.ts'

export interface Recorder {
  /** Resolves when the store has it. Rejects with `shutting_down` when the recorder was closed before that. */
  record(result: OutboxResult): Promise<void>
  /** Gives up what the store does not take within the time. */
  close(withinMs: number): Promise<void>
}

interface Waiting {
  readonly result: OutboxResult
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

const mostAtOnce = 200
const retryMs = 1000

export function createRecorder(store: Pick<OutboxStore, 'record'>, log: Logger): Recorder {
  let waiting: Waiting[] = []
  let writing: Promise<void> | null = null
  let closed = false

  async function writeAll(): Promise<void> {
    // Results of the same turn of the event loop go together.
    await nextTurn()
    while (waiting.length > 0) {
      const batch = waiting.slice(0, mostAtOnce)
      try {
        await store.record(batch.map((one) => one.result))
        waiting = waiting.slice(batch.length)
        for (const one of batch) one.done()
      } catch (error) {
        log.error({ err: toAppError(error), results: waiting.length }, 'delivery results not stored yet')
        if (closed) break
        await pause(retryMs)
      }
    }
  }

  function start(): void {
    writing ??= writeAll().finally(() => {
      writing = null
      if (waiting.length > 0 && !closed) start()
    })
  }

  return {
    record: (result) =>
      new Promise<void>((done, failed) => {
        waiting.push({ result, done, failed })
        start()
      }),
    async close(withinMs) {
      closed = true
      const timeUp = new Promise<void>((resolve) => setTimeout(resolve, withinMs).unref())
      await Promise.race([writing ?? Promise.resolve(), timeUp])
      for (const one of waiting) one.failed(new AppError('shutting_down', 'the delivery result was not stored in time'))
      waiting = []
    },
  }
}
