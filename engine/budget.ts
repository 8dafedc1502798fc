/**
 * Bounds the bytes that this process holds at once (MAILROOM_BUFFER_MAX): bodies of API calls, answers of mail servers,
 * contents of mail for API answers, callbacks and searches. Work takes a share before it holds much, and releases it at
 * the end. A share that does not fit waits in the fair queue, where a byte is a place.
 *
 * Each use has its own queue, so that holders never wait for each other in a circle, and small shares never wait for
 * large ones. A part of a developer (a webhook, an email account) gets at most a quarter of it, and a developer at
 * most five eighths; the last quarter is for developers who hold nothing.
 */
import { AppError } from './errors.ts'
import { createFairQueue, type Release } from './fair-queue.ts'

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

export type { Release }

export type Budget = ReturnType<typeof createBudget>

const patienceMs = 30_000

export function createBudget(total: number, waitMs = patienceMs) {
  const [request, literal, small, large] = [1 / 8, 1 / 4, 1 / 8, 1 / 2].map((part) => poolOf(total * part)) as Pools
  const closed = new AbortController()
  const contents = (bytes: number): Pool => (bytes <= small.size / 32 ? small : large)
  return {
    /** null = the share did not fit within half a minute. Rejects with `shutting_down` after `close`. */
    async take(use: Use, owner: Owner, asked: number, { signal }: TakeOptions = {}): Promise<Release | null> {
      const { size, queue } = use === 'request' ? request : use === 'literal' ? literal : contents(asked)
      const ends = [closed.signal, ...(signal ? [signal] : [])]
      for (const end of ends) end.throwIfAborted()
      // A share counts as half of the pool at most, so that every share fits.
      const places = Math.min(asked, size / 2)
      const share = { developerId: owner.developerId, key: owner.part, urgent: false, places }
      const taken = queue.takeNow(share)
      if (taken !== null) return taken
      const late = AbortSignal.timeout(waitMs)
      return queue.take(share, AbortSignal.any([late, ...ends])).catch((error: unknown) => {
        if (error === late.reason) return null
        throw error
      })
    },
    close: () => closed.abort(new AppError('shutting_down', 'the service is stopping')),
  }
}

type Pool = ReturnType<typeof poolOf>
type Pools = [Pool, Pool, Pool, Pool]

function poolOf(size: number) {
  const bounds = { places: (size * 3) / 4, spare: size / 4, perDeveloper: (size * 5) / 8, perKey: size / 4 }
  return { size, queue: createFairQueue(bounds) }
}
