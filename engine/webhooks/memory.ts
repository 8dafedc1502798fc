/**
 * A bound on what callbacks under way and searches in bodies hold in memory together, however many wait. Whoever is about to read
 * bodies takes a share first; what does not fit waits for those before it.
 *
 * There are two pools: the many small ones never wait for large ones. Of each pool one owner (a webhook; or the searches that API
 * calls ask for) gets a quarter at most: a receiver that is slow to take what it is sent delays no other.
 */
import { getHeapStatistics } from 'node:v8'
import { type Budget, type Release, createBudget } from '../budget.ts'
import { AppError } from '../errors.ts'

export interface Memory {
  /** null = there was no room within half a minute. Rejects with `shutting_down` after `close`. */
  take(owner: string, bytes: number): Promise<Release | null>
  close(): void
}

interface Owned {
  readonly budget: Budget
  /** Shares that it has, or waits for. */
  count: number
}

interface Pool {
  readonly size: number
  readonly budget: Budget
  readonly owned: Map<string, Owned>
}

const patienceMs = 30_000

function createPool(size: number): Pool {
  return { size, budget: createBudget(size), owned: new Map() }
}

/** `heapBytes`: what JavaScript may use in all. */
export function createMemory(heapBytes = getHeapStatistics().heap_size_limit, waitMs = patienceMs): Memory {
  const large = createPool(heapBytes / 8)
  const small = createPool(heapBytes / 32)
  const closed = new AbortController()
  return {
    async take(owner, bytes) {
      const pool = bytes <= small.size / 32 ? small : large
      const late = AbortSignal.timeout(waitMs)
      try {
        return await takeFrom(pool, owner, bytes, AbortSignal.any([late, closed.signal]))
      } catch (error) {
        if (late.aborted && !closed.signal.aborted) return null
        throw error
      }
    },
    close: () => closed.abort(new AppError('shutting_down', 'no more callbacks are begun')),
  }
}

async function takeFrom(pool: Pool, owner: string, bytes: number, signal: AbortSignal): Promise<Release> {
  const own = pool.owned.get(owner) ?? { budget: createBudget(pool.size / 4), count: 0 }
  pool.owned.set(owner, own)
  own.count += 1
  const leave = (): void => {
    own.count -= 1
    if (own.count === 0) pool.owned.delete(owner)
  }
  let ofOwn: Release | null = null
  try {
    ofOwn = await own.budget.take(bytes, signal)
    const ofAll = await pool.budget.take(bytes, signal)
    return releaseOf(ofOwn, ofAll, leave)
  } catch (error) {
    ofOwn?.()
    leave()
    throw error
  }
}

function releaseOf(ofOwn: Release, ofAll: Release, leave: () => void): Release {
  let held = true
  return (keep = 0) => {
    ofOwn(keep)
    ofAll(keep)
    if (held && keep === 0) leave()
    if (keep === 0) held = false
  }
}
