/**
 * The work of one channel (a webhook, or a bare URL): what the chart's `drain` and `probe` do. Rows of one account go out one
 * after the other, accounts side by side; the result is in the store before the next row of the account goes out.
 *
 * drain runs between `start` and `stop`; rows that are on their way at `stop` come to their end and tell `notify` what came of it.
 */
import { toAppError } from '../errors.ts'
import type { Logger } from '../observe/log.ts'
import type { OutboxStore } from '../store/port.ts'
import type { OutboxRecord } from '../store/records.ts'
import type { DeliveryFailure, ProbeOutput, WebhookEvent } from '../../machines/events.ts'
import type { Attempts, Handled } from './attempts.ts'
import { type Lanes, createLanes } from './lanes.ts'

export interface ChannelDeps {
  readonly store: Pick<OutboxStore, 'pending'>
  readonly attempts: Attempts
  readonly log: Logger
  readonly now: () => number
  readonly random: () => number
  /** Rows under way at once, and rows in memory. */
  readonly concurrency: number
  readonly capacity: number
  readonly notify: (event: WebhookEvent) => void
}

export interface Channel {
  readonly id: string
  start(): void
  stop(): void
  /** Looks for work; after rows were written behind the channel's back (`everything`) reads the store again. */
  wake(everything: boolean): void
  /** Rows that were just stored. */
  offer(rows: readonly OutboxRecord[]): void
  /** Sends the oldest row, due or not. */
  probe(): Promise<ProbeOutput>
  /** Sends this row at once, past schedule and line, unless it waits in memory for its turn or is on its way. */
  sendNow(row: OutboxRecord): void
  isUnderWay(rowId: string): boolean
  /** The receiver is back: rows that failed before do not wait for their own time. */
  recovered(): void
  /** Resolves when nothing is on its way. */
  settled(): Promise<void>
  /** The row whose attempt ended last. */
  readonly last: OutboxRecord | null
}

interface State {
  readonly id: string
  readonly deps: ChannelDeps
  readonly lanes: Lanes
  readonly underWay: Set<Promise<void>>
  /** Rows on their way, and their accounts. */
  readonly sending: Map<string, string>
  /** Counts beginnings and ends of rows sent by hand: what was read meanwhile may be out of date. */
  byHand: number
  running: boolean
  /** Counts starts and stops: a read of an earlier run is thrown away. */
  run: number
  historical: number
  timer: NodeJS.Timeout | undefined
  retryReadAt: number
  recoveredAt: number
  toldIdle: boolean
  lastProbed: string | null
  last: OutboxRecord | null
}

/** Wait after an error of ours. */
const stallMs = 2_000

function newState(id: string, deps: ChannelDeps): State {
  return {
    id,
    deps,
    lanes: createLanes(deps.capacity),
    underWay: new Set(),
    sending: new Map(),
    byHand: 0,
    running: false,
    run: 0,
    historical: 0,
    timer: undefined,
    retryReadAt: 0,
    recoveredAt: 0,
    toldIdle: false,
    lastProbed: null,
    last: null,
  }
}

export function createChannel(id: string, deps: ChannelDeps): Channel {
  const state = newState(id, deps)
  return {
    id,
    start: () => restart(state, true),
    stop: () => restart(state, false),
    wake(everything) {
      if (everything) state.lanes.markBehind()
      pump(state)
    },
    offer(rows) {
      if (!state.running) return
      for (const row of rows) state.lanes.offer(row)
      pump(state)
    },
    probe: () => probe(state),
    sendNow(row) {
      if (!state.sending.has(row.id) && !state.lanes.holds(row)) track(state, sendByHand(state, row))
    },
    isUnderWay: (rowId) => state.sending.has(rowId),
    recovered() {
      state.recoveredAt = deps.now()
      state.lanes.release(Number.POSITIVE_INFINITY)
      pump(state)
    },
    async settled() {
      while (state.underWay.size > 0) await Promise.all(state.underWay)
    },
    get last() {
      return state.last
    },
  }
}

function restart(state: State, running: boolean): void {
  state.running = running
  state.run += 1
  state.toldIdle = false
  state.retryReadAt = 0
  state.lanes.reset()
  clearTimeout(state.timer)
  pump(state)
}

function pump(state: State): void {
  if (!state.running) return
  const { deps, lanes } = state
  const now = deps.now()
  lanes.release(now)
  const historicalMost = Math.max(1, Math.floor(deps.concurrency / 2))
  while (state.underWay.size < deps.concurrency) {
    const row = lanes.take({ historical: state.historical < historicalMost })
    if (row === null) break
    track(state, send(state, row))
  }
  if (lanes.wantsRead() && now >= state.retryReadAt) track(state, read(state))
  rest(state, now)
}

function track(state: State, work: Promise<void>): void {
  state.toldIdle = false
  const tracked = work.finally(() => {
    state.underWay.delete(tracked)
    pump(state)
  })
  state.underWay.add(tracked)
}

/** Sets the alarm for what is due later, and says so when there is nothing else. */
function rest(state: State, now: number): void {
  const { lanes, deps } = state
  clearTimeout(state.timer)
  const next = lanes.wantsRead() ? state.retryReadAt : lanes.nextRelease()
  if (next !== null) state.timer = setTimeout(() => pump(state), Math.min(Math.max(next - now, 1), 2 ** 31 - 1))
  if (state.underWay.size > 0 || lanes.wantsRead() || state.toldIdle) return
  state.toldIdle = true
  deps.notify({ type: 'idle', at: now })
}

