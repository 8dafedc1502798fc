/**
 * The index of mail: documents of messages, their changes, lookups and lists.
 *
 * A change is a read, a pure step of rows.ts, and a write that compares the version. An account has one writer, but an
 * earlier write whose answer was lost may come late: then the row is read again and the step repeated.
 */
import { LRUCache } from 'lru-cache'
import type { AnyBulkWriteOperation, Document, Filter, Sort } from 'mongodb'
import { pickedReads } from '../aggregates.ts'
import { countChange, type CountChanges } from '../folder-counts.ts'
import { byWeight } from '../batch-steps.ts'
import { foldCase, goneAt, groupName, hidingKeys, isLive, messageKeys, placeKeys, queryKeys } from '../rows.ts'
import { subjectNeedle, wideKey, wideMatches, type WideMatches } from '../rows.ts'
import type { KeyFacts, Placed, Step } from '../rows.ts'
import type { KnownUid, MessageQuery, MessageStore, Page } from '../port.ts'
import type { MessageRecord } from '../records.ts'
import { beginning, between, containing, pageOf, shapes } from './documents.ts'
import type { KeyDoc, MessageDoc, MongoContext } from './documents.ts'
import { unavailable } from './errors.ts'

const { record: messageRecord, only } = shapes.messages

/** `counted`: kinds of contact deltas that are counted already. */
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

/** The fields of a row that a change needs: few bytes, while a message to thousands of people has 300 kB. */
type PlacedDoc = Pick<MessageDoc, '_id' | 'accountId' | 'placements' | 'gone' | 'goneAt' | 'v'>

const placedOnly = { accountId: 1, placements: 1, gone: 1, goneAt: 1, v: 1 } as const

/** Rows to change. `limit`: 0 = no limit. */
export function readPlaced(context: MongoContext, where: Filter<MessageDoc>, limit = 0): Promise<PlacedDoc[]> {
  const { collections, read } = context
  return collections.messages.find<PlacedDoc>(where, { ...read, projection: placedOnly, limit }).toArray()
}

/** A row before and after a step, and the keys that its placements gain and lose; null = no change. */
function changeOf(doc: PlacedDoc, step: Step) {
  const before: Placed = { id: doc._id, placements: doc.placements, gone: doc.gone }
  const after = step(before)
  if (after === before) return null
  const [had, has] = [new Set(placeKeys(before)), new Set(placeKeys(after))]
  return { doc, before, after, added: [...has.difference(had)], removed: [...had.difference(has)] }
}

type Change = NonNullable<ReturnType<typeof changeOf>>

/**
 * Whether all keys must be computed: a tombstone that comes back has none, and one update cannot both add and remove
 * elements of an array.
 */
function needsAllKeys({ before, after, added, removed }: Change): boolean {
  return isLive(after) && (!isLive(before) || (added.length > 0 && removed.length > 0))
}

/** `keys`: all keys, of a row that needs them. */
function operationOf(
  { doc, after, added, removed }: Change,
  keys?: readonly string[],
): AnyBulkWriteOperation<MessageDoc> {
  const at = goneAt(after)
  const { placements, gone } = after
  const all = isLive(after) ? keys : []
  const place = added.length > 0 ? { $addToSet: { keys: { $each: [...added] } } } : { $pullAll: { keys: [...removed] } }
  return {
    updateOne: {
      filter: { _id: doc._id, accountId: doc.accountId, v: doc.v },
      update: {
        $set: {
          placements,
          gone,
          live: isLive(after),
          ...(all && { keys: all }),
          ...(at === null ? {} : { goneAt: at }),
        },
        $inc: { v: 1 },
        ...(all === undefined && added.length + removed.length > 0 ? place : {}),
        ...(at === null && doc.goneAt !== undefined ? { $unset: { goneAt: 1 } } : {}),
      },
    },
  }
}

/**
 * All keys of these rows after their changes. The facts of a message never change, so this read needs no compare. It
 * reads one message at a time: one to thousands of people takes 10 ms to decode.
 */
