/** When a callback that failed is tried again: pure arithmetic over the schedule, jitter and Retry-After. */
import { type Config, parseDurations } from '../config.ts'
import { badParameter } from '../errors.ts'
import type { WebhookRecord } from '../store/records.ts'

export type ScheduleConfig = Pick<
  Config,
  'MAILROOM_WEBHOOK_JITTER' | 'MAILROOM_WEBHOOK_RETRY_AFTER_MAX' | 'MAILROOM_WEBHOOK_PROBE'
>

const mostWaits = 20

/** A webhook's own schedule as its parameter gives it; an empty text removes it. Throws `bad_request` naming the parameter. */
export function readSchedule(given: string | null): Required<Pick<WebhookRecord, 'retrySchedule' | 'retryScheduleMs'>> {
  const text = given?.trim() ?? ''
  if (text === '') return { retrySchedule: '', retryScheduleMs: [] }
  const waits = text.split(',').length
  if (waits > mostWaits) throw badParameter('retry_schedule', `expected at most ${mostWaits} waits, got ${waits}`)
  try {
    return { retrySchedule: text, retryScheduleMs: parseDurations(text, '1s', '7d') }
  } catch (error) {
    throw badParameter('retry_schedule', (error as Error).message)
  }
}

/** The webhook's own schedule, or the configured one, which is that of bare URLs (null) too. */
export function scheduleOf(
  config: Pick<Config, 'MAILROOM_WEBHOOK_SCHEDULE'>,
  webhook: Pick<WebhookRecord, 'retryScheduleMs'> | null,
): readonly number[] {
  const own = webhook?.retryScheduleMs ?? []
  return own.length > 0 ? own : config.MAILROOM_WEBHOOK_SCHEDULE
}

/** Wait after failed attempt number `attempt` (from 1); null = that was the last one. `random` is 0..1. */
export function waitAfter(
  config: Pick<Config, 'MAILROOM_WEBHOOK_JITTER'>,
  schedule: readonly number[],
  attempt: number,
  random: number,
): number | null {
  const wait = schedule[attempt - 1]
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
