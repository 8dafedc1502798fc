/**
 * Waiting: for a time, for work that may take too long, for the work before; and for others, so that no work holds the
 * event loop for long.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { workAsNobody, workGoesOn } from './observe/loop.ts'

/** Sleeps unless aborted; never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)
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
  const { promise: over, resolve, reject } = Promise.withResolvers<Late>()
  const timer = setTimeout(() => {
    try {
      resolve(late())
    } catch (error) {
      reject(error)
    }
  }, ms)
  return Promise.race([work, over]).finally(() => clearTimeout(timer))
}

/** One piece of work at a time, in the order of asking; one that fails does not stop the next. */
export function createExclusive() {
  let tail: Promise<unknown> = Promise.resolve()
  return <T>(work: () => Promise<T>): Promise<T> => {
    const run = tail.then(work, work)
    // Not its value: that may be large, and the next work may come much later.
    tail = run.then(
      () => undefined,
      () => undefined,
    )
    return run
  }
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

/*
 * Work in batches gives way: in each turn of the event loop there are 10 ms for all batches together, then others have
 * theirs. Batches that wait take turns; those that work little go first, and one that does next to nothing need not
 * wait: a flood of mail does not delay a single one.
 */

/** What all batches may take of a turn of the event loop. */
const stretchMs = 10
/** One that has worked for less than this within a second goes on at once, a few in a turn … */
const freeMs = 2
const freeInTurn = 3
/** … one that has worked for longer than this waits behind those that have not … */
const lightMs = 20
const withinMs = 1000
/** … except each fourth time. */
const heavyTime = 4

interface Batch {
  /** What it worked since then. */
  ms: number
  since: number
  /** When it went on last, and in which turn. */
  at: number
  turn: number
}

interface Waiting {
  readonly batch: Batch
  readonly begin: () => void
}

/** Of this process, as there is one event loop. */
const queues: { readonly light: Waiting[]; readonly heavy: Waiting[] } = { light: [], heavy: [] }
let turn = 0
/** How many of those that waited went on so far. */
let taken = 0
/** Batches that went on in this turn although its time was over. */
let passed = 0
/** When the first batch of this turn went on; null = none has. */
let began: number | null = null
/** Which one works now; null = none before the next I/O or timer. */
let current: Batch | null = null

function isOver(): boolean {
  return began !== null && performance.now() - began >= stretchMs
}

function someWait(): boolean {
  return queues.light.length + queues.heavy.length > 0
}

function nextTurn(): void {
  turn += 1
  passed = 0
  began = null
  if (someWait()) void work(null)
}

/** Of one turn: the one that began it, then those that wait, one after the other. */
async function work(first: Batch | null): Promise<void> {
  if (began === null) {
    began = performance.now()
    workAsNobody(() => setImmediate(nextTurn))
  }
  current = first
  if (first !== null) await settled()
  while (someWait() && !isOver()) {
    const next = take()
    current = next?.batch ?? null
    next?.begin()
    await settled()
  }
  current = null
}

function take(): Waiting | undefined {
  taken += 1
  const { light, heavy } = queues
  return taken % heavyTime === 0 ? (heavy.shift() ?? light.shift()) : (light.shift() ?? heavy.shift())
}

function wait(batch: Batch): Promise<void> {
  return new Promise((begin) => queues[batch.ms > lightMs ? 'heavy' : 'light'].push({ batch, begin }))
}

function mayPass(batch: Batch): boolean {
  if (batch.ms > freeMs || passed >= freeInTurn) return false
  passed += 1
  return true
}

/**
 * To be called between two pieces of work: goes on at once while this turn has time left and no other waits, else
 * waits.
 */
export function createGiveWay(): () => Promise<void> {
  const batch: Batch = { ms: 0, since: 0, at: 0, turn: -1 }
  return async () => {
    const now = performance.now()
    if (now - batch.since > withinMs) Object.assign(batch, { ms: 0, since: now })
    if (batch.turn === turn) batch.ms += now - batch.at
    if (current === null && !someWait() && !isOver()) void work(batch)
    else if ((current !== batch || isOver()) && !mayPass(batch)) await wait(batch)
    Object.assign(batch, { at: performance.now(), turn })
    workGoesOn()
  }
}

/**
 * Once all promises that can go on have gone on: what one works before it waits for something belongs to this turn. By
 * a promise and not by queueMicrotask, which is a callback: the loop would be the work of who waits here.
 */
export function settled(): Promise<void> {
  return new Promise((resolve) => void Promise.resolve().then(() => process.nextTick(resolve)))
}
