/** Account rows, and the addresses that users are found by. */
import { AppError, notFound } from '../../errors.ts'
import type { AccountRecord, UserRecord } from '../records.ts'
import { foldCase } from '../rows.ts'
import type { Statements } from './statements.ts'

export function readAccount(sql: Statements, id: string): AccountRecord | null {
  return sql.doc('SELECT doc FROM accounts WHERE id = ?', id) as AccountRecord | null
}

/** What belongs to a user is not written without it; null = belongs to none. */
export function checkUser(sql: Statements, id: string | null): void {
  if (id === null || sql.row('SELECT 1 FROM users WHERE id = ?', id)) return
  throw notFound('user', id)
}

export function insertAccount(sql: Statements, account: AccountRecord): void {
  const { id, userId, label, status, epoch, createdAt } = account
  checkUser(sql, userId)
  sql.run(
    'INSERT INTO accounts (id, user_id, label, status, epoch, created_at, doc) VALUES (?, ?, ?, ?, ?, ?, ?)',
    id,
    userId,
    label,
    status,
    epoch,
    createdAt,
    JSON.stringify(account),
  )
  indexAccountAddress(sql, account)
}

/** The user's age orders its addresses. */
export function indexAccountAddress(sql: Statements, account: AccountRecord): void {
  const user = sql.doc('SELECT doc FROM users WHERE id = ?', account.userId) as UserRecord | null
  const { developerId, createdAt } = user ?? account
  indexAddresses(sql, { id: account.userId, developerId, createdAt }, account.id, [account.email])
}

/** null when it is gone. */
export function editAccount(sql: Statements, id: string, patch: Partial<AccountRecord>): AccountRecord | null {
  const stored = readAccount(sql, id)
  if (!stored) return null
  const account = { ...stored, ...patch }
  saveAccount(sql, account)
  if (account.email !== stored.email) indexAccountAddress(sql, account)
  return account
}

export function saveAccount(sql: Statements, account: AccountRecord): void {
  const update = 'UPDATE accounts SET status = ?, epoch = ?, doc = ? WHERE id = ?'
  sql.run(update, account.status, account.epoch, JSON.stringify(account), account.id)
}

/** A writer whose epoch is not the account's has lost its lease, and so has one whose account is gone. */
export function checkEpoch(sql: Statements, accountId: string, epoch: number): void {
  const row = sql.row('SELECT epoch FROM accounts WHERE id = ?', accountId)
  if (row?.['epoch'] === epoch) return
  throw new AppError('lease_lost', 'another owner has taken the account over', { details: { accountId, epoch } })
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
