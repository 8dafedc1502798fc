/** How long work holds the event loop, in processor time of the thread: other processes on the machine do not count. */
import { setImmediate as turn } from 'node:timers/promises'

export interface HeldLoop<T> {
  readonly value: T
  /** The longest turn while the work went on. */
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
      await turn()
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
