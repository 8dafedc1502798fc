/**
 * The `mongodb` driver by hand, on the adapter's collections and indexes: the floor of MongoDB. Documents are made
 * before the clock runs; what is left is what the same promises need, without transactions:
 * - a batch reads, side by side, the folder (epoch, cursor), who holds the UIDs, the last number and the contacts (and
 *   after them which messages have been counted); then one insert and one bulk of compare-and-set for contacts, one
 *   unordered insert of messages, one ordered of changes, one unordered of outbox rows; for flags one find and one bulk
 *   of compare-and-set; last the cursor, with a compare;
 * - a claim finds the waiting rows, finds them again (one may have been skipped meanwhile) and writes them in one bulk
 *   that compares the version.
 * The client has the adapter's options: write concern majority, journaled, the same pool.
 */
import { MongoClient, type Collection, type Db } from 'mongodb'
import type { ChangeDraft, SyncBatch } from '../../../engine/store/port.ts'
import type { ContactDelta, Placement } from '../../../engine/store/records.ts'
import { contactDoc, kindsByMessage } from '../../../engine/store/mongo/contacts.ts'
import type { ContactDoc, MessageDoc } from '../../../engine/store/mongo/documents.ts'
import { openCollections, shapes, type Collections } from '../../../engine/store/mongo/documents.ts'
import { messageDoc } from '../../../engine/store/mongo/messages.ts'
import { withDelta } from '../../../engine/store/contacts.ts'
import { newMessage } from '../../../engine/store/rows.ts'
import { deliveredAttempt, type Bytes, type Contestant, type ListPage } from './contestant.ts'
import { byContact } from './mail.ts'

const read = { maxTimeMS: 10_000 }

/** Documents ready to be written; numbers are still to be given. */
function docsOf(batch: SyncBatch) {
  const now = Date.now()
  const counted = kindsByMessage(batch.contacts)
  return {
    messages: batch.added.map((added) =>
      messageDoc(newMessage(batch.accountId, added, now), [...(counted.get(added.id) ?? [])]),
    ),
    counted: [...counted.keys()],
    uids: batch.added.map(({ placement }) => placement.uid),
    changes: batch.changes.map((draft: ChangeDraft) => shapes.changes.doc({ ...draft, seq: 0 })),
    outbox: batch.outbox.map(shapes.outbox.doc),
    contacts: new Map([...byContact(batch.contacts)].map(([id, deltas]) => [`${batch.accountId}:${id}`, deltas])),
    flags: new Map(batch.flagUpdates.map((update) => [update.messageId, update])),
  }
}

type Docs = ReturnType<typeof docsOf>

async function readBefore({ folders, messages, changes, contacts }: Collections, batch: SyncBatch, docs: Docs) {
  const { accountId, folderId } = batch
  const place = { folderId, uid: { $in: docs.uids } }
  const [folder, , last, known] = await Promise.all([
    folders.findOne({ _id: folderId, accountId }, { projection: { epoch: 1, cursor: 1 } }),
    docs.uids.length === 0
      ? []
      : messages.find({ accountId, placements: { $elemMatch: place } }, { projection: { placements: 1 } }).toArray(),
    docs.changes.length === 0
      ? null
      : changes.findOne({ accountId }, { ...read, sort: { seq: -1 }, projection: { _id: 0, seq: 1 } }),
    docs.contacts.size === 0 ? [] : readContacts(contacts, messages, accountId, docs),
  ])
  if (folder?.epoch !== batch.epoch) throw new Error('lease')
  return { last: last?.seq ?? 0, known }
}

async function readContacts(
  contacts: Collection<ContactDoc>,
  messages: Collection<MessageDoc>,
  accountId: string,
  docs: Docs,
): Promise<ContactDoc[]> {
  const found = await contacts.find({ _id: { $in: [...docs.contacts.keys()] } }).toArray()
  const rows = messages.find({ accountId, _id: { $in: docs.counted }, counted: { $exists: true } })
  await rows.project({ counted: 1 }).toArray()
  return found
}

async function apply(on: Collections, batch: SyncBatch, docs: Docs): Promise<void> {
  const { last, known } = await readBefore(on, batch, docs)
  if (docs.contacts.size > 0) await countContacts(on.contacts, batch.accountId, docs.contacts, known)
  if (docs.messages.length > 0) await on.messages.insertMany(docs.messages, { ordered: false })
  const changes = docs.changes.map((doc, index) => ({ ...doc, seq: last + 1 + index }))
  if (changes.length > 0) await on.changes.insertMany(changes, { ordered: true })
  const numbers = new Map(changes.map(({ _id, seq }) => [_id, seq]))
  const outbox = docs.outbox.map((row) => ({ ...row, seq: numbers.get(row.changeId ?? '') ?? row.seq }))
  if (outbox.length > 0) await on.outbox.insertMany(outbox, { ordered: false })
  if (docs.flags.size > 0) await setFlags(on.messages, batch, docs.flags)
  const { folderId: _id, accountId, epoch, cursorBefore: cursor, cursorAfter } = batch
  await on.folders.updateOne({ _id, accountId, epoch, cursor }, { $set: { cursor: cursorAfter } })
}

