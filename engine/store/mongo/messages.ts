/**
 * The index of mail: documents of messages, the one way they change after they are inserted, lookups and lists.
 *
 * A change is read, a pure step of rows.ts, and a write that compares the version. Each account has one writer, but an
 * earlier write of its own, whose answer was lost, may come late: then the row is read again and the step repeated.
 */
import { LRUCache } from 'lru-cache'
import type { AnyBulkWriteOperation, Document, Filter, FindCursor, Sort } from 'mongodb'
import { pickedReads } from '../aggregates.ts'
import { countChange, type CountChanges } from '../folder-counts.ts'
import { foldCase, goneAt, hidingKeys, isLive, messageKeys, placeKeys, queryKeys, subjectNeedle } from '../rows.ts'
import type { Step } from '../rows.ts'
import type { KnownUid, MailTotals, MessageQuery, MessageStore, Page } from '../port.ts'
import type { MessageRecord } from '../records.ts'
import { beginning, between, containing, orNull, rowsOf, shapes } from './documents.ts'
import type { MessageDoc, MongoContext } from './documents.ts'
import { unavailable } from './errors.ts'

const { record: messageRecord, only } = shapes.messages

/** `counted`: kinds of contact deltas that it has been counted for. */
export function messageDoc(record: MessageRecord, counted: readonly string[] = []): MessageDoc {
  const at = goneAt(record)
  return {
    ...shapes.messages.doc(record),
    live: isLive(record),
    keys: messageKeys(record),
    subjectKey: foldCase(record.subject),
    ...(at === null ? {} : { goneAt: at }),
    v: 0,
    ...(counted.length === 0 ? {} : { counted }),
  }
}

/** A row that is written by others this often in a row is not a busy row but a fault. */
const tries = 20

function update(doc: MessageDoc, step: Step, changes: CountChanges): AnyBulkWriteOperation<MessageDoc> | null {
  const record = messageRecord(doc)
  const next = step(record)
  if (next === record) return null
  countChange(changes, record.placements, next.placements)
  const at = goneAt(next)
  const { placements, gone } = next
  const derived = { ...keysAfter(record, next), ...(at === null ? {} : { goneAt: at }) }
  return {
    updateOne: {
      filter: { _id: doc._id, accountId: doc.accountId, v: doc.v },
      update: {
        $set: { placements, gone, ...derived },
        $inc: { v: 1 },
        ...(at === null && doc.goneAt !== undefined ? { $unset: { goneAt: 1 } } : {}),
      },
    },
  }
}

/** The facts never change: keys and life follow from the placements alone, of the flags from \Deleted. */
function keysAfter(before: MessageRecord, after: MessageRecord): Partial<Pick<MessageDoc, 'live' | 'keys'>> {
  const [had, has] = [placeKeys(before), placeKeys(after)]
  if (had.length === has.length && had.every((key, index) => key === has[index])) return {}
  return { live: isLive(after), keys: messageKeys(after) }
}

/**
 * In one bulk; those that were written meanwhile again, until the step has nothing left to do. Answers what becomes of
 * the counts of folders; null = an earlier write came in between, and it is not known.
 */
export async function changeMessages(
  { collections: { messages } }: MongoContext,
  accountId: string,
  docs: readonly MessageDoc[],
  step: Step,
): Promise<CountChanges | null> {
  const changes: CountChanges = new Map()
  let pending = docs
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const operations = pending.flatMap((doc) => {
      const operation = update(doc, step, changes)
      return operation ? [{ id: doc._id, operation }] : []
    })
    if (operations.length === 0) return attempt === 0 ? changes : null
    const result = await messages.bulkWrite(
      operations.map(({ operation }) => operation),
      { ordered: false },
    )
    if (result.matchedCount === operations.length) return attempt === 0 ? changes : null
    const ids = operations.map(({ id }) => id)
    pending = await messages.find({ accountId, _id: { $in: ids } }).toArray()
  }
  throw unavailable(new Error(`messages of account ${accountId} are written by others without end`))
}

const liveFirst = { live: -1, sentAt: -1, _id: -1 } as const

/**
 * A MessageQuery as a filter. Address, thread, attachment and folder conditions are keys of the message (rows.ts), so
 * that one multikey index serves every mix of them in (sentAt, _id) order; subject and ids are compared beside it.
 */
