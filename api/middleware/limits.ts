/** Calls per hour and key, and calls that touch IMAP per minute and user. Counted in this process; every answer says what is left. */
import { LRUCache } from 'lru-cache'
import { AppError, type UserRecord } from '../../engine/index.ts'
import type { FrameContext, Middleware } from '../call.ts'

interface Window {
  count: number
  readonly endsAt: number
}

interface Rate {
  /** Counts one call and says what is left, in these headers; throws `rate_limited` over the limit. */
  count(id: string, ctx: FrameContext): void
  /** Says what is left, and counts nothing. */
  tell(id: string, ctx: FrameContext): void
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
  const known = (id: string): Window | null => {
    const window = windows.get(id)
    return window === undefined || window.endsAt <= now() ? null : window
  }
  const fresh = (): Window => ({ count: 0, endsAt: now() + windowMs })
  const say = (ctx: FrameContext, { count, endsAt }: Window): void => {
    ctx.set(`${header}-Limit`, String(limit))
    ctx.set(`${header}-Remaining`, String(Math.max(0, limit - count)))
    ctx.set(`${header}-Reset`, String(Math.ceil(endsAt / 1000)))
  }
  return {
    count(id, ctx) {
      if (limit === 0) return
      const window = known(id) ?? fresh()
      if (window.count === 0) windows.set(id, window)
      window.count += 1
      say(ctx, window)
      if (window.count <= limit) return
      throw new AppError('rate_limited', `over the limit of ${limit} ${words}`, {
        retryAfterMs: window.endsAt - now(),
      })
    },
    tell(id, ctx) {
      if (limit > 0) say(ctx, known(id) ?? fresh())
    },
  }
}

export interface Limits {
  /** Counts the developer's call; after auth. */
  readonly calls: Middleware
  /** Counts a call against the user's IMAP budget. Throws `rate_limited`. */
  readonly touchesImap: (ctx: FrameContext, user: Pick<UserRecord, 'id'>) => void
  /** Says what is left of the user's IMAP budget. */
  readonly concerns: (ctx: FrameContext, user: UserRecord) => void
}

export function createLimits(options: {
  readonly callsPerHour: number
  readonly imapPerMinute: number
  readonly now: () => number
}): Limits {
  const { now } = options
  const perKey = createRate({
    limit: options.callsPerHour,
    windowMs: 3_600_000,
    header: 'X-RateLimit',
    words: 'calls an hour for one API key',
    now,
  })
  const perUser = createRate({
    limit: options.imapPerMinute,
    windowMs: 60_000,
    header: 'X-RateLimit-IMAP',
    words: 'calls a minute to the mail servers of one user',
    now,
  })
  return {
    calls: async (ctx, next) => {
      const { developer } = ctx.state.exchange
      if (developer !== null) perKey.count(developer.id, ctx)
      await next()
    },
    touchesImap: (ctx, user) => perUser.count(user.id, ctx),
    concerns: (ctx, user) => perUser.tell(user.id, ctx),
  }
}
