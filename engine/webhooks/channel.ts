/**
 * The work of one channel (a webhook, or a bare URL) for its chart: `drain`, `claim` and `probe`. Rows of an account go
 * out one after the other, accounts side by side. A row's result is in the store before the account's next row goes
 * out.
 *
 * drain runs between `start` and `stop`: it sends claimed rows, and notifies the chart when there is room for more.
 * Rows under way at `stop` are finished, and `notify` gets their results.
 */
import { timerMs } from '../../machines/backoff.ts'
import { isAppError, toAppError } from '../errors.ts'
import type { OutboxStore } from '../store/port.ts'
import type { DeliveryAttempt, OutboxRecord } from '../store/records.ts'
import type { DeliveryFailure, ProbeOutput, WebhookEvent } from '../../machines/events.ts'
import type { Attempts, Outcome } from './attempts.ts'
import { DeliveryQueue } from './delivery-queue.ts'
import { aheadMost } from './read-ahead.ts'
import type { SharedHealth } from './shared-health.ts'
import type { WebhookParts } from './parts.ts'

interface ChannelDeps extends Pick<WebhookParts, 'config' | 'log' | 'now' | 'random'> {
  readonly store: { readonly outbox: Pick<OutboxStore, 'pending'> }
  readonly attempts: Pick<Attempts, 'handle'>
  readonly notify: (event: WebhookEvent) => void
  /** The webhook's user; null, absent = the channel sends callbacks of several users. */
  readonly userId?: string | null
  /** This node's share of a webhook that several nodes send for; absent = one node. */
  readonly shared?: Pick<SharedHealth, 'places' | 'takeTurn'>
}

/** Takes a row's result; null = an error of Mailroom. */
type Settle = (row: OutboxRecord, outcome: Outcome | null) => void

const stallMs = 2_000
/** The chart gets `delivered` at most this often. */
const deliveredEveryMs = 1000
/** Wait while other nodes have all places. */
const noPlaceMs = 1_000

export class Channel {
  readonly #id: string
  readonly #deps: ChannelDeps
  readonly queue: DeliveryQueue
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #sending = new Map<string, OutboxRecord>()
  #running = false
  /** Counts starts, stops and results of `sendNow`: a read that began before is out of date. */
  #run = 0
  #historical = 0
  #timer: NodeJS.Timeout | undefined
  /** The claim under way: until it ends the chart takes no `room` or `idle`. */
  #claim: symbol | null = null
  /** Rows that failed before this time are due at once. `probed`: a delivered callback set the time, not an edit. */
  #recovery = { at: 0, probed: false }
  #notifiedIdle = false
  /** No place or no file descriptor was left for a connection: no row is taken before this time. */
  #noCapacityUntil = 0
  #lastProbed: string | null = null
  /** Time of the last `delivered` to the chart, unless a failure followed it. */
  #deliveredNotifiedAt = -Infinity
  /** The row whose attempt ended last. */
  last: OutboxRecord | null = null

  constructor(id: string, deps: ChannelDeps) {
    this.#id = id
    this.#deps = deps
    this.queue = new DeliveryQueue(deps.config.MAILROOM_WEBHOOK_BATCH)
  }

  start(): void {
    this.#restart(true)
  }

  stop(): void {
    this.#restart(false)
  }

  /** Looks for rows to send. `rows` were just stored; null = unknown rows may have been stored. */
  wake(rows: readonly OutboxRecord[] | null = []): void {
    if (rows === null) this.queue.readAgain()
    else this.queue.stored(rows)
    this.#notifiedIdle = false
    this.#pump()
  }

  isUnderWay(rowId: string): boolean {
    return this.#sending.has(rowId)
  }

  /** The receiver is back: rows that failed before are due at once. */
  recovered(probed = false): void {
    this.#recovery = { at: this.#deps.now(), probed }
    this.release()
  }

  /** Reads blocked rows again; rows that are due later stay blocked. */
  release(): void {
    this.queue.release(Number.POSITIVE_INFINITY)
    this.#pump()
  }

