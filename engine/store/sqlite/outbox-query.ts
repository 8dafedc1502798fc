/**
 * Statements over the outbox. A channel's pending rows lie in the order of sending, once for the whole channel and once
 * per account: when accounts are blocked, the rows of the others are reached without passing the blocked ones.
 */
import type { OutboxKey, Page, RequeueQuery } from '../port.ts'
import type { OutboxState } from '../records.ts'
import type { Sql, Value } from './statements.ts'

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
  ORDER BY lane, created_at, seq, id LIMIT ?`

export const backlog = `SELECT count(*) AS pending, min(created_at) AS oldest FROM outbox
  WHERE channel_id = ? AND state = 'pending'`

/** Up to this many accounts are walked side by side; more are found by walking the channel past the blocked ones. */
const maxAccounts = 32

/** Pending rows of these accounts alone, of all with pending rows in the channel; of some of them live rows alone. */
export function pendingOf(
  channelId: string,
  accounts: readonly string[],
  limit: number,
  exceptHistorical: readonly string[] = [],
): Sql {
  const order = 'ORDER BY lane, created_at, seq, id LIMIT ?'
  const held = new Set(exceptHistorical)
  if (accounts.length > maxAccounts) {
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

export const finishedStates = ['delivered', 'failed', 'skipped'] as const satisfies readonly OutboxState[]
export const allStates = ['pending', ...finishedStates] as const

/** Rows behind a place in the order may be asked for as well. */
export type RowQuery = RequeueQuery & { readonly after?: OutboxKey | null }

type Condition = readonly [column: string, operator: string, value: Value | readonly Value[] | undefined]

/** The columns that lead into an index come first, the narrowest foremost. */
function conditionsOf(query: RowQuery): readonly Condition[] {
  const { after } = query
  return [
    ['id', 'IN (SELECT value FROM json_each(?))', query.ids && JSON.stringify(query.ids)],
    ['message_id', '= ?', query.messageId],
    ['webhook_id', '= ?', query.webhookId],
    ['account_id', '= ?', query.accountId],
    ['developer_id', '= ?', query.developerId],
    ['kind', '= ?', query.kind],
    ['created_at', '>= ?', query.createdFrom],
    ['created_at', '<= ?', query.createdUntil],
    ['(created_at, id)', '> (?, ?)', after ? [after.createdAt, after.id] : undefined],
    ['+finished_at', '<= ?', query.finishedUntil],
    ['last_status', '>= ?', query.statusFrom],
    ['last_status', '<= ?', query.statusTo],
  ]
}

interface Where extends Sql {
  readonly lead: string | undefined
  /** All but messages are few, and have indexes of their own by kind. */
  readonly notices: boolean
}

const noticeLeads: ReadonlySet<string | undefined> = new Set(['webhook_id', 'account_id', 'developer_id'])

/** The first condition leads; a + keeps the planner off the indexes of the other ids. */
function whereOf(query: RowQuery): Where {
  const given = conditionsOf(query).filter(([, , value]) => value !== undefined)
  const lead = given[0]?.[0]
  const where = given.map(([column, operator]) => {
    const led = column !== lead && (column.endsWith('_id') || lead === 'id')
    return `${led ? '+' : ''}${column} ${operator}`
  })
  const notices = query.kind !== undefined && query.kind !== 'message' && noticeLeads.has(lead)
  // what the partial indexes ask for
  if (lead === 'message_id') where.push(`message_id <> ''`)
  if (notices) where.push(`kind <> 'message'`)
  return { lead, notices, sql: where.join(' AND ') || '1', values: given.flatMap(([, , value]) => value ?? []) }
}

/**
 * Rows in order of (created_at, id), of the states in `of` alone. A webhook's messages lie by state: one arm for each,
 * merged. Named ids are sorted. A query that names nothing to lead into an index walks the table; no list of the API is
 * one.
 */
export function deliveryPage(
  query: RowQuery,
  of: readonly OutboxState[],
  direction: 'ASC' | 'DESC',
  page: Page,
): Sql | null {
  const allowed = of.filter((state) => query.states?.includes(state) ?? true)
  if (allowed.length === 0) return null
  const where = whereOf(query)
  const groups = where.lead === 'webhook_id' && !where.notices ? allowed.map((state) => [state]) : [allowed]
  const state = where.notices ? '+state' : 'state'
  const arms = groups.map(
    (group) => `SELECT id, created_at FROM outbox WHERE ${where.sql} AND ${state} IN (${group.map(() => '?').join()})`,
  )
  const order = `ORDER BY created_at ${direction}, id ${direction} LIMIT ? OFFSET ?`
  return {
    sql: `SELECT o.doc FROM (${arms.join(' UNION ALL ')} ${order}) p CROSS JOIN outbox o ON o.id = p.id`,
    values: [...groups.flatMap((group) => [...where.values, ...group]), page.limit, page.offset],
  }
}
