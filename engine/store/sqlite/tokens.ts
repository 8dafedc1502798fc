/** Connect tokens: used once, or not at all. */
import type { TokenStore } from '../port.ts'
import type { ConnectTokenRecord } from '../records.ts'
import { tokensKeptMs, tokensListed, usedToken } from '../rows.ts'
import { checkUser } from './account-rows.ts'
import type { Database } from './database.ts'
import { deleteWhere } from './deletes.ts'
import type { Sql } from './message-query.ts'
import type { Statements, Value } from './statements.ts'

/** The narrowest owner named leads; a + keeps the planner off the wider indexes. */
export function tokenList(developerId: string, filter: Parameters<TokenStore['list']>[1]): Sql {
  const { userId, accountId, version } = filter
  const wide = userId === undefined && accountId === undefined ? '' : '+'
  const where = [`${wide}developer_id = ?`]
  const values: Value[] = [developerId]
  if (accountId !== undefined) {
    where.push('account_id = ?')
    values.push(accountId)
  }
  if (userId !== undefined) {
    where.push(`${accountId === undefined ? '' : '+'}user_id = ?`)
    values.push(userId)
  }
  if (version !== undefined) {
    where.push('version = ?')
    values.push(version)
  }
  return {
    sql: `SELECT doc FROM tokens WHERE ${where.join(' AND ')} ORDER BY created_at DESC, token DESC LIMIT ?`,
    values: [...values, tokensListed],
  }
}

function find(sql: Statements, token: string): ConnectTokenRecord | null {
  return sql.doc('SELECT doc FROM tokens WHERE token = ?', token) as ConnectTokenRecord | null
}

function use(
  sql: Statements,
  token: string,
  usedAt: number,
  userId: string,
  accountId: string,
): ConnectTokenRecord | null {
  const stored = find(sql, token)
  const used = stored && usedToken(stored, usedAt, userId, accountId)
  if (!used) return null
  const update = 'UPDATE tokens SET user_id = ?, account_id = ?, doc = ? WHERE token = ?'
  sql.run(update, userId, accountId, JSON.stringify(used), token)
  return used
}

/** A few at each creation: there are never more than a few that are due. */
export const expireTokens = deleteWhere('tokens', `json_extract(doc, '$.expiresAt') < ?`)
const expiredAtOnce = 100

export function createTokens(db: Database, now: () => number): TokenStore {
  const create = (token: ConnectTokenRecord): void => {
    checkUser(db, token.userId)
    db.run(expireTokens, now() - tokensKeptMs, expiredAtOnce)
    db.run(
      `INSERT INTO tokens (token, developer_id, user_id, account_id, version, created_at, doc)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      token.token,
      token.developerId,
      token.userId ?? '',
      token.accountId ?? '',
      token.version,
      token.createdAt,
      JSON.stringify(token),
    )
  }
  return {
    create: (token) => db.write(() => create(token)),
    get: (developerId, token) =>
      db.read(() => {
        const stored = find(db, token)
        return stored?.developerId === developerId ? stored : null
      }),
    find: (token) => db.read(() => find(db, token)),
    list: (developerId, filter) =>
      db.read(() => {
        const { sql, values } = tokenList(developerId, filter)
        return db.docs(sql, ...values) as ConnectTokenRecord[]
      }),
    use: (token, usedAt, userId, accountId) => db.write(() => use(db, token, usedAt, userId, accountId)),
    remove: (developerId, token) =>
      db.write(() => db.run('DELETE FROM tokens WHERE token = ? AND developer_id = ?', token, developerId) === 1),
  }
}
