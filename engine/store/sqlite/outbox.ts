/**
 * The outbox: callbacks to send, and the log of their delivery. One index has a channel's pending rows in the order of
 * sending, another one has them per account, so that rows of blocked accounts are not scanned.
 */
import { outboxBasics, type KeyedCollections } from '../aggregates.ts'
import { isGiven } from '../keyed.ts'
import type { Backlog, OutboxKey, OutboxStore, Page, RequeueQuery } from '../port.ts'
import type { OutboxRecord, OutboxState } from '../records.ts'
import { allStates, deliveryWhere, finishedStates, nextKey, recorded, requeued } from '../rows.ts'
import { isFar, type Database, type LongRead } from './database.ts'
import { conditions } from './keyed.ts'
import type { Sql, Statements, Tuple } from './statements.ts'
import { tables } from './tables.ts'

/** Channels with pending rows, by one index seek per channel. */
export const pendingChannels = `WITH RECURSIVE channel (id) AS (
    SELECT min(channel_id) FROM outbox WHERE state = 'pending'
    UNION ALL
    SELECT (SELECT min(channel_id) FROM outbox WHERE state = 'pending' AND channel_id > channel.id)
    FROM channel WHERE channel.id IS NOT NULL)
  SELECT id FROM channel WHERE id IS NOT NULL`

/** Accounts ('' = none) with pending rows in a channel, by one index seek per account. */
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

/** Channels of a developer with pending rows. All rows of a channel have the same developer. */
export const late = `SELECT channel.* FROM (
    SELECT channel_id AS id, count(*) AS pending, min(created_at) AS oldest FROM outbox WHERE state = 'pending'
    GROUP BY channel_id) channel
  WHERE (SELECT developer_id FROM outbox WHERE channel_id = channel.id AND state = 'pending' LIMIT 1) = ?
  ORDER BY oldest, id LIMIT ?+0`

/** The most accounts with an index scan each; for more, the channel is scanned past the blocked accounts. */
const mostArms = 32

/** Pending rows of the `accounts`. */
export function pendingOf(channelId: string, accounts: readonly string[], limit: number): Sql {
  const order = 'ORDER BY lane, created_at, seq, id LIMIT ?+0'
  if (accounts.length > mostArms) {
    const sql = `SELECT doc FROM outbox INDEXED BY outbox_pending
      WHERE channel_id = ? AND state = 'pending' AND account_id IN (SELECT value FROM json_each(?)) ${order}`
    return { sql, values: [channelId, JSON.stringify(accounts), limit] }
  }
  const arm = `SELECT lane, created_at, seq, id FROM outbox
    WHERE channel_id = ? AND account_id = ? AND state = 'pending'`
  const arms = accounts.map(() => arm).join(' UNION ALL ')
  return {
    sql: `SELECT o.doc FROM (${arms} ${order}) p CROSS JOIN outbox o ON o.id = p.id`,
    values: [...accounts.flatMap((account) => [channelId, account]), limit],
  }
}

/** `after`: only rows behind this row in the order. */
type RowQuery = RequeueQuery & { readonly after?: OutboxKey | null }

/** Fields that lead an index, the narrowest first. The index of `finishedAt` does not serve lists. */
const leads = ['id', 'messageId', 'webhookId', 'accountId', 'developerId', 'finishedAt'] as const

/** Fields with a second index by kind, without the many rows of kind `message`. */
const noticeLeads: ReadonlySet<string | undefined> = new Set(['webhookId', 'accountId', 'developerId'])

/**
 * Rows in the states `of`, in order of (created_at, id). The index of a webhook is by state, and several accounts or
 * webhooks have an index range each: SQLite merges one arm per range. Ids, several messages, and more than `mostArms`
 * accounts or webhooks are sorted. A query without a leading field scans all rows by age.
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
    // conditions of the partial indexes
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

/** The rows that the leading index finds. */
function walkOf(query: RowQuery, lead: Lead): Pick<LongRead, 'owner'> & { readonly walk: Sql } {
  const { createdAt, ...asked } = deliveryWhere(query)
  const { parts, values } = conditions<OutboxRecord>({}, lead === undefined ? { createdAt } : { [lead]: asked[lead] })
  const sql = `SELECT id FROM ${tableOf(lead)} WHERE ${parts.join(' AND ') || '1'}`
  return { owner: query.developerId ?? JSON.stringify(values), walk: { sql, values } }
}

