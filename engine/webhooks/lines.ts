/**
 * What a channel holds in memory of its outbox: the rows that were read and wait for their turn, at most `capacity` in
 * all, however many wait in the store. No I/O and no clock: the channel reads the store when `wantsRead` says so.
 *
 * The rows of an account here are the first of what the store has pending for it, without holes. While some are here,
 * or one is on its way, a read leaves the account out. Live rows (lane 0) go before historical ones (lane 1), in an
 * account and over accounts.
 */
import type { OutboxRecord } from '../store/records.ts'

/** The rows of one account; rows without an account (there are few) are one line. */
interface Line {
  rows: OutboxRecord[]
  /** Rows on their way: one, and perhaps one that is sent by hand. */
  busy: number
  /** The store may have more of them: to be read when these have gone. */
  more: boolean
}

export interface ReadPlan {
  readonly exceptAccounts: readonly string[]
  /** Of these accounts live rows alone are read. */
  readonly exceptHistorical: readonly string[]
  readonly limit: number
}

function keyOf(row: OutboxRecord): string {
  return row.accountId ?? ''
}

export class Lines {
  readonly #capacity: number
  readonly #lines = new Map<string, Line>()
  /** Account → its first row, and when it is due. When that is historical (lane 1), live ones go out meanwhile. */
  readonly #waits = new Map<string, Pick<OutboxRecord, 'id' | 'dueAt' | 'lane'>>()
  /** The store may have rows of accounts that have no line; `urgent`: live ones. */
  #unread = true
  #urgent = false

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Rows were just stored: they are read in their turn. Historical ones in memory give way to live ones. */
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

  /** Rows may have been written that `stored` was not called for. */
  readAgain(): void {
    for (const line of this.#lines.values()) line.more = true
    this.#unread = true
  }

  /** A row could be taken. */
  isReady(): boolean {
    return (this.#ready(0) ?? this.#ready(1)) !== undefined
  }

  /** The next row to send; nothing else of its account goes out until `finish` or `block`. */
  take(allow: { readonly historical: boolean }): OutboxRecord | null {
    const [key, line] = this.#ready(0) ?? (allow.historical ? this.#ready(1) : undefined) ?? []
    const row = line?.rows.shift()
    if (key === undefined || line === undefined || row === undefined) return null
    line.busy += 1
    // To the end: every account gets its turn.
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

  /**
   * A row that did not come from here (a probe's, one that is sent by hand) is on its way, until `finish`, `block` or
   * `free`.
   */
  claim(row: OutboxRecord): void {
    const line = this.#lines.getOrInsert(keyOf(row), { rows: [], busy: 0, more: true })
    this.#keep(line, [])
    line.busy += 1
  }

  finish(row: OutboxRecord): void {
    const line = this.#leave(row)
    if (line !== undefined) this.#tidy(keyOf(row), line)
  }

  /** The row is due at `until`: nothing of its account goes out before, or of a historical row nothing historical. */
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

  /** A row that was sent by hand is back: what is known of its account is out of date. */
  free(row: OutboxRecord): void {
    const key = keyOf(row)
    this.#waits.delete(key)
    const line = this.#leave(row)
    if (line === undefined) return
    line.more = true
    this.#tidy(key, line)
  }

  /** Rows that were due later are due now: their accounts are read again. Infinity: all. */
  release(now: number): void {
    for (const [key, { dueAt }] of this.#waits) {
      if (dueAt > now) continue
      this.#waits.delete(key)
      const line = this.#lines.get(key)
      if (line === undefined) this.#unread = true
      else line.more = true
    }
  }

  /** Time of the next release; null when nothing waits for its time. */
  nextRelease(): number | null {
    const first = this.#waits.values().reduce((soonest, { dueAt }) => Math.min(soonest, dueAt), Infinity)
    return first === Infinity ? null : first
  }

  /** The row, perhaps this one, that holds this one up, and until when; null = none does. */
  waitOf(row: OutboxRecord): Pick<OutboxRecord, 'id' | 'dueAt'> | null {
    const wait = this.#waits.get(keyOf(row))
    return wait !== undefined && wait.lane <= row.lane ? wait : null
  }

  /** A row that waits here for its turn was changed in the store. false = it does not wait here. */
  renew(row: OutboxRecord): boolean {
    const rows = this.#lines.get(keyOf(row))?.rows ?? []
    const index = rows.findIndex(({ id }) => id === row.id)
    if (index >= 0) rows[index] = row
    return index >= 0
  }

  /** Accounts with rows here or on their way. */
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
    // What was stored during the read may be missing from its answer.
    if (rows.length >= plan.limit) this.#unread = true
    for (const [key, own] of Map.groupBy(rows, keyOf)) {
      const busy = this.#lines.get(key)
      if (busy === undefined) this.#add(key, own, now)
      else busy.more = true
    }
  }

  /** A row that is due later holds up those behind it. */
  #add(key: string, rows: OutboxRecord[], now: number): void {
    const index = rows.findIndex(({ dueAt }) => dueAt > now)
    const due = index < 0 ? rows : rows.slice(0, index)
    const later = rows[index]
    const waits = later !== undefined && !due.some(({ lane }) => lane === later.lane)
    if (waits) this.#waits.set(key, later)
    if (due.length === 0) return
    this.#lines.set(key, { rows: due, busy: 0, more: this.#unread || (later !== undefined && !waits) })
  }

  /** The read failed, or its answer is out of date. */
  abortRead(): void {
    this.#unread = true
  }

  /** Forgets all rows that are not on their way; everything is to be read again. A read under way must not be ended. */
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

  /** Rows in memory. */
  #size(): number {
    return this.#lines.values().reduce((sum, { rows }) => sum + rows.length, 0)
  }

  /** One of the account's rows is not on its way any more. */
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

  /** A line without rows goes. */
  #tidy(key: string, line: Line): void {
    if (line.busy > 0 || line.rows.length > 0) return
    this.#lines.delete(key)
    if (line.more) this.#unread = true
  }
}
