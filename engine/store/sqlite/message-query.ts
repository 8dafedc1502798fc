/**
 * A MessageQuery as one statement, in (sent_at, id) order by an index: the account's own, or that of one key. Each of
 * several alternatives has its own arm, which SQLite merges in order and without repeats, so that a page costs what it
 * holds. The other conditions are probes by primary key. Only ids, and more alternatives than `maxArms`, are sorted.
 */
import type { MessageQuery, Page } from '../port.ts'
import { queryKeys, subjectNeedle } from '../rows.ts'
import type { Sql, Value } from './statements.ts'

const maxArms = 40

/** Statement with the given columns of messages `m`, in order; null = nothing can match. */
export function messagePage(accountId: string, query: MessageQuery, page: Page, columns: string): Sql | null {
  const order = query.order === 'asc' ? 'ASC' : 'DESC'
  const source = sourceOf(accountId, query)
  if (!source) return null
  const bounds = [page.limit, page.offset]
  if (source.kind === 'messages') {
    return {
      sql: `SELECT ${columns} FROM messages m WHERE ${source.where} ORDER BY m.sent_at ${order}, m.id ${order} LIMIT ? OFFSET ?`,
      values: [...source.values, ...bounds],
    }
  }
  // CROSS JOIN keeps the order of the inner page
  return {
    sql: `SELECT ${columns} FROM (${source.sql} ORDER BY sent_at ${order}, message_id ${order} LIMIT ? OFFSET ?) hit
      CROSS JOIN messages m ON m.id = hit.message_id`,
    values: [...source.values, ...bounds],
  }
}

export function messageCount(accountId: string, query: MessageQuery): Sql | null {
  const source = sourceOf(accountId, query)
  if (!source) return null
  if (source.kind === 'keys') return { sql: `SELECT count(*) FROM (${source.sql})`, values: source.values }
  return { sql: `SELECT count(*) FROM messages m WHERE ${source.where}`, values: source.values }
}

type Source =
  | { readonly kind: 'messages'; readonly where: string; readonly values: readonly Value[] }
  | { readonly kind: 'keys'; readonly sql: string; readonly values: readonly Value[] }

function sourceOf(accountId: string, query: MessageQuery): Source | null {
  const { all, none } = queryKeys(query)
  if (all.some((keys) => keys.length === 0) || query.ids?.length === 0) return null
  const groups = [...all].sort((left, right) => breadth(left) - breadth(right))
  const rest = query.ids ? groups : groups.slice(1)
  const driver = query.ids ? undefined : groups[0]
  if (!driver) return fromMessages(accountId, query, rest, none)
  const arms = driver.length > maxArms ? [driver] : driver.map((key) => [key])
  const parts = arms.map((keys) => keyArm(accountId, query, keys, rest, none))
  return {
    kind: 'keys',
    sql: parts.map((part) => part.sql).join(' UNION '),
    values: parts.flatMap((part) => part.values),
  }
}

/**
 * How many messages a group of keys is likely to have: the narrowest drives. A guess that costs time only, when wrong.
 */
function breadth(keys: readonly string[]): number {
  return Math.max(...keys.map(keyBreadth)) + keys.length / 1000
}

function keyBreadth(key: string): number {
  const [kind, value] = [key.slice(0, key.indexOf(':')), key.slice(key.indexOf(':') + 1)]
  if (key === 'a') return 3
  if (kind === 't') return 0
  if (kind === 'f') return 4
  if (!value.startsWith('@')) return 1
  return value.includes('.') ? 2 : 5
}

function fromMessages(
  accountId: string,
  query: MessageQuery,
  groups: readonly (readonly string[])[],
  none: readonly string[],
): Source {
  const where = ['m.account_id = ?', 'm.live = 1']
  const values: Value[] = [accountId]
  if (query.ids) {
    // the + keeps the planner off the account's index: few ids are meant
    where.splice(0, 2, '+m.account_id = ?', '+m.live = 1', 'm.id IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(query.ids))
  }
  const more = conditions(accountId, query, { sentAt: 'm.sent_at', id: 'm.id' }, groups, none)
  return { kind: 'messages', where: [...where, ...more.where].join(' AND '), values: [...values, ...more.values] }
}

function keyArm(
  accountId: string,
  query: MessageQuery,
  keys: readonly string[],
  groups: readonly (readonly string[])[],
  none: readonly string[],
): Sql {
  const [key, ...others] = keys
  const several = others.length > 0
  const more = conditions(accountId, query, { sentAt: 'k.sent_at', id: 'k.message_id' }, groups, none)
  const join = subjectNeedle(query) === null ? '' : 'CROSS JOIN messages m ON m.id = k.message_id'
  const match = several ? 'IN (SELECT value FROM json_each(?))' : '= ?'
  const where = ['k.account_id = ?', `k.key ${match}`, ...more.where].join(' AND ')
  return {
    sql: `SELECT ${several ? 'DISTINCT ' : ''}k.sent_at AS sent_at, k.message_id AS message_id
      FROM message_keys k ${join} WHERE ${where}`,
    values: [accountId, several ? JSON.stringify(keys) : (key ?? ''), ...more.values],
  }
}

/** All that is compared beside the driving key. */
function conditions(
  accountId: string,
  query: MessageQuery,
  column: { readonly sentAt: string; readonly id: string },
  groups: readonly (readonly string[])[],
  none: readonly string[],
): { readonly where: string[]; readonly values: Value[] } {
  const where: string[] = []
  const values: Value[] = []
  const add = (sql: string, ...more: Value[]): void => {
    where.push(sql)
    values.push(...more)
  }
  if (query.sentFrom !== undefined) add(`${column.sentAt} >= ?`, query.sentFrom)
  if (query.sentUntil !== undefined) add(`${column.sentAt} <= ?`, query.sentUntil)
  const probe = (keys: readonly string[]): string =>
    `EXISTS (SELECT 1 FROM message_keys x WHERE x.account_id = ? AND x.key IN (${keys.map(() => '?').join()})
      AND x.sent_at = ${column.sentAt} AND x.message_id = ${column.id})`
  for (const keys of groups) add(...probed(probe, accountId, keys))
  if (none.length > 0) add(`NOT ${probe(none)}`, accountId, ...none)
  const needle = subjectNeedle(query)
  if (needle !== null) add('instr(m.subject_key, ?) > 0', needle)
  return { where, values }
}

function probed(
  probe: (keys: readonly string[]) => string,
  accountId: string,
  keys: readonly string[],
): [string, ...Value[]] {
  return [probe(keys), accountId, ...keys]
}
