/**
 * Bounds the bytes that this process holds at once (MAILROOM_BUFFER_MAX): bodies of API calls, answers of mail servers,
 * contents of mail for API answers, callbacks and searches. Work takes a share before it holds much, and releases it at
 * the end. A share that does not fit waits.
 *
 * Each use has its own pool, so that holders never wait for each other in a circle, and small shares never wait for
 * large ones. In a pool one part of a developer (a webhook, an email account) gets at most a quarter, and one developer
 * at most twice the bytes that are left free.
 */
import { AppError } from './errors.ts'

/** `request`: bodies of API calls. `literal`: answers of mail servers. `contents`: mail, and answers made of it. */
export type Use = 'request' | 'literal' | 'contents'

export interface Owner {
  readonly developerId: string
  /** A webhook or an email account; '' = API calls, which have only the developer's bound. */
  readonly part: string
}

export interface TakeOptions {
  /** Ends the wait: `take` rejects with its reason. */
  readonly signal?: AbortSignal
}

/** Releases the share, or all of it but `keep` bytes. */
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
  /** Bytes held, by developer and by part. */
  readonly held: Map<string, number>
}

/** Size of each pool, as a part of the whole. */
const parts = { request: 1 / 8, literal: 1 / 4, small: 1 / 8, large: 1 / 2 } as const
const patienceMs = 30_000

export function createBudget(total: number, waitMs = patienceMs) {
  const poolOf = (part: keyof typeof parts): Pool => createPool(total * parts[part])
  const [request, literal, small, large] = [poolOf('request'), poolOf('literal'), poolOf('small'), poolOf('large')]
  const closed = new AbortController()
  const contents = (bytes: number): Pool => (bytes <= small.size / 32 ? small : large)
  return {
    /** null = the share did not fit within half a minute. Rejects with `shutting_down` after `close`. */
    async take(use: Use, owner: Owner, asked: number, { signal }: TakeOptions = {}): Promise<Release | null> {
      const pool = use === 'request' ? request : use === 'literal' ? literal : contents(asked)
      // A share counts as half of the pool at most, so that every share fits.
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

/** Whose shares leave no room: the part's, the developer's, or those of all; null = there is room. */
type Obstacle = 'part' | 'developer' | 'pool' | null

function obstacleOf({ held, free, size }: Pool, owner: Owner, bytes: number): Obstacle {
  const [developer, part] = keysOf(owner).map((key) => held.get(key) ?? 0) as [number, number]
  if (owner.part !== '' && part > 0 && part + bytes > size / 4) return 'part'
  if (developer > 0 && developer + bytes > 2 * (free - bytes)) return 'developer'
  return bytes > free ? 'pool' : null
}

/**
 * Takes the share if it fits. It may overtake a share that waits for its own owner, but not one that waits for room.
 */
function fitsNow(pool: Pool, owner: Owner, bytes: number): boolean {
  if (obstacleOf(pool, owner, bytes) !== null || nextOf(pool) === 'pool') return false
  count(pool, owner, bytes)
  return true
}

/** Begins waiting shares that fit, in order, up to the first that waits for room. 'pool' = there is such a share. */
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

/** Resolves with true when the share is taken, false when the signal aborts first. */
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
