/** One batch of one folder as one transaction: all of it or nothing, so that the order inside does not show. */
import { AppError } from '../../errors.ts'
import type { AccountPatch, SyncBatch, SyncStore } from '../port.ts'
import type { AccountRecord, ChangeRecord, FolderRecord, MessageRecord, Placement } from '../records.ts'
import {
  addPlacement,
  leftBehind,
  liesAt,
  newMessage,
  readAnew,
  sameCursor,
  tell,
  updateFlags,
  vanish,
  withSeqOf,
} from '../rows.ts'
import { checkEpoch, editAccount } from './accounts.ts'
import { insertChanges } from './changes.ts'
import { countContacts } from './contacts.ts'
import type { Database } from './database.ts'
import { forgetFolder } from './folders.ts'
import { createUnit, type Unit } from './message-rows.ts'
import { insertOutbox } from './outbox.ts'
import type { Statements } from './statements.ts'
import { tables } from './tables.ts'

function leaseLost(why: string, batch: SyncBatch): AppError {
  const { accountId, folderId, epoch } = batch
  return new AppError('lease_lost', why, { details: { accountId, folderId, epoch } })
}

/** The folder as it is stored, when this batch may be applied to it. */
function checkedFolder(sql: Statements, batch: SyncBatch): FolderRecord {
  checkEpoch(sql, batch.accountId, batch.epoch)
  const folder = tables.folders.get(sql, batch.folderId)
  if (folder?.accountId !== batch.accountId) throw leaseLost('the folder is gone', batch)
  if (!sameCursor(folder.cursor, batch.cursorBefore)) throw leaseLost('the folder was read by another', batch)
  return folder
}

type Held = Pick<Placement, 'folderId' | 'uidValidity' | 'uid'>

const holders = `SELECT uid, message_id FROM placements
  WHERE folder_id = ? AND uid_validity = ? AND uid IN (SELECT value FROM json_each(?))`

function placeKey({ folderId, uidValidity, uid }: Held): string {
  return `${folderId} ${uidValidity} ${uid}`
}

/** Ids of the messages that hold these places, by placeKey: one read for each folder and validity, in general one. */
function holdersOf(sql: Statements, places: readonly Held[]): Map<string, string> {
  const found = new Map<string, string>()
  const groups = Map.groupBy(places, ({ folderId, uidValidity }) => `${folderId} ${uidValidity}`)
  for (const group of groups.values()) {
    const [{ folderId, uidValidity } = { folderId: '', uidValidity: '' }] = group
    const uids = JSON.stringify(group.map(({ uid }) => uid))
    for (const row of sql.rows(holders, folderId, uidValidity, uids)) {
      found.set(placeKey({ folderId, uidValidity, uid: Number(row['uid']) }), String(row['message_id']))
    }
  }
  return found
}

function addMessages(sql: Statements, unit: Unit, batch: SyncBatch, now: number): void {
  const held = holdersOf(
    sql,
    batch.added.map(({ placement }) => placement),
  )
  unit.load(batch.added.map(({ id }) => id))
  for (const added of batch.added) {
    // a UID is one message: when its identity was read differently before, the older row gives the place up
    const other = held.get(placeKey(added.placement))
    const displaced = other !== undefined && other !== added.id ? unit.get(other) : null
    if (displaced) {
      const placements = displaced.placements.filter((there) => !liesAt(there, added.placement))
      unit.put({ ...displaced, placements })
      unit.flush()
    }
    const known = unit.get(added.id)
    unit.put(known ? addPlacement(known, added.placement) : newMessage(batch.accountId, added, now))
  }
}

/** Flags, disappearances, and which of these were reported. */
function updateMessages(sql: Statements, unit: Unit, batch: SyncBatch): void {
  const folder = { folderId: batch.folderId, uidValidity: batch.cursorAfter.uidValidity }
  const lost = batch.vanished.map((uid) => ({ ...folder, uid }))
  const held = holdersOf(sql, lost)
  unit.load([...batch.flagUpdates, ...batch.told].map(({ messageId }) => messageId))
  unit.load([...held.values()])
  for (const update of batch.flagUpdates) {
    const record = unit.get(update.messageId)
    if (record) unit.put(updateFlags(record, folder, update))
  }
  for (const place of lost) {
    const id = held.get(placeKey(place))
    const record = id === undefined ? null : unit.get(id)
    if (record) unit.put(vanish(record, place, batch.vanishedAt))
  }
  for (const told of batch.told) {
    const record = unit.get(told.messageId)
    if (record) unit.put(tell(record, told))
  }
}

function apply(sql: Statements, batch: SyncBatch, now: number): Awaited<ReturnType<SyncStore['apply']>> {
  const folder = checkedFolder(sql, batch)
  const unit = createUnit(sql)
  addMessages(sql, unit, batch, now)
  unit.flush()
  const changes: ChangeRecord[] = insertChanges(sql, batch.accountId, batch.changes)
  const outbox = insertOutbox(sql, batch.outbox.map(withSeqOf(changes)))
  updateMessages(sql, unit, batch)
  unit.flush()
  countContacts(sql, batch.accountId, batch.contacts)
  tables.folders.save(sql, folder, { ...folder, cursor: batch.cursorAfter, ...batch.counts })
  return { changes, outbox }
}

/** Messages that leave in one transaction. */
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

/**
 * An account that becomes another mailbox: what was read of the former one goes in bounded steps, the settings come
 * last.
 */
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
