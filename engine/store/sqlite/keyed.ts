/** Keyed collections (../keyed.ts) as tables. A write checks its conditions in its own transaction. */
import { isDeepStrictEqual } from 'node:util'
import { notFound } from '../../errors.ts'
import type { KeyedCollections } from '../aggregates.ts'
import { definitions, isGiven, isRange } from '../keyed.ts'
import type { Definition, Keyed, Kind, Kinds, ListOptions, Room, Where } from '../keyed.ts'
import type { NonceStore, Page } from '../port.ts'
import type { OutboxRecord } from '../records.ts'
import { checkRoom } from '../rows.ts'
import { deleteWhere, drain, isFar, type Database, type LongRead } from './database.ts'
import type { Sql, Value } from './statements.ts'
import { columnOf, columnValue, tables, type Table } from './tables.ts'

/** SQL conditions to join by AND, and the values of their parameters. */
export interface Conditions {
  readonly parts: string[]
  readonly values: Value[]
}

/** A + keeps the planner off the indexes of fields that could lead, but do not. */
export function conditions<R>({ leads }: Pick<Definition<R>, 'leads'>, where: Where<R>): Conditions {
  const lead = leads?.find((field) => where[field] !== undefined)
  const parts: string[] = []
  const values: Value[] = []
  for (const [field, value] of Object.entries(where)) {
    if (value === undefined) continue
    const led = field !== lead && (leads as readonly string[] | undefined)?.includes(field)
    const column = led ? `+${columnOf(field)}` : columnOf(field)
    if (Array.isArray(value)) {
      parts.push(`${column} IN (SELECT value FROM json_each(?))`)
      values.push(JSON.stringify(value))
    } else if (isRange(value)) {
      if (value.from !== undefined) parts.push(`${column} >= ?`)
      if (value.until !== undefined) parts.push(`${column} <= ?`)
      values.push(...[value.from, value.until].filter((bound) => bound !== undefined))
    } else {
      parts.push(`${column} = ?`)
      values.push(columnValue(value))
    }
  }
  return { parts, values }
}

function whereOf<R>(definition: Pick<Definition<R>, 'leads'>, where: Where<R>): Sql {
  const { parts, values } = conditions(definition, where)
  return { sql: parts.join(' AND ') || '1', values }
}

export function keyedList<K extends Kind>(kind: K, where: Where<Kinds[K]>, options: ListOptions<Kinds[K]>): Sql {
  const { by, descending = false, limit = -1, offset = 0, behind } = options
  const columns = by.map(columnOf)
  const { parts, values } = conditions<Kinds[K]>(definitions[kind], where)
  if (behind) {
    parts.push(`(${columns.join()}) ${descending ? '<' : '>'} (${by.map(() => '?').join()})`)
    values.push(...by.map((field) => columnValue(behind[field])))
  }
  const order = columns.map((column) => (descending ? `${column} DESC` : column)).join()
  return {
    sql: `SELECT doc FROM ${kind} WHERE ${parts.join(' AND ') || '1'} ORDER BY ${order} LIMIT ?+0 OFFSET ?`,
    values: [...values, limit, offset],
  }
}

/** A list of calls. Filters other than time are not indexed, so they may scan all calls of the developer. */
function longCalls(read: Sql, where: Where<Kinds['calls']>, options: Partial<Page>): LongRead {
  const filtered = [where.userId, where.status, where.method, where.path].some(isGiven)
  const { sql, values } = whereOf(definitions.calls, { developerId: where.developerId })
  const all = { sql: `SELECT id FROM calls WHERE ${sql}`, values }
  return { ...read, owner: JSON.stringify(values), walk: filtered || isFar(options) ? all : null }
}

function has<R>(record: R, expected: Partial<R>): boolean {
  const fields = Object.entries(expected) as [keyof R, unknown][]
  return fields.every(([field, value]) => isDeepStrictEqual(record[field] ?? null, value))
}

/** Expired rows that an insert deletes at most; few rows expire between two inserts. */
const expiredAtOnce = 100

export function expireKeyed(kind: Kind, at: string): string {
  return deleteWhere(kind, `json_extract(doc, '$.${at}') < ?`)
}

