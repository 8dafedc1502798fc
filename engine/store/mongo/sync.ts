/**
 * One batch of one folder as ordered, idempotent writes: contacts → new message rows → changes → outbox → updates of existing
 * rows → cursor. Every row has a deterministic id and the cursor is written last, with a compare on {_id, epoch, cursor}:
 * a crash anywhere before it repeats the batch, which finds its rows and changes nothing.
 *
 * Updates of existing rows wait until change and outbox rows are there, since a repeated batch is planned from the rows
 * as they are: a flag that is stored already would not be told again. Contacts come before the rows, which say of themselves
 * that they have been counted (contacts.ts).
 */
import { isAppError } from '../../errors.ts'
import type { SyncBatch, SyncStore } from '../port.ts'
import type { ChangeRecord, FolderCursor, MessageRecord, OutboxRecord } from '../records.ts'
import { addPlacement, newMessage, sameCursor, withSeqOf } from '../rows.ts'
import { checkEpoch, leaseLost, replaceMailbox } from './accounts.ts'
import { appendChanges, knownChanges, lastSeq } from './changes.ts'
import { countContacts, kindsByMessage, markCounted, readTally, type Tally } from './contacts.ts'
import { insertMissing, type MessageDoc, type MongoContext } from './documents.ts'
import { unavailable } from './errors.ts'
import { forgetFolder } from './folders.ts'
import { messageDoc } from './message-rows.ts'
import { outboxDoc, outboxFieldsOnly, outboxRecord } from './outbox.ts'
import { clearUpBehind } from './removal.ts'
import { createPlaces, createTurns } from './turns.ts'
import { findHolders, updateExisting } from './sync-updates.ts'

/** Callbacks written at once: a batch has messages times webhooks of them, and each lies in memory as a document and as BSON. */
const outboxStep = 200
/** Batches that one process writes at once, of however many accounts, so that what they hold in memory is bounded too. */
const batchesAtOnce = 8 // several writers: the engine has one queue for each account, and a bound for all

/** Several writers. Collisions of one batch with rows of its own account before it is given up. */
const tries = 5

/** Unknown outcome: stays. What one process remembers between batches; losing it costs a read, or leaves rows to the next start. */
interface Memory {
  /**
   * Outbox rows of batches that failed half-way, by account: they may be there although nobody was told. The next batch of the
   * account that succeeds answers them too.
   */
  readonly unanswered: Map<string, Set<string>>
  /** Cursors written without an answer, by folder: finding one there, its writer repeats its batch over it. */
  readonly uncertain: Map<string, FolderCursor>
}

type Applied = Awaited<ReturnType<SyncStore['apply']>>

/** The fence by the epoch: stays. The folder's cursor as it lies in the store, when this batch may be applied to it. */
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

/** The batch's messages as new rows; one that the batch has twice is one row with two places. */
function newRows(context: MongoContext, { accountId, epoch, added, contacts }: SyncBatch): MessageDoc[] {
  const now = context.now()
  const counted = kindsByMessage(contacts)
  const records = new Map<string, MessageRecord>()
  for (const one of added) {
    const known = records.get(one.id)
    records.set(one.id, known ? addPlacement(known, one.placement) : newMessage(accountId, one, now))
  }
  return [...records.values()].map((record) => messageDoc(record, epoch, [...(counted.get(record.id) ?? [])]))
}

/**
 * Several writers: all but the insert. Inserts the rows that are unknown; answers their ids. Those that are there are marked as relied on in the same go, so that
 * an older writer, who may have inserted them and learn just now that it lost its lease, does not take them back.
 */
async function insertMessages(context: MongoContext, batch: SyncBatch): Promise<Set<string>> {
  const { messages } = context.collections
  const { accountId, epoch } = batch
  const inserted = new Set<string>()
  let rows = newRows(context, batch)
  for (let attempt = 0; attempt < tries; attempt += 1) {
    for (const { _id } of await insertMissing(messages, rows)) inserted.add(_id)
    rows = rows.filter(({ _id }) => !inserted.has(_id))
    if (rows.length === 0) return inserted
    const known = { accountId, _id: { $in: rows.map(({ _id }) => _id) } }
    const { matchedCount } = await messages.updateMany(known, { $max: { by: epoch } })
    if (matchedCount === rows.length) return inserted
  }
  throw unavailable(new Error(`messages of account ${accountId} come and go without end`))
}