function messageFilter(accountId: string, query: MessageQuery): Filter<MessageDoc> {
  const { all, none } = queryKeys(query)
  const needle = subjectNeedle(query)
  const sentAt = between(query.sentFrom, query.sentUntil)
  // the narrowest first: the index's bounds come from the first condition on keys
  const conditions: Filter<MessageDoc>[] = all.map((keys) => ({ keys: { $in: keys } }))
  if (none.length > 0) conditions.push({ keys: { $nin: none } })
  const hiding = hidingKeys(query)
  if (hiding.length > 0) conditions.push({ $or: [{ keys: { $nin: hiding } }, shownPlace(query)] })
  return {
    accountId,
    live: true,
    ...(conditions.length > 0 ? { $and: conditions } : {}),
    ...(sentAt ? { sentAt } : {}),
    ...(query.ids ? { _id: { $in: [...query.ids] } } : {}),
    ...(needle === null ? {} : { subjectKey: containing(needle) }),
  }
}

/** One of its placements is not hidden. */
function shownPlace({ hidden, folderId }: MessageQuery): Filter<MessageDoc> {
  const folders = { $nin: [...(hidden?.folderIds ?? [])], ...(folderId === undefined ? {} : { $eq: folderId }) }
  const flags = hidden?.deleted === true ? { flags: { $ne: '\\Deleted' } } : {}
  return { placements: { $elemMatch: { folderId: folders, ...flags } } }
}

function messageOrder({ order }: MessageQuery): { readonly sentAt: 1 | -1; readonly _id: 1 | -1 } {
  return order === 'asc' ? { sentAt: 1, _id: 1 } : { sentAt: -1, _id: -1 }
}

type UidFilter = { readonly $gte: number; readonly $lte: number } | { readonly $in: readonly number[] }

/** Rows with a placement within these UIDs; all conditions must hold for the same placement. */
export function placedFilter(accountId: string, folderId: string, uid: UidFilter): Filter<MessageDoc> {
  return { accountId, placements: { $elemMatch: { folderId, uid } } }
}

/** A folder's id is made of its account's, so what was once looked up stays true. */
function createKnownUids({ collections, read }: MongoContext): Pick<MessageStore, 'knownUids' | 'knownAmong'> {
  const accounts = new LRUCache<string, string>({ maxSize: 20_000, sizeCalculation: () => 1 })
  const accountOf = async (folderId: string): Promise<string | null> => {
    const known = accounts.get(folderId)
    if (known !== undefined) return known
    const folder = await collections.folders.findOne({ _id: folderId }, { ...read, projection: { accountId: 1 } })
    if (!folder) return null
    accounts.set(folderId, folder.accountId)
    return folder.accountId
  }
  const known = async (folderId: string, uidValidity: string, which: UidFilter, isOne: (uid: number) => boolean) => {
    const accountId = await accountOf(folderId)
    if (accountId === null) return []
    const where = placedFilter(accountId, folderId, which)
    // a whole folder, which takes what it takes: each of its batches has the deadline of a socket
    const docs = await collections.messages.find(where, { projection: { placements: 1 } }).toArray()
    const within = docs.flatMap(({ _id, placements }) =>
      placements
        .filter((there) => there.folderId === folderId && there.uidValidity === uidValidity)
        .filter(({ uid }) => isOne(uid))
        .map(({ uid, flags, modseq, rev, generation }): KnownUid => {
          const there = { uid, messageId: _id, flags, modseq, rev }
          return generation === undefined ? there : { ...there, generation }
        }),
    )
    return within.sort((left, right) => left.uid - right.uid)
  }
  return {
    knownUids: (folderId, uidValidity, from, to) =>
      known(folderId, uidValidity, { $gte: from, $lte: to }, (uid) => uid >= from && uid <= to),
    knownAmong: (folderId, uidValidity, uids) => {
      const wanted = new Set(uids)
      return known(folderId, uidValidity, { $in: [...wanted] }, (uid) => wanted.has(uid))
    },
  }
}

async function totals({ collections: { messages }, read }: MongoContext, accountId: string): Promise<MailTotals> {
  const attached = { $match: { accountId, keys: 'a', live: true } }
  const sum = { $group: { _id: null, sum: { $sum: { $size: '$attachments' } } } }
  const [live, [attachments]] = await Promise.all([
    messages.countDocuments(messageFilter(accountId, {}), read),
    messages.aggregate<{ readonly sum: number }>([attached, sum], read).toArray(),
  ])
  return { messages: live, attachments: attachments?.sum ?? 0 }
}

