/**
 * What a channel holds in memory of its outbox: one lane per account, rows of an account strictly in order, at most `capacity`
 * rows in all, however many wait in the store. No I/O and no clock: the channel reads the store when `wantsRead` says so.
 *
 * Invariants: a lane's queue is the beginning of what the store has pending for that account, without holes. `partial` = the
 * store may hold more of it. `behind` = the store may hold rows of accounts that have no lane. A blocked account (its first row
 * is due later) has no lane. Live rows (lane 0) go before historical ones (lane 1), in the queue of an account and over accounts;
 * a held account (its first historical row is due later) has a lane for its live rows alone.
 */
import type { OutboxRecord } from '../store/records.ts'

interface Lane {
  queue: OutboxRecord[]
  busy: boolean
  partial: boolean
}

interface State {
  readonly capacity: number
  readonly lanes: Map<string, Lane>
  /** Account → when its first row is due. */
  readonly blocked: Map<string, number>
  /** Account → when its first historical row is due. */
  readonly held: Map<string, number>
  /**
   * Ids of the rows that were read last, at most twice the capacity: on MongoDB a row is in the store, and may be read and sent,
   * before the step that stores it ends and it is offered.
   */
  readonly known: Set<string>
  buffered: number
  behind: boolean
  /** A live row waits in the store: read as soon as there is room. */
  urgent: boolean
  reading: boolean
  /** Became behind while a read was under way. */
  missed: boolean
}

export interface ReadPlan {
  readonly exceptAccounts: readonly string[]
  /** Of these accounts live rows alone are read. */
  readonly exceptHistorical: readonly string[]
  readonly limit: number
}

export interface Lanes {
  /** A row that was just stored. Kept, or left to the next read. */
  offer(row: OutboxRecord): void
  /** The next row to send; its account is busy until `finish` or `block`. */
  take(allow: { readonly historical: boolean }): OutboxRecord | null
  /** The account is busy with a row that did not come from here (a probe's), until `finish` or `block`. */
  claim(row: OutboxRecord): void
  finish(row: OutboxRecord): void
  /** The row is due at `until`: nothing of its account goes out before, or of a historical row nothing historical. */
  block(row: OutboxRecord, until: number): void
  /** Whatever is in memory of the row's account, and of when it is due, is to be read again. */
  free(row: OutboxRecord): void
  /** The row waits in memory for its turn. */
  holds(row: OutboxRecord): boolean
  /** Blocked accounts whose time has come are to be read again; Infinity frees all. */
  release(now: number): void
  /** Rows were written by others (start, requeue, scan): read again. */
  markBehind(): void
  wantsRead(): boolean
  beginRead(): ReadPlan
  endRead(rows: readonly OutboxRecord[], plan: ReadPlan, now: number): void
  /** The read failed: what it was for is still to be read. */
  abortRead(): void
  /** Forgets all rows that are not on their way; everything is to be read again. A read under way must not be ended. */
  reset(): void
  /** Accounts with a row on its way. */
  busyAccounts(): string[]
  /** Time of the next release; null when nothing is blocked. */
  nextRelease(): number | null
}

/** Rows without an account (there are few) share one lane. */
function keyOf(row: OutboxRecord): string {
  return row.accountId ?? ''
}

function newState(capacity: number): State {
  return {
    capacity,
    lanes: new Map(),
    blocked: new Map(),
    held: new Map(),
    known: new Set(),
    buffered: 0,
    behind: true,
    urgent: false,
    reading: false,
    missed: false,
  }
}

export function createLanes(capacity: number): Lanes {
  const state = newState(capacity)
  return {
    offer: (row) => offer(state, row),
    take: ({ historical }) => take(state, historical),
    claim(row) {
      remember(state, row)
      state.lanes.set(keyOf(row), { queue: [], busy: true, partial: true })
    },
    finish: (row) => finish(state, row),
    block: (row, until) => block(state, row, until),
    free: (row) => free(state, row),
    holds: (row) => state.lanes.get(keyOf(row))?.queue.some(({ id }) => id === row.id) === true,
    release: (now) => release(state, now),
    markBehind: () => markBehind(state),
    wantsRead: () => wantsRead(state),
    beginRead() {
      state.reading = true
      return {
        exceptAccounts: [...state.lanes.keys(), ...state.blocked.keys()],
        exceptHistorical: [...state.held.keys()],
        limit: capacity - state.buffered,
      }
    },
    endRead: (rows, plan, now) => endRead(state, rows, plan, now),
    abortRead() {
      state.reading = false
      state.missed = false
    },
    reset: () => reset(state),
    busyAccounts: () => [...state.lanes].flatMap(([key, lane]) => (lane.busy ? [key] : [])),
    nextRelease: () => earliest([...state.blocked.values(), ...state.held.values()]),
  }
}

function push(state: State, lane: Lane, row: OutboxRecord): void {
  state.buffered += 1
  const at = row.lane === 0 ? lane.queue.findIndex((one) => one.lane === 1) : -1
  if (at < 0) lane.queue.push(row)
  else lane.queue.splice(at, 0, row)
}

/** A lane without rows goes; what the store may still hold of it has to be read. */
function tidy(state: State, key: string, lane: Lane): void {
  if (lane.busy || lane.queue.length > 0) return
  state.lanes.delete(key)
  if (lane.partial) lag(state)
}

function lag(state: State): void {
  if (state.reading) state.missed = true
  else state.behind = true
}

/** A read leaves out the accounts that have a lane: theirs are read when the lane has come to its end. */
function markBehind(state: State): void {
  for (const lane of state.lanes.values()) lane.partial = true
  lag(state)
}

