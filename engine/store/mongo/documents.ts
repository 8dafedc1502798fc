/**
 * What the collections hold: the port's records with `id` as `_id`, and beside them the few fields that only indexes
 * and compare-and-set need. A record leaves without them.
 */
import { Long, MongoBulkWriteError, type Collection, type Db, type Filter, type FindCursor } from 'mongodb'
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

/** What a document has beside its record. */
interface Beside {
  readonly users: { readonly addressKeys: readonly string[] }
  /** `fence`: epoch of the slot at the last claim; a node with an older one is refused. */
  readonly accounts: { readonly emailKey: string; readonly slot: number; readonly fence?: number }
  readonly webhooks: { readonly slot: number }
  /** Since rows of the folder are being written, until their counts are: what was cut short is counted anew. */
  readonly folders: { readonly counting?: boolean }
  /** A date, for the TTL index. */
  readonly tokens: { readonly goesAt: Date }
  /** `v` counts the writes: the compare of compare-and-set. `fence`: nodes with an older epoch record nothing of it. */
  readonly outbox: {
    readonly lastStatus: number | null
    readonly v: number
    readonly slot: number
    readonly fence?: number
  }
  readonly contacts: {
    readonly id: string
    readonly searchKey: string
    /** As above: starts anywhere, so that a contact that went and came again is another one. */
    readonly v: number
    /** Keys of counted deltas, newest last, that their rows may not say yet; see contacts.ts. */
    readonly applied: readonly string[]
  }
}

type KindDocs = { readonly [K in Kind]: Doc<Kinds[K]> & (K extends keyof Beside ? Beside[K] : unknown) }

export type UserDoc = KindDocs['users']
export type FolderDoc = KindDocs['folders']
export type ContactDoc = KindDocs['contacts']
export type OutboxDoc = KindDocs['outbox']
export type ChangeDoc = KindDocs['changes']

export interface MessageDoc extends Doc<MessageRecord> {
  readonly live: boolean
  /** messageKeys() of rows.ts. */
  readonly keys: readonly string[]
  readonly subjectKey: string
  /** Absent = everything was reported. */
  readonly goneAt?: number
  /** Counts the writes, as above. */
  readonly v: number
  /** Kinds of contact deltas that this message has been counted for; absent = none. See contacts.ts. */
  readonly counted?: readonly string[]
}

export interface NonceDoc extends KeyDoc, Omit<NonceRow, 'expiresAt'> {
  /** A date, for the TTL index. */
  readonly expiresAt: Date
}

/** A removal of the last hour: one that is not done may have been cut short, one that is may have left something. */
interface RemovalDoc extends KeyDoc {
  readonly what: 'account' | 'user'
  readonly of: string
  /** Of its last step. */
  readonly at: number
  readonly done: boolean
}

interface Docs extends KindDocs {
  readonly messages: MessageDoc
  readonly nonces: NonceDoc
  readonly removals: RemovalDoc
  /** See members.ts and nodes.ts. */
  readonly nodes: KeyDoc
  readonly slots: KeyDoc
  readonly news: KeyDoc
  /** Facts about the database itself: the schema version, a copy under way. */
  readonly meta: KeyDoc & { readonly [fact: string]: unknown }
}

export type CollectionName = keyof Docs
export type Collections = { readonly [N in CollectionName]: Collection<Docs[N]> }

const kinds = Object.keys(definitions) as Kind[]

export function openCollections(db: Db): Collections {
  const names: readonly CollectionName[] = [
    ...kinds,
    'messages',
    'nonces',
    'removals',
    'nodes',
    'slots',
    'news',
    'meta',
  ]
  const { socketTimeoutMS } = db.client.options
  const open = (name: CollectionName): Collection => withDeadline(db.collection(name), 2 * socketTimeoutMS)
  return Object.fromEntries(names.map((name) => [name, open(name)])) as unknown as Collections
}

/**
 * The collection whose bulks end after `ms` milliseconds (0 = never). The driver (7.8) waits for room on the socket
 * without a deadline, and also when the socket is gone: a large command to a server that takes no bytes would keep its
 * place in the pool for ever. `insertMany` is a bulk too.
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
  /** The slots of this process; null = it works as the only one. */
  readonly lease: Lease | null
  /** Options of every read: the server gives up when the caller has; an answer has so many rows, read in one go. */
  readonly read: { readonly maxTimeMS: number; readonly batchSize: number }
}

