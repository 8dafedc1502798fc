/** One batch of one folder as one transaction: all of it or nothing, so that the order inside does not show. */
import { AppError } from '../../errors.ts'
import { newRows, placesOf, stepsOf, taken, type Holder } from '../batch.ts'
import type { AccountPatch, SyncBatch, SyncStore } from '../port.ts'
import type { AccountRecord, ChangeRecord, FolderRecord, MessageRecord } from '../records.ts'
import { leftBehind, readAnew, sameCursor, withSeqOf } from '../rows.ts'
import { checkEpoch, editAccount } from './accounts.ts'
import { insertChanges } from './changes.ts'
import { countContacts } from './contacts.ts'
import type { Database } from './database.ts'
import { forgetFolder } from './folders.ts'
import { createUnit } from './message-rows.ts'
import { insertOutbox } from './outbox.ts'
import type { Statements } from './statements.ts'
import { tables } from './tables.ts'

function leaseLost(why: string, batch: SyncBatch): AppError {
  const { accountId, folderId, epoch } = batch
  return new AppError('lease_lost', why, { details: { accountId, folderId, epoch } })
}

function checkedFolder(sql: Statements, batch: SyncBatch): FolderRecord {
  checkEpoch(sql, batch.accountId, batch.epoch)
  const folder = tables.folders.get(sql, batch.folderId)
  if (folder?.accountId !== batch.accountId) throw leaseLost('the folder is gone', batch)
  if (!sameCursor(folder.cursor, batch.cursorBefore)) throw leaseLost('the folder was read by another', batch)
  return folder
}

const holders = `SELECT uid, message_id FROM placements
  WHERE folder_id = ? AND uid_validity = ? AND uid IN (SELECT value FROM json_each(?))`

function findHolders(sql: Statements, batch: SyncBatch): Holder[] {
  const { folderId, cursorAfter, added } = batch
  const uids = JSON.stringify(placesOf(batch))
  const validities = new Set([cursorAfter.uidValidity, ...added.map(({ placement }) => placement.uidValidity)])
  return [...validities].flatMap((uidValidity) =>
    sql
      .rows(holders, folderId, uidValidity, uids)
      .map((row) => ({ id: String(row['message_id']), uid: Number(row['uid']), uidValidity })),
  )
}

function applyToMessages(sql: Statements, batch: SyncBatch, now: number): void {
  const held = findHolders(sql, batch)
  const unit = createUnit(sql)
  const rows = newRows(batch, now)
  unit.load(rows.map(({ id }) => id))
  const fresh = rows.filter(({ id }) => unit.get(id) === null)
  for (const row of fresh) unit.put(row)
  const steps = stepsOf(batch, new Set(fresh.map(({ id }) => id)), held)
  unit.load([...steps.keys()])
  for (const [id, own] of steps) {
    const record = unit.get(id)
    if (record) unit.put(taken(record, own))
  }
  unit.flush()
}

function apply(sql: Statements, batch: SyncBatch, now: number): Awaited<ReturnType<SyncStore['apply']>> {
  const folder = checkedFolder(sql, batch)
  applyToMessages(sql, batch, now)
  const changes: ChangeRecord[] = insertChanges(sql, batch.accountId, batch.changes)
  const outbox = insertOutbox(sql, batch.outbox.map(withSeqOf(changes)))
  countContacts(sql, batch.accountId, batch.contacts)
  tables.folders.save(sql, folder, { ...folder, cursor: batch.cursorAfter, ...batch.counts })
  return { changes, outbox }
}

const stepMessages = 500

export const liveMessages = 'SELECT doc FROM messages WHERE account_id = ? AND live = 1 LIMIT ?'

/** A new epoch: a writer that is still at work for the former mailbox loses its lease. */
function begin(sql: Statements, id: string, since: number): AccountRecord | null {
  const stored = tables.accounts.get(sql, id)
  if (!stored) return null
  sql.run('DELETE FROM folders WHERE account_id = ?', id)
  return editAccount(sql, id, readAnew(stored, since))
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

/** What was read of the former mailbox goes in bounded steps, the new settings come last. */
async function replaceMailbox(
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

export function createSync(db: Database, now: () => number): SyncStore {
  return {
    apply: (batch) => db.write(() => apply(db, batch, now())),
    forgetPlacements: (accountId, epoch, folderId, keepUidValidity, limit) =>
      db.write(() => {
        checkEpoch(db, accountId, epoch)
        return forgetFolder(db, folderId, keepUidValidity, limit, now())
      }),
    replaceMailbox: (accountId, patch, since) => replaceMailbox(db, accountId, patch, since),
  }
}
