/** Waiting in tests: ask again until the answer is there, never sleep for a fixed time. */
import { setTimeout as pause } from 'node:timers/promises'

export interface UntilOptions {
  /** Give up after this time; 30 s otherwise. */
  readonly withinMs?: number
  /** Time between two questions; 20 ms otherwise. */
  readonly everyMs?: number
  /** Called when time is up: what to add to the error, such as a log. */
  readonly explain?: () => string
}

type Falsy = false | 0 | '' | null | undefined

/**
 * Asks `probe` until it answers something true, and answers that. A probe that throws counts as "not yet"; its last
 * error is the cause of the final one. Rejects with `<what>: not within <n> ms`.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, Falsy>> {
  const withinMs = options.withinMs ?? 30_000
  const deadline = performance.now() + withinMs
  // Where the whole machine stood still past the deadline, what it held up has not been read yet.
  let lateQuestions = 5
  let cause: unknown
  for (;;) {
    try {
      const answer = await probe()
      if (answer) return answer as Exclude<T, Falsy>
      cause = undefined
    } catch (error) {
      cause = error
    }
    if (performance.now() >= deadline && (lateQuestions -= 1) < 0) {
      const note = options.explain?.() ?? (cause instanceof Error ? cause.message : '')
      throw new Error(`${what}: not within ${withinMs} ms${note === '' ? '' : `\n${note}`}`, { cause })
    }
    await pause(options.everyMs ?? 20)
  }
}

/** How long this process itself stood still, in milliseconds: the machine did, which is no wait of the service. */
export function standstill() {
  let [lost, last] = [0, performance.now()]
  const gap = (): number => Math.max(0, performance.now() - last - 50)
  const timer = setInterval(() => {
    lost += gap()
    last = performance.now()
  }, 10).unref()
  return { lost: () => lost + gap(), stop: () => clearInterval(timer) }
}
