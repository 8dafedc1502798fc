/** Email accounts, users, and the SQLite steps of removals (../removal.ts). */
import { accountBasics, userBasics, type KeyedCollections } from '../aggregates.ts'
import type { AccountFilter, AccountPlace, AccountStore, Page, UserFilter, UserStore } from '../port.ts'
import type { AccountRecord, Condition, FolderRecord, UserRecord } from '../records.ts'
import { createRemoval, type Removal } from '../removal.ts'
import { foldCase, leaseLost } from '../rows.ts'
import { deleteWhere, drain, isFar, type Database } from './database.ts'
import { conditions } from './keyed.ts'
import { factsLike, readFact, saveFact } from './schema.ts'
import type { Sql, Statements, Value } from './statements.ts'
import { tables } from './tables.ts'

/** Throws `lease_lost` when the account has another epoch, or is gone. */
export function checkEpoch(sql: Statements, accountId: string, epoch: number): void {
  const [stored] = sql.tuple('SELECT epoch FROM accounts WHERE id = ?', accountId) ?? []
  if (stored !== epoch) throw leaseLost(accountId, epoch)
}

function claim(sql: Statements, id: string): AccountRecord | null {
  const stored = tables.accounts.get(sql, id)
  if (!stored) return null
  const account = { ...stored, epoch: stored.epoch + 1 }
  for (const folder of sql.docs('SELECT doc FROM folders WHERE account_id = ?', id) as FolderRecord[]) {
    tables.folders.save(sql, folder, { ...folder, epoch: account.epoch })
  }
  tables.accounts.save(sql, stored, account)
  return account
}

interface ConditionRow extends Pick<AccountRecord, 'developerId' | 'userId' | 'server'> {
  readonly condition: Condition['is']
  readonly since: number
}

/** Without server, developer and user, the query scans a covering index. */
export function accountPlaces({ text, sinceUntil, ...equal }: AccountFilter): Sql {
  const { parts, values } = conditions<ConditionRow>({}, { ...equal, since: { until: sinceUntil } })
  if (text !== undefined) {
    parts.push('(instr(email_key, ?) > 0 OR id = ? OR label = ?)')
    values.push(foldCase(text), text, text)
  }
  const sql = `SELECT id, server, developer_id, condition, since FROM accounts
    WHERE ${parts.join(' AND ') || '1'} ORDER BY since, id`
  return { sql, values }
}

function places(sql: Statements, filter: AccountFilter, most: number): AccountPlace[] {
  const statement = accountPlaces(filter)
  const rows = sql.tuples(`${statement.sql} LIMIT ?+0`, ...statement.values, most)
  return rows.map(([id, server, developerId, is, since]) => {
    const condition = { is: is as Condition['is'], since: Number(since) }
    return { id: String(id), server: String(server), developerId: String(developerId), condition }
  })
}

export function createAccounts(db: Database, keyed: KeyedCollections, removal: Removal): AccountStore {
  return {
    ...accountBasics(keyed),
    places: (filter, most = -1) => db.read(() => places(db, filter, most)),
    claim: (id) => db.write(() => (isBeingRemoved(db, id) ? null : claim(db, id))),
    remove: removal.removeAccount,
  }
}

/** A list of users, oldest first. With an email, the address index gives that order. */
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
  const sql = `SELECT u.doc FROM ${from} ${order && `ORDER BY ${order}`} LIMIT ?+0 OFFSET ?`
  return { sql, values: [...values, page.limit, page.offset] }
}

/** Scans all users: each word is a part of the name or of an address. */
export function userSearch(words: readonly string[], limit: number): Sql {
  const part = `(instr(lower((u.doc ->> '$.firstName') || ' ' || (u.doc ->> '$.lastName')), ?) > 0
    OR EXISTS (SELECT 1 FROM user_addresses a WHERE a.user_id = u.id AND instr(a.email, ?) > 0))`
  const sql = `SELECT u.doc FROM users u WHERE ${words.map(() => part).join(' AND ')} ORDER BY u.id LIMIT ?+0`
  return { sql, values: [...words.map(foldCase).flatMap((word) => [word, word]), limit] }
}

