/**
 * A bound on what this process holds of other people's bytes at once (MAILROOM_BUFFER_MAX): bodies of API calls,
 * answers of mail servers under way, contents of mail for API answers, callbacks and searches. What is about to hold
 * much takes a share first and gives it back at the end; what does not fit waits.
 *
 * There is a pool for each use, so that holders of shares never wait for each other in a circle, and so that the many
 * small ones never wait for large ones. Of each pool one part of a developer (a webhook, an email account) gets a
 * quarter at most, and one developer twice what is left for the others.
 */
import { AppError } from './errors.ts'

/**
 * `request`: bodies of calls. `literal`: answers of mail servers under way. `contents`: mail that was read, and what is
 * made of it.
 */
export type Use = 'request' | 'literal' | 'contents'

export interface Owner {
  readonly developerId: string
  /** A webhook, an email account; '' = the developer's API calls, which have no bound but the developer's. */
  readonly part: string
}

export interface TakeOptions {
  /** Gives up waiting: rejects with its reason. */
  readonly signal?: AbortSignal
}

/** Gives a share back, or all of it but `keep` bytes. */
export type Release = (keep?: number) => void

export type Budget = ReturnType<typeof createBudget>

interface Waiting {
  readonly owner: Owner
  readonly bytes: number
  readonly begin: () => void
}

interface Pool {
  readonly size: number
  free: number
  waiting: Waiting[]
  /** By developer, and by part: bytes held. */
  readonly held: Map<string, number>
}

/** Of the whole. */
const parts = { request: 1 / 8, literal: 1 / 4, small: 1 / 8, large: 1 / 2 } as const
const patienceMs = 30_000
export function createBudget(total: number, waitMs = patienceMs) {
  const poolOf = (part: keyof typeof parts): Pool => createPool(total * parts[part])
  const [request, literal, small, large] = [poolOf('request'), poolOf('literal'), poolOf('small'), poolOf('large')]
  const closed = new AbortController()
  const contents = (bytes: number): Pool => (bytes <= small.size / 32 ? small : large)
  return {
    /** null = there was no room within half a minute. Rejects with `shutting_down` after `close`. */
    async take(use: Use, owner: Owner, asked: number, { signal }: TakeOptions = {}): Promise<Release | null> {
      const pool = use === 'request' ? request : use === 'literal' ? literal : contents(asked)
      // A share larger than half of the pool is that half: no share is the whole pool.
      const bytes = Math.min(asked, pool.size / 2)
      const throwIfOver = (): void => {
        closed.signal.throwIfAborted()
        signal?.throwIfAborted()
      }
      throwIfOver()
      if (!fitsNow(pool, owner, bytes)) {
        const ends = [AbortSignal.timeout(waitMs), closed.signal, ...(signal ? [signal] : [])]
        if (!(await waitIn(pool, owner, bytes, AbortSignal.any(ends)))) {
          throwIfOver()
          return null
        }
      }
      return releaseOf(pool, owner, bytes)
    },
    close: () => closed.abort(new AppError('shutting_down', 'the service is stopping')),
  }
}

function createPool(size: number): Pool {
  return { size, free: size, waiting: [], held: new Map() }
}

const keysOf = ({ developerId, part }: Owner): readonly [string, string] => [developerId, `${developerId} ${part}`]

/** Which shares prevent it: the part's own, the developer's own, or those of all. null = none. */
type Obstacle = 'part' | 'developer' | 'pool' | null

function obstacleOf({ held, free, size }: Pool, owner: Owner, bytes: number): Obstacle {
  const [developer, part] = keysOf(owner).map((key) => held.get(key) ?? 0) as [number, number]
  if (owner.part !== '' && part > 0 && part + bytes > size / 4) return 'part'
  if (developer > 0 && developer + bytes > 2 * (free - bytes)) return 'developer'
  return bytes > free ? 'pool' : null
}

/** Who waits for room is not overtaken; who waits for own shares to end is. */
function fitsNow(pool: Pool, owner: Owner, bytes: number): boolean {
  if (obstacleOf(pool, owner, bytes) !== null || nextOf(pool) === 'pool') return false
  count(pool, owner, bytes)
  return true
}

/** Lets those begin who can, in the order of asking. 'pool' = somebody waits for room. */
function nextOf(pool: Pool): 'pool' | null {
  for (const one of [...pool.waiting]) {
    const obstacle = obstacleOf(pool, one.owner, one.bytes)
    if (obstacle === 'pool') return 'pool'
    if (obstacle !== null) continue
    pool.waiting = pool.waiting.filter((other) => other !== one)
    count(pool, one.owner, one.bytes)
    one.begin()
  }
  return null
}

function count(pool: Pool, owner: Owner, bytes: number): void {
  pool.free -= bytes
  for (const key of keysOf(owner)) {
    const now = (pool.held.get(key) ?? 0) + bytes
    if (now === 0) pool.held.delete(key)
    else pool.held.set(key, now)
  }
}

/** false = the signal aborted first. */
async function waitIn(pool: Pool, owner: Owner, bytes: number, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const waiting = { owner, bytes, begin: () => resolve(true) }
  const leave = (): void => {
    if (!pool.waiting.includes(waiting)) return
    pool.waiting = pool.waiting.filter((one) => one !== waiting)
    resolve(false)
    nextOf(pool)
  }
  signal.addEventListener('abort', leave, { once: true })
  pool.waiting.push(waiting)
  try {
    return await promise
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

function releaseOf(pool: Pool, owner: Owner, bytes: number): Release {
  let held = bytes
  return (keep = 0) => {
    const given = held - Math.min(held, keep)
    held -= given
    if (given === 0) return
    count(pool, owner, -given)
    nextOf(pool)
  }
}
