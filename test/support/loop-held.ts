/** How long work holds the event loop, in processor time of the thread: other processes on the machine do not count. */
import assert from 'node:assert/strict'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { median } from '../bench/lib/ratios.ts'

export interface HeldLoop<T> {
  readonly value: T
  /** The longest turn while the work went on; to a millisecond, since a look at each turn would keep a core busy. */
  readonly ms: number
}

/** Processor time of this thread so far, in milliseconds. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

export async function holdOf<T>(work: () => Promise<T>): Promise<HeldLoop<T>> {
  let [ms, over] = [0, false]
  await turn()
  let before = threadMs()
  const watching = (async () => {
    while (!over) {
      await pause(1)
      const now = threadMs()
      ms = Math.max(ms, now - before)
      before = now
    }
  })()
  try {
    const value = await work()
    await turn()
    return { value, ms: Math.max(ms, threadMs() - before) }
  } finally {
    over = true
    await watching
  }
}

/** The hold of each round, in ms. */
export async function holdsOf(rounds: number, work: (round: number) => Promise<unknown>): Promise<number[]> {
  const holds: number[] = []
  for (let round = 0; round < rounds; round += 1) holds.push((await holdOf(() => work(round))).ms)
  return holds
}

/** The median hold is at most `mostMs`, the longest at most twice that: garbage collection lengthens single rounds. */
export function assertHolds(holds: readonly number[], mostMs: number): void {
  const told = `the loop was held for ${holds.join(', ')} ms`
  assert(median(holds) <= mostMs && Math.max(...holds) <= 2 * mostMs, told)
}
