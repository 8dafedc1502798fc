/**
 * The work of one channel (a webhook, or a bare URL): what the chart's `drain`, `claim` and `probe` do. Rows of one
 * account go out one after the other, accounts side by side; the result is in the store before the next row of the
 * account goes out.
 *
 * drain runs between `start` and `stop`: it sends what was claimed, and says when there is room to claim more. Rows
 * that are on their way at `stop` come to their end and tell `notify` what came of it.
 */
import { timerMs } from '../../machines/backoff.ts'
import { toAppError } from '../errors.ts'
import type { Logger } from '../observe/log.ts'
import type { OutboxStore } from '../store/port.ts'
import type { OutboxRecord } from '../store/records.ts'
import type { DeliveryFailure, ProbeOutput, WebhookEvent } from '../../machines/events.ts'
import type { Attempts, Handled } from './attempts.ts'
import { Lines } from './lines.ts'

interface ChannelDeps {
  readonly store: Pick<OutboxStore, 'pending'>
  readonly attempts: Pick<Attempts, 'handle'>
  readonly log: Logger
  readonly now: () => number
  readonly random: () => number
  /** Rows under way at once, and rows in memory. */
  readonly concurrency: number
  readonly capacity: number
  readonly notify: (event: WebhookEvent) => void
}

interface State {
  readonly id: string
  readonly deps: ChannelDeps
  readonly lines: Lines
  readonly underWay: Set<Promise<void>>
  /** Ids of the rows on their way. */
  readonly sending: Set<string>
  /** Counts the ends of rows sent by hand: what was read meanwhile may be out of date. */
  byHand: number
  running: boolean
  /** Counts starts and stops: a read of an earlier run is thrown away. */
  run: number
  historical: number
  timer: NodeJS.Timeout | undefined
  claiming: boolean
  recoveredAt: number
  saidIdle: boolean
  lastProbed: string | null
  last: OutboxRecord | null
}

/** Wait after an error of ours. */
const stallMs = 2_000

export type Channel = ReturnType<typeof createChannel>

export function createChannel(id: string, deps: ChannelDeps) {
  const state: State = {
    id,
    deps,
    lines: new Lines(deps.capacity),
    underWay: new Set(),
    sending: new Set(),
    byHand: 0,
    running: false,
    run: 0,
    historical: 0,
    timer: undefined,
    claiming: false,
    recoveredAt: 0,
    saidIdle: false,
    lastProbed: null,
    last: null,
  }
  return {
    start: () => restart(state, true),
    stop: () => restart(state, false),
    /** Looks for work. `rows` were just stored; null: any may have been. */
    wake(rows: readonly OutboxRecord[] | null = []) {
      if (rows === null) state.lines.readAgain()
      else state.lines.stored(rows)
      state.saidIdle = false
      pump(state)
    },
    /** Reads due rows of accounts that are free, as many as there is room for. Rejects when the store is away. */
    claim: () => claim(state),
    /** Sends the oldest row, due or not. */
    probe: () => probe(state),
    /** Sends this row at once, past schedule and line, unless it waits in memory for its turn or is on its way. */
    sendNow(row: OutboxRecord) {
      if (!state.sending.has(row.id) && !state.lines.holds(row)) track(state, sendByHand(state, row))
    },
    isUnderWay: (rowId: string) => state.sending.has(rowId),
    /** The receiver is back: rows that failed before do not wait for their own time. */
    recovered() {
      state.recoveredAt = deps.now()
      state.lines.release(Number.POSITIVE_INFINITY)
      pump(state)
    },
    /** Resolves when nothing is on its way. */
    async settled() {
      while (state.underWay.size > 0) await Promise.all(state.underWay)
    },
    /** The row whose attempt ended last. */
    get last() {
      return state.last
    },
  }
}

function restart(state: State, running: boolean): void {
  state.running = running
  state.run += 1
  state.saidIdle = false
  state.claiming = false
  state.lines.reset()
  clearTimeout(state.timer)
  pump(state)
}

function pump(state: State): void {
  if (!state.running) return
  state.lines.release(state.deps.now())
  sendReady(state)
  if (!state.claiming) rest(state)
}

function sendReady(state: State): void {
  const { deps, lines } = state
  const historicalMost = Math.max(1, Math.floor(deps.concurrency / 2))
  while (state.underWay.size < deps.concurrency) {
    const row = lines.take({ historical: state.historical < historicalMost })
    if (row === null) break
    track(state, send(state, row))
  }
}

function track(state: State, work: Promise<void>): void {
  state.saidIdle = false
  const tracked = work.finally(() => {
    state.underWay.delete(tracked)
    pump(state)
  })
  state.underWay.add(tracked)
}

/** Asks for a claim, or sets the timer for what is due later; says so when there is nothing else. */
function rest(state: State): void {
  const { lines, deps } = state
  clearTimeout(state.timer)
  if (lines.wantsRead()) {
    deps.notify({ type: 'room' })
    return
  }
  const next = lines.nextRelease()
  const now = deps.now()
  if (next !== null) state.timer = setTimeout(() => pump(state), timerMs(Math.max(next - now, 1)))
  if (state.underWay.size > 0 || state.saidIdle) return
  state.saidIdle = true
  deps.notify({ type: 'idle', at: now })
}

