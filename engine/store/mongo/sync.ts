/**
 * Sync batches and the change log. A batch of one folder is a series of idempotent writes: contacts → new message rows
 * → changes → outbox → updates of existing rows → cursor. Ids are deterministic, and the last write compares {_id,
 * epoch, cursor}. After a crash the batch is repeated: it finds its rows and changes nothing.
 *
 * Updates of existing rows come late, because a repeated batch is planned from the stored rows: a flag that is stored
 * already would not be reported again. Contacts come before the message rows, which name their counted deltas
 * (contacts.ts).
 *
 * One process writes an account, batch after batch. A process that has lost the epoch is refused before its first
 * write, when its changes collide, and at the last write. It leaves the same rows as a crash.
 */
import { isAppError } from '../../errors.ts'
import { mailboxReplacement, type KeyedCollections } from '../aggregates.ts'
import { inSteps, newMail } from '../batch-steps.ts'
import { addCounts, countChange, noCounts, progressed } from '../folder-counts.ts'
import type { CountChanges, FolderProgress } from '../folder-counts.ts'
import { giveUp, newRows, placesOf, stepsOf, taken, leaseLost, leftBehind, sameCursor, withSeqOf } from '../rows.ts'
import type { Holder } from '../rows.ts'
import type { Applied, SyncBatch, SyncStore } from '../port.ts'
import type { ChangeRecord, FolderCounts, OutboxRecord } from '../records.ts'
import { checkEpoch, completeIfWhole, markIncomplete } from './accounts.ts'
import { countContacts, kindsByMessage, markCounted, readTally } from './contacts.ts'
import { insertMissing, shapes } from './documents.ts'
import type { FolderDoc, MessageDoc, MongoContext } from './documents.ts'
import { isDuplicate, unavailable } from './errors.ts'
import { beginCounting, countRows, forgetFolder } from './folders.ts'
import { changeMessages, messageDoc, placedFilter, readPlaced } from './messages.ts'

/** Callbacks written at once: each is in memory as a document and as BSON. */
const outboxStep = 200

const progress = { epoch: 1, cursor: 1, counts: 1, counting: 1, completeAt: 1, messages: 1, unseen: 1 } as const

/** The folder before the batch, or `lease_lost`. Marks its counts as doubtful when the batch changes placements. */
async function checkedFolder({ collections: { folders } }: MongoContext, batch: SyncBatch): Promise<FolderDoc> {
  const { accountId, folderId, epoch, cursorBefore } = batch
  const here = { _id: folderId, accountId, epoch }
  const writesRows = [batch.added, batch.flagUpdates, batch.vanished].some(({ length }) => length > 0)
  const folder = await (writesRows
    ? folders.findOneAndUpdate(here, { $set: { counting: true } }, { projection: progress, returnDocument: 'before' })
    : folders.findOne(here, { projection: progress }))
  if (folder === null || !sameCursor(folder.cursor, cursorBefore)) throw leaseLost(accountId, epoch)
  return folder
}

/** Rows that hold UIDs of the batch. Read before the first write, so without the batch's own rows. */
async function findHolders({ collections }: MongoContext, batch: SyncBatch): Promise<Holder[]> {
  const { accountId, folderId } = batch
  const uids = new Set(placesOf(batch))
  if (uids.size === 0) return []
  const where = placedFilter(accountId, folderId, { $in: [...uids] })
  const docs = await collections.messages.find(where, { projection: { placements: 1 } }).toArray()
  return docs.flatMap(({ _id, placements }) =>
    placements
      .filter((there) => there.folderId === folderId && uids.has(there.uid))
      .map(({ uid, uidValidity }) => ({ id: _id, uid, uidValidity })),
  )
}

async function updateExisting(
  context: MongoContext,
  batch: SyncBatch,
  inserted: ReadonlySet<string>,
  holders: readonly Holder[],
): Promise<CountChanges | null> {
  const { accountId } = batch
  const steps = stepsOf(batch, inserted, holders)
  if (steps.size === 0) return new Map()
  const docs = await readPlaced(context, { accountId, _id: { $in: [...steps.keys()] } })
  return changeMessages(context, accountId, docs, (record) => taken(record, steps.get(record.id)))
}