async function setFlags(messages: Collection<MessageDoc>, batch: SyncBatch, updates: Docs['flags']): Promise<void> {
  const { accountId } = batch
  const stored = await messages.find({ accountId, _id: { $in: [...updates.keys()] } }).toArray()
  const writes = stored.map(({ _id, v, placements, gone }) => {
    const { uid, flags, modseq, rev } = updates.get(_id) ?? { uid: 0, flags: [], modseq: '0', rev: 0 }
    const changed = placements.map((there): Placement => (there.uid === uid ? { ...there, flags, modseq, rev } : there))
    const update = { $set: { placements: changed, gone }, $inc: { v: 1 } }
    return { updateOne: { filter: { _id, accountId, v }, update } }
  })
  await messages.bulkWrite(writes, { ordered: false })
}

async function countContacts(
  contacts: Collection<ContactDoc>,
  accountId: string,
  groups: ReadonlyMap<string, readonly ContactDelta[]>,
  stored: readonly ContactDoc[],
): Promise<void> {
  const known = new Set(stored.map(({ _id }) => _id))
  const keysOf = (deltas: readonly ContactDelta[]): string[] => deltas.map(({ key }) => key)
  const writes = stored.map(({ _id, v, applied, name, totalCount, directCount, indirectCount, searchKey }) => {
    const deltas = groups.get(_id) ?? []
    const lastReceivedAt = deltas.at(-1)?.receivedAt ?? 0
    const more = deltas.length
    const counts = { totalCount: totalCount + more, directCount, indirectCount: indirectCount + more }
    const keys = [...applied.slice(-64), ...keysOf(deltas)]
    const update = { $set: { name, ...counts, lastReceivedAt, searchKey, applied: keys }, $inc: { v: 1 } }
    return { updateOne: { filter: { _id, v }, update } }
  })
  const fresh = [...groups].flatMap(([id, deltas]) => {
    const contact = known.has(id)
      ? null
      : deltas.reduce<ReturnType<typeof withDelta> | null>((stored, delta) => withDelta(accountId, stored, delta), null)
    return contact === null ? [] : [contactDoc(contact, keysOf(deltas))]
  })
  if (fresh.length > 0) await contacts.insertMany(fresh, { ordered: false })
  if (writes.length > 0) await contacts.bulkWrite(writes, { ordered: false })
}

async function claim({ outbox }: Collections, channelId: string, limit: number): Promise<number> {
  const options = { ...read, projection: shapes.outbox.only }
  const rows = await outbox
    .find({ state: 'pending', channelId }, options)
    .sort({ lane: 1, createdAt: 1, seq: 1, _id: 1 })
    .limit(limit)
    .toArray()
  if (rows.length === 0) return 0
  const at = Date.now()
  const stored = await outbox.find({ _id: { $in: rows.map(({ _id }) => _id) } }).toArray()
  const writes = stored.map(({ _id, v, attempts, attemptCount }) => {
    const tried = { attempts: [...attempts, deliveredAttempt(at)], attemptCount: attemptCount + 1, lastStatus: 200 }
    const set = { ...tried, state: 'delivered', dueAt: at, finishedAt: at, reason: null } as const
    return { updateOne: { filter: { _id, v }, update: { $set: set, $inc: { v: 1 } } } }
  })
  await outbox.bulkWrite(writes, { ordered: false })
  return rows.length
}

async function page({ messages }: Collections, { accountId, folderId, limit, offset }: ListPage): Promise<number> {
  const keys = folderId === null ? {} : { keys: `f:${folderId}` }
  const rows = messages.find({ accountId, live: true, ...keys }, { ...read, projection: shapes.messages.only })
  return (await rows.sort({ sentAt: -1, _id: -1 }).skip(offset).limit(limit).toArray()).length
}

export async function databaseBytes(db: Db): Promise<Bytes> {
  const { storageSize, indexSize } = await db.command({ dbStats: 1 })
  return { data: Number(storageSize), indexes: Number(indexSize) }
}

export async function bareMongo(uri: string, pool: number): Promise<Contestant> {
  const client = await MongoClient.connect(uri, {
    maxPoolSize: pool,
    writeConcern: { w: 'majority', journal: true },
    readPreference: 'primary',
    ignoreUndefined: true,
  })
  const on = openCollections(client.db())
  return {
    prepare: (batch) => {
      const docs = docsOf(batch)
      return () => apply(on, batch, docs)
    },
    page: (wanted) => page(on, wanted),
    message: async (accountId, _id) =>
      (await on.messages.findOne({ _id, accountId }, { ...read, projection: shapes.messages.only })) !== null,
    claim: (channelId, limit) => claim(on, channelId, limit),
    bytes: () => databaseBytes(client.db()),
    close: () => client.close(),
  }
}