async function claim(state: State): Promise<void> {
  const { deps, lines, run, byHand } = state
  state.claiming = true
  const plan = lines.beginRead()
  try {
    const rows = await deps.store.pending(state.id, plan.exceptAccounts, plan.limit, plan.exceptHistorical)
    if (run !== state.run) return
    const current = rows.map((row) => withoutAnswers(dueNow(state, row)))
    if (byHand === state.byHand) lines.endRead(current, plan, deps.now())
    else lines.abortRead()
  } catch (error) {
    deps.log.warn({ channelId: state.id, err: toAppError(error) }, 'outbox not read, trying again')
    throw error
  }
  sendReady(state)
  // The chart has to know first that the claim is done: until then it takes no news of this kind.
  setImmediate(() => {
    if (run !== state.run) return
    state.claiming = false
    pump(state)
  })
}

/** A row whose last attempt lies before the receiver's recovery has waited long enough. */
function dueNow(state: State, row: OutboxRecord): OutboxRecord {
  const lastAt = row.attempts.at(-1)?.at
  const waited = lastAt !== undefined && lastAt < state.recoveredAt && row.dueAt > state.deps.now()
  return waited ? { ...row, dueAt: state.deps.now() } : row
}

/** Nothing in memory needs what the receiver answered: that may be 48 kB of each row. */
function withoutAnswers(row: OutboxRecord): OutboxRecord {
  return { ...row, attempts: row.attempts.map((one) => ({ ...one, response: null })) }
}

async function send(state: State, row: OutboxRecord): Promise<void> {
  state.historical += row.lane
  try {
    report(state, await handle(state, row, 'drain'))
  } catch (error) {
    logError(state, row, error)
  } finally {
    state.historical -= row.lane
  }
}

/** Other rows of its account wait meanwhile; one that is on its way already goes on. */
async function sendByHand(state: State, row: OutboxRecord): Promise<void> {
  const { deps, lines, sending } = state
  lines.claim(row)
  sending.add(row.id)
  try {
    const handled = await deps.attempts.handle(row, 'probe')
    state.last = row
    if (handled.attempt !== null && handled.failure === null && !state.running) state.recoveredAt = deps.now()
    report(state, handled)
  } catch (error) {
    logError(state, row, error)
  } finally {
    sending.delete(row.id)
    state.byHand += 1
    lines.free(row)
  }
}

/** Frees or blocks the account, whatever happens. */
async function handle(state: State, row: OutboxRecord, mode: 'drain' | 'probe'): Promise<Handled> {
  const { deps, lines, sending } = state
  sending.add(row.id)
  try {
    const handled = await deps.attempts.handle(row, mode)
    state.last = row
    if (handled.until === null) lines.finish(row)
    else lines.block(row, handled.until)
    return handled
  } catch (error) {
    lines.block(row, deps.now() + stallMs)
    throw error
  } finally {
    sending.delete(row.id)
  }
}

function logError(state: State, row: OutboxRecord, error: unknown): void {
  state.deps.log.error({ channelId: state.id, outboxId: row.id, err: toAppError(error) }, 'callback not tried')
}

function report(state: State, { attempt, failure }: Handled): void {
  if (attempt === null) return
  const { deps } = state
  if (failure === null) deps.notify({ type: 'delivered', at: deps.now() })
  else {
    const type = failure.scope === 'receiver' ? 'delivery.failed' : 'row.failed'
    deps.notify({ type, failure: failureOf(deps, failure, attempt.at) })
  }
}

function failureOf(
  { now, random }: ChannelDeps,
  { message, retryAfterMs, permanent }: NonNullable<Handled['failure']>,
  startedAt: number,
): DeliveryFailure {
  const failure = { message, at: now(), startedAt, retryAfterMs, jitter: random() }
  return permanent === null ? failure : { ...failure, permanent }
}

/**
 * Another account than last time, so that one bad row does not speak for all; skipped and postponed rows are no answer.
 */
async function probe(state: State): Promise<ProbeOutput> {
  const { deps, lines, run } = state
  const nothing = () => ({ delivered: null, at: deps.now() }) as const
  const passed: string[] = []
  for (;;) {
    const { byHand } = state
    const row = await nextProbe(state, passed)
    if (row === null || run !== state.run) return nothing()
    if (byHand !== state.byHand) continue
    lines.claim(row)
    state.lastProbed = row.accountId
    const work = handle(state, row, 'probe')
    track(
      state,
      work.then(
        () => undefined,
        () => undefined,
      ),
    )
    const { attempt, failure, until } = await work
    if (attempt !== null) {
      if (failure !== null) return { delivered: false, failure: failureOf(deps, failure, attempt.at) }
      state.recoveredAt = deps.now()
      return { delivered: true, at: deps.now() }
    }
    if (state.running) return nothing()
    // A row that was postponed is still its account's first; one that was skipped is done with.
    if (until !== null) passed.push(row.accountId ?? '')
  }
}

async function nextProbe(
  { id, deps, lines, lastProbed }: State,
  passed: readonly string[],
): Promise<OutboxRecord | null> {
  const except = [...lines.accounts(), ...passed]
  const others = lastProbed === null ? [] : await deps.store.pending(id, [...except, lastProbed], 1)
  const [row] = others.length > 0 ? others : await deps.store.pending(id, except, 1)
  return row ?? null
}
