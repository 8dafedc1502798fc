/** Users, and the addresses they are found by: their own and those of their accounts. */
import type { Page, UserFilter, UserStore } from '../port.ts'
import type { UserRecord } from '../records.ts'
import { foldCase } from '../rows.ts'
import { indexAddresses, insertAccount } from './accounts.ts'
import type { Database } from './database.ts'
import { createRecords } from './parsed.ts'
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

const existingUsers = 'SELECT id FROM users WHERE id IN (SELECT value FROM json_each(?))'

function insertUser(sql: Statements, user: UserRecord): void {
  tables.users.insert(sql, user)
  indexAddresses(sql, user, '', user.emailAddresses)
}

export function createUsers(db: Database): UserStore {
  const edit = (id: string, patchOf: (stored: UserRecord) => Partial<UserRecord>): UserRecord | null => {
    const stored = tables.users.get(db, id)
    if (!stored) return null
    const patch = patchOf(stored)
    const user = { ...stored, ...patch }
    tables.users.save(db, stored, user)
    if (patch.emailAddresses) indexAddresses(db, user, '', user.emailAddresses)
    return user
  }
  const records = createRecords<UserRecord>({ max: 2000, maxChars: 4_194_304 })
  return {
    create: (user) => db.write(() => insertUser(db, user)),
    createWithAccount: (user, account) =>
      db.write(() => {
        insertUser(db, user)
        insertAccount(db, account)
      }),
    undoCreate: (id) => removeUser(db, id).then(() => undefined),
    get: (developerId, id) =>
      db.read(() => {
        const text = db.text('SELECT doc FROM users WHERE id = ?', id)
        const user = text === null ? null : records.of(id, text)
        return user?.developerId === developerId ? user : null
      }),
    list: (developerId, filter, page) =>
      db.read(() => {
        const { sql, values } = userList(developerId, filter, page)
        return db.docs(sql, ...values) as UserRecord[]
      }),
    edit: (id, patch) => db.write(() => edit(id, () => patch)),
    addAddress: (id, email) =>
      db.write(() =>
        edit(id, ({ emailAddresses }) =>
          emailAddresses.includes(email) ? {} : { emailAddresses: [...emailAddresses, email] },
        ),
      ),
    existing: (ids) => db.read(() => db.rows(existingUsers, JSON.stringify(ids)).map((row) => String(row['id']))),
    remove: (id) => removeUser(db, id),
  }
}
