/** Email accounts: their epoch and status. */
import { accountBasics, type KeyedCollections } from '../aggregates.ts'
import type { AccountFilter, AccountPlace, AccountStore, StatusTransition } from '../port.ts'
import type { AccountRecord, FolderRecord } from '../records.ts'
import { foldCase, leaseLost, transitioned } from '../rows.ts'
import type { Database } from './database.ts'
import { insertOutbox } from './outbox.ts'
import { removeAccount } from './removal.ts'
import type { Sql, Statements } from './statements.ts'
import { tables } from './tables.ts'

export function editAccount(sql: Statements, id: string, patch: Partial<AccountRecord>): AccountRecord | null {
  const stored = tables.accounts.get(sql, id)
  if (!stored) return null
  const account = { ...stored, ...patch }
  tables.accounts.save(sql, stored, account)
  return account
}

/** A writer whose epoch is not the account's has lost its lease, and so has one whose account is gone. */
export function checkEpoch(sql: Statements, accountId: string, epoch: number): void {
  const row = sql.row('SELECT epoch FROM accounts WHERE id = ?', accountId)
  if (row?.['epoch'] !== epoch) throw leaseLost(accountId, epoch)
}

function claim(sql: Statements, id: string): AccountRecord | null {
  const stored = tables.accounts.get(sql, id)
  if (!stored) return null
  const epoch = stored.epoch + 1
  for (const folder of sql.docs('SELECT doc FROM folders WHERE account_id = ?', id) as FolderRecord[]) {
    tables.folders.save(sql, folder, { ...folder, epoch })
  }
  return editAccount(sql, id, { epoch })
}

function transition(sql: Statements, step: StatusTransition): AccountRecord | null {
  const stored = tables.accounts.get(sql, step.accountId)
  if (!stored) return null
  checkEpoch(sql, step.accountId, step.epoch)
  if (stored.statusVersion !== step.fromVersion) return null
  insertOutbox(sql, step.outbox)
  return editAccount(sql, step.accountId, transitioned(stored, step))
}

/** Without a server, a developer or a user it walks an index that has all that is asked for. */
export function accountPlaces({ developerId, userId, server, text }: AccountFilter): Sql {
  const equal = [
    ['developer_id', developerId],
    ['user_id', userId],
    ['server', server],
  ] as const
  const given = equal.flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]))
  const parts = given.map(({ column }) => `${column} = ?`)
  const values = given.map(({ value }) => value)
  if (text !== undefined) {
    parts.push('(instr(email_key, ?) > 0 OR id = ? OR label = ?)')
    values.push(foldCase(text), text, text)
  }
  return { sql: `SELECT id, server, developer_id FROM accounts WHERE ${parts.join(' AND ') || '1'}`, values }
}

function places(sql: Statements, filter: AccountFilter): AccountPlace[] {
  const statement = accountPlaces(filter)
  const rows = sql.tuples(statement.sql, ...statement.values)
  return rows.map(([id, server, developerId]) => {
    return { id: String(id), server: String(server), developerId: String(developerId) }
  })
}

export function createAccounts(db: Database, keyed: KeyedCollections): AccountStore {
  return {
    ...accountBasics(keyed),
    places: (filter) => db.read(() => places(db, filter)),
    claim: (id) => db.write(() => claim(db, id)),
    transition: (step) => db.write(() => transition(db, step)),
    remove: (id) => removeAccount(db, id),
  }
}
