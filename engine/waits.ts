/**
 * Waiting: for a time, for work that may take too long, for the work before; and for others, so that no work holds the
 * event loop for long.
 */
import { workAsNobody } from './observe/loop.ts'

/** Sleeps unless aborted; never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const end = (): void => resolve(undefined)
  // Not by node:timers/promises, which makes an error with its stack for each pause that is cut short.
  const timer = setTimeout(end, ms).unref()
  signal.addEventListener('abort', end)
  await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', end)
}

/**
 * Waits for the work, but no longer than `ms`: when it took longer, what `late` answers or throws, else undefined.
 * Rejects when the work does.
 */
export async function withinTime<T, Late = undefined>(
  ms: number,
  work: Promise<T>,
  late: () => Late = () => undefined as Late,
): Promise<T | Late> {
  const { promise, resolve, reject } = Promise.withResolvers<T | Late>()
  const timer = setTimeout(() => {
    try {
      resolve(late())
    } catch (error) {
      reject(error)
    }
  }, ms)
  work.then(resolve, reject)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

/** One piece of work at a time, in the order of asking; one that fails does not stop the next. */
export function createExclusive() {
  const inOrder = createExclusiveByKey()
  return <T>(work: () => Promise<T>): Promise<T> => inOrder('', work)
}

/** The same for each key; nothing is kept of a key that has no work. */
export function createExclusiveByKey() {
  const last = new Map<string, Promise<unknown>>()
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const turn = (last.get(key) ?? Promise.resolve()).then(work, work)
    last.set(key, turn)
    try {
      return await turn
    } finally {
      if (last.get(key) === turn) last.delete(key)
    }
  }
}

/** What all long work together takes of one turn of the event loop. */
const stretchMs = 10

/** Of this process, as there is one event loop: the work that goes on in one of the next turns, in order. */
const waiting: (() => void)[] = []
/** When the stretch of this turn is over; null = no work has asked in this turn. */
let stretchEndsAt: number | null = null

async function nextStretch(): Promise<void> {
  stretchEndsAt = null
  if (waiting.length === 0) return
  const endsAt = beginStretch()
  do {
    waiting.shift()?.()
    await settled()
  } while (waiting.length > 0 && performance.now() < endsAt)
}

function beginStretch(): number {
  stretchEndsAt = performance.now() + stretchMs
  workAsNobody(() => setImmediate(() => void nextStretch()))
  return stretchEndsAt
}

/**
 * Yields to the event loop, between two pieces of long work: resolves at once while this turn has time left and no
 * other work waits, else in a later turn, after the work that waits already. So timers, sockets and short work have
 * their turn every 10 ms, however much long work there is.
 */
export async function yieldToLoop(): Promise<void> {
  if (waiting.length === 0 && performance.now() < (stretchEndsAt ?? beginStretch())) return
  await new Promise<void>((resolve) => waiting.push(resolve))
}

/** Once all promises that can go on have gone on. */
function settled(): Promise<void> {
  return new Promise((resolve) => void Promise.resolve().then(() => process.nextTick(resolve)))
}
