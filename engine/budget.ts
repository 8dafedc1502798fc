/**
 * A bound on what many hold in memory together. Whoever is about to hold much takes its share first, in the order of asking, and
 * gives it back at the end; who would be too much waits.
 */
export interface Budget {
  /** Resolves with how to give the share back. Rejects with the signal's reason when it aborts first. */
  take(bytes: number, signal: AbortSignal): Promise<Release>
}

/** Gives a share back, or all of it but `keep` bytes. */
export type Release = (keep?: number) => void

interface Waiting {
  readonly bytes: number
  readonly begin: () => void
}

/** A share larger than `total` is the whole. */
export function createBudget(total: number): Budget {
  let free = total
  let queue: Waiting[] = []
  const next = (): void => {
    for (let first = queue[0]; first !== undefined && first.bytes <= free; first = queue[0]) {
      queue = queue.slice(1)
      free -= first.bytes
      first.begin()
    }
  }
  return {
    async take(asked, signal) {
      const bytes = Math.min(asked, total)
      const { promise, resolve, reject } = Promise.withResolvers<undefined>()
      const waiting = { bytes, begin: () => resolve(undefined) }
      const leave = (): void => {
        if (!queue.includes(waiting)) return
        queue = queue.filter((one) => one !== waiting)
        reject(signal.reason as Error)
        next()
      }
      signal.throwIfAborted()
      signal.addEventListener('abort', leave, { once: true })
      queue.push(waiting)
      next()
      await promise.finally(() => signal.removeEventListener('abort', leave))
      let held = bytes
      return (keep = 0) => {
        const left = Math.min(held, keep)
        free += held - left
        held = left
        next()
      }
    },
  }
}
