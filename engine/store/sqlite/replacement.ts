/** An account that becomes another mailbox: what was read of the former one goes in bounded steps, the settings come last. */
import type { AccountPatch } from '../port.ts'
import type { AccountRecord, MessageRecord } from '../records.ts'
import { leftBehind, readAnew } from '../rows.ts'
import { checkEpoch, editAccount, readAccount, saveAccount } from './account-rows.ts'
import type { Database } from './database.ts'
import { createUnit } from './message-rows.ts'
import type { Statements } from './statements.ts'

/** Messages that leave in one transaction. */
const stepMessages = 500

export const liveMessages = 'SELECT doc FROM messages WHERE account_id = ? AND live = 1 LIMIT ?'

/** A new epoch: a writer that is still at work for the former mailbox loses its lease. */
function begin(sql: Statements, id: string, since: number): AccountRecord | null {
  const stored = readAccount(sql, id)
  if (!stored) return null
  const account = readAnew(stored, since)
  saveAccount(sql, account)
  sql.run('DELETE FROM folders WHERE account_id = ?', id)
  return account
}

/** false when none was left. */
function leaveSome(sql: Statements, id: string): boolean {
  const unit = createUnit(sql)
  const messages = sql.docs(liveMessages, id, stepMessages) as MessageRecord[]
  unit.load(messages.map((message) => message.id))
  for (const message of messages) unit.put(leftBehind(message))
  unit.flush()
  return messages.length > 0
}

export async function replaceMailbox(
  db: Database,
  id: string,
  patch: AccountPatch,
  since: number,
): Promise<AccountRecord | null> {
  const begun = await db.write(() => begin(db, id, since))
  if (!begun) return null
  const owned = <T>(work: () => T): Promise<T> =>
    db.write(() => {
      checkEpoch(db, id, begun.epoch)
      return work()
    })
  while (await owned(() => leaveSome(db, id)));
  return owned(() => editAccount(db, id, patch))
}