async function allKeys(
  { collections: { messages }, read }: MongoContext,
  accountId: string,
  changes: readonly Change[],
): Promise<Map<string, string[]>> {
  const keys = new Map<string, string[]>()
  if (changes.length === 0) return keys
  const places = new Map(changes.map(({ doc, after }) => [doc._id, after.placements]))
  const options = { ...read, projection: { threadId: 1, attachments: 1, addresses: 1 }, batchSize: 1 }
  const rows = messages.find<KeyFacts & KeyDoc>({ accountId, _id: { $in: [...places.keys()] } }, options)
  for await (const { _id, ...facts } of rows)
    keys.set(_id, messageKeys({ ...facts, placements: places.get(_id) ?? [] }))
  return keys
}

/** Returns the number of rows whose version matched. */
async function write(context: MongoContext, accountId: string, changes: readonly Change[]): Promise<number> {
  const keys = await allKeys(context, accountId, changes.filter(needsAllKeys))
  const weighed = changes.map((change) => {
    const all = keys.get(change.doc._id)
    return [1 + (all?.length ?? 0), operationOf(change, all)] as const
  })
  let matched = 0
  for (const operations of byWeight(weighed))
    matched += (await context.collections.messages.bulkWrite(operations, { ordered: false })).matchedCount
  return matched
}

/** More conflicts in a row are a fault, since an account has one writer. */
const tries = 20

/**
 * Applies the step to each row, again to rows written meanwhile. Returns the changes of the folders' counts; null = an
 * earlier write came in between, so they are not known.
 */
export async function changeMessages(
  context: MongoContext,
  accountId: string,
  docs: readonly PlacedDoc[],
  step: Step,
): Promise<CountChanges | null> {
  const counts: CountChanges = new Map()
  let pending = docs
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const changes = pending.flatMap((doc) => changeOf(doc, step) ?? [])
    for (const { before, after } of changes) countChange(counts, before.placements, after.placements)
    const matched = await write(context, accountId, changes)
    if (matched === changes.length) return attempt === 0 ? counts : null
    const ids = changes.map(({ doc }) => doc._id)
    pending = await readPlaced(context, { accountId, _id: { $in: ids } })
  }
  throw unavailable(new Error(`messages of account ${accountId} are written by others without end`))
}

const liveFirst = { live: -1, sentAt: -1, _id: -1 } as const

/**
 * A MessageQuery as a filter. Conditions on address, thread, attachment and folder are keys of the message (rows.ts):
 * one multikey index serves every mix of them in (sentAt, _id) order. Subject and ids are compared outside the index.
 */
