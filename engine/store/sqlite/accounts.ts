/** Email accounts: their settings, status and epoch. */
import type { AccountStore, StatusTransition } from '../port.ts'
import type { AccountRecord, FolderRecord } from '../records.ts'
import { transitioned } from '../rows.ts'
import { checkEpoch, editAccount, insertAccount, readAccount, saveAccount } from './account-rows.ts'
import type { Database } from './database.ts'
import { insertOutbox } from './outbox-rows.ts'
import { createLists } from './parsed.ts'
import { removeAccount } from './removal.ts'
import type { Statements } from './statements.ts'

function claim(sql: Statements, id: string): AccountRecord | null {
  const stored = readAccount(sql, id)
  if (!stored) return null
  const account = { ...stored, epoch: stored.epoch + 1 }
  saveAccount(sql, account)
  for (const folder of sql.docs('SELECT doc FROM folders WHERE account_id = ?', id) as FolderRecord[]) {
    sql.run('UPDATE folders SET doc = ? WHERE id = ?', JSON.stringify({ ...folder, epoch: account.epoch }), folder.id)
  }
  return account
}

function transition(sql: Statements, step: StatusTransition): AccountRecord | null {
  const stored = readAccount(sql, step.accountId)
  if (!stored) return null
  checkEpoch(sql, step.accountId, step.epoch)
  if (stored.statusVersion !== step.fromVersion) return null
  insertOutbox(sql, step.outbox)
  const account = transitioned(stored, step)
  saveAccount(sql, account)
  return account
}

export function createAccounts(db: Database): AccountStore {
  return {
    ...createReads(db),
    create: (account) => db.write(() => insertAccount(db, account)),
    edit: (id, patch, epoch) =>
      db.write(() => {
        if (epoch !== undefined && readAccount(db, id)) checkEpoch(db, id, epoch)
        return editAccount(db, id, patch)
      }),
    claim: (id) => db.write(() => claim(db, id)),
    transition: (step) => db.write(() => transition(db, step)),
    remove: (id) => removeAccount(db, id),
  }
}

type Reads = Pick<AccountStore, 'get' | 'byLabel' | 'listByUser' | 'listByUsers' | 'page'>

export const accountLists = {
  ofUser: 'SELECT doc FROM accounts WHERE user_id = ? ORDER BY created_at, id',
  ofUserByStatus: 'SELECT doc FROM accounts WHERE user_id = ? AND status = ? ORDER BY created_at, id',
  ofUsers: 'SELECT doc FROM accounts WHERE user_id IN (SELECT value FROM json_each(?)) ORDER BY created_at, id',
  page: 'SELECT doc FROM accounts WHERE id > ? ORDER BY id LIMIT ?',
} as const

function createReads(db: Database): Reads {
  const lists = createLists<AccountRecord>(2000)
  return {
    get: (id) => db.read(() => readAccount(db, id)),
    byLabel: (userId, label) =>
      db.read(
        () => db.doc('SELECT doc FROM accounts WHERE user_id = ? AND label = ?', userId, label) as AccountRecord | null,
      ),
    listByUser: (userId, filter) =>
      db.read(() => {
        const { status } = filter ?? {}
        if (status === undefined) return lists.of(userId, db.texts(accountLists.ofUser, userId)) as AccountRecord[]
        return db.docs(accountLists.ofUserByStatus, userId, status) as AccountRecord[]
      }),
    listByUsers: (userIds) => db.read(() => db.docs(accountLists.ofUsers, JSON.stringify(userIds)) as AccountRecord[]),
    page: (afterId, limit) => db.read(() => db.docs(accountLists.page, afterId ?? '', limit) as AccountRecord[]),
  }
}
