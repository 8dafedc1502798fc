/**
 * Documents of the collections, and shared reads and writes. A document is a record of the port with its `id` as `_id`,
 * and extra fields that only indexes and compare-and-set need. Records are returned without the extra fields.
 */
import { Long, MongoBulkWriteError, type Collection, type Db, type Filter } from 'mongodb'
import type { OptionalUnlessRequiredId, Sort } from 'mongodb'
import { definitions, type Kind, type Kinds, tokensKeptMs } from '../keyed.ts'
import type { MessageRecord } from '../records.ts'
import { sharedSlot, slotOf, slotOfRow, type Lease } from '../slots.ts'
import { foldCase, lastStatus } from '../rows.ts'
import type { NonceRow } from '../transfer.ts'
import { isDuplicate, mayPass, writeErrorsOf } from './errors.ts'

export interface KeyDoc {
  readonly _id: string
}

type Doc<R> = Omit<R, 'id' | 'token'> & KeyDoc

/** Extra fields by collection. */
interface ExtraFields {
  readonly users: { readonly addressKeys: readonly string[] }
  /** `fence`: epoch of the slot at the last claim; a node with an older epoch is refused. */
  readonly accounts: { readonly emailKey: string; readonly slot: number; readonly fence?: number }
  readonly webhooks: { readonly slot: number }
  /** `counting`: rows of the folder are written and `counts` is not yet; after a crash the rows are counted again. */
  readonly folders: { readonly counting?: boolean }
  /** A date, for the TTL index. */
  readonly tokens: { readonly goesAt: Date }
  /** `v`: number of writes, for compare-and-set. `fence`: a node with an older epoch records no attempt. */
  readonly outbox: {
    readonly lastStatus: number | null
    readonly v: number
    readonly slot: number
    readonly fence?: number
  }
  readonly contacts: {
    readonly id: string
    readonly searchKey: string
    /** As above, but starts at random: a contact that was removed and made again does not match. */
    readonly v: number
    /** Keys of counted deltas, newest last, that the message rows may not name yet; see contacts.ts. */
    readonly applied: readonly string[]
  }
}

type KindDocs = { readonly [K in Kind]: Doc<Kinds[K]> & (K extends keyof ExtraFields ? ExtraFields[K] : unknown) }

export type UserDoc = KindDocs['users']
export type AccountDoc = KindDocs['accounts']
export type FolderDoc = KindDocs['folders']
export type ContactDoc = KindDocs['contacts']
export type OutboxDoc = KindDocs['outbox']

export interface MessageDoc extends Doc<MessageRecord> {
  readonly live: boolean
  /** messageKeys() of rows.ts. */
  readonly keys: readonly string[]
  readonly subjectKey: string
  /** Absent = no placement in `gone` is unreported. */
  readonly goneAt?: number
  /** Number of writes, as above. */
  readonly v: number
  /** Kinds of contact deltas counted for this message; absent = none. See contacts.ts. */
  readonly counted?: readonly string[]
}

export interface NonceDoc extends KeyDoc, Omit<NonceRow, 'expiresAt'> {
  /** A date, for the TTL index. */
  readonly expiresAt: Date
}

/** A removal of the last hour. Not done: it may have been cut short. Done: a late writer may have left rows. */
interface RemovalDoc extends KeyDoc {
  readonly what: 'account' | 'user'
  readonly of: string
  /** Time of the last step. */
  readonly at: number
  readonly done: boolean
}

interface Docs extends KindDocs {
  readonly messages: MessageDoc
  readonly nonces: NonceDoc
  readonly removals: RemovalDoc
  /** See members.ts, nodes.ts and news.ts. */
  readonly nodes: KeyDoc
  readonly slots: KeyDoc
  readonly news: KeyDoc
  /** Facts about the database itself: the schema version, a copy under way. */
  readonly meta: KeyDoc & { readonly [fact: string]: unknown }
}

export type CollectionName = keyof Docs
export type Collections = { readonly [N in CollectionName]: Collection<Docs[N]> }

const kinds = Object.keys(definitions) as Kind[]
const others = ['messages', 'nonces', 'removals', 'nodes', 'slots', 'news', 'meta'] as const

export function openCollections(db: Db): Collections {
  const { socketTimeoutMS } = db.client.options
  const open = (name: CollectionName): Collection => withDeadline(db.collection(name), 2 * socketTimeoutMS)
  return Object.fromEntries([...kinds, ...others].map((name) => [name, open(name)])) as unknown as Collections
}

/**
 * Ends bulks after `ms` (0 = never); `insertMany` is a bulk too. The driver (7.8) waits for room on the socket without
 * a deadline, even when the socket is gone, so a large command to a server that reads no bytes would hold its
 * connection for ever.
 */
