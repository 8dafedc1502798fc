/**
 * Collections of small records, the same in both stores. What a collection's key is and which fields its lists ask for
 * is defined here, once. Each adapter opens the collections (sqlite/keyed.ts, mongo/keyed.ts); aggregates.ts makes the
 * port's methods of them.
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
  /** MongoDB: a single field is `_id`; several are joined to one, and kept beside it. */
  readonly key: readonly FieldOf<R>[]
  /**
   * SQLite: the columns beside the record, under these names in snake case. MongoDB's indexes are in mongo/schema.ts.
   */
  readonly fields: readonly FieldOf<R>[]
  /** Belongs to the user that `userId` names, and is not written without it. */
  readonly owned?: true
  /** Each leads an index of its own, the narrowest first: of those that a query names the first leads. */
  readonly leads?: readonly FieldOf<R>[]
  /** The record goes by itself this long after the time in `at`, or some time later. */
  readonly expires?: { readonly at: FieldOf<R>; readonly keptMs: number }
  /** A power loss may take the latest ones: no write waits for the disk. */
  readonly unsynced?: true
}

/** Connect tokens, used or not, are kept for this long after they have expired. */
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
  // SQLite reads `path` out of the record: it is long, and no index has it
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

/** Fields of the definition: a value, several of which any will do, or a range. undefined = not asked for. */
export type Where<R> = { readonly [F in keyof R]?: R[F] | readonly R[F][] | Range | undefined }

export function isRange(value: unknown): value is Range {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a query asks for anything by this condition. */
export function isGiven(value: unknown): boolean {
  return isRange(value) ? value.from !== undefined || value.until !== undefined : value !== undefined
}

export interface ListOptions<R> {
  /** Rows are in the order of these fields. */
  readonly by: readonly FieldOf<R>[]
  readonly descending?: boolean
  readonly limit?: number
  readonly offset?: number
  /** Rows behind this place in the order, given by the fields of `by`. */
  readonly behind?: Partial<R> | undefined
}

const pageSize = 500

/** Page by page, until one is not full; `read` gives the page behind an id, null = the first. */
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

/** Room for one more: of the rows like these there are fewer than `most`; 0 = any number. */
export interface Room<R> {
  readonly name: string
  readonly where: Where<R>
  readonly most: number
}

export interface Keyed<R> {
  /**
   * `conflict` when the key, or what else has to be unique, is there; `not_found` without its user; `too_many` without
   * room. Of inserts at the same time no more succeed than there is room for; MongoDB may refuse one that had room.
   */
  insert(record: R, rooms?: readonly Room<R>[]): Promise<void>
  /** Those whose key is not there yet. Answers those that were new. */
  insertMissing(records: readonly R[]): Promise<R[]>
  /** Writes over the one with the same key. `outbox`: rows to queue in the same step, before the record is written. */
  put(record: R, outbox?: readonly stored.OutboxRecord[]): Promise<void>
  find(where: Where<R>): Promise<R | null>
  list(where: Where<R>, options: ListOptions<R>): Promise<R[]>
  count(where: Where<R>): Promise<number>
  /**
   * null = not there, or not as `expected` (null: also an absent field). `outbox` as above, queued also when the record
   * is not there.
   */
  edit(
    key: Where<R>,
    patch: Partial<R>,
    expected?: Partial<R>,
    outbox?: readonly stored.OutboxRecord[],
  ): Promise<R | null>
  /** In bounded steps. Answers how many there were. */
  remove(where: Where<R>): Promise<number>
  /** Removes rows whose time in this field is before, at most `limit`; answers how many. */
  expire(field: FieldOf<R>, before: number, limit: number): Promise<number>
}