export function createUsers(db: Database, keyed: KeyedCollections, { removeUser }: Removal): UserStore {
  return {
    ...userBasics(keyed),
    createWithAccount: (user, account) =>
      db.write(() => {
        tables.users.insert(db, user)
        tables.accounts.insert(db, account)
      }),
    undoCreate: async (id) => {
      await removeUser(id)
    },
    list: async (developerId, filter, page) => {
      const all = { sql: 'SELECT id FROM users WHERE developer_id = ?', values: [developerId] }
      const walk = filter.status !== undefined || isFar(page) ? all : null
      return (await db.readLong({ ...userList(developerId, filter, page), owner: developerId, walk })) as UserRecord[]
    },
    search: async (words, limit) => {
      const walk = { sql: 'SELECT id FROM users', values: [] }
      return (await db.readLong({ ...userSearch(words, limit), owner: '', walk })) as UserRecord[]
    },
    remove: removeUser,
  }
}

/* Removals. */

export const accountDeletes = ['messages', 'changes', 'outbox', 'scans', 'tokens', 'folders', 'contacts'].map((table) =>
  deleteWhere(table, 'account_id = ?'),
)

/** Deletes in tables without row ids, by the tables' own keys. */
export const keyedDeletes = {
  placements: `DELETE FROM placements WHERE folder_id = ?1 AND (uid_validity, uid) IN
    (SELECT uid_validity, uid FROM placements WHERE folder_id = ?1 LIMIT ?2)`,
  keys: `DELETE FROM message_keys WHERE account_id = ?1 AND (key, sent_at, message_id) IN
    (SELECT key, sent_at, message_id FROM message_keys WHERE account_id = ?1 LIMIT ?2)`,
  marks: `DELETE FROM contact_marks WHERE account_id = ?1 AND key IN
    (SELECT key FROM contact_marks WHERE account_id = ?1 LIMIT ?2)`,
} as const

/** Precondition: the removal is noted, so no owner claims the account. */
export async function removeAccount(db: Database, id: string): Promise<void> {
  // a new epoch: a running writer loses its lease and leaves no rows behind
  const begun = await db.write(() => {
    const account = claim(db, id)
    if (!account) return null
    return { userId: account.userId, folders: db.texts('SELECT id FROM folders WHERE account_id = ?', id) }
  })
  if (!begun) return
  for (const folder of begun.folders) await drain(db, keyedDeletes.placements, folder)
  await drain(db, keyedDeletes.keys, id)
  await drain(db, keyedDeletes.marks, id)
  for (const sql of accountDeletes) await drain(db, sql, id)
  await db.write(() => {
    db.run('DELETE FROM user_addresses WHERE user_id = ? AND account_id = ?', begun.userId, id)
    db.run('DELETE FROM accounts WHERE id = ?', id)
  })
}

export const userDeletes: readonly string[] = [
  deleteWhere('contacts', 'user_id = ?'),
  deleteWhere('tokens', 'user_id = ?'),
  deleteWhere('outbox', `user_id = ? AND account_id = '' AND user_id <> ''`),
]

function removeUserRow(db: Database, id: string): Promise<void> {
  return db.write(() => {
    db.run('DELETE FROM user_addresses WHERE user_id = ?', id)
    db.run('DELETE FROM users WHERE id = ?', id)
  })
}

const removalNote = (what: 'account' | 'user', id: string): string => `removal ${what} ${id}`

function isBeingRemoved(sql: Statements, id: string): boolean {
  return readFact(sql, removalNote('account', id)) !== null
}

/** Each running removal is a fact of the file, so that an interrupted removal is found. */
export function createSqliteRemoval(db: Database, keyed: KeyedCollections, channels: () => Promise<string[]>) {
  const noted = async <T>(what: 'account' | 'user', id: string, work: () => Promise<T>): Promise<T> => {
    const note = removalNote(what, id)
    await db.write(() => saveFact(db, note, ''))
    const answer = await work()
    await db.write(() => saveFact(db, note, null))
    return answer
  }
  const removal = createRemoval(keyed, {
    noted,
    removeAccount: (id) => removeAccount(db, id),
    drainUser: async (id) => {
      for (const sql of userDeletes) await drain(db, sql, id)
    },
    removeUserRow: (id) => removeUserRow(db, id),
    channels,
  })
  /** Repeats the noted removals; one that is still running is repeated without harm. Returns how many there were. */
  const finish = async (): Promise<number> => {
    const notes = await db.read(() => factsLike(db, 'removal '))
    for (const [, what, id = ''] of notes.map((note) => note.split(' '))) {
      await (what === 'account' ? removal.removeAccount(id) : removal.removeUser(id))
    }
    return notes.length
  }
  return { ...removal, finish, tidy: async () => (await finish()) + (await removal.tidyWebhooks()) }
}
