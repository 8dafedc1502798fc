/**
 * Turns a MessageQuery into one statement that reads an index in (sent_at, id) order: the account's index, or that of
 * the narrowest group of keys. Each key of the group has its own arm; SQLite merges arms in order and without repeats,
 * so a page costs only its own rows. The other conditions are lookups by primary key. Only ids, and groups of more than
 * `maxArms` keys, are sorted.
 */
import type { MessageQuery, Page } from '../port.ts'
import { groupName, hidingKeys, queryKeys, subjectNeedle, wideKey } from '../rows.ts'
import type { FoldedTexts, WideMatches } from '../rows.ts'
import { isFar, walkedHere, type LongRead } from './database.ts'
import { conditions, type Conditions } from './keyed.ts'
import type { Sql, Value } from './statements.ts'

const maxArms = 40

const developerOf = 'SELECT developer_id FROM accounts WHERE id = ?'

/** null = no message can match. */
export function messagePage(
  accountId: string,
  query: MessageQuery,
  page: Page,
  wide: WideMatches = new Map(),
): LongRead | null {
  const order = query.order === 'asc' ? 'ASC' : 'DESC'
  const source = sourceOf(accountId, query, wide)
  if (!source) return null
  // CROSS JOIN keeps the order of the inner page
  const hits = (inner: string): string =>
    `SELECT m.doc FROM (${inner} LIMIT ?+0 OFFSET ?) hit CROSS JOIN messages m ON m.id = hit.message_id`
  const sql =
    source.kind === 'messages'
      ? `SELECT m.doc FROM messages m WHERE ${source.sql} ORDER BY m.sent_at ${order}, m.id ${order} LIMIT ?+0 OFFSET ?`
      : hits(`${source.sql} ORDER BY sent_at ${order}, message_id ${order}`)
  const of = [page.limit, page.offset]
  const far = isFar(page)
  const { walk, rest, most } = source
  const read = { sql, values: [...source.values, ...of], owner: { sql: developerOf, values: [accountId] }, most }
  if (!far && rest?.parts.length === 0) return { ...read, walk: null }
  if (far || rest === null) return { ...read, walk }
  const first = `${walk.sql} ORDER BY sent_at ${order}, message_id ${order} LIMIT ${most}`
  const inner = `SELECT w.message_id AS message_id FROM (${first}) w ${rest.join} WHERE ${rest.parts.join(' AND ')}`
  const quick = { sql: hits(inner), values: [...walk.values, ...rest.values, ...of], enough: page.limit }
  return { ...read, walk, quick }
}

export function messageCount(accountId: string, query: MessageQuery, wide: WideMatches = new Map()): LongRead | null {
  const source = sourceOf(accountId, query, wide)
  if (!source) return null
  const from = source.kind === 'keys' ? `(${source.sql})` : `messages m WHERE ${source.sql}`
  const owner = { sql: developerOf, values: [accountId] }
  return { sql: `SELECT count(*) FROM ${from}`, values: source.values, owner, walk: source.walk, most: source.most }
}

/** `sql`: a condition on messages `m`, or a statement over the keys. */
interface Source extends Sql {
  readonly kind: 'messages' | 'keys'
  /** The rows to scan: those of the leading index. */
  readonly walk: Sql
  /** The most rows of the walk to scan in the main thread. */
  readonly most: number
  /** The conditions on each row of the walk; null = the walk is not in order. */
  readonly rest: (Conditions & { readonly join: string }) | null
}

function sourceOf(accountId: string, query: MessageQuery, wide: WideMatches): Source | null {
  const { all: groups, none } = queryKeys(query)
  if (groups.some((keys) => keys.length === 0) || query.ids?.length === 0) return null
  const driver = query.ids ? undefined : groups.shift()
  const beside = (sentAt: string, id: string) => otherConditions(accountId, query, { sentAt, id, groups, none, wide })
  const join = (id: string): string => (subjectNeedle(query) === null ? '' : `CROSS JOIN messages m ON m.id = ${id}`)
  const rest = { ...beside('w.sent_at', 'w.message_id'), join: join('w.message_id') }
  // Each row is looked up by each of the other keys.
  const lookups = [...groups, none, hidingKeys(query)].flat().length
  const most = Math.ceil(walkedHere / Math.max(1, lookups / 4))
  if (!driver) return { ...fromMessages(accountId, query, beside, rest), most }
  const within = sentWithin(query, 'k.sent_at')
  const ofArm = both(within, beside('k.sent_at', 'k.message_id'))
  const arms = driver.length > maxArms ? [driver] : driver.map((key) => [key])
  const parts = arms.map((keys) =>
    keyScan(accountId, keys, ofArm, { join: join('k.message_id'), distinct: keys.length > 1 }),
  )
  const walk = keyScan(accountId, driver, within)
  const named = 'SELECT 0, value FROM json_each(?)'
  const ids = wide.get(groupName(driver))
  if (ids !== undefined)
    parts.push(amongIds(accountId, ids, both(sentWithin(query, 'm.sent_at'), beside('m.sent_at', 'm.id'))))
  return {
    kind: 'keys',
    most,
    sql: parts.map((part) => part.sql).join(' UNION '),
    values: parts.flatMap((part) => part.values),
    walk:
      ids === undefined
        ? walk
        : { sql: `${walk.sql} UNION ALL ${named}`, values: [...walk.values, JSON.stringify(ids)] },
    rest: wide.size === 0 && (driver.length === 1 || (arms.length > 1 && rest.parts.length === 0)) ? rest : null,
  }
}

