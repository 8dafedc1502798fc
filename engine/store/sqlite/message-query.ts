/**
 * A MessageQuery as one statement, in (sent_at, id) order by an index: the account's own, or that of one key. Each of
 * several alternatives has its own arm, which SQLite merges in order and without repeats, so that a page costs what it
 * holds. The other conditions are probes by primary key. Only ids, and more alternatives than `maxArms`, are sorted.
 */
import type { MessageQuery, Page } from '../port.ts'
import { hidingKeys, queryKeys, subjectNeedle } from '../rows.ts'
import { isFar, walkedHere, type LongRead } from './database.ts'
import type { Sql, Value } from './statements.ts'

const maxArms = 40

const developerOf = 'SELECT developer_id FROM accounts WHERE id = ?'

/** In order; null = nothing can match. */
export function messagePage(accountId: string, query: MessageQuery, page: Page): LongRead | null {
  const order = query.order === 'asc' ? 'ASC' : 'DESC'
  const source = sourceOf(accountId, query)
  if (!source) return null
  // CROSS JOIN keeps the order of the inner page
  const hits = (inner: string): string =>
    `SELECT m.doc FROM (${inner} LIMIT ?+0 OFFSET ?) hit CROSS JOIN messages m ON m.id = hit.message_id`
  const sql =
    source.kind === 'messages'
      ? `SELECT m.doc FROM messages m WHERE ${source.where} ORDER BY m.sent_at ${order}, m.id ${order} LIMIT ?+0 OFFSET ?`
      : hits(`${source.sql} ORDER BY sent_at ${order}, message_id ${order}`)
  const of = [page.limit, page.offset]
  const far = isFar(page)
  const read = { sql, values: [...source.values, ...of], owner: { sql: developerOf, values: [accountId] } }
  const { walk, rest } = source
  if (!far && rest?.where.length === 0) return { ...read, walk: null }
  if (far || rest === null) return { ...read, walk }
  const first = `${walk.sql} ORDER BY sent_at ${order}, message_id ${order} LIMIT ${walkedHere}`
  const inner = `SELECT w.message_id AS message_id FROM (${first}) w ${rest.join} WHERE ${rest.where.join(' AND ')}`
  const quick = { sql: hits(inner), values: [...walk.values, ...rest.values, ...of], enough: page.limit }
  return { ...read, walk, quick }
}

export function messageCount(accountId: string, query: MessageQuery): LongRead | null {
  const source = sourceOf(accountId, query)
  if (!source) return null
  const from = source.kind === 'keys' ? `(${source.sql})` : `messages m WHERE ${source.where}`
  const owner = { sql: developerOf, values: [accountId] }
  return { sql: `SELECT count(*) FROM ${from}`, values: source.values, owner, walk: source.walk }
}

interface Driven {
  /** The rows by which the index leads. */
  readonly walk: Sql
  /** What is asked of each of them beside; null = they are not one walk in order. */
  readonly rest: (Conditions & { readonly join: string }) | null
}

/** `where` over messages `m`, or a statement over the keys. */
type Source = Driven &
  (
    | { readonly kind: 'messages'; readonly where: string; readonly values: readonly Value[] }
    | ({ readonly kind: 'keys' } & Sql)
  )

function sourceOf(accountId: string, query: MessageQuery): Source | null {
  const { all, none } = queryKeys(query)
  if (all.some((keys) => keys.length === 0) || query.ids?.length === 0) return null
  const groups = [...all].sort((left, right) => breadth(left) - breadth(right))
  const driver = query.ids ? undefined : groups.shift()
  const beside = (sentAt: string, id: string): Conditions => conditions(accountId, query, { sentAt, id, groups, none })
  const dates = (sentAt: string): Conditions => sentWithin(query, sentAt)
  const join = (id: string): string => (subjectNeedle(query) === null ? '' : `CROSS JOIN messages m ON m.id = ${id}`)
  const rest = { ...beside('w.sent_at', 'w.message_id'), join: join('w.message_id') }
  if (!driver) return fromMessages(accountId, query, beside, rest)
  const within = dates('sent_at')
  const single = driver.length === 1
  const keys = single ? '= ?' : 'IN (SELECT value FROM json_each(?))'
  const walk = {
    sql: `SELECT sent_at, message_id FROM message_keys WHERE ${['account_id = ?', `key ${keys}`, ...within.where].join(' AND ')}`,
    values: [accountId, single ? (driver[0] ?? '') : JSON.stringify(driver), ...within.values],
  }
  const ofArm = both(dates('k.sent_at'), beside('k.sent_at', 'k.message_id'))
  const arms = driver.length > maxArms ? [driver] : driver.map((key) => [key])
  const parts = arms.map((own) => keyArm(accountId, own, join('k.message_id'), ofArm))
  return {
    kind: 'keys',
    sql: parts.map((part) => part.sql).join(' UNION '),
    values: parts.flatMap((part) => part.values),
    walk,
    rest: single || (arms.length > 1 && rest.where.length === 0) ? rest : null,
  }
}

