/** Callbacks to send, and afterwards the record of their delivery. */
import type { KeyedCollections } from '../aggregates.ts'
import type { OutboxKey, OutboxResult, OutboxStore, Page } from '../port.ts'
import type { OutboxRecord, OutboxState } from '../records.ts'
import { nextKey, recorded, requeued, skipped } from '../rows.ts'
import { deleteWhere, type Database } from './database.ts'
import {
  allStates,
  backlog,
  deliveryPage,
  finishedStates,
  pendingAccounts,
  pendingChannels,
  pendingOf,
  pendingOfChannel,
  type RowQuery,
} from './outbox-query.ts'
import type { Statements } from './statements.ts'
import { tables } from './tables.ts'

const stepRows = 500

/** Inserts what is not there yet (by id). Answers those that were new. */
export function insertOutbox(sql: Statements, rows: readonly OutboxRecord[]): OutboxRecord[] {
  return rows.filter((row) => tables.outbox.insertMissing(sql, row))
}

function pending(
  sql: Statements,
  channelId: string,
  exceptAccounts: readonly string[],
  limit: number,
  exceptHistorical: readonly string[] = [],
): OutboxRecord[] {
  if (exceptAccounts.length + exceptHistorical.length === 0) {
    return sql.docs(pendingOfChannel, channelId, limit) as OutboxRecord[]
  }
  const except = new Set(exceptAccounts)
  const accounts = sql.rows(pendingAccounts, channelId).map((row) => String(row['id']))
  const open = accounts.filter((account) => !except.has(account))
  if (open.length === 0) return []
  const statement = pendingOf(channelId, open, limit, exceptHistorical)
  return sql.docs(statement.sql, ...statement.values) as OutboxRecord[]
}

function record(sql: Statements, results: readonly OutboxResult[]): void {
  for (const result of results) {
    const row = tables.outbox.get(sql, result.id)
    if (row) tables.outbox.save(sql, row, recorded(row, result))
  }
}

function page(
  sql: Statements,
  query: RowQuery,
  of: readonly OutboxState[],
  direction: 'ASC' | 'DESC',
  limits: Page,
): OutboxRecord[] {
  const statement = deliveryPage(query, of, direction, limits)
  return statement ? (sql.docs(statement.sql, ...statement.values) as OutboxRecord[]) : []
}

function requeue(
  sql: Statements,
  query: RowQuery,
  now: number,
  limit: number,
): { readonly count: number; readonly next: OutboxKey | null } {
  const rows = page(sql, query, query.ids === undefined ? finishedStates : allStates, 'ASC', { limit, offset: 0 })
  for (const row of rows) tables.outbox.save(sql, row, requeued(row, now))
  return { count: rows.length, next: nextKey(rows, limit) }
}

async function skipPending(db: Database, channelId: string, reason: string, now: number): Promise<number> {
  const select = `SELECT doc FROM outbox WHERE channel_id = ? AND state = 'pending' AND kind = 'message' LIMIT ?`
  for (let total = 0; ;) {
    const step = await db.write(() => {
      const rows = db.docs(select, channelId, stepRows) as OutboxRecord[]
      for (const row of rows) tables.outbox.save(db, row, skipped(row, reason, now))
      return rows.length
    })
    total += step
    if (step < stepRows) return total
  }
}

export const expireOutbox = deleteWhere('outbox', 'finished_at < ?')

export function createOutbox(db: Database, keyed: KeyedCollections): OutboxStore {
  return {
    enqueue: (rows) => db.write(() => insertOutbox(db, rows)),
    get: (id) => keyed.outbox.find({ id }),
    channels: () => db.read(() => db.rows(pendingChannels).map((row) => String(row['id']))),
    pending: (channelId, exceptAccounts, limit, exceptHistorical) =>
      db.read(() => pending(db, channelId, exceptAccounts, limit, exceptHistorical)),
    backlog: (channelId) =>
      db.read(() => {
        const row = db.row(backlog, channelId)
        const oldest = row?.['oldest']
        return { pending: Number(row?.['pending'] ?? 0), oldestAt: typeof oldest === 'number' ? oldest : null }
      }),
    record: (results) => db.write(() => record(db, results)),
    list: (query, limits) => db.read(() => page(db, query, allStates, 'DESC', limits)),
    requeue: (query, now, limit, after = null) => db.write(() => requeue(db, { ...query, after }, now, limit)),
    skipPending: (channelId, reason, now) => skipPending(db, channelId, reason, now),
    expire: (before, limit) => db.write(() => db.run(expireOutbox, before, limit)),
  }
}
