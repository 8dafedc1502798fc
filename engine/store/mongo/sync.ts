/**
 * One batch of one folder as ordered, idempotent writes: contacts → new message rows → changes → outbox → updates of
 * existing rows → cursor. Ids are deterministic, and the last write compares {_id, epoch, cursor}: a crash before it
 * repeats the batch, which finds its rows and changes nothing.
 *
 * Updates of existing rows come late, since a repeated batch is planned from the rows as they are: a flag that is
 * stored already would not be reported again. Contacts come before the rows, which say that they are counted
 * (contacts.ts).
 *
 * One process writes an account, batch after batch. The epoch keeps out one that has lost it: before the first write,
 * when changes collide, and by the last write. What it left is what a crash leaves.
 */
import { isAppError } from '../../errors.ts'
import { newRows, placesOf, stepsOf, taken, type Holder } from '../batch.ts'
import type { ChangeDraft, SyncBatch, SyncStore } from '../port.ts'
import type { ChangeRecord, FolderCursor, OutboxRecord } from '../records.ts'
import { leaseLost, sameCursor, withSeqOf } from '../rows.ts'
import { checkEpoch, replaceMailbox } from './accounts.ts'
import { appendChanges, knownChanges, lastSeq } from './changes.ts'
import { countContacts, kindsByMessage, markCounted, readTally, type Tally } from './contacts.ts'
import { insertMissing, shapes, type MongoContext } from './documents.ts'
import { unavailable } from './errors.ts'
import { forgetFolder } from './folders.ts'
import { changeMessages, messageDoc } from './message-rows.ts'
import { placedFilter } from './messages.ts'
import { outboxDoc } from './outbox.ts'
import { clearUpBehind } from './removal.ts'

/** Callbacks written at once: each lies in memory as a document and as BSON. */
const outboxStep = 200

/** What one process remembers between batches; losing it costs a read, or leaves rows to the next start. */
interface Memory {
  /** Rows of batches that failed half-way, by account: the next batch that succeeds answers them too. */
  readonly unanswered: Map<string, Set<string>>
  /** Cursors written without an answer, by folder: finding one there, its writer repeats its batch over it. */
  readonly uncertain: Map<string, FolderCursor>
}

type Applied = Awaited<ReturnType<SyncStore['apply']>>

async function checkedCursor(
  { collections }: MongoContext,
  { uncertain }: Memory,
  batch: SyncBatch,
): Promise<FolderCursor | null> {
  const { accountId, folderId, epoch, cursorBefore } = batch
  const projection = { epoch: 1, cursor: 1 }
  const folder = await collections.folders.findOne({ _id: folderId, accountId }, { projection })
  if (folder?.epoch !== epoch) throw leaseLost(accountId, epoch)
  const own = uncertain.get(folderId)
  const expected = sameCursor(folder.cursor, cursorBefore) || (own !== undefined && sameCursor(folder.cursor, own))
  if (!expected) throw leaseLost(accountId, epoch)
  return folder.cursor
}

async function insertMessages(context: MongoContext, batch: SyncBatch): Promise<Set<string>> {
  const counted = kindsByMessage(batch.contacts)
  const docs = newRows(batch, context.now()).map((row) => messageDoc(row, [...(counted.get(row.id) ?? [])]))
  const rows = await insertMissing(context.collections.messages, docs)
  return new Set(rows.map(({ _id }) => _id))
}

/** Read before the first write, so that the batch's own rows are not among them. */
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
): Promise<void> {
  const { accountId } = batch
  const steps = stepsOf(batch, inserted, holders)
  if (steps.size === 0) return
  const docs = await context.collections.messages.find({ accountId, _id: { $in: [...steps.keys()] } }).toArray()
  await changeMessages(context, accountId, docs, (record) => taken(record, steps.get(record.id)))
}

/** A collision: an earlier try of this batch, whose answer was lost, wrote some of them; or the lease is lost. */
async function writeChanges(
  context: MongoContext,
  memory: Memory,
  batch: SyncBatch,
  lastRead: number,
): Promise<ChangeRecord[]> {
  const { accountId } = batch
  const drafts = [...new Map(batch.changes.map((draft) => [draft.id, draft])).values()]
  const numbered = (some: readonly ChangeDraft[], last: number) =>
    some.map((draft, index): ChangeRecord => ({ ...draft, seq: last + 1 + index }))
  let fresh = numbered(drafts, lastRead)
  let known = new Map<string, ChangeRecord>()
  if (!(await appendChanges(context, fresh))) {
    await checkedCursor(context, memory, batch)
    known = await knownChanges(
      context,
      accountId,
      drafts.map(({ id }) => id),
    )
    const left = drafts.filter(({ id }) => !known.has(id))
    fresh = numbered(left, await lastSeq(context, accountId))
    if (!(await appendChanges(context, fresh))) {
      throw unavailable(new Error(`an earlier write to the change log of account ${accountId} is still under way`))
    }
  }
  const all = new Map([...known, ...fresh.map((change) => [change.id, change] as const)])
  return batch.changes.flatMap(({ id }) => all.get(id) ?? [])
}

