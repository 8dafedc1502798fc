/** Calls per hour and key, calls to IMAP per minute and user. Counted in this process; answers show the rest. */
import { LRUCache } from 'lru-cache'
import { AppError, type Config } from '../engine/index.ts'
import type { FrameContext } from './call.ts'

interface Window {
  count: number
  readonly endsAt: number
}

interface Rate {
  /** Counts one call and says what is left, in these headers; throws `rate_limited` over the limit. */
  count(id: string, ctx: FrameContext): void
  /** Says what is left, and counts nothing. */
  show(id: string, ctx: FrameContext): void
}

interface RateOptions {
  /** 0 = no limit, and no headers. */
  readonly limit: number
  readonly windowMs: number
  /** 'X-RateLimit' gives X-RateLimit-Limit, -Remaining and -Reset (Unix timestamp in seconds). */
  readonly header: string
  /** 'calls an hour for one API key' */
  readonly words: string
  readonly now: () => number
}

/** Keys and users of whom a window is remembered; far more than are active within one. */
const remembered = 100_000

function createRate({ limit, windowMs, header, words, now }: RateOptions): Rate {
  const windows = new LRUCache<string, Window>({ max: remembered })
  const windowOf = (id: string): Window => {
    const window = windows.get(id)
    return window === undefined || window.endsAt <= now() ? { count: 0, endsAt: now() + windowMs } : window
  }
  const show = (ctx: FrameContext, { count, endsAt }: Window): void => {
    if (limit === 0) return
    ctx.set(`${header}-Limit`, String(limit))
    ctx.set(`${header}-Remaining`, String(Math.max(0, limit - count)))
    ctx.set(`${header}-Reset`, String(Math.ceil(endsAt / 1000)))
  }
  return {
    count(id, ctx) {
      if (limit === 0) return
      const window = windowOf(id)
      if (window.count === 0) windows.set(id, window)
      window.count += 1
      show(ctx, window)
      if (window.count <= limit) return
      throw new AppError('rate_limited', `over the limit of ${limit} ${words}`, {
        retryAfterMs: window.endsAt - now(),
      })
    },
    show: (id, ctx) => show(ctx, windowOf(id)),
  }
}

export interface Limits {
  /** By developer. */
  readonly calls: Rate
  /** By user. */
  readonly imap: Rate
}

type Settings = Pick<Config, 'MAILROOM_RATE_CALLS_PER_HOUR' | 'MAILROOM_RATE_IMAP_PER_MINUTE'>

export function createLimits(config: Settings, now: () => number): Limits {
  return {
    calls: createRate({
      limit: config.MAILROOM_RATE_CALLS_PER_HOUR,
      windowMs: 3_600_000,
      header: 'X-RateLimit',
      words: 'calls an hour for one API key',
      now,
    }),
    imap: createRate({
      limit: config.MAILROOM_RATE_IMAP_PER_MINUTE,
      windowMs: 60_000,
      header: 'X-RateLimit-IMAP',
      words: 'calls a minute to the mail servers of one user',
      now,
    }),
  }
}
