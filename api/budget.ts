/**
 * A bound on what calls hold in memory together. Whoever is about to hold much takes its share first, in the order of asking, and
 * gives it back when the answer is out; who would be too much waits.
 */
export interface Budget {
  /** Resolves with how to give the share back. Rejects with the signal's reason when it aborts first. */
  take(bytes: number, signal: AbortSignal): Promise<() => void>
}

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
      let given = false
      return () => {
        if (given) return
        given = true
        free += bytes
        next()
      }
    },
  }
}
