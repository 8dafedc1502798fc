/**
 * The part of a channel's outbox in memory: at most `capacity` rows that wait for their turn, however many the store
 * has. No I/O and no clock: the channel reads the store when `wantsRead` is true.
 *
 * An account's rows in memory are the first of its pending rows in the store, without gaps. While some are in memory or
 * under way, a read leaves the account out. Live rows (lane 0) go before historical rows (lane 1), within an account
 * and over all accounts.
 */
import type { OutboxRecord } from '../store/records.ts'

/** The rows of one account. The few rows without an account share a queue. */
interface AccountQueue {
  rows: OutboxRecord[]
  /** Rows under way: one, and perhaps one of `sendNow`. */
  busy: number
  /** The store may have more rows of the account, to be read after these. */
  more: boolean
  /** Live rows of the account may have been stored since they were read. */
  live: boolean
}

export interface ReadPlan {
  readonly exceptAccounts: readonly string[]
  readonly limit: number
}

function keyOf(row: OutboxRecord): string {
  return row.accountId ?? ''
}

export class DeliveryQueue {
  readonly #capacity: number
  readonly #queues = new Map<string, AccountQueue>()
  /** Account → its blocked first row. A historical row (lane 1) does not block live rows. */
  readonly #waits = new Map<string, Pick<OutboxRecord, 'id' | 'dueAt' | 'lane'>>()
  /** The store may have rows of accounts without a queue; `urgent`: live rows. */
  #unread = true
  #urgent = false
  /** Live rows may have been stored since the last read began. */
  #live = false

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Rows were just stored: their accounts are read later. Historical rows leave the memory when live rows need it. */
  stored(rows: readonly OutboxRecord[]): void {
    for (const row of rows) this.#stored(row)
    if (!this.#urgent || this.#size() < this.#capacity) return
    for (const [key, queue] of [...this.#queues]) this.#dropHistorical(key, queue)
  }

  #stored(row: OutboxRecord): void {
    const key = keyOf(row)
    const wait = this.#waits.get(key)
    if (wait !== undefined && wait.lane <= row.lane) return
    this.#waits.delete(key)
    const queue = this.#queues.get(key)
    if (queue === undefined) this.#unread = true
    else queue.more = true
    if (row.lane === 1) return
    this.#live = true
    if (queue !== undefined) queue.live = true
    if (queue?.rows[0]?.lane !== 0) this.#urgent = true
    if (queue !== undefined) this.#dropHistorical(key, queue)
  }

  /** Rows may have been stored without a call of `stored`. */
  readAgain(): void {
    for (const [key, { lane }] of this.#waits) if (lane === 1) this.#waits.delete(key)
    for (const queue of this.#queues.values()) queue.more = queue.live = true
    this.#unread = this.#live = true
  }

  isReady(): boolean {
    return (this.#ready(0) ?? this.#ready(1)) !== undefined
  }

  /** The next row to send. Its account's other rows wait until `finish` or `block`. */
  take(allow: { readonly historical: boolean }): OutboxRecord | null {
    const [key, queue] = this.#ready(0) ?? (allow.historical ? this.#ready(1) : undefined) ?? []
    const row = queue?.rows.shift()
    if (key === undefined || queue === undefined || row === undefined) return null
    queue.busy += 1
    // The account goes to the end of the map, so that accounts take turns.
    this.#queues.delete(key)
    this.#queues.set(key, queue)
    return row
  }

  /** Message ids of the account's next rows, in order. */
  messagesBehind(row: OutboxRecord, most: number): string[] {
    const rows = this.#queues.get(keyOf(row))?.rows.slice(0, most) ?? []
    return rows.flatMap(({ messageId }) => messageId ?? [])
  }

  #ready(lane: 0 | 1): readonly [string, AccountQueue] | undefined {
    return this.#queues.entries().find(([, queue]) => queue.busy === 0 && queue.rows[0]?.lane === lane)
  }

  /** A row that was not taken from here (of a probe or `sendNow`) is under way, until `finish`, `block` or `free`. */
  claim(row: OutboxRecord): void {
    const queue = this.#queues.getOrInsert(keyOf(row), { rows: [], busy: 0, more: true, live: true })
    this.#keep(queue, [])
    queue.busy += 1
  }

  finish(row: OutboxRecord): void {
    const queue = this.#leave(row)
    if (queue !== undefined) this.#tidy(keyOf(row), queue)
  }

  /** The row is due at `until` and blocks its account until then; a historical row blocks historical rows only. */
  block(row: OutboxRecord, until: number): void {
    const key = keyOf(row)
    const queue = this.#leave(row)
    const waits = this.#wait(row, until, queue?.live ?? false)
    if (queue === undefined) return
    queue.rows = []
    queue.more = !waits
    this.#tidy(key, queue)
  }

  /** false = the row does not block its account: live rows (`live`) are read first, and then the row again. */
  #wait(row: OutboxRecord, dueAt: number, live: boolean): boolean {
    const { id, lane } = row
    if (lane === 1 && live) return false
    this.#waits.set(keyOf(row), { id, dueAt, lane })
    return true
  }

  /** A row of `sendNow` has ended: the account's rows in memory are out of date. */
  free(row: OutboxRecord): void {
    const key = keyOf(row)
    this.#waits.delete(key)
    const queue = this.#leave(row)
    if (queue === undefined) return
    queue.more = true
    this.#tidy(key, queue)
  }

  /** Unblocks accounts whose row is due by `now`; they are read again. Infinity = all. */
  release(now: number): void {
    for (const [key, { dueAt }] of this.#waits) {
      if (dueAt > now) continue
      this.#waits.delete(key)
      const queue = this.#queues.get(key)
      if (queue === undefined) this.#unread = true
      else queue.more = true
    }
  }

  /** When the first blocked row is due; null = none is blocked. */
  nextRelease(): number | null {
    const first = this.#waits.values().reduce((soonest, { dueAt }) => Math.min(soonest, dueAt), Infinity)
    return first === Infinity ? null : first
  }

  /** The row that blocks this row (perhaps itself), and until when; null = the row is not blocked. */
  waitOf(row: OutboxRecord): Pick<OutboxRecord, 'id' | 'dueAt'> | null {
    const wait = this.#waits.get(keyOf(row))
    return wait !== undefined && wait.lane <= row.lane ? wait : null
  }

  /** Accounts with rows in memory or under way. */
  accounts(): string[] {
    return [...this.#queues.keys()]
  }

  wantsRead(): boolean {
    const size = this.#size()
    if (!this.#unread || size >= this.#capacity) return false
    return this.#urgent || size <= this.#capacity / 2
  }

  beginRead(): ReadPlan {
    this.#unread = false
    this.#urgent = false
    this.#live = false
    const exceptAccounts = [...new Set([...this.#queues.keys(), ...this.#waits.keys()])]
    return { exceptAccounts, limit: this.#capacity - this.#size() }
  }

  endRead(rows: readonly OutboxRecord[], plan: ReadPlan, now: number): void {
    // The store may have more rows than the limit.
    if (rows.length >= plan.limit) this.#unread = true
    for (const [key, own] of Map.groupBy(rows, keyOf)) {
      const busy = this.#queues.get(key)
      if (busy === undefined) this.#add(key, own, now)
      else busy.more = true
    }
  }

  /** A row that is due later blocks the rows behind it. */
  #add(key: string, rows: OutboxRecord[], now: number): void {
    const index = rows.findIndex(({ dueAt }) => dueAt > now)
    const due = index < 0 ? rows : rows.slice(0, index)
    const later = rows[index]
    if (later !== undefined && !this.#wait(later, later.dueAt, this.#live)) this.#unread = true
    if (due.length > 0) this.#queues.set(key, { rows: due, busy: 0, more: this.#unread, live: this.#live })
  }

  /** The read failed, or its rows are out of date. */
  abortRead(): void {
    this.#unread = true
  }

  /** Forgets all rows that are not under way. A read that began before must not call `endRead`. */
  reset(): void {
    for (const [key, queue] of this.#queues) {
      queue.rows = []
      queue.more = queue.live = true
      if (queue.busy === 0) this.#queues.delete(key)
    }
    this.#waits.clear()
    this.#unread = true
    this.#urgent = false
  }

  #size(): number {
    return this.#queues.values().reduce((sum, { rows }) => sum + rows.length, 0)
  }

  /** A row of the account is no longer under way. */
  #leave(row: OutboxRecord): AccountQueue | undefined {
    const queue = this.#queues.get(keyOf(row))
    if (queue !== undefined) queue.busy -= 1
    return queue
  }

  #dropHistorical(key: string, queue: AccountQueue): void {
    const live = queue.rows.filter(({ lane }) => lane === 0)
    this.#keep(queue, live)
    this.#tidy(key, queue)
  }

  #keep(queue: AccountQueue, rows: OutboxRecord[]): void {
    if (rows.length < queue.rows.length) queue.more = true
    queue.rows = rows
  }

  /** Removes the queue if it has no rows. */
  #tidy(key: string, queue: AccountQueue): void {
    if (queue.busy > 0 || queue.rows.length > 0) return
    this.#queues.delete(key)
    if (queue.more) this.#unread = true
  }
}
