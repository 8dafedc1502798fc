/**
 * Taking back what a creation that failed has stored, or may have stored: a database that went away in the middle says
 * nothing. Tried at once, and again until it is done; what a process that ends meanwhile leaves is found at the next
 * start (accounts/pool.ts).
 */
import { isAppError } from './errors.ts'
import type { Logger } from './observe/log.ts'

const firstWaitMs = 1000
const longestWaitMs = 30_000

/** Name what is taken back, in the log. */
type Facts = Readonly<Record<string, string>>

export type Undo = ReturnType<typeof createUndo>

/** `lateMs`: a write whose caller has given up may still come through for so long; then the work is done once more. */
export function createUndo(log: Pick<Logger, 'warn' | 'info'>, lateMs: number) {
  const timers = new Set<NodeJS.Timeout>()
  let closed = false
  const later = (ms: number, next: () => void): void => {
    if (closed) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      next()
    }, ms)
    timer.unref()
    timers.add(timer)
  }
  /** Resolves after the first try, whatever came of it. Repeating `work` must do no harm. */
  const run = async (facts: Facts, work: () => Promise<unknown>): Promise<void> => {
    const attempt = async (waitMs: number, last: boolean): Promise<void> => {
      try {
        await work()
        log.info(facts, last ? 'nothing is left of a creation that failed' : 'a creation that failed is taken back')
        if (!last) later(lateMs, () => void attempt(firstWaitMs, true))
      } catch (error) {
        log.warn({ ...facts, err: error, retryInMs: waitMs }, 'a creation that failed is not taken back yet')
        later(waitMs, () => void attempt(Math.min(waitMs * 2, longestWaitMs), last))
      }
    }
    await attempt(firstWaitMs, false)
  }
  return {
    /** A step of a creation; when its outcome is not known, it is taken back. Why it failed is the answer. */
    async creation<T>(facts: Facts, step: Promise<T>, takeBack: () => Promise<unknown>): Promise<T> {
      try {
        return await step
      } catch (error) {
        if (isAppError(error, 'store_unavailable')) await run(facts, takeBack)
        throw error
      }
    },
    run,
    close(): void {
      closed = true
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