/** (sent_at, message_id) of messages with one of the keys. A single key is compared by `=`, for the index's order. */
function keyScan(
  accountId: string,
  keys: readonly string[],
  beside: Conditions,
  { join = '', distinct = false } = {},
): Sql {
  const match = oneOf('k.key', keys)
  const where = ['k.account_id = ?', match.sql, ...beside.parts].join(' AND ')
  return {
    sql: `SELECT ${distinct ? 'DISTINCT ' : ''}k.sent_at AS sent_at, k.message_id AS message_id
      FROM message_keys k ${join} WHERE ${where}`,
    values: [accountId, ...match.values, ...beside.values],
  }
}

/** One variable for any number of values: SQLite takes 32,766 of them. */
function oneOf(column: string, values: readonly string[]): Sql {
  const [first = '', ...others] = values
  return others.length === 0
    ? { sql: `${column} = ?`, values: [first] }
    : { sql: `${column} IN (SELECT value FROM json_each(?))`, values: [JSON.stringify(values)] }
}

/** (sent_at, message_id) of those among these messages that match. */
function amongIds(accountId: string, ids: readonly string[], beside: Conditions): Sql {
  const match = oneOf('m.id', ids)
  const where = [match.sql, '+m.account_id = ?', 'm.live = 1', ...beside.parts]
  return {
    sql: `SELECT m.sent_at AS sent_at, m.id AS message_id FROM messages m WHERE ${where.join(' AND ')}`,
    values: [...match.values, accountId, ...beside.values],
  }
}

/** The ids of messages with a folded key that contains one of its field's texts; long with many pairs of both. */
export function foldedMatches(accountId: string, texts: FoldedTexts): LongRead {
  const pairs = `message_keys z CROSS JOIN json_each(?) WHERE z.account_id = ? AND z.key > ? AND z.key < ?`
  const each = (select: string, condition = '') => texts.map(() => `SELECT ${select} FROM ${pairs} ${condition}`)
  const values = texts.flatMap(([field, own]) => [
    JSON.stringify(own),
    accountId,
    `${wideKey(field)}:`,
    `${wideKey(field)};`,
  ])
  return {
    sql: each('json_quote(z.message_id)', 'AND instr(z.key, json_each.value) > 0').join(' UNION '),
    values,
    owner: { sql: developerOf, values: [accountId] },
    walk: { sql: each('1').join(' UNION ALL '), values },
  }
}

function both(one: Conditions, other: Conditions): Conditions {
  return { parts: [...one.parts, ...other.parts], values: [...one.values, ...other.values] }
}

function fromMessages(
  accountId: string,
  query: MessageQuery,
  beside: (sentAt: string, id: string) => Conditions,
  rest: Source['rest'],
): Omit<Source, 'most'> {
  const { ids } = query
  // with few ids, the + keeps the planner off the account's index
  const own = ids
    ? ['+m.account_id = ?', '+m.live = 1', 'm.id IN (SELECT value FROM json_each(?))']
    : ['m.account_id = ?', 'm.live = 1']
  const led = both(
    { parts: own, values: [accountId, ...(ids ? [JSON.stringify(ids)] : [])] },
    sentWithin(query, 'm.sent_at'),
  )
  const walk = {
    sql: `SELECT m.sent_at AS sent_at, m.id AS message_id FROM messages m WHERE ${led.parts.join(' AND ')}`,
    values: led.values,
  }
  const { parts, values } = both(led, beside('m.sent_at', 'm.id'))
  return { kind: 'messages', sql: parts.join(' AND '), values, walk, rest: ids ? null : rest }
}

function sentWithin({ sentFrom, sentUntil }: MessageQuery, sentAt: string): Conditions {
  return conditions<Record<string, unknown>>({}, { [sentAt]: { from: sentFrom, until: sentUntil } })
}

interface Beside {
  /** Columns. */
  readonly sentAt: string
  readonly id: string
  readonly groups: readonly (readonly string[])[]
  readonly none: readonly string[]
  readonly wide: WideMatches
}

/** The conditions other than the leading keys and the dates. */
function otherConditions(
  accountId: string,
  query: MessageQuery,
  { sentAt, id, groups, none, wide }: Beside,
): Conditions {
  const parts: string[] = []
  const values: Value[] = []
  const add = (sql: string, ...more: Value[]): void => {
    parts.push(sql)
    values.push(...more)
  }
  const probe = (keys: readonly string[]): Sql => {
    const match = oneOf('x.key', keys)
    const where = ['x.account_id = ?', match.sql, `x.sent_at = ${sentAt}`, `x.message_id = ${id}`].join(' AND ')
    return { sql: `EXISTS (SELECT 1 FROM message_keys x WHERE ${where})`, values: [accountId, ...match.values] }
  }
  for (const keys of groups) {
    const [found, ids] = [probe(keys), wide.get(groupName(keys))]
    const among = oneOf(id, ids ?? [])
    if (ids === undefined) add(found.sql, ...found.values)
    else add(`(${found.sql} OR ${among.sql})`, ...found.values, ...among.values)
  }
  if (none.length > 0) {
    const found = probe(none)
    add(`NOT ${found.sql}`, ...found.values)
  }
  const hiding = hidingKeys(query)
  if (hiding.length > 0) {
    const [found, shown] = [probe(hiding), shownPlace(id, query)]
    add(`(NOT ${found.sql} OR ${shown.sql})`, ...found.values, ...shown.values)
  }
  const needle = subjectNeedle(query)
  if (needle !== null) add('instr(m.subject_key, ?) > 0', needle)
  return { parts, values }
}

/** The message has a placement that is not hidden. Reads the record, so it is asked of messages with hiding keys. */
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
