/**
 * Work on large texts, at a pace that leaves the process to others: one piece at a time, each in a turn of the event loop of its
 * own, and after each as much rest as it took. Small pieces are done at once.
 */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'

/** `bytes`: of the text that is worked on. `work` is one step, of some tens of milliseconds for 5 MiB. */
export type Pace = <T>(bytes: number, work: () => T) => Promise<T>

const smallBytes = 262_144
const longestRestMs = 100

export function createPace(): Pace {
  let last: Promise<unknown> = Promise.resolve()
  return async (bytes, work) => {
    if (bytes < smallBytes) return work()
    let took = 0
    const turn = last.then(async () => {
      await nextTurn()
      const began = performance.now()
      try {
        return work()
      } finally {
        took = performance.now() - began
      }
    })
    const rest = (): Promise<void> => pause(Math.min(took, longestRestMs))
    last = turn.then(rest, rest)
    return turn
  }
}