async function read(state: State): Promise<void> {
  const { deps, lanes, run, byHand } = state
  const plan = lanes.beginRead()
  try {
    const rows = await deps.store.pending(state.id, plan.exceptAccounts, plan.limit, plan.exceptHistorical)
    if (run !== state.run) return
    const current = rows.map((row) => withoutAnswers(dueNow(state, row)))
    if (byHand === state.byHand) lanes.endRead(current, plan, deps.now())
    else lanes.abortRead()
  } catch (error) {
    deps.log.warn({ channelId: state.id, err: toAppError(error) }, 'outbox not read, trying again')
    if (run !== state.run) return
    lanes.abortRead()
    state.retryReadAt = deps.now() + stallMs
  }
}

/** A row whose last attempt lies before the receiver's recovery has waited long enough. */
function dueNow(state: State, row: OutboxRecord): OutboxRecord {
  const lastAt = row.attempts.at(-1)?.at
  const waited = lastAt !== undefined && lastAt < state.recoveredAt && row.dueAt > state.deps.now()
  return waited ? { ...row, dueAt: state.deps.now() } : row
}

/** In memory nobody asks what the receiver answered: that may be 48 kB of each row. */
function withoutAnswers(row: OutboxRecord): OutboxRecord {
  return { ...row, attempts: row.attempts.map((one) => ({ ...one, response: null })) }
}

async function send(state: State, row: OutboxRecord): Promise<void> {
  // Until it comes back from being sent by hand.
  if (state.sending.has(row.id)) {
    state.lanes.block(row, Number.POSITIVE_INFINITY)
    return
  }
  state.historical += row.lane
  try {
    const handled = await handle(state, row, 'drain')
    if (handled.attempt !== null) tell(state, handled)
  } catch (error) {
    report(state, row, error)
  } finally {
    state.historical -= row.lane
  }
}

/** Other rows of its account wait meanwhile; one that is on its way already goes on. */
async function sendByHand(state: State, row: OutboxRecord): Promise<void> {
  const { deps, lanes, sending } = state
  const account = row.accountId ?? ''
  if (!lanes.busyAccounts().includes(account)) lanes.block(row, Number.POSITIVE_INFINITY)
  sending.set(row.id, account)
  state.byHand += 1
  try {
    const handled = await deps.attempts.handle(row, 'probe')
    state.last = row
    if (handled.attempt === null) return
    if (handled.failure === null && !state.running) state.recoveredAt = deps.now()
    tell(state, handled)
  } catch (error) {
    report(state, row, error)
  } finally {
    sending.delete(row.id)
    state.byHand += 1
    lanes.free(row)
  }
}

/** Frees or blocks the account, whatever happens. */
async function handle(state: State, row: OutboxRecord, mode: 'drain' | 'probe'): Promise<Handled> {
  const { deps, lanes, sending } = state
  sending.set(row.id, row.accountId ?? '')
  try {
    const handled = await deps.attempts.handle(row, mode)
    state.last = row
    if (handled.until === null) lanes.finish(row)
    else lanes.block(row, handled.until)
    return handled
  } catch (error) {
    lanes.block(row, deps.now() + stallMs)
    throw error
  } finally {
    sending.delete(row.id)
  }
}

function report(state: State, row: OutboxRecord, error: unknown): void {
  state.deps.log.error({ channelId: state.id, outboxId: row.id, err: toAppError(error) }, 'callback not tried')
}

function tell(state: State, { attempt, failure }: Handled): void {
  const { deps } = state
  const at = deps.now()
  if (failure === null) deps.notify({ type: 'delivered', at })
  else {
    const type = failure.scope === 'receiver' ? 'delivery.failed' : 'row.failed'
    deps.notify({ type, failure: failureOf(state, failure, attempt?.at ?? at) })
  }
}

function failureOf(state: State, failure: NonNullable<Handled['failure']>, startedAt: number): DeliveryFailure {
  const { message, retryAfterMs, permanent } = failure
  const jitter = state.deps.random()
  return {
    message,
    at: state.deps.now(),
    startedAt,
    retryAfterMs,
    jitter,
    ...(permanent === null ? {} : { permanent }),
  }
}

/** Another account than last time, so that one bad row does not speak for all; skipped and postponed rows are no answer. */
async function probe(state: State): Promise<ProbeOutput> {
  const { deps, lanes, run } = state
  const nothing = () => ({ delivered: null, at: deps.now() }) as const
  const passed: string[] = []
  for (;;) {
    const { byHand } = state
    const row = await nextProbe(state, passed)
    if (row === null || run !== state.run) return nothing()
    if (byHand !== state.byHand) continue
    lanes.claim(row)
    state.lastProbed = row.accountId
    let handled: Handled | null = null
    const work = handle(state, row, 'probe').then((one) => void (handled = one))
    track(
      state,
      work.catch(() => undefined),
    )
    await work
    const answer = outcome(state, handled)
    if (answer !== null) return answer
    if (state.running) return nothing()
    if (waits(handled)) passed.push(row.accountId ?? '')
  }
}

async function nextProbe(state: State, passed: readonly string[]): Promise<OutboxRecord | null> {
  const { deps, lanes, lastProbed } = state
  const except = [...new Set([...lanes.busyAccounts(), ...state.sending.values(), ...passed])]
  const others = lastProbed === null ? [] : await deps.store.pending(state.id, [...except, lastProbed], 1)
  const [row] = others.length > 0 ? others : await deps.store.pending(state.id, except, 1)
  return row ?? null
}

/** A row that was postponed is still its account's first; one that was skipped is done with. */
function waits(handled: Handled | null): boolean {
  return handled?.until !== null
}

function outcome(state: State, handled: Handled | null): ProbeOutput | null {
  if (handled === null || handled.attempt === null) return null
  const { attempt, failure } = handled
  if (failure !== null) return { delivered: false, failure: failureOf(state, failure, attempt.at) }
  state.recoveredAt = state.deps.now()
  return { delivered: true, at: state.deps.now() }
}
