/**
 * Callbacks to send, and afterwards the record of their delivery. A channel's pending rows lie in the order of sending,
 * once for the whole channel and once per account: when accounts are blocked, the rows of the others are reached
 * without passing the blocked ones.
 */
import { outboxBasics, type KeyedCollections } from '../aggregates.ts'
import { isGiven } from '../keyed.ts'
import type { Backlog, OutboxKey, OutboxResult, OutboxStore, Page, RequeueQuery } from '../port.ts'
import type { OutboxRecord, OutboxState } from '../records.ts'
import { allStates, deliveryWhere, finishedStates, nextKey, recorded, requeued, skipped } from '../rows.ts'
import { isFar, type Database, type LongRead } from './database.ts'
import { conditions } from './keyed.ts'
import type { Row, Sql, Statements } from './statements.ts'
import { tables } from './tables.ts'

/** Channels with pending rows, by leaps from one to the next. */
export const pendingChannels = `WITH RECURSIVE channel (id) AS (
    SELECT min(channel_id) FROM outbox WHERE state = 'pending'
    UNION ALL
    SELECT (SELECT min(channel_id) FROM outbox WHERE state = 'pending' AND channel_id > channel.id)
    FROM channel WHERE channel.id IS NOT NULL)
  SELECT id FROM channel WHERE id IS NOT NULL`

/** Accounts ('' = none) with pending rows in a channel, in the same way. */
export const pendingAccounts = `WITH RECURSIVE account (id) AS (
    SELECT min(account_id) FROM outbox WHERE channel_id = ?1 AND state = 'pending'
    UNION ALL
    SELECT (SELECT min(account_id) FROM outbox WHERE channel_id = ?1 AND state = 'pending' AND account_id > account.id)
    FROM account WHERE account.id IS NOT NULL)
  SELECT id FROM account WHERE id IS NOT NULL`

export const pendingOfChannel = `SELECT doc FROM outbox WHERE channel_id = ? AND state = 'pending'
  ORDER BY lane, created_at, seq, id LIMIT ?+0`

export const backlog = `SELECT count(*) AS pending, min(created_at) AS oldest FROM outbox
  WHERE channel_id = ? AND state = 'pending'`

export const wholeBacklog = `SELECT count(*) AS pending, min(created_at) AS oldest FROM outbox WHERE state = 'pending'`

/** All rows of a channel are of one developer. */
export const late = `SELECT channel.* FROM (
    SELECT channel_id AS id, count(*) AS pending, min(created_at) AS oldest FROM outbox WHERE state = 'pending'
    GROUP BY channel_id) channel
  WHERE (SELECT developer_id FROM outbox WHERE channel_id = channel.id AND state = 'pending' LIMIT 1) = ?
  ORDER BY oldest, id LIMIT ?+0`

/** Up to this many accounts are walked side by side; more are found by walking the channel past the blocked ones. */
const mostArms = 32

/** Pending rows of these accounts alone, of all with pending rows in the channel; of some of them live rows alone. */
export function pendingOf(
  channelId: string,
  accounts: readonly string[],
  limit: number,
  exceptHistorical: readonly string[] = [],
): Sql {
  const order = 'ORDER BY lane, created_at, seq, id LIMIT ?+0'
  const held = new Set(exceptHistorical)
  if (accounts.length > mostArms) {
    const free = accounts.filter((account) => !held.has(account))
    const arm = `SELECT id, lane, created_at, seq FROM outbox INDEXED BY outbox_pending
      WHERE channel_id = ? AND state = 'pending' AND lane = ? AND account_id IN (SELECT value FROM json_each(?))`
    const sql = `SELECT o.doc FROM (${arm} UNION ALL ${arm} ${order}) p CROSS JOIN outbox o ON o.id = p.id`
    return { sql, values: [channelId, 0, JSON.stringify(accounts), channelId, 1, JSON.stringify(free), limit] }
  }
  const arm = `SELECT lane, created_at, seq, id FROM outbox
    WHERE channel_id = ? AND account_id = ? AND state = 'pending'`
  const arms = accounts.map((account) => (held.has(account) ? `${arm} AND lane = 0` : arm)).join(' UNION ALL ')
  return {
    sql: `SELECT o.doc FROM (${arms} ${order}) p CROSS JOIN outbox o ON o.id = p.id`,
    values: [...accounts.flatMap((account) => [channelId, account]), limit],
  }
}

