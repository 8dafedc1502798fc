/**
 * What the collections hold: the port's records with `id` as `_id`, and beside them the few fields that only indexes
 * and compare-and-set need. A record leaves without them.
 */
import { MongoBulkWriteError, type Collection, type Db, type Filter, type FindCursor } from 'mongodb'
import type { OptionalUnlessRequiredId, Sort } from 'mongodb'
import type {
  AccountRecord,
  CallLogRecord,
  ChangeRecord,
  ConnectTokenRecord,
  DeveloperRecord,
  FolderRecord,
  HistoricalScan,
  MessageRecord,
  OAuthProviderRecord,
  OperatorRecord,
  OutboxRecord,
  StoredContact,
  UserRecord,
  WebhookRecord,
} from '../records.ts'
import { foldCase, tokensKeptMs } from '../rows.ts'
import { isDuplicate, writeErrorsOf } from './errors.ts'

export type Doc<R extends { readonly id: string }> = Omit<R, 'id'> & { readonly _id: string }

export interface UserDoc extends Doc<UserRecord> {
  readonly addressKeys: readonly string[]
}

interface AccountDoc extends Doc<AccountRecord> {
  readonly emailKey: string
}

export interface MessageDoc extends Doc<MessageRecord> {
  readonly live: boolean
  /** messageKeys() of rows.ts. */
  readonly keys: readonly string[]
  readonly subjectKey: string
  /** Absent = nothing untold. */
  readonly goneAt?: number
  /** Counts the writes of this row: the compare of compare-and-set. */
  readonly v: number
  /** Kinds of contact deltas that this message has been counted for; absent = none. See contacts.ts. */
  readonly counted?: readonly string[]
}

export interface ContactDoc extends Doc<StoredContact> {
  readonly searchKey: string
  /** The compare of compare-and-set: starts anywhere, so that a contact that went and came again is another one. */
  readonly v: number
  /** `<account> <delta's key>` of counted deltas, newest last, that their rows may not say yet; see contacts.ts. */
  readonly applied: readonly string[]
}

export interface OutboxDoc extends Doc<OutboxRecord> {
  readonly lastStatus: number | null
  readonly v: number
}

export interface NonceDoc {
  readonly _id: string
  readonly apiKey: string
  readonly nonce: string
  readonly timestamp: number
  /** A date, for the TTL index. */
  readonly expiresAt: Date
}

/** A removal of the last hour: one that is not done may have been cut short, one that is may have left something. */
interface RemovalDoc {
  readonly _id: string
  readonly what: 'account' | 'user'
  readonly of: string
  /** Of its last step. */
  readonly at: number
  readonly done: boolean
}

export interface KeyDoc {
  readonly _id: string
}

interface Docs {
  readonly developers: Doc<DeveloperRecord>
  readonly users: UserDoc
  readonly accounts: AccountDoc
  readonly folders: Doc<FolderRecord>
  readonly messages: MessageDoc
  readonly changes: Doc<ChangeRecord>
  readonly webhooks: Doc<WebhookRecord>
  readonly scans: HistoricalScan & KeyDoc
  readonly outbox: OutboxDoc
  readonly contacts: ContactDoc
  /** `goesAt`: a date, for the TTL index. */
  readonly tokens: Omit<ConnectTokenRecord, 'token'> & KeyDoc & { readonly goesAt: Date }
  readonly providers: OAuthProviderRecord & KeyDoc
  readonly operators: Doc<OperatorRecord>
  readonly nonces: NonceDoc
  readonly calls: Doc<CallLogRecord>
  readonly removals: RemovalDoc
  /** Facts about the database itself: the schema version, a copy under way. */
  readonly meta: KeyDoc & { readonly [fact: string]: unknown }
}

export type CollectionName = keyof Docs
export type Collections = { readonly [N in CollectionName]: Collection<Docs[N]> }

const people = [
  'developers',
  'users',
  'accounts',
  'contacts',
  'tokens',
  'providers',
  'nonces',
  'calls',
  'operators',
] as const
const mail = ['folders', 'messages', 'changes', 'webhooks', 'scans', 'outbox', 'removals', 'meta'] as const