  /** After a change of slots: forgets the rows in memory, and waits until no row of a lost slot is under way. */
  async renew(isShed: (row: OutboxRecord) => boolean): Promise<void> {
    if (this.#running) this.#restart(true)
    await this.finished(isShed)
  }

  /** Resolves when none of these rows is under way. */
  async finished(isMeant: (row: OutboxRecord) => boolean): Promise<void> {
    while (this.#sending.values().some(isMeant)) await Promise.race(this.#underWay)
  }

  isBusy(): boolean {
    return this.#underWay.size > 0
  }

  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  #restart(running: boolean): void {
    this.#running = running
    this.#run += 1
    this.#deliveredNotifiedAt = -Infinity
    this.#notifiedIdle = false
    if (!running) this.#claim = null
    this.queue.reset()
    clearTimeout(this.#timer)
    this.#pump()
  }

  #pump(): void {
    if (!this.#running) return
    this.queue.release(this.#deps.now())
    this.#sendReady()
    if (this.#claim === null) this.#rest()
  }

  #sendReady(): void {
    if (this.#deps.now() < this.#noCapacityUntil) return
    const { config, shared, now } = this.#deps
    const concurrency = shared?.places(this.#id) ?? config.MAILROOM_WEBHOOK_CONCURRENCY
    if (concurrency === 0 && this.queue.isReady()) this.#noCapacityUntil = now() + noPlaceMs
    const historicalMost = Math.max(1, Math.floor(concurrency / 2))
    while (this.#underWay.size < concurrency) {
      const row = this.queue.take({ historical: this.#historical < historicalMost })
      if (row === null) break
      this.#historical += row.lane
      const sent = this.#report(row, this.#handle(row, 'drain', this.#settle))
      this.#track(sent.finally(() => (this.#historical -= row.lane)))
    }
  }

  #track(work: Promise<unknown>): void {
    this.#notifiedIdle = false
    const tracked = work.finally(() => {
      this.#underWay.delete(tracked)
      this.#pump()
    })
    this.#underWay.add(tracked)
  }

  /** Asks the chart for a claim, or sets the timer for the next due row; notifies `idle` when no row is left. */
  #rest(): void {
    const { notify, now } = this.#deps
    clearTimeout(this.#timer)
    if (this.queue.wantsRead()) {
      this.#notifiedIdle = false
      notify({ type: 'room' })
      return
    }
    const at = now()
    const retryAt = at < this.#noCapacityUntil ? this.#noCapacityUntil : Infinity
    const next = Math.min(this.queue.nextRelease() ?? Infinity, retryAt)
    if (next !== Infinity) this.#timer = setTimeout(() => this.#pump(), timerMs(Math.max(next - at, 1)))
    if (this.#underWay.size > 0 || this.#notifiedIdle) return
    this.#notifiedIdle = true
    notify({ type: 'idle', at })
  }

  /** Reads due rows of free accounts, as many as there is room for. Rejects when the store is away. */
  async claim(): Promise<void> {
    const { log, now } = this.#deps
    const run = this.#run
    const claim = Symbol('claim')
    this.#claim = claim
    const plan = this.queue.beginRead()
    try {
      const rows = await this.#pending(plan.exceptAccounts, plan.limit)
      const inMemory = rows.map((row) => this.#inMemory(row))
      // Rows of an out-of-date read are dropped and read again.
      if (run === this.#run) this.queue.endRead(inMemory, plan, now())
      else this.queue.abortRead()
    } catch (error) {
      log.warn({ channelId: this.#id, err: toAppError(error) }, 'outbox not read, trying again')
      throw error
    }
    if (run === this.#run) this.#sendReady()
    // The chart takes `room` and `idle` only after it has seen the end of the claim.
    setImmediate(() => {
      if (claim !== this.#claim) return
      this.#claim = null
      this.#pump()
    })
  }

  /**
   * A row for the memory: without the receiver's responses, which may be 48 kB of each row. A row whose last attempt
   * lies before the receiver's recovery is due now. A probe proves the recovery for its own callback only, so that
   * after a probe a failure before the row's scheduled time does not count.
   */
  #inMemory(row: OutboxRecord): OutboxRecord {
    const now = this.#deps.now()
    const lastAt = row.attempts.at(-1)?.at
    const waited = lastAt !== undefined && lastAt < this.#recovery.at && row.dueAt > now
    const attempts = row.attempts.map((one) => ({ ...one, response: null }))
    if (!waited) return { ...row, attempts }
    const own = this.#recovery.probed ? { countsAt: Math.max(row.countsAt ?? 0, row.dueAt) } : {}
    return { ...row, attempts, dueAt: now, ...own }
  }

  /**
   * Sends the row at once, before its time and its turn, unless it is under way. The account's other rows wait; a row
   * of the account that is under way goes on.
   */
  sendNow(row: OutboxRecord): void {
    if (this.#sending.has(row.id)) return
    this.queue.claim(row)
    const outcome = this.#handle(row, 'probe', () => {
      this.#run += 1
      this.queue.free(row)
    })
    this.#track(this.#report(row, outcome))
  }

  /** `settle` frees or blocks the account, whatever happens. */
  async #handle(row: OutboxRecord, mode: 'drain' | 'probe', settle: Settle): Promise<Outcome> {
    let outcome: Outcome | null = null
    this.#sending.set(row.id, row)
    try {
      outcome = await this.#deps.attempts.handle(row, mode, this.queue.messagesBehind(row, aheadMost - 1))
      this.last = row
      const delivered = outcome.attempt !== null && outcome.failure === null
      if (mode === 'probe' && delivered && !this.#running) this.#recovery = { at: this.#deps.now(), probed: true }
      return outcome
    } catch (error) {
      if (isAppError(error, 'busy')) this.#noCapacityUntil = this.#deps.now() + stallMs
      throw error
    } finally {
      this.#sending.delete(row.id)
      settle(row, outcome)
    }
  }

  readonly #settle: Settle = (row, outcome) => {
    const until = outcome === null ? this.#deps.now() + stallMs : outcome.until
    if (until === null) this.queue.finish(row)
    else this.queue.block(row, until)
  }

  /** Never rejects. */
  async #report(row: OutboxRecord, handling: Promise<Outcome>): Promise<void> {
    const { notify, log } = this.#deps
    try {
      const { attempt, failure } = await handling
      if (attempt === null) return
      if (failure === null) this.#notifyDelivered()
      else {
        this.#deliveredNotifiedAt = -Infinity
        const type = failure.scope === 'receiver' ? 'delivery.failed' : 'row.failed'
        notify({ type, failure: this.#failureOf(failure, attempt) })
      }
    } catch (error) {
      // The next start, or the slot's new owner, sends the row.
      const level = isAppError(error, 'shutting_down') || isAppError(error, 'lease_lost') ? 'debug' : 'error'
      log[level]({ channelId: this.#id, outboxId: row.id, err: toAppError(error) }, 'callback not tried')
    }
  }

  #notifyDelivered(): void {
    const at = this.#deps.now()
    if (Math.abs(at - this.#deliveredNotifiedAt) < deliveredEveryMs) return
    this.#deliveredNotifiedAt = at
    this.#deps.notify({ type: 'delivered', at })
  }

  #failureOf(failure: NonNullable<Outcome['failure']>, { at }: DeliveryAttempt): DeliveryFailure {
    return { ...failure, at: this.#deps.now(), startedAt: at, jitter: this.#deps.random() }
  }

  /**
   * Sends the oldest row, due or not, of another account than last time, so that one bad row does not decide for all.
   * Skipped and postponed rows give no result; `next`: when the first postponed row is due.
   */
  async probe(): Promise<ProbeOutput> {
    const { now, shared } = this.#deps
    let next = Number.POSITIVE_INFINITY
    const nothing = () => ({ delivered: null, at: now(), next }) as const
    let isOurs = shared === undefined
    const passed: string[] = []
    for (;;) {
      const run = this.#run
      const row = await this.#nextProbe(passed)
      if (row === null) return nothing()
      isOurs ||= (await shared?.takeTurn(this.#id)) === true
      if (!isOurs || this.#running) return nothing()
      if (run !== this.#run) continue
      this.queue.claim(row)
      this.#lastProbed = row.accountId
      const work = this.#handle(row, 'probe', this.#settle)
      this.#track(work.catch(() => undefined))
      const { attempt, failure, until } = await work
      if (attempt !== null) {
        if (failure !== null) return { delivered: false, failure: this.#failureOf(failure, attempt) }
        this.#recovery = { at: now(), probed: true }
        return { delivered: true, at: now() }
      }
      // A postponed row is still its account's first; a skipped row is finished.
      if (until === null) continue
      passed.push(row.accountId ?? '')
      next = Math.min(next, until)
    }
  }

  async #nextProbe(passed: readonly string[]): Promise<OutboxRecord | null> {
    const except = [...this.queue.accounts(), ...passed]
    const last = this.#lastProbed
    const others = last === null ? [] : await this.#pending([...except, last], 1)
    const [row] = others.length > 0 ? others : await this.#pending(except, 1)
    return row ?? null
  }

  #pending(except: readonly string[], limit: number): Promise<OutboxRecord[]> {
    const { store, userId } = this.#deps
    return store.outbox.pending(this.#id, except, limit, userId)
  }
}
