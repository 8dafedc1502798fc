/**
 * Work in batches gives way: in each turn of the event loop one batch works, for 10 ms, then the others have theirs. Batches that wait
 * take turns; those who work little go first, and who does next to nothing need not wait, so that nobody's flood delays a single mail.
 */

/** What a batch may take of a turn of the event loop. */
const stretchMs = 10
/** Who has worked for less than this within a second goes on at once, a few in a turn … */
const freeMs = 2
const freeInTurn = 3
/** … who has worked for longer than this waits behind those who have not … */
const lightMs = 20
const withinMs = 1000
/** … but for each fourth turn. */
const heavyTurn = 4

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
/** Batches that went on at once beside the one whose turn it is. */
let passed = 0
/** Whose turn it is, and since when; null = nobody's yet. */
let current: { readonly batch: Batch; readonly at: number } | null = null

function nextTurn(): void {
  turn += 1
  passed = 0
  current = null
  const { light, heavy } = queues
  const [first, second] = turn % heavyTurn === 0 ? [heavy, light] : [light, heavy]
  const next = first.shift() ?? second.shift()
  if (next === undefined) return
  take(next.batch)
  next.begin()
}

function take(batch: Batch): void {
  current = { batch, at: performance.now() }
  setImmediate(nextTurn)
}

function wait(batch: Batch): Promise<void> {
  return new Promise((begin) => queues[batch.ms > lightMs ? 'heavy' : 'light'].push({ batch, begin }))
}

function mayPass(batch: Batch): boolean {
  if (batch.ms > freeMs || passed >= freeInTurn) return false
  passed += 1
  return true
}

function goOn(batch: Batch): void {
  batch.at = performance.now()
  batch.turn = turn
}

/** To be called between two pieces: waits for a turn when the time of this one is over, else goes on at once. */
export function createGiveWay(): () => Promise<void> {
  const batch: Batch = { ms: 0, since: 0, at: 0, turn: -1 }
  return async () => {
    const now = performance.now()
    if (now - batch.since > withinMs) Object.assign(batch, { ms: 0, since: now })
    if (batch.turn === turn) batch.ms += now - batch.at
    if (current === null) take(batch)
    else if (current.batch !== batch ? !mayPass(batch) : now - current.at >= stretchMs) await wait(batch)
    goOn(batch)
  }
}
