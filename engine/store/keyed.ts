/**
 * Keyed collections: collections of small records with the same methods in both stores. Defines the key and the query
 * fields of each. Each store opens the collections (sqlite/keyed.ts, mongo/keyed.ts); aggregates.ts builds the port's
 * methods on them.
 */
import type * as stored from './records.ts'

export interface Kinds {
  readonly developers: stored.DeveloperRecord
  readonly users: stored.UserRecord
  readonly accounts: stored.AccountRecord
  readonly webhooks: stored.WebhookRecord
  readonly scans: stored.HistoricalScan
  readonly tokens: stored.ConnectTokenRecord
  readonly providers: stored.OAuthProviderRecord
  readonly operators: stored.OperatorRecord
  readonly settings: stored.SettingRecord
  readonly calls: stored.CallLogRecord
  readonly audit: stored.AuditRecord
  readonly changes: stored.ChangeRecord
  readonly folders: stored.FolderRecord
  readonly contacts: stored.StoredContact
  readonly outbox: stored.OutboxRecord
}

export type Kind = keyof Kinds

export type FieldOf<R> = keyof R & string

export interface Definition<R> {
  /** In MongoDB, a single field is `_id`; several fields are joined to `_id`, and stored too. */
  readonly key: readonly FieldOf<R>[]
  /** The columns in SQLite, in snake case. */
  readonly fields: readonly FieldOf<R>[]
  /** A record belongs to the user of its `userId`, and is not inserted without the user. */
  readonly owned?: true
  /** Fields that lead an index, the narrowest first: the first one in a query leads it. */
  readonly leads?: readonly FieldOf<R>[]
  /** A record is removed `keptMs` after its time `at`, or later. */
  readonly expires?: { readonly at: FieldOf<R>; readonly keptMs: number }
  /** Writes do not wait for the disk: a power loss may undo the last ones. */
  readonly unsynced?: true
}

/** How long connect tokens are kept after they expire. */
export const tokensKeptMs = 30 * 86_400_000

export const definitions: { readonly [K in Kind]: Definition<Kinds[K]> } = {
  developers: { key: ['id'], fields: ['apiKey'] },
  users: { key: ['id'], fields: ['developerId', 'createdAt'] },
  accounts: {
    key: ['id'],
    fields: ['userId', 'label', 'status', 'epoch', 'createdAt', 'developerId', 'server'],
    owned: true,
  },
  webhooks: { key: ['id'], fields: ['developerId', 'userId', 'createdAt'], owned: true },
  scans: { key: ['webhookId', 'accountId'], fields: [] },
  tokens: {
    key: ['token'],
    fields: ['developerId', 'userId', 'accountId', 'version', 'createdAt'],
    owned: true,
    leads: ['accountId', 'userId', 'developerId'],
    expires: { at: 'expiresAt', keptMs: tokensKeptMs },
  },
  providers: { key: ['developerId', 'consumerKey'], fields: ['createdAt'] },
  operators: { key: ['id'], fields: ['createdAt'] },
  settings: { key: ['id'], fields: [] },
  // `path` is long and not indexed: SQLite reads it from the record
  calls: { key: ['id'], fields: ['developerId', 'userId', 'at', 'method', 'status'], unsynced: true },
  audit: { key: ['id'], fields: ['at', 'target'] },
  changes: { key: ['id'], fields: ['accountId', 'seq', 'messageId', 'at'] },
  folders: { key: ['id'], fields: ['accountId', 'path'] },
  contacts: { key: ['accountId', 'id'], fields: ['userId', 'totalCount', 'directCount', 'indirectCount'] },
  outbox: {
    key: ['id'],
    fields: [
      ...(['channelId', 'webhookId', 'developerId', 'userId', 'accountId', 'messageId'] as const),
      ...(['kind', 'state', 'lane', 'createdAt', 'seq'] as const),
    ],
  },
}

/** Both ends inclusive. */
export interface Range {
  readonly from?: number | undefined
  readonly until?: number | undefined
}

/** Conditions on fields of the definition: a value, a list of alternatives, or a range. undefined = any value. */
export type Where<R> = { readonly [F in keyof R]?: R[F] | readonly R[F][] | Range | undefined }

export function isRange(value: unknown): value is Range {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether the condition restricts the query. */
export function isGiven(value: unknown): boolean {
  return isRange(value) ? value.from !== undefined || value.until !== undefined : value !== undefined
}

export interface ListOptions<R> {
  /** The fields of the order. */
  readonly by: readonly FieldOf<R>[]
  readonly descending?: boolean
  readonly limit?: number
  readonly offset?: number
  /** Only rows behind this one in the order; has the fields of `by`. */
  readonly behind?: Partial<R> | undefined
  /** Accounts or webhooks in these slots alone. Has no effect in SQLite, whose process owns every slot. */
  readonly slots?: readonly number[] | undefined
}

const pageSize = 500

/** All pages, up to the first that is not full. `read` returns the page behind an id; null = the first page. */
export async function* pagesOf<T extends { readonly id: string }>(
  read: (after: string | null, limit: number) => Promise<readonly T[]>,
): AsyncGenerator<readonly T[]> {
  for (let after: string | null = null; ;) {
    const page: readonly T[] = await read(after, pageSize)
    yield page
    after = page.at(-1)?.id ?? null
    if (page.length < pageSize) return
  }
}

/** A limit: an insert needs fewer than `most` matching rows; 0 = no limit. */
export interface Room<R> {
  readonly name: string
  readonly where: Where<R>
  readonly most: number
}

export interface Keyed<R> {
  /**
   * `conflict` when the key or another unique value exists; `not_found` without the user; `too_many` at a limit, which
   * concurrent inserts never exceed; with MongoDB, one that would fit may be refused.
   */
  insert(record: R, rooms?: readonly Room<R>[]): Promise<void>
  /** Inserts records with new keys. Returns the inserted records. */
  insertMissing(records: readonly R[]): Promise<R[]>
  /** Inserts the record or replaces that with the same key. `outbox`: rows to queue before, in the same step. */
  put(record: R, outbox?: readonly stored.OutboxRecord[]): Promise<void>
  find(where: Where<R>): Promise<R | null>
  list(where: Where<R>, options: ListOptions<R>): Promise<R[]>
  count(where: Where<R>): Promise<number>
  /**
   * null = no such record, or it is not as `expected` (a null also matches an absent field). `outbox` as in `put`; with
   * MongoDB queued also when the answer is null.
   */
  edit(
    key: Where<R>,
    patch: Partial<R>,
    expected?: Partial<R>,
    outbox?: readonly stored.OutboxRecord[],
  ): Promise<R | null>
  /** Removes in bounded steps. Returns the number of removed records. */
  remove(where: Where<R>): Promise<number>
  /** Removes at most `limit` records whose time in `field` is before `before`. Returns their number. */
  expire(field: FieldOf<R>, before: number, limit: number): Promise<number>
}
