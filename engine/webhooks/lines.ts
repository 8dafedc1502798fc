/**
 * The part of a channel's outbox in memory: at most `capacity` rows that wait for their turn, however many the store
 * has. No I/O and no clock: the channel reads the store when `wantsRead` is true.
 *
 * An account's rows in memory are the first of its pending rows in the store, without gaps. While some are in memory or
 * under way, a read leaves the account out. Live rows (lane 0) go before historical rows (lane 1), within an account
 * and over all accounts.
 */
import type { OutboxRecord } from '../store/records.ts'

/** The rows of one account. The few rows without an account share a line. */
interface Line {
  rows: OutboxRecord[]
  /** Rows under way: one, and perhaps one of `sendNow`. */
  busy: number
  /** The store may have more rows of the account, to be read after these. */
  more: boolean
}

export interface ReadPlan {
  readonly exceptAccounts: readonly string[]
  /** Only live rows of these accounts are read. */
  readonly exceptHistorical: readonly string[]
  readonly limit: number
}

function keyOf(row: OutboxRecord): string {
  return row.accountId ?? ''
}

export class Lines {
  readonly #capacity: number
  readonly #lines = new Map<string, Line>()
  /** Account → its blocked first row. A historical row (lane 1) does not block live rows. */
  readonly #waits = new Map<string, Pick<OutboxRecord, 'id' | 'dueAt' | 'lane'>>()
  /** The store may have rows of accounts without a line; `urgent`: live rows. */
  #unread = true
  #urgent = false

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Rows were just stored: their accounts are read later. Historical rows leave the memory when live rows need it. */
  stored(rows: readonly OutboxRecord[]): void {
    for (const row of rows) this.#stored(row)
    if (!this.#urgent || this.#size() < this.#capacity) return
    for (const [key, line] of [...this.#lines]) this.#dropHistorical(key, line)
  }

  #stored(row: OutboxRecord): void {
    const key = keyOf(row)
    const wait = this.#waits.get(key)
    if (wait !== undefined && wait.lane <= row.lane) return
    const line = this.#lines.get(key)
    if (line === undefined) this.#unread = true
    else line.more = true
    if (row.lane === 1) return
    if (line?.rows[0]?.lane !== 0) this.#urgent = true
    if (line !== undefined) this.#dropHistorical(key, line)
  }

  /** Rows may have been stored without a call of `stored`. */
  readAgain(): void {
    for (const line of this.#lines.values()) line.more = true
    this.#unread = true
  }

  /** true = a row can be taken. */
  isReady(): boolean {
    return (this.#ready(0) ?? this.#ready(1)) !== undefined
  }

  /** The next row to send. Its account's other rows wait until `finish` or `block`. */
  take(allow: { readonly historical: boolean }): OutboxRecord | null {
    const [key, line] = this.#ready(0) ?? (allow.historical ? this.#ready(1) : undefined) ?? []
    const row = line?.rows.shift()
    if (key === undefined || line === undefined || row === undefined) return null
    line.busy += 1
    // The account goes to the end of the map, so that accounts take turns.
    this.#lines.delete(key)
    this.#lines.set(key, line)
    return row
  }

  /** Message ids of the account's next rows, in order. */
  messagesBehind(row: OutboxRecord, most: number): string[] {
    const rows = this.#lines.get(keyOf(row))?.rows.slice(0, most) ?? []
    return rows.flatMap(({ messageId }) => messageId ?? [])
  }

  #ready(lane: 0 | 1): readonly [string, Line] | undefined {
    return this.#lines.entries().find(([, line]) => line.busy === 0 && line.rows[0]?.lane === lane)
  }

  /** A row that was not taken from here (of a probe or `sendNow`) is under way, until `finish`, `block` or `free`. */
  claim(row: OutboxRecord): void {
    const line = this.#lines.getOrInsert(keyOf(row), { rows: [], busy: 0, more: true })
    this.#keep(line, [])
    line.busy += 1
  }

  finish(row: OutboxRecord): void {
    const line = this.#leave(row)
    if (line !== undefined) this.#tidy(keyOf(row), line)
  }

  /** The row is due at `until` and blocks its account until then; a historical row blocks historical rows only. */
  block(row: OutboxRecord, until: number): void {
    const key = keyOf(row)
    const line = this.#leave(row)
    this.#waits.set(key, { id: row.id, dueAt: until, lane: row.lane })
    if (line === undefined) return
    if (row.lane === 1) {
      this.#dropHistorical(key, line)
      return
    }
    this.#keep(line, [])
    line.more = false
    this.#tidy(key, line)
  }

  /** A row of `sendNow` has ended: the account's rows in memory are out of date. */
  free(row: OutboxRecord): void {
    const key = keyOf(row)
    this.#waits.delete(key)
    const line = this.#leave(row)
    if (line === undefined) return
    line.more = true
    this.#tidy(key, line)
  }

  /** Unblocks accounts whose row is due by `now`; they are read again. Infinity = all. */
  release(now: number): void {
    for (const [key, { dueAt }] of this.#waits) {
      if (dueAt > now) continue
      this.#waits.delete(key)
      const line = this.#lines.get(key)
      if (line === undefined) this.#unread = true
      else line.more = true
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

  /** Replaces a row that was changed in the store. false = the row is not in memory. */
  renew(row: OutboxRecord): boolean {
    const rows = this.#lines.get(keyOf(row))?.rows ?? []
    const index = rows.findIndex(({ id }) => id === row.id)
    if (index >= 0) rows[index] = row
    return index >= 0
  }

  /** Accounts with rows in memory or under way. */
  accounts(): string[] {
    return [...this.#lines.keys()]
  }

  wantsRead(): boolean {
    const size = this.#size()
    if (!this.#unread || size >= this.#capacity) return false
    return this.#urgent || size <= this.#capacity / 2
  }

  beginRead(): ReadPlan {
    this.#unread = false
    this.#urgent = false
    const waiting = (wanted: 0 | 1) => [...this.#waits].flatMap(([key, { lane }]) => (lane === wanted ? [key] : []))
    return {
      exceptAccounts: [...this.#lines.keys(), ...waiting(0)],
      exceptHistorical: waiting(1),
      limit: this.#capacity - this.#size(),
    }
  }

  endRead(rows: readonly OutboxRecord[], plan: ReadPlan, now: number): void {
    // The store may have more rows than the limit.
    if (rows.length >= plan.limit) this.#unread = true
    for (const [key, own] of Map.groupBy(rows, keyOf)) {
      const busy = this.#lines.get(key)
      if (busy === undefined) this.#add(key, own, now)
      else busy.more = true
    }
  }

  /** A row that is due later blocks the rows behind it. */
  #add(key: string, rows: OutboxRecord[], now: number): void {
    const index = rows.findIndex(({ dueAt }) => dueAt > now)
    const due = index < 0 ? rows : rows.slice(0, index)
    const later = rows[index]
    const waits = later !== undefined && !due.some(({ lane }) => lane === later.lane)
    if (waits) this.#waits.set(key, later)
    if (due.length === 0) return
    this.#lines.set(key, { rows: due, busy: 0, more: this.#unread || (later !== undefined && !waits) })
  }

  /** The read failed, or its rows are out of date. */
  abortRead(): void {
    this.#unread = true
  }

  /** Forgets all rows that are not under way. A read that began before must not call `endRead`. */
  reset(): void {
    for (const [key, line] of this.#lines) {
      line.rows = []
      line.more = true
      if (line.busy === 0) this.#lines.delete(key)
    }
    this.#waits.clear()
    this.#unread = true
    this.#urgent = false
  }

  #size(): number {
    return this.#lines.values().reduce((sum, { rows }) => sum + rows.length, 0)
  }

  /** A row of the account is no longer under way. */
  #leave(row: OutboxRecord): Line | undefined {
    const line = this.#lines.get(keyOf(row))
    if (line !== undefined) line.busy -= 1
    return line
  }

  #dropHistorical(key: string, line: Line): void {
    const live = line.rows.filter(({ lane }) => lane === 0)
    this.#keep(line, live)
    this.#tidy(key, line)
  }

  #keep(line: Line, rows: OutboxRecord[]): void {
    if (rows.length < line.rows.length) line.more = true
    line.rows = rows
  }

  /** Removes the line if it has no rows. */
  #tidy(key: string, line: Line): void {
    if (line.busy > 0 || line.rows.length > 0) return
    this.#lines.delete(key)
    if (line.more) this.#unread = true
  }
}