/** Changes collide when an earlier try of the batch, whose answer was lost, wrote some, or when the lease is lost. */
async function writeChanges(context: MongoContext, batch: SyncBatch, lastRead: number): Promise<ChangeRecord[]> {
  const { accountId } = batch
  const drafts = new Map(batch.changes.map((draft) => [draft.id, draft]))
  let [known, last]: [ReadonlyMap<string, ChangeRecord>, number] = [new Map(), lastRead]
  for (let tries = 1; tries <= 2; tries += 1) {
    const left = [...drafts.values()].filter(({ id }) => !known.has(id))
    const fresh = left.map((draft, index): ChangeRecord => ({ ...draft, seq: last + 1 + index }))
    if (await appendChanges(context, fresh)) {
      const all = new Map([...known, ...fresh.map((change) => [change.id, change] as const)])
      return batch.changes.flatMap(({ id }) => all.get(id) ?? [])
    }
    await checkedFolder(context, batch)
    known = await knownChanges(context, accountId, [...drafts.keys()])
    last = await lastSeq(context, accountId)
  }
  throw unavailable(new Error(`an earlier write to the change log of account ${accountId} is still under way`))
}

async function writeOutbox({ collections: { outbox } }: MongoContext, rows: readonly OutboxRecord[]): Promise<void> {
  for (let start = 0; start < rows.length; start += outboxStep)
    await insertMissing(outbox, rows.slice(start, start + outboxStep).map(shapes.outbox.doc))
}

/** The last write. Without a match another owner has the lease, or has moved the cursor. */
async function writeFolder(
  { collections }: MongoContext,
  { accountId, folderId, epoch }: SyncBatch,
  { cursor, counts }: FolderDoc,
  after: FolderProgress,
): Promise<void> {
  const result = await collections.folders.updateOne(
    { _id: folderId, accountId, epoch, cursor, counts },
    { $set: after, $unset: { counting: true as const } },
  )
  if (result.matchedCount === 0) throw leaseLost(accountId, epoch)
}

/** Counts contacts and inserts message rows, in steps. Returns the rows that were new. */
async function writeNewMail(context: MongoContext, batch: SyncBatch): Promise<MessageDoc[]> {
  const { accountId } = batch
  const inserted: MessageDoc[] = []
  for (const step of inSteps(newMail(batch))) {
    const { contacts } = step
    const tally = await readTally(context, accountId, contacts)
    await countContacts(context, accountId, contacts, tally)
    const counted = kindsByMessage(contacts)
    const rows = newRows({ ...batch, ...step }, context.now())
    const docs = rows.map((row) => messageDoc(row, [...(counted.get(row.id) ?? [])]))
    const fresh = await insertMissing(context.collections.messages, docs)
    await markCounted(context, accountId, contacts, tally, new Set(fresh.map(({ _id }) => _id)))
    inserted.push(...fresh)
  }
  return inserted
}

/** Counts of the folder after the batch. The placements are counted again when the change of the counts is unknown. */
async function countsAfter(
  context: MongoContext,
  { accountId, folderId }: SyncBatch,
  { counts, counting }: FolderDoc,
  inserted: readonly MessageDoc[],
  changed: CountChanges | null,
): Promise<FolderCounts> {
  if (counting === true || changed === null)
    return (await countRows(context, [accountId], [folderId])).get(folderId) ?? noCounts
  for (const { placements } of inserted) countChange(changed, [], placements)
  return addCounts(counts, changed.get(folderId))
}

