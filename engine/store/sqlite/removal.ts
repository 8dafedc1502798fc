/**
 * Removal of accounts and users with all that hangs on them: in bounded steps, so that a big mailbox does not hold up
 * the others, and with the row itself last, so that a removal that was cut short is repeated from the start.
 */
import type { AccountRecord, FolderRecord, WebhookRecord } from '../records.ts'
import { editAccount } from './accounts.ts'
import { uncountSome } from './contacts.ts'
import { deleteWhere, drain, type Database } from './database.ts'
import { pendingChannels } from './outbox-query.ts'
import type { Statements } from './statements.ts'
import { tables } from './tables.ts'

export const accountDeletes: readonly string[] = [
  deleteWhere('messages', 'account_id = ?'),
  deleteWhere('changes', 'account_id = ?'),
  deleteWhere('outbox', 'account_id = ?'),
  deleteWhere('scans', 'account_id = ?'),
  deleteWhere('tokens', 'account_id = ?'),
  deleteWhere('folders', 'account_id = ?'),
]

/** Of tables without row ids: their own keys take the place. */
export const keyedDeletes = {
  placements: `DELETE FROM placements WHERE folder_id = ?1 AND (uid_validity, uid) IN
    (SELECT uid_validity, uid FROM placements WHERE folder_id = ?1 LIMIT ?2)`,
  keys: `DELETE FROM message_keys WHERE account_id = ?1 AND (key, sent_at, message_id) IN
    (SELECT key, sent_at, message_id FROM message_keys WHERE account_id = ?1 LIMIT ?2)`,
  marks: `DELETE FROM contact_marks WHERE account_id = ?1 AND key IN
    (SELECT key FROM contact_marks WHERE account_id = ?1 LIMIT ?2)`,
} as const

/** At once, so that no page of what is going is kept, and again at the end: a call may still have written. */
const forgetVersion = 'DELETE FROM mail_versions WHERE account_id = ?'

/** Marks of deltas that an owner has counted, who took the account over meanwhile. */
export const someMark = 'SELECT 1 FROM contact_marks WHERE account_id = ? LIMIT 1'

export async function removeAccount(db: Database, id: string): Promise<void> {
  while (!(await removeOnce(db, id)));
}

/** false when there is something to be taken again. */
async function removeOnce(db: Database, id: string): Promise<boolean> {
  // a new epoch first: a writer that is still at work loses its lease instead of leaving rows behind
  const begun = await db.write(() => {
    const account = tables.accounts.get(db, id)
    if (!account) return null
    editAccount(db, id, { epoch: account.epoch + 1 })
    db.run(forgetVersion, id)
    const folders = db.docs('SELECT doc FROM folders WHERE account_id = ?', id) as FolderRecord[]
    return { userId: account.userId, folders }
  })
  if (!begun) return true
  for (const folder of begun.folders) await drain(db, keyedDeletes.placements, folder.id)
  await drain(db, keyedDeletes.keys, id)
  // first the marks: whatever is counted behind the walk over the contacts leaves one that is found in the end
  await drain(db, keyedDeletes.marks, id)
  await uncount(db, begun.userId, id)
  for (const sql of accountDeletes) await drain(db, sql, id)
  return db.write(() => {
    if (db.row(someMark, id)) return false
    db.run('DELETE FROM user_addresses WHERE user_id = ? AND account_id = ?', begun.userId, id)
    db.run(forgetVersion, id)
    db.run('DELETE FROM accounts WHERE id = ?', id)
    return true
  })
}

async function uncount(db: Database, userId: string, id: string): Promise<void> {
  for (let after: string | null = ''; after !== null;) {
    const from: string = after
    after = await db.write(() => uncountSome(db, userId, id, from))
  }
}

/** The webhook with its pending rows and scans; `wholly` also with the record of its deliveries. */
export async function removeWebhook(db: Database, id: string, wholly: boolean): Promise<void> {
  const states = wholly ? `'pending', 'delivered', 'failed', 'skipped'` : `'pending'`
  await drain(db, deleteWhere('outbox', `webhook_id = ? AND state IN (${states})`), id)
  await drain(db, deleteWhere('scans', 'webhook_id = ?'), id)
  await db.write(() => {
    // what was queued while the others went
    db.run(`DELETE FROM outbox WHERE webhook_id = ? AND state = 'pending'`, id)
    db.run('DELETE FROM webhooks WHERE id = ?', id)
  })
}

/** Callbacks of a webhook that is gone, queued after its removal. Nothing else is left here. */
export async function tidyWebhooks(db: Database): Promise<number> {
  const channels = await db.read(() => db.rows(pendingChannels).map((row) => String(row['id'])))
  let rows = 0
  for (const id of channels.filter((channel) => !channel.startsWith('u'))) {
    const gone = await db.read(() => db.row('SELECT 1 FROM webhooks WHERE id = ?', id) === null)
    if (gone) rows += await drain(db, deleteWhere('outbox', `webhook_id = ? AND state = 'pending'`), id)
  }
  return rows
}

export const userDeletes: readonly string[] = [
  deleteWhere('contacts', 'user_id = ?'),
  deleteWhere('tokens', 'user_id = ?'),
  deleteWhere('outbox', `user_id = ? AND account_id = '' AND user_id <> ''`),
]

/** The user's row goes in a transaction that finds nothing else left; what comes before is taken in another round. */
export async function removeUser(db: Database, id: string): Promise<string[]> {
  const taken: string[] = []
  for (;;) {
    const { accounts, webhooks } = await db.read(() => owned(db, id))
    for (const account of accounts) await removeAccount(db, account.id)
    taken.push(...accounts.map((account) => account.id))
    for (const webhook of webhooks) await removeWebhook(db, webhook.id, true)
    for (const sql of userDeletes) await drain(db, sql, id)
    const done = await db.write(() => {
      const left = owned(db, id)
      if (left.accounts.length + left.webhooks.length > 0) return false
      db.run('DELETE FROM tokens WHERE user_id = ?', id)
      db.run('DELETE FROM user_addresses WHERE user_id = ?', id)
      db.run('DELETE FROM users WHERE id = ?', id)
      return true
    })
    if (done) return taken
  }
}

function owned(sql: Statements, userId: string) {
  return {
    accounts: sql.docs('SELECT doc FROM accounts WHERE user_id = ?', userId) as AccountRecord[],
    webhooks: sql.docs('SELECT doc FROM webhooks WHERE user_id = ?', userId) as WebhookRecord[],
  }
}