/** How the records of a collection lie in it. */
export interface Shape<R, D> {
  doc(record: R): D
  record(doc: D): R
  /** A patch with what follows from it. */
  set(patch: Partial<R>): object
  /** The projection of a read: what the record does not have is left at the server. */
  readonly only: { readonly [field: string]: 0 }
}

type Derived<R> = Readonly<Record<string, (patch: Partial<R>) => unknown>>

/** Fields that follow from those of a record, or of a patch; undefined = not from these. */
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
    // a whole row is a new one
    v: (row) => ('id' in row ? 0 : undefined),
    slot: ({ developerId, userId = null }) => developerId && slotOfRow({ developerId, userId }),
  },
}

/** `others` = further fields that the record does not have. */
function createShape<R extends object, D extends KeyDoc>(
  key: readonly (keyof R & string)[],
  derived: Derived<R> = {},
  others: readonly string[] = [],
): Shape<R, D> {
  const [single = ''] = key.length === 1 ? key : []
  const beside = new Set([...Object.keys(derived), ...others])
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
      // Half of what entries cost, for each message of a list.
      for (const field in doc) {
        if (field !== '_id' && !beside.has(field)) record[field] = doc[field]
        else if (field === '_id' && single !== '') record[single] = doc[field]
      }
      return record as R
    },
    set: (patch) => withDerived({ ...patch }, patch),
    only: Object.fromEntries([...beside].map((field) => [field, 0] as const)),
  }
}

type Shapes = { readonly [K in Kind]: Shape<Kinds[K], KindDocs[K]> }

function shapeOf<K extends Kind>(kind: K, others: readonly string[] = []): Shape<Kinds[K], KindDocs[K]> {
  return createShape<Kinds[K], KindDocs[K]>(definitions[kind].key, derivedFields[kind], others)
}

export const shapes = {
  ...(Object.fromEntries(kinds.map((kind) => [kind, shapeOf(kind)])) as unknown as Shapes),
  accounts: shapeOf('accounts', ['fence']),
  outbox: shapeOf('outbox', ['fence']),
  folders: shapeOf('folders', ['counting']),
  contacts: shapeOf('contacts', ['searchKey', 'v', 'applied']),
  // `by` is in rows of earlier versions
  messages: createShape<MessageRecord, MessageDoc>(['id'], {}, [
    'live',
    'keys',
    'subjectKey',
    'goneAt',
    'v',
    'by',
    'counted',
  ]),
}

export function orNull<D, R>(doc: D | null, record: (doc: D) => R): R | null {
  return doc === null ? null : record(doc)
}

/** A page of rows. To a server a limit of 0 is none at all. */
export async function rowsOf<D>(rows: FindCursor<D>, limit: number, offset = 0): Promise<D[]> {
  return limit <= 0 ? [] : rows.skip(offset).limit(limit).toArray()
}

type PageOptions = MongoContext['read'] & {
  readonly limit: number
  readonly skip?: number
  readonly sort?: Sort
  readonly projection: object
}

/**
 * A page in one answer, without the driver's cursor, which takes a seventh of the processor time of such a call. A
 * cursor asks for what one answer does not hold (16 MB), and for what was cut short: it knows what may be repeated.
 */
export async function pageOf<D extends KeyDoc>(
  { db, collectionName }: Collection<D>,
  filter: Filter<D>,
  page: PageOptions,
): Promise<D[]> {
  if (page.limit <= 0) return []
  if (page.limit <= page.batchSize) {
    try {
      // The driver gives a command none of the database's options.
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

/** Inserts the documents whose `_id` is not there yet. Answers those that were new, in their order. */
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

/** Condition on a key that foldCase() made: it holds this text somewhere. A NUL may not stand in a pattern. */
export function containing(text: string): { readonly $regex: string } {
  return { $regex: text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('\0', '\\x00') }
}

/** Both ends inclusive; null = no bound at all. */
export function between(
  from: number | undefined,
  until: number | undefined,
): { readonly $gte?: number; readonly $lte?: number } | null {
  if (from === undefined && until === undefined) return null
  return { ...(from === undefined ? {} : { $gte: from }), ...(until === undefined ? {} : { $lte: until }) }
}

/** No time is before it: as lower bound it lets a partial index over times serve. */
export const beginning = -8.64e15

const deletedAtOnce = 1000

/** Deletes rows in bounded steps: those that are first in this order, at most `limit`. Answers how many went. */
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
    // DocumentDB passes over a row that is written at the same moment: it is found again
    if (ids.length < step && deletedCount === ids.length) return removed
  }
}