function messageFilter(accountId: string, query: MessageQuery, wide?: WideMatches): Filter<MessageDoc> {
  const { all, none } = queryKeys(query)
  const needle = subjectNeedle(query)
  const sentAt = between(query.sentFrom, query.sentUntil)
  // The narrowest condition first: the index takes its bounds from the first condition on keys.
  const conditions = all.map((keys): Filter<MessageDoc> => {
    const ids = wide?.get(groupName(keys))
    return ids === undefined ? { keys: { $in: keys } } : { $or: [{ keys: { $in: keys } }, { _id: { $in: [...ids] } }] }
  })
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

/** The filter, with the messages that match by folded addresses. */
async function filterOf(
  { collections: { messages }, read }: MongoContext,
  accountId: string,
  query: MessageQuery,
): Promise<Filter<MessageDoc>> {
  const wide = await wideMatches(query, async (fields) => {
    const marks = fields.map(([field]) => wideKey(field))
    const folded = fields.flatMap(([field, texts]) =>
      texts.map((text) => ({
        keys: { $regex: `^${containing(wideKey(field)).$regex}:[\\s\\S]*${containing(text).$regex}` },
      })),
    )
    const where = { accountId, keys: { $in: marks }, $or: folded }
    const found = await messages.find(where, { ...read, projection: { _id: 1 } }).toArray()
    return found.map(({ _id }) => _id)
  })
  return messageFilter(accountId, query, wide)
}

/** Condition: at least one placement is not hidden. */
function shownPlace({ hidden, folderId }: MessageQuery): Filter<MessageDoc> {
  const folders = { $nin: [...(hidden?.folderIds ?? [])], ...(folderId === undefined ? {} : { $eq: folderId }) }
  const flags = hidden?.deleted === true ? { flags: { $ne: '\\Deleted' } } : {}
  return { placements: { $elemMatch: { folderId: folders, ...flags } } }
}

function messageOrder({ order }: MessageQuery): { readonly sentAt: 1 | -1; readonly _id: 1 | -1 } {
  return order === 'asc' ? { sentAt: 1, _id: 1 } : { sentAt: -1, _id: -1 }
}

type UidFilter = { readonly $gte: number; readonly $lte: number } | { readonly $in: readonly number[] }

/** Rows with a placement in this folder with one of these UIDs. */
export function placedFilter(accountId: string, folderId: string, uid: UidFilter): Filter<MessageDoc> {
  return { accountId, placements: { $elemMatch: { folderId, uid } } }
}

/** The account of each folder is cached: a folder never moves to another account. */
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
    // No maxTimeMS for a whole folder: each answer of the cursor has the deadline of a socket.
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

const totals =
  ({ collections: { messages }, read }: MongoContext): MessageStore['totals'] =>
  async (accountId) => {
    const attached = { $match: { accountId, keys: 'a', live: true } }
    const sum = { $group: { _id: null, sum: { $sum: { $size: '$attachments' } } } }
    const [live, [attachments]] = await Promise.all([
      messages.countDocuments(messageFilter(accountId, {}), read),
      messages.aggregate<{ readonly sum: number }>([attached, sum], read).toArray(),
    ])
    return { messages: live, attachments: attachments?.sum ?? 0 }
  }

/** One command for messages with this Message-ID, then those with this id of a hosted provider. */
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

const accountsAtOnce = 10_000

/** Messages with this Message-ID, in the index of each account. */
const everywhere =
  ({ collections: { accounts, messages }, read }: MongoContext): MessageStore['everywhere'] =>
  async (emailMessageId, limit) => {
    const found: MessageRecord[] = []
    const cursor = accounts.find({}, { ...read, projection: { _id: 1 } }).batchSize(accountsAtOnce)
    while (found.length < limit && (await cursor.hasNext())) {
      const ids = cursor.readBufferedDocuments().map(({ _id }) => _id)
      const page = { ...read, projection: only, limit: limit - found.length }
      const named = await pageOf(messages, { accountId: { $in: ids }, emailMessageId }, page)
      found.push(...named.map(messageRecord))
    }
    await cursor.close()
    return found
  }

export function createMessages(context: MongoContext): MessageStore {
  const { read } = context
  const { messages } = context.collections
  const options = { ...read, projection: only }
  const rows = async (filter: Filter<MessageDoc>, order: Sort, limit: number, offset = 0): Promise<MessageRecord[]> =>
    (await pageOf(messages, filter, { ...options, sort: order, skip: offset, limit })).map(messageRecord)
  const list = async (accountId: string, query: MessageQuery, { limit, offset }: Page) =>
    rows(await filterOf(context, accountId, query), messageOrder(query), limit, offset)
  const findAll = async (accountId: string, reference: string, limit: number): Promise<MessageRecord[]> => {
    // Only a Message-ID has an @: neither our ids nor those of hosted providers (RFC 8474, or numbers) have one.
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
    get: async (accountId, id) => (await rows({ _id: id, accountId }, liveFirst, 1))[0] ?? null,
    byIds: async (accountId, ids) => {
      const found = await messages.find({ _id: { $in: [...ids] }, accountId }, options).toArray()
      const byId = new Map(found.map((doc) => [doc._id, messageRecord(doc)]))
      return [...new Set(ids)].flatMap((id) => byId.get(id) ?? [])
    },
    several: async (ids) => (await messages.find({ _id: { $in: [...ids] } }, options).toArray()).map(messageRecord),
    everywhere: everywhere(context),
    find: async (accountId, reference) => (await findAll(accountId, reference, 1))[0] ?? null,
    findAll,
    // Several messages may have one Message-ID: the first in `liveFirst` order counts.
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
    count: async (accountId, query) => messages.countDocuments(await filterOf(context, accountId, query ?? {}), read),
    totals: totals(context),
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