function withDeadline(collection: Collection, ms: number): Collection {
  if (ms === 0) return collection
  const bulkWrite = collection.bulkWrite.bind(collection)
  collection.bulkWrite = (operations, options) => {
    const bounded = { ...options, signal: AbortSignal.timeout(ms) }
    return bulkWrite(operations, bounded)
  }
  return collection
}

export interface MongoContext {
  readonly collections: Collections
  readonly now: () => number
  /** The slots of this process; null = no other process works in the database. */
  readonly lease: Lease | null
  /** Options of every read: the server's deadline, and the rows of one answer. */
  readonly read: { readonly maxTimeMS: number; readonly batchSize: number }
}

/** Converts between records and documents of a collection. */
export interface Shape<R, D> {
  doc(record: R): D
  record(doc: D): R
  /** The fields to set for a patch, derived fields included. */
  set(patch: Partial<R>): object
  /** Projection that leaves out the extra fields. */
  readonly only: { readonly [field: string]: 0 }
}

type Derived<R> = Readonly<Record<string, (patch: Partial<R>) => unknown>>

/** Derived fields, from a record or a patch; undefined = the patch does not change the field. */
const derivedFields: { readonly [K in Kind]?: Derived<Kinds[K]> } = {
  users: { addressKeys: ({ emailAddresses }) => emailAddresses && [...new Set(emailAddresses.map(foldCase))] },
  accounts: {
    emailKey: ({ email }) => email && foldCase(email),
    slot: ({ userId }) => (userId === undefined ? undefined : slotOf(userId)),
  },
  webhooks: { slot: ({ userId }) => (userId === null ? sharedSlot : userId && slotOf(userId)) },
  tokens: { goesAt: ({ expiresAt }) => (expiresAt === undefined ? undefined : new Date(expiresAt + tokensKeptMs)) },
  outbox: {
    lastStatus: ({ attempts }) => attempts && lastStatus({ attempts }),
    // Only a new row has an `id`; a patch has none.
    v: (row) => ('id' in row ? 0 : undefined),
    slot: ({ developerId, userId = null }) => developerId && slotOfRow({ developerId, userId }),
  },
}

/** `underived`: extra fields that no field of the record determines. */
function createShape<R extends object, D extends KeyDoc>(
  key: readonly (keyof R & string)[],
  derived: Derived<R> = {},
  underived: readonly string[] = [],
): Shape<R, D> {
  const [single = ''] = key.length === 1 ? key : []
  const extra = new Set([...Object.keys(derived), ...underived])
  const following = Object.entries(derived)
  const withDerived = (fields: Record<string, unknown>, patch: Partial<R>): object => {
    for (const [field, of] of following) {
      const value = of(patch)
      if (value !== undefined) fields[field] = value
    }
    return fields
  }
  return {
    doc: (record) => {
      const doc: Record<string, unknown> = { _id: key.map((field) => String(record[field])).join(':') }
      for (const [field, value] of Object.entries(record)) if (field !== single) doc[field] = value as unknown
      return withDerived(doc, record) as D
    },
    record: (doc) => {
      const record: Record<string, unknown> = {}
      for (const field in doc) {
        if (field !== '_id' && !extra.has(field)) record[field] = doc[field]
        else if (field === '_id' && single !== '') record[single] = doc[field]
      }
      return record as R
    },
    set: (patch) => withDerived({ ...patch }, patch),
    only: Object.fromEntries([...extra].map((field) => [field, 0] as const)),
  }
}

type Shapes = { readonly [K in Kind]: Shape<Kinds[K], KindDocs[K]> }

function shapeOf<K extends Kind>(kind: K, underived: readonly string[] = []): Shape<Kinds[K], KindDocs[K]> {
  return createShape(definitions[kind].key, derivedFields[kind], underived)
}

/** `by` is in rows of earlier versions. */
const messageFields = ['live', 'keys', 'subjectKey', 'goneAt', 'v', 'by', 'counted']

export const shapes = {
  ...(Object.fromEntries(kinds.map((kind) => [kind, shapeOf(kind)])) as unknown as Shapes),
  accounts: shapeOf('accounts', ['fence']),
  outbox: shapeOf('outbox', ['fence']),
  folders: shapeOf('folders', ['counting']),
  contacts: shapeOf('contacts', ['searchKey', 'v', 'applied']),
  messages: { ...createShape<MessageRecord, MessageDoc>(['id'], {}, messageFields), record: messageRecord },
}

