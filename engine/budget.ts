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

type Pool = ReturnType<typeof createPool>

const patienceMs = 30_000

export function createBudget(total: number, waitMs = patienceMs) {
  const poolOf = (part: number): Pool => createPool(total * part)
  const [request, literal, small, large] = [poolOf(1 / 8), poolOf(1 / 4), poolOf(1 / 8), poolOf(1 / 2)]
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
      const ends = [closed.signal, ...(signal ? [signal] : [])]
      if (await isTaken(pool, owner, bytes, () => AbortSignal.any([AbortSignal.timeout(waitMs), ...ends])))
        return releaseOf(pool, owner, bytes)
      throwIfOver()
      return null
    },
    close: () => closed.abort(new AppError('shutting_down', 'the service is stopping')),
  }
}

interface Waiting {
  readonly owner: Owner
  readonly bytes: number
  readonly begin: () => void
}

/** `held`: bytes, by developer and by part. */
function createPool(size: number) {
  return { size, free: size, waiting: [] as Waiting[], held: new Map<string, number>() }
}

const keysOf = ({ developerId, part }: Owner): readonly [string, string] => [developerId, `${developerId} ${part}`]

/** Whether the owner may have the share, for the bounds of the part and of the developer. */
function isWithinBounds({ held, free, size }: Pool, owner: Owner, bytes: number): boolean {
  const [developer, part] = keysOf(owner).map((key) => held.get(key) ?? 0) as [number, number]
  if (owner.part !== '' && part > 0 && part + bytes > size / 4) return false
  return developer === 0 || developer + bytes <= 2 * (free - bytes)
}

/** Begins waiting shares that fit, in order, up to the first that waits for room; others may be overtaken. */
function beginNext(pool: Pool): void {
  for (const one of [...pool.waiting]) {
    if (!isWithinBounds(pool, one.owner, one.bytes)) continue
    if (one.bytes > pool.free) return
    pool.waiting = pool.waiting.filter((other) => other !== one)
    count(pool, one.owner, one.bytes)
    one.begin()
  }
}

function count(pool: Pool, owner: Owner, bytes: number): void {
  pool.free -= bytes
  for (const key of keysOf(owner)) {
    const now = (pool.held.get(key) ?? 0) + bytes
    if (now === 0) pool.held.delete(key)
    else pool.held.set(key, now)
  }
}

/** Takes the share, now or when it fits. false = the signal aborts first. */
async function isTaken(pool: Pool, owner: Owner, bytes: number, endOf: () => AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const waiting = { owner, bytes, begin: () => resolve(true) }
  pool.waiting.push(waiting)
  beginNext(pool)
  if (!pool.waiting.includes(waiting)) return true
  const end = endOf()
  const leave = (): void => {
    if (!pool.waiting.includes(waiting)) return
    pool.waiting = pool.waiting.filter((one) => one !== waiting)
    resolve(false)
    beginNext(pool)
  }
  end.addEventListener('abort', leave, { once: true })
  try {
    return await promise
  } finally {
    end.removeEventListener('abort', leave)
  }
}

function releaseOf(pool: Pool, owner: Owner, bytes: number): Release {
  let held = bytes
  return (keep = 0) => {
    const given = held - Math.min(held, keep)
    held -= given
    if (given === 0) return
    count(pool, owner, -given)
    beginNext(pool)
  }
}