function both(one: Conditions, other: Conditions): Conditions {
  return { where: [...one.where, ...other.where], values: [...one.values, ...other.values] }
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

interface Conditions {
  readonly where: readonly string[]
  readonly values: readonly Value[]
}

function fromMessages(
  accountId: string,
  query: MessageQuery,
  beside: (sentAt: string, id: string) => Conditions,
  rest: Source['rest'],
): Source {
  const { ids } = query
  // the + keeps the planner off the account's index: few ids are meant
  const own = ids
    ? ['+m.account_id = ?', '+m.live = 1', 'm.id IN (SELECT value FROM json_each(?))']
    : ['m.account_id = ?', 'm.live = 1']
  const led = both(
    { where: own, values: [accountId, ...(ids ? [JSON.stringify(ids)] : [])] },
    sentWithin(query, 'm.sent_at'),
  )
  const walk = {
    sql: `SELECT m.sent_at AS sent_at, m.id AS message_id FROM messages m WHERE ${led.where.join(' AND ')}`,
    values: led.values,
  }
  const { where, values } = both(led, beside('m.sent_at', 'm.id'))
  return { kind: 'messages', where: where.join(' AND '), values, walk, rest: ids ? null : rest }
}

function sentWithin({ sentFrom, sentUntil }: MessageQuery, sentAt: string): Conditions {
  return {
    where: [
      ...(sentFrom === undefined ? [] : [`${sentAt} >= ?`]),
      ...(sentUntil === undefined ? [] : [`${sentAt} <= ?`]),
    ],
    values: [sentFrom, sentUntil].filter((bound) => bound !== undefined),
  }
}

function keyArm(accountId: string, keys: readonly string[], join: string, beside: Conditions): Sql {
  const several = keys.length > 1
  const match = several ? 'IN (SELECT value FROM json_each(?))' : '= ?'
  const where = ['k.account_id = ?', `k.key ${match}`, ...beside.where].join(' AND ')
  return {
    sql: `SELECT ${several ? 'DISTINCT ' : ''}k.sent_at AS sent_at, k.message_id AS message_id
      FROM message_keys k ${join} WHERE ${where}`,
    values: [accountId, several ? JSON.stringify(keys) : (keys[0] ?? ''), ...beside.values],
  }
}

interface Beside {
  /** Columns. */
  readonly sentAt: string
  readonly id: string
  readonly groups: readonly (readonly string[])[]
  readonly none: readonly string[]
}

/** All that is compared beside the driving key and the dates. */
function conditions(accountId: string, query: MessageQuery, { sentAt, id, groups, none }: Beside): Conditions {
  const where: string[] = []
  const values: Value[] = []
  const add = (sql: string, ...more: Value[]): void => {
    where.push(sql)
    values.push(...more)
  }
  const probe = (keys: readonly string[]): string =>
    `EXISTS (SELECT 1 FROM message_keys x WHERE x.account_id = ? AND x.key IN (${keys.map(() => '?').join()})
      AND x.sent_at = ${sentAt} AND x.message_id = ${id})`
  for (const keys of groups) add(probe(keys), accountId, ...keys)
  if (none.length > 0) add(`NOT ${probe(none)}`, accountId, ...none)
  const hiding = hidingKeys(query)
  if (hiding.length > 0) {
    const shown = shownPlace(id, query)
    add(`(NOT ${probe(hiding)} OR ${shown.sql})`, accountId, ...hiding, ...shown.values)
  }
  const needle = subjectNeedle(query)
  if (needle !== null) add('instr(m.subject_key, ?) > 0', needle)
  return { where, values }
}

/** One of its placements is not hidden: looked for in the message itself, of the few that may be hidden. */
function shownPlace(id: string, { hidden, folderId }: MessageQuery): Sql {
  const flagged = `EXISTS (SELECT 1 FROM json_each(p.value, '$.flags') WHERE json_each.value = '\\Deleted')`
  const where = [
    ...(folderId === undefined ? [] : [`p.value ->> 'folderId' = ?`]),
    `p.value ->> 'folderId' NOT IN (SELECT value FROM json_each(?))`,
    ...(hidden?.deleted === true ? [`NOT ${flagged}`] : []),
  ].join(' AND ')
  return {
    sql: `EXISTS (SELECT 1 FROM messages y CROSS JOIN json_each(y.doc, '$.placements') p WHERE y.id = ${id} AND ${where})`,
    values: [...(folderId === undefined ? [] : [folderId]), JSON.stringify(hidden?.folderIds ?? [])],
  }
}
