/**
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
    setImmediate(nextTurn)
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
  }
}

/** Once all promises that can go on have gone on: what one works before it waits for something belongs to this turn. */
export function settled(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)))
}
