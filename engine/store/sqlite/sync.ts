/**
 * Writes a sync batch of one folder: in one transaction, or, when it is large, in steps with the cursor last. Keeps the
 * change log that batches write, numbered per account without gaps.
 */
import { mailboxReplacement, type KeyedCollections } from '../aggregates.ts'
import { inSteps, newMail, type WeighedPart } from '../batch-steps.ts'
import { addCounts, progressed, type CountChanges } from '../folder-counts.ts'
import {
  newRows,
  placesOf,
  stepsOf,
  taken,
  leaseLost,
  leftBehind,
  sameCursor,
  withSeqOf,
  type Holder,
} from '../rows.ts'
import type { Applied, ChangeDraft, SyncBatch, SyncStore } from '../port.ts'
import type { ChangeRecord, FolderRecord, MessageRecord } from '../records.ts'
import { checkEpoch } from './accounts.ts'
import { countContacts } from './contacts.ts'
import type { Database } from './database.ts'
import { forgetFolder, settle } from './folders.ts'
import { createUnit } from './messages.ts'
import type { Statements } from './statements.ts'
import { tables } from './tables.ts'

function checkedFolder(sql: Statements, batch: SyncBatch): FolderRecord {
  checkEpoch(sql, batch.accountId, batch.epoch)
  const folder = tables.folders.get(sql, batch.folderId)
  const isThere = folder?.accountId === batch.accountId && sameCursor(folder.cursor, batch.cursorBefore)
  if (!isThere) throw leaseLost(batch.accountId, batch.epoch)
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
      .tuples(holders, folderId, uidValidity, uids)
      .map(([uid, messageId]) => ({ id: String(messageId), uid: Number(uid), uidValidity })),
  )
}

function applyToMessages(sql: Statements, batch: SyncBatch, now: number): CountChanges {
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
  return unit.flush()
}

const changesByIds = 'SELECT doc FROM changes WHERE id IN (SELECT value FROM json_each(?))'
export const lastSeq = 'SELECT max(seq) FROM changes WHERE account_id = ?'

/** Stores new changes with the next numbers; known ids keep theirs. Returns all changes in the given order. */
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

const sizes = 'SELECT id, octet_length(doc) FROM messages WHERE id IN (SELECT value FROM json_each(?))'

/** Writing so many bytes of a message again costs as much as one address. */
const octetsOfAddress = 150

function stepsOfBatch(sql: Statements, batch: SyncBatch): readonly SyncBatch[] {
  const { changes, outbox, flagUpdates, vanished, reported } = batch
  const idAt = new Map((vanished.length === 0 ? [] : findHolders(sql, batch)).map(({ uid, id }) => [uid, id]))
  const ids = [...[...flagUpdates, ...reported].map(({ messageId }) => messageId), ...idAt.values()]
  const rows = ids.length === 0 ? [] : sql.tuples(sizes, JSON.stringify(ids))
  const weights = new Map(rows.map(([id, size]) => [id, Number(size)]))
  const weightOf = (id: string | undefined): number => (weights.get(id ?? null) ?? 0) / octetsOfAddress
  const steps = inSteps([
    ...newMail(batch),
    [changes.length + outbox.length, { changes, outbox }],
    ...flagUpdates.map((one): WeighedPart => [weightOf(one.messageId), { flagUpdates: [one] }]),
    ...vanished.map((uid): WeighedPart => [weightOf(idAt.get(uid)), { vanished: [uid] }]),
    ...reported.map((one): WeighedPart => [weightOf(one.messageId), { reported: [one] }]),
  ])
  return steps.length === 1 ? [batch] : steps.map((step) => ({ ...batch, ...step }))
}

async function applyInSteps(db: Database, batch: SyncBatch, now: number): Promise<Applied> {
  const steps = await db.read(() => stepsOfBatch(db, batch))
  const applied: Applied[] = []
  for (const step of steps) applied.push(await db.write(() => apply(db, step, now, step === steps.at(-1))))
  return applied.reduce((all, one) => ({ ...one, changes: [...all.changes, ...one.changes] }))
}

function apply(sql: Statements, step: SyncBatch, now: number, isLast: boolean): Applied {
  const stored = checkedFolder(sql, step)
  const changed = applyToMessages(sql, step, now)
  const changes = insertChanges(sql, step.accountId, step.changes)
  for (const row of step.outbox.map(withSeqOf(changes))) tables.outbox.insertMissing(sql, row)
  countContacts(sql, step.accountId, step.contacts)
  const counts = addCounts(stored.counts, changed.get(stored.id))
  const folder = { ...stored, ...(isLast ? progressed(stored, step.cursorAfter, counts, now) : { counts }) }
  tables.folders.save(sql, stored, folder)
  const turns = (folder.completeAt === null) !== (stored.completeAt === null)
  return { changes, folder, turned: turns && settle(sql, step.accountId, now) }
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
    apply: (batch) => applyInSteps(db, batch, now()),
    forgetPlacements: (accountId, epoch, folderId, keepUidValidity, limit) =>
      db.write(() => {
        checkEpoch(db, accountId, epoch)
        return forgetFolder(db, folderId, keepUidValidity, limit, now())
      }),
    ...mailboxReplacement(keyed, (accountId, epoch) => db.write(() => leaveSome(db, accountId, epoch))),
  }
}
