/** Waiting that ends early, or in time. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Sleeps unless aborted; never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)
}

/** Waits for the work, but no longer than `ms`; rejects when the work does. */
export async function withinTime(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => resolve(undefined), ms)
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}