/** By name: objects that grow field by field, as createShape's do, are a tenth of all that a list allocates. */
function messageRecord(doc: MessageDoc): MessageRecord {
  return {
    id: doc._id,
    accountId: doc.accountId,
    identity: doc.identity,
    firstChangeId: doc.firstChangeId,
    indexedAt: doc.indexedAt,
    placements: doc.placements,
    gone: doc.gone,
    emailMessageId: doc.emailMessageId,
    hostedMessageId: doc.hostedMessageId,
    hostedThreadId: doc.hostedThreadId,
    threadId: doc.threadId,
    sentAt: doc.sentAt,
    receivedAt: doc.receivedAt,
    size: doc.size,
    subject: doc.subject,
    addresses: doc.addresses,
    inReplyTo: doc.inReplyTo,
    references: doc.references,
    listHeaders: doc.listHeaders,
    receivedHeaders: doc.receivedHeaders,
    bodies: doc.bodies,
    attachments: doc.attachments,
  }
}

export function orNull<D, R>(doc: D | null, record: (doc: D) => R): R | null {
  return doc === null ? null : record(doc)
}

type PageOptions = MongoContext['read'] & {
  /** To the server a limit of 0 means no limit; here it means no rows. */
  readonly limit?: number
  readonly skip?: number
  readonly sort?: Sort
  readonly projection: object
}

/**
 * Reads a page by one command, without the driver's cursor, which takes a seventh of the call's processor time. A
 * cursor is used when one answer (16 MB) cannot hold the page, and to repeat a command that failed.
 */
export async function pageOf<D extends KeyDoc>(
  { db, collectionName }: Collection<D>,
  filter: Filter<D>,
  page: PageOptions,
): Promise<D[]> {
  const { limit = Infinity, batchSize } = page
  if (limit <= 0) return []
  if (limit <= batchSize) {
    try {
      // A plain command does not inherit the options of the database.
      const command = { find: collectionName, filter, ...page, readConcern: db.readConcern }
      const { cursor } = (await db.command(command, commandOptions)) as Answer<D>
      if (Number(cursor.id) === 0) return cursor.firstBatch
      await db.command({ killCursors: collectionName, cursors: [Long.fromValue(cursor.id)] })
    } catch (error) {
      if (!mayPass(error)) throw error
    }
  }
  return db.collection<D>(collectionName).find<D>(filter, page).toArray()
}

const commandOptions = { ignoreUndefined: true } as const

interface Answer<D> {
  readonly cursor: { readonly id: number | Long; readonly firstBatch: D[] }
}

/** Inserts the documents whose `_id` is new, and returns these in order. */
export async function insertMissing<D extends { readonly _id: string }>(
  collection: Collection<D>,
  docs: readonly D[],
): Promise<D[]> {
  if (docs.length === 0) return []
  try {
    await collection.insertMany(docs as readonly OptionalUnlessRequiredId<D>[], { ordered: false })
    return [...docs]
  } catch (error) {
    if (!isDuplicate(error, ['_id_'])) throw error
    const known = new Set(error instanceof MongoBulkWriteError ? writeErrorsOf(error).map(({ index }) => index) : [0])
    return docs.filter((_, index) => !known.has(index))
  }
}

/** Condition: a folded key contains `text`. A pattern cannot hold a NUL, so NUL is escaped too. */
export function containing(text: string): { readonly $regex: string } {
  return { $regex: text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('\0', '\\x00') }
}

/** Condition with both ends inclusive; null = no bound. */
export function between(
  from: number | undefined,
  until: number | undefined,
): { readonly $gte?: number; readonly $lte?: number } | null {
  if (from === undefined && until === undefined) return null
  return { ...(from === undefined ? {} : { $gte: from }), ...(until === undefined ? {} : { $lte: until }) }
}

/** The least time. As a lower bound it makes a partial index over times usable. */
export const beginning = -8.64e15

const deletedAtOnce = 1000

/** Deletes the first rows in this order, at most `limit`, in bounded steps. Returns the number of deleted rows. */
export async function deleteInSteps<D extends { readonly _id: string }>(
  collection: Collection<D>,
  filter: Filter<D>,
  read: MongoContext['read'],
  order: Sort = {},
  limit = Infinity,
): Promise<number> {
  for (let removed = 0; ;) {
    const step = Math.min(deletedAtOnce, limit - removed)
    if (step <= 0) return removed
    const rows = collection.find<{ readonly _id: string }>(filter, { ...read, projection: { _id: 1 } }).sort(order)
    const ids = (await rows.limit(step).toArray()).map(({ _id }) => _id)
    if (ids.length === 0) return removed
    const { deletedCount } = await collection.deleteMany({ ...filter, _id: { $in: ids } })
    removed += deletedCount
    // DocumentDB does not delete a row that is being written; the next step finds it again.
    if (ids.length < step && deletedCount === ids.length) return removed
  }
}
