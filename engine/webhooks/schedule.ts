/** When a callback that failed is tried again: pure arithmetic over the schedule, jitter and Retry-After. */
import type { Config } from '../config.ts'

export type ScheduleConfig = Pick<
  Config,
  | 'MAILROOM_WEBHOOK_SCHEDULE'
  | 'MAILROOM_WEBHOOK_JITTER'
  | 'MAILROOM_WEBHOOK_RETRY_AFTER_MAX'
  | 'MAILROOM_WEBHOOK_PROBE'
>

/** Wait after failed attempt number `attempt` (from 1); null = that was the last one. `random` is 0..1. */
export function waitAfter(config: ScheduleConfig, attempt: number, random: number): number | null {
  const wait = config.MAILROOM_WEBHOOK_SCHEDULE[attempt - 1]
  if (wait === undefined) return null
  const spread = (config.MAILROOM_WEBHOOK_JITTER / 100) * wait
  return Math.round(wait - spread + 2 * spread * random)
}

/** Retry-After (RFC 9110 10.2.3: seconds or a date) as a wait in ms, at most the configured longest; null = absent or unreadable. */
export function retryAfterMs(config: ScheduleConfig, header: string | undefined, now: number): number | null {
  if (header === undefined) return null
  const text = header.trim()
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  if (Number.isNaN(wait)) return null
  return Math.min(Math.max(wait, 0), config.MAILROOM_WEBHOOK_RETRY_AFTER_MAX)
}