async function apply(context: MongoContext, batch: SyncBatch): Promise<Applied> {
  // The reads may run together, because the writes compare with their results.
  const [stored, holders, last] = await Promise.all([
    checkedFolder(context, batch),
    findHolders(context, batch),
    batch.changes.length === 0 ? 0 : lastSeq(context, batch.accountId),
  ])
  const inserted = await writeNewMail(context, batch)
  const changes = await writeChanges(context, batch, last)
  await writeOutbox(context, batch.outbox.map(withSeqOf(changes)))
  const changed = await updateExisting(context, batch, new Set(inserted.map(({ _id }) => _id)), holders)
  const counts = await countsAfter(context, batch, stored, inserted, changed)
  const folder = progressed(stored, batch.cursorAfter, counts, context.now())
  const turns = (folder.completeAt === null) !== (stored.completeAt === null)
  if (turns && folder.completeAt === null) await markIncomplete(context, batch.accountId, batch.epoch)
  await writeFolder(context, batch, stored, folder)
  const turned = turns && (folder.completeAt === null || (await completeIfWhole(context, batch.accountId, batch.epoch)))
  return { changes, folder, turned }
}

/**
 * Removes the batch's placements when the folder is gone, or has another UIDVALIDITY or no cursor, as after a replaced
 * mailbox. The process that cleared the folder may have done that before the batch wrote them.
 */
async function takeBack(context: MongoContext, batch: SyncBatch): Promise<void> {
  const { accountId, folderId, cursorBefore, cursorAfter, added } = batch
  const { folders } = context.collections
  if (added.length === 0) return
  const folder = await folders.findOne({ _id: folderId, accountId }, { projection: { cursor: 1 } })
  const own = [cursorBefore?.uidValidity ?? null, cursorAfter.uidValidity]
  if (folder !== null && own.includes(folder.cursor?.uidValidity ?? null)) return
  const docs = await readPlaced(context, { accountId, _id: { $in: added.map(({ id }) => id) } })
  const places = added.map(({ placement }) => placement).filter((place) => place.folderId === folderId)
  await changeMessages(context, accountId, docs, (record) => places.reduce(giveUp, record))
  // Last: a batch of the new owner may have counted these placements, and ends by marking the counts as certain.
  await beginCounting(context, folderId)
}

/** A batch that loses the lease leaves the rows of a crash, without placements in a folder that is another by now. */
async function applyOrClear(context: MongoContext, batch: SyncBatch): Promise<Applied> {
  try {
    return await apply(context, batch)
  } catch (error) {
    if (isAppError(error, 'lease_lost')) await takeBack(context, batch)
    throw error
  }
}

const stepMessages = 500

async function leaveSome(context: MongoContext, accountId: string, epoch: number): Promise<boolean> {
  await checkEpoch(context, accountId, epoch)
  const docs = await readPlaced(context, { accountId, live: true }, stepMessages)
  await changeMessages(context, accountId, docs, leftBehind)
  return docs.length > 0
}

export function createSync(context: MongoContext, keyed: KeyedCollections): SyncStore {
  return {
    apply: (batch) => applyOrClear(context, batch),
    forgetPlacements: async (accountId, epoch, folderId, keepUidValidity, limit) => {
      await checkEpoch(context, accountId, epoch)
      return forgetFolder(context, accountId, folderId, keepUidValidity, limit)
    },
    ...mailboxReplacement(keyed, (accountId, epoch) => leaveSome(context, accountId, epoch)),
  }
}

/* The change log: the owner of an account numbers its changes without gaps. */

export async function lastSeq({ collections, read }: MongoContext, accountId: string): Promise<number> {
  const newest = await collections.changes.findOne(
    { accountId },
    { ...read, sort: { seq: -1 }, projection: { _id: 0, seq: 1 } },
  )
  return newest?.seq ?? 0
}

async function knownChanges(
  { collections, read }: MongoContext,
  accountId: string,
  ids: readonly string[],
): Promise<Map<string, ChangeRecord>> {
  const docs = await collections.changes.find({ accountId, _id: { $in: [...ids] } }, read).toArray()
  return new Map(docs.map((doc) => [doc._id, shapes.changes.record(doc)]))
}

/** Writes in order. Returns false at the first collision: by id (written before) or by seq (another writer). */
async function appendChanges({ collections }: MongoContext, changes: readonly ChangeRecord[]): Promise<boolean> {
  if (changes.length === 0) return true
  try {
    await collections.changes.insertMany(changes.map(shapes.changes.doc), { ordered: true })
    return true
  } catch (error) {
    if (isDuplicate(error, ['_id_', 'changes_by_seq'])) return false
    throw error
  }
}
