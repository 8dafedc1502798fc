/** Email accounts: their settings, status and epoch; and the addresses that users are found by. */
import { AppError } from '../../errors.ts'
import { accountReads, type KeyedCollections } from '../aggregates.ts'
import type { AccountStore, StatusTransition } from '../port.ts'
import type { AccountRecord, FolderRecord, UserRecord } from '../records.ts'
import { foldCase, transitioned } from '../rows.ts'
import type { Database } from './database.ts'
import { checkUser } from './keyed.ts'
import { insertOutbox } from './outbox.ts'
import { createRecords } from './parsed.ts'
import { removeAccount } from './removal.ts'
import type { Statements } from './statements.ts'
import { tables } from './tables.ts'

export function insertAccount(sql: Statements, account: AccountRecord): void {
  checkUser(sql, account.userId)
  tables.accounts.insert(sql, account)
  indexAccountAddress(sql, account)
}

/** The user's age orders its addresses. */
export function indexAccountAddress(sql: Statements, account: AccountRecord): void {
  const { developerId, createdAt } = tables.users.get(sql, account.userId) ?? account
  indexAddresses(sql, { id: account.userId, developerId, createdAt }, account.id, [account.email])
}

/** Replaces the addresses that the user (accountId '') or one of its accounts is found by. */
export function indexAddresses(
  sql: Statements,
  user: Pick<UserRecord, 'id' | 'developerId' | 'createdAt'>,
  accountId: string,
  emails: readonly string[],
): void {
  sql.run('DELETE FROM user_addresses WHERE user_id = ? AND account_id = ?', user.id, accountId)
  for (const email of new Set(emails.map(foldCase))) {
    sql.run(
      'INSERT INTO user_addresses (developer_id, email, created_at, user_id, account_id) VALUES (?, ?, ?, ?, ?)',
      user.developerId,
      email,
      user.createdAt,
      user.id,
      accountId,
    )
  }
}

/** null when it is gone. */
export function editAccount(sql: Statements, id: string, patch: Partial<AccountRecord>): AccountRecord | null {
  const stored = tables.accounts.get(sql, id)
  if (!stored) return null
  const account = { ...stored, ...patch }
  tables.accounts.save(sql, stored, account)
  if (account.email !== stored.email) indexAccountAddress(sql, account)
  return account
}

/** A writer whose epoch is not the account's has lost its lease, and so has one whose account is gone. */
export function checkEpoch(sql: Statements, accountId: string, epoch: number): void {
  const row = sql.row('SELECT epoch FROM accounts WHERE id = ?', accountId)
  if (row?.['epoch'] === epoch) return
  throw new AppError('lease_lost', 'another owner has taken the account over', { details: { accountId, epoch } })
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

export const accountsOfUser = 'SELECT doc FROM accounts WHERE user_id = ? ORDER BY created_at, id'

export function createAccounts(db: Database, { accounts }: KeyedCollections): AccountStore {
  const lists = createRecords<AccountRecord[]>({ max: 2000, maxChars: 4_194_304 })
  return {
    create: (account) => db.write(() => insertAccount(db, account)),
    ...accountReads(accounts),
    listByUser: (userId, filter) => {
      if (filter?.status !== undefined) return accountReads(accounts).listByUser(userId, filter)
      return db.read(() => lists.of(userId, db.list(accountsOfUser, userId)))
    },
    edit: (id, patch, epoch) =>
      db.write(() => {
        if (epoch !== undefined && tables.accounts.get(db, id)) checkEpoch(db, id, epoch)
        return editAccount(db, id, patch)
      }),
    claim: (id) => db.write(() => claim(db, id)),
    transition: (step) => db.write(() => transition(db, step)),
    remove: (id) => removeAccount(db, id),
  }
}
