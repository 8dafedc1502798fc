/**
 * Waits: for a time, for work with a deadline, for earlier work of the same key, and for other work of the event loop.
 */
import { workAsNobody } from './observe/loop.ts'

/** Sleeps unless aborted; never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const end = (): void => resolve(undefined)
  // Not node:timers/promises, which makes an error with a stack for each aborted pause.
  const timer = setTimeout(end, ms).unref()
  signal.addEventListener('abort', end)
  await promise
  clearTimeout(timer)
  signal.removeEventListener('abort', end)
}

/** Settles as the work does; after `ms` as `late` does, by default with undefined. */
export async function withinTime<T, Late = undefined>(
  ms: number,
  work: Promise<T>,
  late: () => Late = () => undefined as Late,
): Promise<T | Late> {
  const { promise, resolve, reject } = Promise.withResolvers<T | Late>()
  const timer = setTimeout(() => resolve(Promise.try(late)), ms)
  work.then(resolve, reject)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
  }
}

/** Runs one piece of work at a time, in order of call, also after failed work. */
export function createExclusive() {
  const inOrder = createExclusiveByKey()
  return <T>(work: () => Promise<T>): Promise<T> => inOrder('', work)
}

/** The same for each key. Keeps nothing of a key without work. */
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

/** Time of long work in one turn of the event loop. */
const stretchMs = 10

/** Long work that goes on in one of the next turns: by owner, each owner's in order. The first owner is the next. */
const waiting = new Map<string, (() => void)[]>()
/** End of the time for long work in this turn; null = no call in this turn yet. */
let stretchEndsAt: number | null = null

async function nextStretch(): Promise<void> {
  stretchEndsAt = null
  if (waiting.size === 0) return
  const endsAt = beginStretch()
  do {
    resumeNext()
    await settled()
  } while (waiting.size > 0 && performance.now() < endsAt)
}

function resumeNext(): void {
  const [next] = waiting
  if (next === undefined) return
  const [owner, works] = next
  waiting.delete(owner)
  works.shift()?.()
  if (works.length > 0) waiting.set(owner, works)
}

function beginStretch(): number {
  stretchEndsAt = performance.now() + stretchMs
  workAsNobody(() => setImmediate(() => void nextStretch()))
  return stretchEndsAt
}

/**
 * Yields to the event loop between two pieces of long work. Resolves at once while this turn has time left and no other
 * work waits, else in a later turn, of each owner in turn. Timers, sockets and short work thus run every 10 ms.
 */
export async function yieldToLoop(owner = ''): Promise<void> {
  if (waiting.size === 0 && performance.now() < (stretchEndsAt ?? beginStretch())) return
  await new Promise<void>((resolve) => waiting.getOrInsertComputed(owner, () => []).push(resolve))
}

/** Resolves after all promise callbacks that can run have run. */
function settled(): Promise<void> {
  return new Promise((resolve) => void Promise.resolve().then(() => process.nextTick(resolve)))
}