function dropHistorical(state: State, lane: Lane): void {
  const live = lane.queue.filter((row) => row.lane === 0)
  if (live.length === lane.queue.length) return
  state.buffered -= lane.queue.length - live.length
  lane.queue = live
  lane.partial = true
}

/** Historical rows give way to a live one; true when there is room. */
function makeRoom(state: State, row: OutboxRecord): boolean {
  if (state.buffered >= state.capacity && row.lane === 0) {
    for (const [key, lane] of [...state.lanes]) {
      dropHistorical(state, lane)
      tidy(state, key, lane)
    }
  }
  return state.buffered < state.capacity
}

function remember({ known, capacity }: State, { id }: OutboxRecord): void {
  known.delete(id)
  known.add(id)
  for (const oldest of known) {
    if (known.size <= 2 * capacity) return
    known.delete(oldest)
  }
}

function offer(state: State, row: OutboxRecord): void {
  const key = keyOf(row)
  if (state.blocked.has(key) || state.known.has(row.id) || (row.lane === 1 && state.held.has(key))) return
  const lane = state.lanes.get(key)
  if (lane === undefined) offerNew(state, key, row)
  else if (!lane.partial && state.buffered < state.capacity) push(state, lane, row)
  else {
    lane.partial = true
    if (row.lane === 0) dropHistorical(state, lane)
    tidy(state, key, lane)
  }
}

/** The account has no lane: unless the store may hold older rows of it, the row starts one. */
function offerNew(state: State, key: string, row: OutboxRecord): void {
  if (state.reading || state.behind || !makeRoom(state, row)) {
    lag(state)
    if (row.lane === 0) state.urgent = true
    return
  }
  const lane: Lane = { queue: [], busy: false, partial: false }
  state.lanes.set(key, lane)
  push(state, lane, row)
}

function take(state: State, historical: boolean): OutboxRecord | null {
  const found = firstReady(state, 0) ?? (historical ? firstReady(state, 1) : null)
  if (found === null) return null
  const [key, lane] = found
  const row = lane.queue.shift() ?? null
  state.buffered -= 1
  lane.busy = true
  // To the end of the line: every account gets its turn.
  state.lanes.delete(key)
  state.lanes.set(key, lane)
  return row
}

function firstReady(state: State, wanted: 0 | 1): readonly [string, Lane] | null {
  for (const [key, lane] of state.lanes) {
    if (!lane.busy && lane.queue[0]?.lane === wanted) return [key, lane]
  }
  return null
}

function finish(state: State, row: OutboxRecord): void {
  const lane = state.lanes.get(keyOf(row))
  if (lane === undefined) return
  lane.busy = false
  tidy(state, keyOf(row), lane)
}

/** Live rows wait for nothing historical; historical ones wait for the live row as well. */
function block(state: State, row: OutboxRecord, until: number): void {
  const key = keyOf(row)
  const lane = state.lanes.get(key)
  if (row.lane === 1) {
    state.held.set(key, until)
    if (lane !== undefined) dropHistorical(state, lane)
    finish(state, row)
    return
  }
  state.buffered -= lane?.queue.length ?? 0
  state.lanes.delete(key)
  state.blocked.set(key, until)
}

function free(state: State, row: OutboxRecord): void {
  const key = keyOf(row)
  state.blocked.delete(key)
  state.held.delete(key)
  const lane = state.lanes.get(key)
  if (lane === undefined) {
    lag(state)
    return
  }
  state.buffered -= lane.queue.length
  lane.queue = []
  lane.partial = true
  tidy(state, key, lane)
}

function release(state: State, now: number): void {
  for (const [key, until] of state.blocked) {
    if (until > now) continue
    state.blocked.delete(key)
    lag(state)
  }
  for (const [key, until] of state.held) {
    if (until > now) continue
    state.held.delete(key)
    const lane = state.lanes.get(key)
    if (lane === undefined) lag(state)
    else lane.partial = true
  }
}

function wantsRead(state: State): boolean {
  if (!state.behind || state.reading || state.buffered >= state.capacity) return false
  return state.urgent || state.buffered <= state.capacity / 2
}

function endRead(state: State, rows: readonly OutboxRecord[], plan: ReadPlan, now: number): void {
  // Rows that were stored during the read may be missing from its answer.
  const partial = rows.length >= plan.limit || state.missed
  state.reading = false
  state.urgent = false
  state.behind = partial
  state.missed = false
  /** Accounts of which a row is due later: their rest stays in the store. */
  const closed = new Set<string>()
  for (const row of rows) {
    const key = keyOf(row)
    if (closed.has(key)) continue
    const lane = state.lanes.get(key) ?? { queue: [], busy: false, partial }
    if (row.dueAt <= now) {
      state.lanes.set(key, lane)
      push(state, lane, row)
      remember(state, row)
      continue
    }
    closed.add(key)
    if (lane.queue.some((one) => one.lane === row.lane)) lane.partial = true
    else if (row.lane === 1) state.held.set(key, row.dueAt)
    else state.blocked.set(key, row.dueAt)
  }
}

function reset(state: State): void {
  for (const [key, lane] of state.lanes) {
    if (!lane.busy) state.lanes.delete(key)
    lane.queue = []
    lane.partial = true
  }
  state.blocked.clear()
  state.held.clear()
  state.buffered = 0
  state.reading = false
  state.behind = true
  state.missed = false
  state.urgent = false
}

function earliest(times: Iterable<number>): number | null {
  let soonest: number | null = null
  for (const time of times) if (soonest === null || time < soonest) soonest = time
  return soonest
}
