/**
 * Delay arithmetic. Pure: the random number comes in as `jitter` in [0, 1), so that tests decide it.
 * All times and delays are milliseconds.
 */

/** Timers hold 31 bits (about 24.8 days); a longer delay would fire at once. */
export const longestTimerMs = 2 ** 31 - 1

/** A delay that a timer can hold: whole, not negative, at most `longestTimerMs`. NaN counts as 0. */
export function timerMs(ms: number): number {
  if (Number.isNaN(ms)) return 0
  return Math.min(Math.max(Math.round(ms), 0), longestTimerMs)
}

/**
 * Exponential back-off with full jitter: uniform in [0, cap), where the cap starts at `firstMs` for attempt 1, doubles
 * with each attempt and ends at `maxMs`. Full jitter spreads a herd best.
 */
export function fullJitterMs(attempt: number, jitter: number, firstMs: number, maxMs: number): number {
  return timerMs(jitter * exponentialMs(attempt, firstMs, maxMs))
}

/** Half of the exponential cap for sure, the other half by jitter: for waits that must not be 0. */
export function halfJitterMs(attempt: number, jitter: number, firstMs: number, maxMs: number): number {
  return timerMs((0.5 + jitter / 2) * exponentialMs(attempt, firstMs, maxMs))
}

function exponentialMs(attempt: number, firstMs: number, maxMs: number): number {
  // 2 ** 1024 is Infinity, which Math.min handles.
  return Math.min(maxMs, firstMs * 2 ** Math.max(attempt - 1, 0))
}

/** The wait after the `nth` failure (from 1); past its end the schedule's last entry stays in force. */
export function scheduleMs(schedule: readonly number[], nth: number): number {
  const index = Math.min(Math.max(nth, 1), schedule.length) - 1
  return timerMs(schedule[index] ?? 0)
}

/** `ms` plus or minus up to `percent`; jitter 0.5 changes nothing. */
export function spreadMs(ms: number, percent: number, jitter: number): number {
  return timerMs(ms * (1 + ((jitter * 2 - 1) * percent) / 100))
}

/**
 * A server's own hint: never shorter than said, at most `maxMs`, and up to a tenth longer so that a thousand accounts
 * with the same hint do not come back in one moment.
 */
export function hintedMs(hintMs: number, maxMs: number, jitter: number): number {
  return timerMs(Math.min(Math.max(hintMs, 0), maxMs) * (1 + jitter / 10))
}

/**
 * The next number of a fixed sequence over [0, 1). A deadline brings no fresh random number with it, so the last one is
 * stirred; two actors that started with different numbers stay apart.
 */
export function stirred(jitter: number): number {
  const next = jitter * 97 + 0.6180339887498949
  return next - Math.floor(next)
}