function openKeyed<K extends Kind>(db: Database, kind: K, now: () => number): Keyed<Kinds[K]> {
  type R = Kinds[K]
  const definition: Definition<R> = definitions[kind]
  const table = tables[kind] as unknown as Table<R>
  const write = definition.unsynced ? db.writeUnsynced : db.write
  const find = (where: Where<R>): R | null => {
    const { sql, values } = whereOf(definition, where)
    return db.doc(`SELECT doc FROM ${kind} WHERE ${sql} LIMIT 1`, ...values) as R | null
  }
  const count = (where: Where<R>, most: number): number => {
    const { sql, values } = whereOf(definition, where)
    return db.number(`SELECT count(*) FROM (SELECT 1 FROM ${kind} WHERE ${sql} LIMIT ?+0)`, ...values, most)
  }
  const insert = (record: R, rooms: readonly Room<R>[]): void => {
    const { owned, expires } = definition
    const userId = owned && 'userId' in record ? record.userId : null
    if (userId !== null && !db.tuple('SELECT 1 FROM users WHERE id = ?', userId)) throw notFound('user', userId)
    for (const { name, where, most } of rooms) if (most > 0) checkRoom(name, most, count(where, most))
    if (expires) db.run(expireKeyed(kind, expires.at), now() - expires.keptMs, expiredAtOnce)
    table.insert(db, record)
  }
  const queue = (rows: readonly OutboxRecord[]): void => {
    for (const row of rows) tables.outbox.insertMissing(db, row)
  }
  return {
    insert: (record, rooms = []) => write(() => insert(record, rooms)),
    insertMissing: (records) => write(() => records.filter((record) => table.insertMissing(db, record))),
    put: (record, outbox = []) =>
      write(() => {
        queue(outbox)
        table.put(db, record)
      }),
    find: (where) => db.read(() => find(where)),
    list: async (where, options) => {
      const read = keyedList(kind, where, options)
      return (await (kind === 'calls'
        ? db.readLong(longCalls(read, where, options))
        : db.read(() => db.docs(read.sql, ...read.values)))) as R[]
    },
    count: (where) => db.read(() => count(where, -1)),
    edit: (key, patch, expected = {}, outbox = []) =>
      write(() => {
        const stored = find(key)
        if (stored === null || !has(stored, expected)) return null
        queue(outbox)
        const record = { ...stored, ...patch }
        table.save(db, stored, record)
        return record
      }),
    remove: (where) => {
      const { sql, values } = whereOf(definition, where)
      return drain(db, deleteWhere(kind, sql), ...values)
    },
    expire: (field, before, limit) => write(() => db.run(deleteWhere(kind, `${columnOf(field)} < ?`), before, limit)),
  }
}

export function openKeyedCollections(db: Database, now: () => number): KeyedCollections {
  const kinds = Object.keys(definitions) as Kind[]
  return Object.fromEntries(kinds.map((kind) => [kind, openKeyed(db, kind, now)])) as unknown as KeyedCollections
}

/** Expired nonces deleted with each new one: more than one, so that they never pile up. */
const sweep = 4

export const nonceSweep = `DELETE FROM nonces WHERE (api_key, nonce, timestamp) IN
  (SELECT api_key, nonce, timestamp FROM nonces WHERE expires_at <= ? ORDER BY expires_at LIMIT ?+0)`

const nonceInsert = `INSERT INTO nonces (api_key, nonce, timestamp, expires_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (api_key, nonce, timestamp) DO UPDATE SET expires_at = excluded.expires_at WHERE nonces.expires_at <= ?`

/** OAuth nonces. An expired nonce counts as new. Writes do not wait for the disk. */
export function createNonces(db: Database, now: () => number): NonceStore {
  return {
    remember: (apiKey, nonce, timestamp, expiresAt) =>
      db.writeUnsynced(() => {
        const time = now()
        const added = db.run(nonceInsert, apiKey, nonce, timestamp, expiresAt, time)
        db.run(nonceSweep, time, sweep)
        return added === 1
      }),
  }
}
