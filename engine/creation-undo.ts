/**
 * Undoes a failed creation whose outcome is unknown, because the database went away. Tries at once, and again until it
 * succeeds. After the end of the process, retention finds the rest (accounts/pool.ts).
 */
import { isAppError } from './errors.ts'
import type { Logger } from './observe/log.ts'
import { pause } from './scheduling.ts'

const firstWaitMs = 1000
const longestWaitMs = 30_000

/** Ids of the created records, for the log. */
type Facts = Readonly<Record<string, string>>

export type Undo = ReturnType<typeof createUndo>

/** `lateMs`: a write may still succeed for so long after its caller gave up; the undo is repeated after that time. */
export function createUndo(log: Pick<Logger, 'warn' | 'info'>, lateMs: number) {
  const closed = new AbortController()
  const later = async (ms: number, next: () => Promise<void>): Promise<void> => {
    await pause(ms, closed.signal)
    if (!closed.signal.aborted) await next()
  }
  /** Resolves after the first try, also a failed one. Precondition: `work` may be repeated. */
  const run = async (facts: Facts, work: () => Promise<unknown>): Promise<void> => {
    const attempt = async (waitMs: number, last: boolean): Promise<void> => {
      try {
        await work()
        log.info(facts, last ? 'nothing is left of a creation that failed' : 'a creation that failed is taken back')
        if (!last) void later(lateMs, () => attempt(firstWaitMs, true))
      } catch (error) {
        log.warn({ ...facts, err: error, retryInMs: waitMs }, 'a creation that failed is not taken back yet')
        void later(waitMs, () => attempt(Math.min(waitMs * 2, longestWaitMs), last))
      }
    }
    await attempt(firstWaitMs, false)
  }
  return {
    /** Settles as `step` does. Runs `takeBack` when the outcome of the step is unknown. */
    async creation<T>(facts: Facts, step: Promise<T>, takeBack: () => Promise<unknown>): Promise<T> {
      try {
        return await step
      } catch (error) {
        if (isAppError(error, 'store_unavailable')) await run(facts, takeBack)
        throw error
      }
    },
    run,
    close: () => closed.abort(),
  }
}
