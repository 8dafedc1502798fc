/** The log of API calls. Comes with every call and may be lost with the power. */
import type { CallLogQuery, CallLogStore, Page } from '../port.ts'
import type { CallLogRecord } from '../records.ts'
import type { Database } from './database.ts'
import type { Sql } from './message-query.ts'
import { deleteWhere } from './deletes.ts'
import type { Value } from './statements.ts'

export function callList(query: CallLogQuery, page: Page): Sql {
  const conditions: readonly (readonly [string, ...(Value | undefined)[]])[] = [
    ['developer_id = ?', query.developerId],
    ['user_id = ?', query.userId],
    ['at >= ?', query.from],
    ['at <= ?', query.until],
    ['status >= ?', query.statusFrom],
    ['status <= ?', query.statusTo],
    ['method = ?', query.method],
    ['path = ?', query.path],
    ['(at, id) < (?, ?)', query.before?.at, query.before?.id],
  ]
  const given = conditions.filter(([, value]) => value !== undefined)
  return {
    sql: `SELECT doc FROM calls WHERE ${given.map(([sql]) => sql).join(' AND ')} ORDER BY at DESC, id DESC LIMIT ? OFFSET ?`,
    values: [...given.flatMap(([, ...some]) => some.map((value) => value ?? null)), page.limit, page.offset],
  }
}

export const expireCalls = deleteWhere('calls', 'at < ?')

export function createCalls(db: Database): CallLogStore {
  const append = (call: CallLogRecord): void => {
    db.run(
      `INSERT INTO calls (id, developer_id, user_id, at, method, path, status, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO NOTHING`,
      call.id,
      call.developerId,
      call.userId ?? '',
      call.at,
      call.method,
      call.path,
      call.status,
      JSON.stringify(call),
    )
  }
  return {
    append: (calls) =>
      db.writeUnsynced(() => {
        for (const call of calls) append(call)
      }),
    list: (query, page) =>
      db.read(() => {
        const { sql, values } = callList(query, page)
        return db.docs(sql, ...values) as CallLogRecord[]
      }),
    expire: (before, limit) => db.writeUnsynced(() => db.run(expireCalls, before, limit)),
  }
}
