/** Users, and the addresses they are found by: their own and those of their accounts. */
import { userBasics, type KeyedCollections } from '../aggregates.ts'
import type { Page, UserFilter, UserStore } from '../port.ts'
import type { UserRecord } from '../records.ts'
import { foldCase } from '../rows.ts'
import type { Database } from './database.ts'
import { removeUser } from './removal.ts'
import type { Sql, Statements, Value } from './statements.ts'
import { tables } from './tables.ts'

/** The statement of a list; with an email it walks that address's rows, which lie in order of age too. */
export function userList(developerId: string, filter: UserFilter, page: Page): Sql {
  const values: Value[] = [developerId]
  let from = 'users u WHERE u.developer_id = ?'
  let order = 'u.created_at, u.id'
  if (filter.email !== undefined) {
    from = `(SELECT DISTINCT created_at, user_id FROM user_addresses WHERE developer_id = ? AND email = ?
      ORDER BY created_at, user_id LIMIT -1) a CROSS JOIN users u ON u.id = a.user_id WHERE 1`
    order = ''
    values.push(foldCase(filter.email))
  }
  if (filter.status !== undefined) {
    from += ' AND EXISTS (SELECT 1 FROM accounts x WHERE x.user_id = u.id AND x.status = ?)'
    values.push(filter.status)
  }
  const sql = `SELECT u.doc FROM ${from} ${order && `ORDER BY ${order}`} LIMIT ? OFFSET ?`
  return { sql, values: [...values, page.limit, page.offset] }
}

function addAddress(sql: Statements, id: string, email: string): UserRecord | null {
  const stored = tables.users.get(sql, id)
  if (!stored || stored.emailAddresses.includes(email)) return stored
  const user = { ...stored, emailAddresses: [...stored.emailAddresses, email] }
  tables.users.save(sql, stored, user)
  return user
}

export function createUsers(db: Database, keyed: KeyedCollections): UserStore {
  return {
    ...userBasics(keyed),
    createWithAccount: (user, account) =>
      db.write(() => {
        tables.users.insert(db, user)
        tables.accounts.insert(db, account)
      }),
    undoCreate: (id) => removeUser(db, id).then(() => undefined),
    list: (developerId, filter, page) =>
      db.read(() => {
        const { sql, values } = userList(developerId, filter, page)
        return db.docs(sql, ...values) as UserRecord[]
      }),
    addAddress: (id, email) => db.write(() => addAddress(db, id, email)),
    remove: (id) => removeUser(db, id),
  }
}