/** Those with this Message-ID, then those with this id of a hosted provider, in one command. */
function namedSteps(accountId: string, reference: string, limit: number): Document[] {
  const named = (name: Filter<MessageDoc>): Document[] => [
    { $match: { accountId, ...name } },
    { $sort: liveFirst },
    { $limit: limit },
    { $project: only },
  ]
  const hosted = { coll: 'messages', pipeline: named({ hostedMessageId: reference }) }
  return [...named({ emailMessageId: reference }), { $unionWith: hosted }]
}

const idsAtOnce = 10_000

async function* idsOf(cursor: FindCursor<{ readonly _id: string }>): AsyncGenerator<string[]> {
  cursor.batchSize(idsAtOnce)
  while (await cursor.hasNext()) yield cursor.readBufferedDocuments().map(({ _id }) => _id)
}

/** Each account's index is asked, ten thousand of them at once. */
async function everywhere(
  { collections: { accounts, messages }, read }: MongoContext,
  emailMessageId: string,
  limit: number,
): Promise<MessageRecord[]> {
  const found: MessageRecord[] = []
  for await (const ids of idsOf(accounts.find({}, { ...read, projection: { _id: 1 } }))) {
    const named = messages.find({ accountId: { $in: ids }, emailMessageId }, { ...read, projection: only })
    found.push(...(await rowsOf(named, limit - found.length)).map(messageRecord))
    if (found.length >= limit) break
  }
  return found
}

export function createMessages(context: MongoContext): MessageStore {
  const { read } = context
  const { messages } = context.collections
  const options = { ...read, projection: only }
  const rows = async (filter: Filter<MessageDoc>, order: Sort, limit: number, offset = 0): Promise<MessageRecord[]> =>
    (await rowsOf(messages.find(filter, options).sort(order), limit, offset)).map(messageRecord)
  const list = (accountId: string, query: MessageQuery, { limit, offset }: Page) =>
    rows(messageFilter(accountId, query), messageOrder(query), limit, offset)
  const findAll = async (accountId: string, reference: string, limit: number): Promise<MessageRecord[]> => {
    // Of the three only a Message-ID has an @ (ids of hosted providers: RFC 8474, or numbers).
    if (reference.includes('@')) return rows({ accountId, emailMessageId: reference }, liveFirst, limit)
    const own = await rows({ _id: reference, accountId }, liveFirst, 1)
    if (own.length > 0) return own
    const both = await messages.aggregate<MessageDoc>(namedSteps(accountId, reference, limit), read).toArray()
    const isHosted = both[0]?.emailMessageId !== reference
    return both.filter((doc) => isHosted || doc.emailMessageId === reference).map(messageRecord)
  }
  return {
    list,
    ...pickedReads(list),
    ...createKnownUids(context),
    get: async (accountId, id) => orNull(await messages.findOne({ _id: id, accountId }, options), messageRecord),
    byIds: async (accountId, ids) => {
      const found = await messages.find({ _id: { $in: [...ids] }, accountId }, options).toArray()
      const byId = new Map(found.map((doc) => [doc._id, messageRecord(doc)]))
      return [...new Set(ids)].flatMap((id) => byId.get(id) ?? [])
    },
    several: async (ids) => (await messages.find({ _id: { $in: [...ids] } }, options).toArray()).map(messageRecord),
    everywhere: (reference, limit) => everywhere(context, reference, limit),
    find: async (accountId, reference) => (await findAll(accountId, reference, 1))[0] ?? null,
    findAll,
    // several may have one Message-ID: the order puts the one that counts first
    byMessageIds: async (accountId, references) => {
      const found = new Map<string, MessageRecord>()
      const wanted = new Set(references)
      const limit = 2 * wanted.size
      while (wanted.size > 0) {
        const some = await rows({ accountId, emailMessageId: { $in: [...wanted] } }, liveFirst, limit)
        for (const record of some) {
          const reference = record.emailMessageId ?? ''
          if (wanted.delete(reference)) found.set(reference, record)
        }
        if (some.length < limit) break
      }
      return found
    },
    count: (accountId, query) => messages.countDocuments(messageFilter(accountId, query ?? {}), read),
    totals: (accountId) => totals(context, accountId),
    gone: (accountId, before, limit) =>
      rows({ accountId, goneAt: { $gte: beginning, $lt: before } }, { goneAt: 1, _id: 1 }, limit),
    older: (accountId, after, limit) => {
      const behind = after && {
        sentAt: { $lte: after.sentAt },
        $or: [{ sentAt: { $lt: after.sentAt } }, { _id: { $lt: after.id } }],
      }
      return rows({ accountId, live: true, ...behind }, messageOrder({}), limit)
    },
  }
}