/** Rows behind a place in the order may be asked for as well. */
type RowQuery = RequeueQuery & { readonly after?: OutboxKey | null }

/** Fields that lead into an index, the narrowest first; the index of finished rows is none for a list. */
const leads = ['id', 'messageId', 'webhookId', 'accountId', 'developerId', 'finishedAt'] as const

/** With one of these, callbacks that are not about a message have indexes of their own by kind: they are few. */
const noticeLeads: ReadonlySet<string | undefined> = new Set(['webhookId', 'accountId', 'developerId'])

/**
 * Rows in order of (created_at, id), of the states in `of` alone. A webhook's messages lie by state, those of several
 * accounts or webhooks by each: one arm for each, merged. Named ids, several messages, and more accounts or webhooks
 * than `mostArms` are sorted. A query that names nothing to lead into an index walks all rows by age.
 */
export function deliveryPage(
  query: RowQuery,
  of: readonly OutboxState[],
  direction: 'ASC' | 'DESC',
  page: Page,
): LongRead | null {
  const allowed = of.filter((state) => query.states?.includes(state) ?? true)
  if (allowed.length === 0) return null
  const { after, kind } = query
  const asked = deliveryWhere(query)
  const lead = leadOf(query)
  const notices = kind !== undefined && kind !== 'message' && noticeLeads.has(lead)
  const byState = lead === 'webhookId' && !notices
  const groups = byState ? allowed.map((state) => [state]) : [allowed]
  const state = notices ? '+state' : 'state'
  const arms = armsOf(query, lead).flatMap((arm) => {
    const { parts, values } = conditions({ leads }, { ...asked, ...arm })
    if (after) {
      parts.push('(created_at, id) > (?, ?)')
      values.push(after.createdAt, after.id)
    }
    // what the partial indexes ask for
    if (lead === 'messageId') parts.push(`message_id <> ''`)
    if (notices) parts.push(`kind <> 'message'`)
    return groups.map((group) => {
      const where = [...parts, `${state} IN (${group.map(() => '?').join()})`].join(' AND ')
      return { sql: `SELECT id, created_at FROM ${tableOf(lead)} WHERE ${where}`, values: [...values, ...group] }
    })
  })
  const union = arms.map(({ sql }) => sql).join(' UNION ALL ')
  const order = `ORDER BY created_at ${direction}, id ${direction} LIMIT ?+0 OFFSET ?`
  const filtered = Object.entries({ ...asked, state: byState ? undefined : query.states }).some(
    ([field, value]) => field !== lead && field !== 'createdAt' && isGiven(value),
  )
  const { owner, walk } = walkOf(query, lead)
  return {
    owner,
    walk: filtered || isFar(page) ? walk : null,
    sql: `SELECT o.doc FROM (${union} ${order}) p CROSS JOIN outbox o ON o.id = p.id`,
    values: [...arms.flatMap(({ values }) => values), page.limit, page.offset],
  }
}

type Lead = Exclude<(typeof leads)[number], 'finishedAt'> | undefined

function leadOf(query: RowQuery): Lead {
  const asked = deliveryWhere(query)
  const lead = leads.find((field) => asked[field] !== undefined)
  return lead === 'finishedAt' ? undefined : lead
}

const tableOf = (lead: Lead): string => (lead === undefined ? 'outbox INDEXED BY outbox_by_age' : 'outbox')

