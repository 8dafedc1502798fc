/** The index of mail: lookups and lists. */
import { LRUCache } from 'lru-cache'
import type { Filter, Sort } from 'mongodb'
import { attachmentReads } from '../aggregates.ts'
import type { KnownUid, MessageQuery, MessageStore, Page } from '../port.ts'
import type { MessageRecord } from '../records.ts'
import { queryKeys, subjectNeedle } from '../rows.ts'
import { beginning, between, containing, orNull, rowsOf, shapes } from './documents.ts'
import type { MessageDoc, MongoContext } from './documents.ts'

const { record: messageRecord, only } = shapes.messages

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
  return {
    accountId,
    live: true,
    ...(conditions.length > 0 ? { $and: conditions } : {}),
    ...(sentAt ? { sentAt } : {}),
    ...(query.ids ? { _id: { $in: [...query.ids] } } : {}),
    ...(needle === null ? {} : { subjectKey: containing(needle) }),
  }
}

function messageOrder({ order }: MessageQuery): { readonly sentAt: 1 | -1; readonly _id: 1 | -1 } {
  return order === 'asc' ? { sentAt: 1, _id: 1 } : { sentAt: -1, _id: -1 }
}

/** Rows with a placement within these UIDs; all conditions must hold for the same placement. */
export function placedFilter(
  accountId: string,
  folderId: string,
  uid: { readonly $gte: number; readonly $lte: number } | { readonly $in: readonly number[] },
): Filter<MessageDoc> {
  return { accountId, placements: { $elemMatch: { folderId, uid } } }
}

export function createMessages(context: MongoContext): MessageStore {
  const reads = createReads(context)
  return { ...reads, ...attachmentReads(reads.list), knownUids: createKnownUids(context) }
}

/** A folder's id is made of its account's, so what was once looked up stays true. */
function createKnownUids({ collections, read }: MongoContext): MessageStore['knownUids'] {
  const accounts = new LRUCache<string, string>({ max: 20_000 })
  const accountOf = async (folderId: string): Promise<string | null> => {
    const known = accounts.get(folderId)
    if (known !== undefined) return known
    const folder = await collections.folders.findOne({ _id: folderId }, { ...read, projection: { accountId: 1 } })
    if (!folder) return null
    accounts.set(folderId, folder.accountId)
    return folder.accountId
  }
  return async (folderId, uidValidity, from, to) => {
    const accountId = await accountOf(folderId)
    if (accountId === null) return []
    const where = placedFilter(accountId, folderId, { $gte: from, $lte: to })
    // a whole folder, which takes what it takes: each of its batches has the deadline of a socket
    const docs = await collections.messages.find(where, { projection: { placements: 1 } }).toArray()
    const within = docs.flatMap(({ _id, placements }) =>
      placements
        .filter((there) => there.folderId === folderId && there.uidValidity === uidValidity)
        .filter(({ uid }) => uid >= from && uid <= to)
        .map(({ uid, flags, modseq, rev, generation }): KnownUid => {
          const known = { uid, messageId: _id, flags, modseq, rev }
          return generation === undefined ? known : { ...known, generation }
        }),
    )
    return within.sort((left, right) => left.uid - right.uid)
  }
}

function createReads(context: MongoContext): Omit<MessageStore, 'knownUids' | 'attachments'> {
  const { collections, read } = context
  const { messages } = collections
  const options = { ...read, projection: only }
  const one = async (filter: Filter<MessageDoc>): Promise<MessageRecord | null> =>
    orNull(await messages.findOne(filter, { ...options, sort: liveFirst }), messageRecord)
  const list = async (filter: Filter<MessageDoc>, order: Sort, page: Page): Promise<MessageRecord[]> => {
    const rows = await rowsOf(messages.find(filter, options).sort(order), page.limit, page.offset)
    return rows.map(messageRecord)
  }
  return {
    get: async (accountId, id) => orNull(await messages.findOne({ _id: id, accountId }, options), messageRecord),
    byIds: async (accountId, ids) => {
      const found = await messages.find({ _id: { $in: [...ids] }, accountId }, options).toArray()
      const byId = new Map(found.map((doc) => [doc._id, messageRecord(doc)]))
      return [...new Set(ids)].flatMap((id) => byId.get(id) ?? [])
    },
    find: async (accountId, reference) => {
      // of the three only a Message-ID has an @ (ids of hosted providers: RFC 8474, or numbers); live mail is looked up
      // by it
      const byMessageId = { accountId, emailMessageId: reference }
      if (reference.includes('@')) return one(byMessageId)
      return (
        (await one({ _id: reference, accountId })) ??
        (await one(byMessageId)) ??
        (await one({ accountId, hostedMessageId: reference }))
      )
    },
    byMessageIds: (accountId, references) => byMessageIds(context, accountId, references),
    list: (accountId, query, page) => list(messageFilter(accountId, query), messageOrder(query), page),
    count: (accountId, query) => messages.countDocuments(messageFilter(accountId, query ?? {}), read),
    gone: (accountId, before, limit) =>
      list({ accountId, goneAt: { $gte: beginning, $lt: before } }, { goneAt: 1, _id: 1 }, { limit, offset: 0 }),
    older: (accountId, after, limit) => {
      const behind = after && {
        sentAt: { $lte: after.sentAt },
        $or: [{ sentAt: { $lt: after.sentAt } }, { _id: { $lt: after.id } }],
      }
      return list({ accountId, live: true, ...behind }, { sentAt: -1, _id: -1 }, { limit, offset: 0 })
    },
  }
}

/** Several may have one Message-ID: the order puts the one that counts first. */
async function byMessageIds(
  { collections: { messages }, read }: MongoContext,
  accountId: string,
  references: readonly string[],
): Promise<ReadonlyMap<string, MessageRecord>> {
  const found = new Map<string, MessageRecord>()
  const wanted = new Set(references)
  const limit = 2 * wanted.size
  while (wanted.size > 0) {
    const filter = { accountId, emailMessageId: { $in: [...wanted] } }
    const rows = await messages
      .find(filter, { ...read, projection: only })
      .sort(liveFirst)
      .limit(limit)
      .toArray()
    for (const record of rows.map(messageRecord)) {
      const reference = record.emailMessageId ?? ''
      if (wanted.delete(reference)) found.set(reference, record)
    }
    if (rows.length < limit) break
  }
  return found
}