/** Several writers: what an older writer left is what a crash leaves, and the next batch makes it whole. Takes back rows that this batch inserted and nobody has relied on since. */
async function takeBack({ collections }: MongoContext, batch: SyncBatch, inserted: ReadonlySet<string>): Promise<void> {
  if (inserted.size === 0) return
  const { accountId, epoch } = batch
  await collections.messages.deleteMany({ _id: { $in: [...inserted] }, accountId, v: 0, by: epoch })
}

/** Crash: one repetition, from what is stored. Several writers: more than one. Gives each new change the next number of its account. A collision is either a repeated batch or a second writer. */
async function writeChanges(
  context: MongoContext,
  memory: Memory,
  batch: SyncBatch,
  lastRead: number,
): Promise<ChangeRecord[]> {
  const { accountId } = batch
  const drafts = [...new Map(batch.changes.map((draft) => [draft.id, draft])).values()]
  const ids = drafts.map(({ id }) => id)
  let last = lastRead
  let known = new Map<string, ChangeRecord>()
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const fresh = drafts
      .filter(({ id }) => !known.has(id))
      .map((draft, index): ChangeRecord => ({ ...draft, seq: last + 1 + index }))
    if (await appendChanges(context, fresh)) {
      const numbered = new Map([...known, ...fresh.map((change) => [change.id, change] as const)])
      return batch.changes.flatMap(({ id }) => numbered.get(id) ?? [])
    }
    await checkedCursor(context, memory, batch)
    known = await knownChanges(context, accountId, ids)
    last = await lastSeq(context, accountId)
  }
  throw unavailable(new Error(`the change log of account ${accountId} is written by others without end`))
}

/** Inserts what is missing. Answers the rows that are new. */
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

/** Unknown outcome: stays. The batch's new rows, and those of earlier tries that are there and pending. */
async function answered(
  { collections: { outbox } }: MongoContext,
  fresh: readonly OutboxRecord[],
  repeated: ReadonlySet<string>,
): Promise<OutboxRecord[]> {
  const news = new Set(fresh.map(({ id }) => id))
  const earlier = [...repeated].filter((id) => !news.has(id))
  if (earlier.length === 0) return [...fresh]
  const rows = outbox.find({ _id: { $in: earlier }, state: 'pending' }, { projection: outboxFieldsOnly })
  return [...fresh, ...(await rows.toArray()).map(outboxRecord)].sort((left, right) => left.seq - right.seq)
}

/** The fence by the epoch, and an unknown outcome: stays. The last write. Not matched: somebody else has the lease, or has moved the cursor. */
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

/** The batch's contacts and its new rows; answers the ids of these. */
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
  const changes = await tellOrTakeBack(context, memory, batch, inserted, last)
  const fresh = await writeOutbox(context, memory, batch, batch.outbox.map(withSeqOf(changes)))
  await updateExisting(context, batch, inserted, holders)
  const outbox = await answered(context, fresh, repeated)
  await writeCursor(context, memory, batch, stored)
  memory.unanswered.delete(batch.accountId)
  return { changes, outbox }
}

/** Several writers. Up to the first change nothing has been told: a batch that loses its lease here leaves nothing. */
async function tellOrTakeBack(
  context: MongoContext,
  memory: Memory,
  batch: SyncBatch,
  inserted: ReadonlySet<string>,
  last: number,
): Promise<ChangeRecord[]> {
  try {
    return await writeChanges(context, memory, batch, last)
  } catch (error) {
    if (isAppError(error, 'lease_lost')) await takeBack(context, batch, inserted)
    throw error
  }
}

/** The fence by the epoch, and an account that is removed meanwhile: stays. Who loses the lease has nothing left to answer: the new owner will; an account that was removed has none. */
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
  const turns = createTurns()
  const places = createPlaces(batchesAtOnce)
  return {
    // one batch of an account at a time: its folders share one sequence
    apply: (batch) => turns.take(batch.accountId, () => places.take(() => applyOrForget(context, memory, batch))),
    forgetPlacements: (accountId, epoch, folderId, keepUidValidity, limit) =>
      turns.take(accountId, async () => {
        await checkEpoch(context, accountId, epoch)
        return forgetFolder(context, accountId, folderId, keepUidValidity, limit)
      }),
    replaceMailbox: (accountId, patch, since) =>
      turns.take(accountId, () => replaceMailbox(context, accountId, patch, since)),
  }
}