async function writeOutbox(
  { collections: { outbox } }: MongoContext,
  { unanswered }: Memory,
  { accountId }: SyncBatch,
  rows: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  if (rows.length === 0) return []
  const ids = unanswered.get(accountId) ?? new Set()
  unanswered.set(accountId, ids)
  // before the write: its outcome may never be known
  for (const { id } of rows) ids.add(id)
  const news = new Set<string>()
  for (let start = 0; start < rows.length; start += outboxStep) {
    const docs = rows.slice(start, start + outboxStep).map(outboxDoc)
    for (const { _id } of await insertMissing(outbox, docs)) news.add(_id)
  }
  return rows.filter(({ id }) => news.has(id))
}

/** The batch's new rows, and those of earlier tries that are there and pending. */
async function answered(
  { collections: { outbox } }: MongoContext,
  fresh: readonly OutboxRecord[],
  repeated: ReadonlySet<string>,
): Promise<OutboxRecord[]> {
  const news = new Set(fresh.map(({ id }) => id))
  const earlier = [...repeated].filter((id) => !news.has(id))
  if (earlier.length === 0) return [...fresh]
  const rows = outbox.find({ _id: { $in: earlier }, state: 'pending' }, { projection: shapes.outbox.only })
  return [...fresh, ...(await rows.toArray()).map(shapes.outbox.record)].sort((left, right) => left.seq - right.seq)
}

/** The last write. Not matched: another owner has the lease, or has moved the cursor. */
async function writeCursor(
  { collections }: MongoContext,
  { uncertain }: Memory,
  batch: SyncBatch,
  stored: FolderCursor | null,
): Promise<void> {
  const { accountId, folderId, epoch, cursorAfter, counts } = batch
  uncertain.set(folderId, cursorAfter)
  const result = await collections.folders.updateOne(
    { _id: folderId, accountId, epoch, cursor: stored },
    { $set: { cursor: cursorAfter, ...counts } },
  )
  uncertain.delete(folderId)
  if (result.matchedCount === 0) throw leaseLost(accountId, epoch)
}

async function writeMessages(context: MongoContext, batch: SyncBatch, tally: Tally): Promise<Set<string>> {
  const { accountId, contacts } = batch
  await countContacts(context, accountId, contacts, tally)
  const inserted = await insertMessages(context, batch)
  await markCounted(context, accountId, contacts, tally, inserted)
  return inserted
}

async function apply(context: MongoContext, memory: Memory, batch: SyncBatch): Promise<Applied> {
  // all reads side by side: what they found is compared by the writes
  const [stored, holders, last, tally] = await Promise.all([
    checkedCursor(context, memory, batch),
    findHolders(context, batch),
    batch.changes.length === 0 ? 0 : lastSeq(context, batch.accountId),
    readTally(context, batch.accountId, batch.contacts),
  ])
  const repeated = new Set(memory.unanswered.get(batch.accountId))
  const inserted = await writeMessages(context, batch, tally)
  const changes = await writeChanges(context, memory, batch, last)
  const fresh = await writeOutbox(context, memory, batch, batch.outbox.map(withSeqOf(changes)))
  await updateExisting(context, batch, inserted, holders)
  const outbox = await answered(context, fresh, repeated)
  await writeCursor(context, memory, batch, stored)
  memory.unanswered.delete(batch.accountId)
  return { changes, outbox }
}

/** A writer that loses the lease answers nothing more: the new owner does. An account that was removed has none. */
async function applyOrForget(context: MongoContext, memory: Memory, batch: SyncBatch): Promise<Applied> {
  try {
    return await apply(context, memory, batch)
  } catch (error) {
    if (isAppError(error, 'lease_lost')) {
      memory.unanswered.delete(batch.accountId)
      memory.uncertain.delete(batch.folderId)
      await clearUpBehind(context, batch.accountId)
    }
    throw error
  }
}

export function createSync(context: MongoContext): SyncStore {
  const memory: Memory = { unanswered: new Map(), uncertain: new Map() }
  return {
    apply: (batch) => applyOrForget(context, memory, batch),
    forgetPlacements: async (accountId, epoch, folderId, keepUidValidity, limit) => {
      await checkEpoch(context, accountId, epoch)
      return forgetFolder(context, accountId, folderId, keepUidValidity, limit)
    },
    replaceMailbox: (accountId, patch, since) => replaceMailbox(context, accountId, patch, since),
  }
}