/** The rows that the index leads to. */
function walkOf(query: RowQuery, lead: Lead): Pick<LongRead, 'owner'> & { readonly walk: Sql } {
  const { createdAt, ...asked } = deliveryWhere(query)
  const { parts, values } = conditions<OutboxRecord>({}, lead === undefined ? { createdAt } : { [lead]: asked[lead] })
  const sql = `SELECT id FROM ${tableOf(lead)} WHERE ${parts.join(' AND ') || '1'}`
  return { owner: query.developerId ?? JSON.stringify(values), walk: { sql, values } }
}

/** An arm for each account or webhook that leads; too many of them share one arm. */
function armsOf(query: RowQuery, lead: Lead): readonly Pick<RowQuery, 'accountId' | 'webhookId'>[] {
  const several = lead === 'accountId' || lead === 'webhookId' ? query[lead] : undefined
  if (lead === undefined || !Array.isArray(several) || several.length === 0 || several.length > mostArms) return [{}]
  return (several as readonly string[]).map((id) => ({ [lead]: id }))
}

/** By steps of time and states. */
export function deliveryCounts(query: RequeueQuery, stepMs: number): LongRead {
  const lead = leadOf(query)
  const { parts, values } = conditions({ leads }, { ...deliveryWhere(query), state: query.states })
  // what the partial index asks for
  if (lead === 'messageId') parts.push(`message_id <> ''`)
  const steps = `SELECT created_at - created_at % ? AS at, state FROM ${tableOf(lead)} WHERE ${parts.join(' AND ') || '1'}`
  const sql = `SELECT json_array(at, state, count(*)) FROM (${steps}) GROUP BY at, state`
  return { ...walkOf(query, lead), sql, values: [stepMs, ...values] }
}

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

function backlogOf(row: Row | null): Backlog {
  const oldest = row?.['oldest']
  return { pending: Number(row?.['pending'] ?? 0), oldestAt: typeof oldest === 'number' ? oldest : null }
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

async function skipPending(
  db: Database,
  channelId: string,
  reason: string,
  now: number,
  state: 'skipped' | 'failed' = 'skipped',
): Promise<number> {
  const select = `SELECT doc FROM outbox WHERE channel_id = ? AND state = 'pending' AND kind = 'message' LIMIT ?+0`
  for (let total = 0; ;) {
    const step = await db.write(() => {
      const rows = db.docs(select, channelId, stepRows) as OutboxRecord[]
      for (const row of rows) tables.outbox.save(db, row, { ...skipped(row, reason, now), state })
      return rows.length
    })
    total += step
    if (step < stepRows) return total
  }
}

export function createOutbox(db: Database, keyed: KeyedCollections): OutboxStore {
  return {
    ...outboxBasics(keyed),
    channels: () => db.read(() => db.rows(pendingChannels).map((row) => String(row['id']))),
    pending: (channelId, exceptAccounts, limit, exceptHistorical) =>
      db.read(() => pending(db, channelId, exceptAccounts, limit, exceptHistorical)),
    backlog: (channelId) =>
      db.read(() => {
        const row = channelId === null ? db.row(wholeBacklog) : db.row(backlog, channelId)
        return backlogOf(row)
      }),
    late: (developerId, limit) =>
      db.read(() =>
        db.rows(late, developerId, limit).map((row) => ({ channelId: String(row['id']), ...backlogOf(row) })),
      ),
    // A result that a power loss took is made again: the callback goes out once more under its webhook-id.
    record: (results) => db.writeUnsynced(() => record(db, results)),
    list: async (query, limits, order = 'DESC') => {
      const read = deliveryPage(query, allStates, order, limits)
      return read === null ? [] : ((await db.readLong(read)) as OutboxRecord[])
    },
    counts: async (query, stepMs) => {
      const rows = (await db.readLong(deliveryCounts(query, stepMs))) as [number, OutboxState, number][]
      return rows.map(([at, state, count]) => ({ at, state, count }))
    },
    requeue: (query, now, limit, after = null) => db.write(() => requeue(db, { ...query, after }, now, limit)),
    skipPending: (channelId, reason, now, end) => skipPending(db, channelId, reason, now, end),
  }
}