/** One arm per leading account or webhook; more than `mostArms` of them share one arm. */
function armsOf(query: RowQuery, lead: Lead): readonly Pick<RowQuery, 'accountId' | 'webhookId'>[] {
  const several = lead === 'accountId' || lead === 'webhookId' ? query[lead] : undefined
  if (lead === undefined || !Array.isArray(several) || several.length === 0 || several.length > mostArms) return [{}]
  return (several as readonly string[]).map((id) => ({ [lead]: id }))
}

/** Counts of rows by time step and state. */
export function deliveryCounts(query: RequeueQuery, stepMs: number): LongRead {
  const lead = leadOf(query)
  const { parts, values } = conditions({ leads }, { ...deliveryWhere(query), state: query.states })
  // condition of the partial index
  if (lead === 'messageId') parts.push(`message_id <> ''`)
  const steps = `SELECT created_at - created_at % ? AS at, state FROM ${tableOf(lead)} WHERE ${parts.join(' AND ') || '1'}`
  const sql = `SELECT json_array(at, state, count(*)) FROM (${steps}) GROUP BY at, state`
  return { ...walkOf(query, lead), sql, values: [stepMs, ...values] }
}

const stepRows = 500

function pending(sql: Statements, channelId: string, exceptAccounts: readonly string[], limit: number): OutboxRecord[] {
  if (exceptAccounts.length === 0) return sql.docs(pendingOfChannel, channelId, limit) as OutboxRecord[]
  const except = new Set(exceptAccounts)
  const open = sql.texts(pendingAccounts, channelId).filter((account) => !except.has(account))
  if (open.length === 0) return []
  const statement = pendingOf(channelId, open, limit)
  return sql.docs(statement.sql, ...statement.values) as OutboxRecord[]
}

function backlogOf([pending = 0, oldest]: Tuple = []): Backlog {
  return { pending: Number(pending), oldestAt: typeof oldest === 'number' ? oldest : null }
}

function requeue(sql: Statements, query: RowQuery, now: number, limit: number) {
  const states = query.ids === undefined ? finishedStates : allStates
  const read = deliveryPage(query, states, 'ASC', { limit, offset: 0 })
  const rows = read === null ? [] : (sql.docs(read.sql, ...read.values) as OutboxRecord[])
  for (const row of rows) tables.outbox.save(sql, row, requeued(row, now))
  return { count: rows.length, next: nextKey(rows, limit) }
}

const skipPending =
  (db: Database): OutboxStore['skipPending'] =>
  async (channelId, reason, now, state = 'skipped') => {
    const select = `SELECT doc FROM outbox WHERE channel_id = ? AND state = 'pending' AND kind = 'message' LIMIT ?+0`
    for (let total = 0; ;) {
      const step = await db.write(() => {
        const rows = db.docs(select, channelId, stepRows) as OutboxRecord[]
        for (const row of rows) tables.outbox.save(db, row, { ...row, state, finishedAt: now, reason })
        return rows.length
      })
      total += step
      if (step < stepRows) return total
    }
  }

export function createOutbox(db: Database, keyed: KeyedCollections): OutboxStore {
  return {
    ...outboxBasics(keyed),
    channels: () => db.read(() => db.texts(pendingChannels)),
    pending: (channelId, exceptAccounts, limit) => db.read(() => pending(db, channelId, exceptAccounts, limit)),
    waiting: (channelId, limit) => db.read(() => pending(db, channelId, [], limit)),
    backlog: (channelId) =>
      db.read(() => backlogOf(channelId === null ? db.tuple(wholeBacklog) : db.tuple(backlog, channelId))),
    late: (developerId, limit) =>
      db.read(() =>
        db.tuples(late, developerId, limit).map(([id, ...counts]) => ({ channelId: String(id), ...backlogOf(counts) })),
      ),
    // after a power loss, the callback of a lost result is sent again under the same webhook-id
    record: (results) =>
      db.writeUnsynced(() => {
        for (const result of results) {
          const row = tables.outbox.get(db, result.id)
          if (row) tables.outbox.save(db, row, recorded(row, result))
        }
      }),
    list: async (query, limits, order = 'DESC') => {
      const read = deliveryPage(query, allStates, order, limits)
      return read === null ? [] : ((await db.readLong(read)) as OutboxRecord[])
    },
    counts: async (query, stepMs) => {
      const rows = (await db.readLong(deliveryCounts(query, stepMs))) as [number, OutboxState, number][]
      return rows.map(([at, state, count]) => ({ at, state, count }))
    },
    requeue: (query, now, limit, after = null) => db.write(() => requeue(db, { ...query, after }, now, limit)),
    skipPending: skipPending(db),
  }
}