export function openCollections(db: Db): Collections {
  return Object.fromEntries([...people, ...mail].map((name) => [name, db.collection(name)])) as unknown as Collections
}

export interface MongoContext {
  readonly collections: Collections
  readonly now: () => number
  /** Options of every read: the server gives up when the caller has. */
  readonly read: { readonly maxTimeMS: number }
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

/** `beside` = the fields that the record does not have; they are made of the fields of a record, or of a patch. */
function createShape<R extends object, D extends { readonly _id: string }>(
  key: readonly (keyof R & string)[],
  beside: readonly string[] = [],
  derived: (patch: Partial<R>) => object = () => ({}),
): Shape<R, D> {
  const [single = ''] = key.length === 1 ? key : []
  const away = new Set(beside)
  return {
    doc: (record) => {
      const doc: Record<string, unknown> = { _id: key.map((field) => String(record[field])).join(':') }
      for (const [field, value] of Object.entries(record)) if (field !== single) doc[field] = value as unknown
      return Object.assign(doc, derived(record)) as unknown as D
    },
    record: (doc) => {
      const record: Record<string, unknown> = {}
      for (const [field, value] of Object.entries(doc)) {
        if (field !== '_id' && !away.has(field)) record[field] = value
        else if (field === '_id' && single !== '') record[single] = value
      }
      return record as R
    },
    set: (patch) => ({ ...patch, ...derived(patch) }),
    only: Object.fromEntries(beside.map((field) => [field, 0] as const)),
  }
}

export const shapes = {
  developers: createShape<DeveloperRecord, Doc<DeveloperRecord>>(['id']),
  users: createShape<UserRecord, UserDoc>(['id'], ['addressKeys'], ({ emailAddresses }) =>
    emailAddresses === undefined ? {} : { addressKeys: [...new Set(emailAddresses.map(foldCase))] },
  ),
  accounts: createShape<AccountRecord, AccountDoc>(['id'], ['emailKey'], ({ email }) =>
    email === undefined ? {} : { emailKey: foldCase(email) },
  ),
  folders: createShape<FolderRecord, Doc<FolderRecord>>(['id']),
  // `by` is in rows of earlier versions
  messages: createShape<MessageRecord, MessageDoc>(
    ['id'],
    ['live', 'keys', 'subjectKey', 'goneAt', 'v', 'by', 'counted'],
  ),
  changes: createShape<ChangeRecord, Doc<ChangeRecord>>(['id']),
  webhooks: createShape<WebhookRecord, Doc<WebhookRecord>>(['id']),
  scans: createShape<HistoricalScan, Docs['scans']>(['webhookId', 'accountId']),
  outbox: createShape<OutboxRecord, OutboxDoc>(['id'], ['lastStatus', 'v']),
  contacts: createShape<StoredContact, ContactDoc>(['id'], ['searchKey', 'v', 'applied']),
  tokens: createShape<ConnectTokenRecord, Docs['tokens']>(['token'], ['goesAt'], ({ expiresAt }) =>
    expiresAt === undefined ? {} : { goesAt: new Date(expiresAt + tokensKeptMs) },
  ),
  providers: createShape<OAuthProviderRecord, Docs['providers']>(['developerId', 'consumerKey']),
  operators: createShape<OperatorRecord, Doc<OperatorRecord>>(['id']),
  calls: createShape<CallLogRecord, Doc<CallLogRecord>>(['id']),
} as const

export function orNull<D, R>(doc: D | null, record: (doc: D) => R): R | null {
  return doc === null ? null : record(doc)
}

/** A page of rows. To a server a limit of 0 is none at all. */
export async function rowsOf<D>(rows: FindCursor<D>, limit: number, offset = 0): Promise<D[]> {
  return limit <= 0 ? [] : rows.skip(offset).limit(limit).toArray()
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
    if (ids.length > 0) removed += (await collection.deleteMany({ ...filter, _id: { $in: ids } })).deletedCount
    if (ids.length < step) return removed
  }
}
