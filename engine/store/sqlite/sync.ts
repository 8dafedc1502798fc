/**
 * One batch of one folder as one transaction: all of it or nothing, so that the order inside does not show. And the
 * change log that batches write, numbered per account without gaps.
 */
import { AppError } from '../../errors.ts'
import { changeReads, mailboxReplacement, type KeyedCollections } from '../aggregates.ts'
import { newRows, placesOf, stepsOf, taken, leftBehind, sameCursor, withSeqOf, type Holder } from '../rows.ts'
import type { ChangeDraft, ChangeStore, SyncBatch, SyncStore } from '../port.ts'
import type { ChangeRecord, FolderRecord, MessageRecord } from '../records.ts'
import { checkEpoch } from './accounts.ts'
import { countContacts } from './contacts.ts'
import { deleteWhere, type Database, type Statements } from './database.ts'
import { forgetFolder } from './folders.ts'
import { createUnit } from './messages.ts'
import { insertOutbox } from './outbox.ts'
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

const changesByIds = 'SELECT doc FROM changes WHERE id IN (SELECT value FROM json_each(?))'
const lastSeq = 'SELECT max(seq) FROM changes WHERE account_id = ?'

/** Known ids keep their number, new ones take the next. Answers all of them, in the order given. */
function insertChanges(sql: Statements, accountId: string, drafts: readonly ChangeDraft[]): ChangeRecord[] {
  if (drafts.length === 0) return []
  let seq = sql.number(lastSeq, accountId)
  const there = sql.docs(changesByIds, JSON.stringify(drafts.map(({ id }) => id))) as ChangeRecord[]
  const numbered = new Map(there.map((change) => [change.id, change]))
  return drafts.map((draft) => {
    const known = numbered.get(draft.id)
    if (known) return known
    seq += 1
    const change = { ...draft, seq }
    numbered.set(draft.id, change)
    tables.changes.insert(sql, change)
    return change
  })
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

export const liveMessages = 'SELECT doc FROM messages WHERE account_id = ? AND live = 1 LIMIT ?+0'

function leaveSome(sql: Statements, id: string, epoch: number): boolean {
  checkEpoch(sql, id, epoch)
  const unit = createUnit(sql)
  const messages = sql.docs(liveMessages, id, stepMessages) as MessageRecord[]
  unit.load(messages.map((message) => message.id))
  for (const message of messages) unit.put(leftBehind(message))
  unit.flush()
  return messages.length > 0
}

export function createSync(db: Database, keyed: KeyedCollections, now: () => number): SyncStore {
  return {
    apply: (batch) => db.write(() => apply(db, batch, now())),
    forgetPlacements: (accountId, epoch, folderId, keepUidValidity, limit) =>
      db.write(() => {
        checkEpoch(db, accountId, epoch)
        return forgetFolder(db, folderId, keepUidValidity, limit, now())
      }),
    ...mailboxReplacement(keyed, (accountId, epoch) => db.write(() => leaveSome(db, accountId, epoch))),
  }
}

/** The newest of an account carries its number on. */
export const expireChanges = deleteWhere(
  'changes',
  'at < ? AND seq < (SELECT max(newest.seq) FROM changes newest WHERE newest.account_id = changes.account_id)',
)

export function createChanges(db: Database, keyed: KeyedCollections): ChangeStore {
  return {
    ...changeReads(keyed),
    lastSeq: (accountId) => db.read(() => db.number(lastSeq, accountId)),
    expire: (before, limit) => db.write(() => db.run(expireChanges, before, limit)),
  }
}
