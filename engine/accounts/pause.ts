/** Waiting that can be called off. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Sleeps unless aborted; never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)
}
