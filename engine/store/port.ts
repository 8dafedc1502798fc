/**
 * The store port: one small asynchronous interface per aggregate. Each method is one whole business step; no driver type and
 * no transaction handle leaks out. SQLite runs a step in one transaction; MongoDB as ordered, idempotent writes with
 * deterministic ids and the cursor last, so that a crash at any point is mended by repeating the step.
 *
 * Errors: every method rejects with AppError `store_unavailable` when the database cannot be reached or is too slow;
 * others are named at the method. "null" answers mean "no such record".
 */
import type {
  AccountRecord,
  AccountStatus,
  AttachmentRecord,
  CallLogRecord,
  ChangeRecord,
  ConnectTokenRecord,
  ContactDelta,
  ContactRecord,
  DeliveryAttempt,
  DeveloperRecord,
  FolderCursor,
  FolderRecord,
  HistoricalScan,
  MessageFacts,
  MessageRecord,
  OAuthProviderRecord,
  OutboxRecord,
  OutboxState,
  Placement,
  ResumeRecord,
  SpecialUse,
  UserRecord,
  WebhookHealth,
  WebhookRecord,
} from './records.ts'

export interface Page {
  readonly limit: number
  readonly offset: number
}

export interface DeveloperStore {
  /** `conflict` when the API key exists. */
  create(developer: DeveloperRecord): Promise<void>
  get(id: string): Promise<DeveloperRecord | null>
  byKey(apiKey: string): Promise<DeveloperRecord | null>
  count(): Promise<number>
  setStatusCallbackUrl(id: string, url: string | null): Promise<void>
  /** Replaces the sealed secret (first developer whose secret changed in the environment). */
  setSecret(id: string, sealedSecret: string): Promise<void>
}

export interface UserFilter {
  /** A user or account address, compared without case. */
  readonly email?: string
  /** Users with at least one email account in this status. */
  readonly status?: AccountStatus
}

export interface UserStore {
  create(user: UserRecord): Promise<void>
  get(developerId: string, id: string): Promise<UserRecord | null>
  /** Oldest first. */
  list(developerId: string, filter: UserFilter, page: Page): Promise<UserRecord[]>
  edit(
    id: string,
    patch: Partial<Pick<UserRecord, 'firstName' | 'lastName' | 'emailAddresses'>>,
  ): Promise<UserRecord | null>
  /** Removes the user, its accounts and all that hangs on them (cascade, resumable: the user row goes last). */
  remove(id: string): Promise<void>
}

export type AccountPatch = Partial<
  Pick<
    AccountRecord,
    | 'email'
    | 'server'
    | 'port'
    | 'useSsl'
    | 'username'
    | 'authType'
    | 'sealedCredential'
    | 'providerKey'
    | 'statusCallbackUrl'
    | 'options'
    | 'paused'
    | 'resume'
    | 'statusMessage'
  >
>

export interface StatusTransition {
  readonly accountId: string
  readonly epoch: number
  /** The version this transition starts from; another one there already means it was recorded before: answers null. */
  readonly fromVersion: number
  readonly status: AccountStatus
  readonly statusMessage: string | null
  readonly resume: ResumeRecord
  /** The status callback to send, or none. Written before the account. */
  readonly outbox: readonly OutboxRecord[]
}

export interface AccountStore {
  /** `conflict` when the user has the label already. */
  create(account: AccountRecord): Promise<void>
  get(id: string): Promise<AccountRecord | null>
  byLabel(userId: string, label: string): Promise<AccountRecord | null>
  /** Oldest first: index 0 is label `0`. */
  listByUser(userId: string, filter?: { readonly status?: AccountStatus }): Promise<AccountRecord[]>
  /** Accounts of several users at once, oldest first (for lists of users). */
  listByUsers(userIds: readonly string[]): Promise<AccountRecord[]>
  /** Keyset page over all accounts by id, for the start of the engine. */
  page(afterId: string | null, limit: number): Promise<AccountRecord[]>
  edit(id: string, patch: AccountPatch): Promise<AccountRecord | null>
  /** Takes the account over: epoch + 1 on the account and its folders. null when it is gone. */
  claim(id: string): Promise<AccountRecord | null>
  /** Writes OK↔DISABLED with its callback, exactly once per transition. `lease_lost` when the epoch is stale. */
  transition(step: StatusTransition): Promise<AccountRecord | null>
  /** Removes the account and all that hangs on it; the account row goes last. */
  remove(id: string): Promise<void>
}

export interface ListedFolder {
  readonly path: string
  readonly delimiter: string
  readonly attributes: readonly string[]
  readonly specialUse: SpecialUse | null
  readonly selectable: boolean
  /** null = keep what is stored. */
  readonly messages: number | null
  readonly unseen: number | null
}

export interface FolderStore {
  /** Sorted: INBOX first, then by path. */
  list(accountId: string): Promise<FolderRecord[]>
  byPath(accountId: string, path: string): Promise<FolderRecord | null>
  /** Upserts what the server lists; folders not listed are removed with their placements only when `complete`. `lease_lost`. */
  reconcile(
    accountId: string,
    epoch: number,
    listed: readonly ListedFolder[],
    complete: boolean,
  ): Promise<FolderRecord[]>
  setCounts(folderId: string, counts: { readonly messages: number; readonly unseen: number }): Promise<void>
  setParked(folderId: string, failures: number, parkedUntil: number | null): Promise<void>
}

/** A filter on an address list: whole addresses, or domains and their parents ('example.com', 'com'), lower-cased. */
export interface MessageQuery {
  /** Folder id; absent = all folders. */
  readonly folderId?: string
  /** Case-insensitive part of the subject. */
  readonly subject?: string
  /** Each a list of alternatives (OR); different fields are combined (AND). `email` matches any of from, to, cc, bcc. */
  readonly email?: readonly string[]
  readonly from?: readonly string[]
  readonly to?: readonly string[]
  readonly cc?: readonly string[]
  readonly bcc?: readonly string[]
  /** sentAt bounds in ms, inclusive. */
  readonly sentFrom?: number
  readonly sentUntil?: number
  /** Only these ids (the answer of a body search). */
  readonly ids?: readonly string[]
  readonly threadId?: string
  readonly hasAttachments?: boolean
  /** By sentAt, then id. Default desc. */
  readonly order?: 'asc' | 'desc'
}

export interface KnownUid {
  readonly uid: number
  readonly messageId: string
  readonly flags: readonly string[]
  readonly modseq: string
  readonly rev: number
}

export interface MessageStore {
  get(accountId: string, id: string): Promise<MessageRecord | null>
  byIds(accountId: string, ids: readonly string[]): Promise<MessageRecord[]>
  /** Our id, an RFC 5322 Message-ID (no brackets), or a hosted provider's id. Live messages first, newest first. */
  find(accountId: string, reference: string): Promise<MessageRecord | null>
  /** Live messages only. */
  list(accountId: string, query: MessageQuery, page: Page): Promise<MessageRecord[]>
  count(accountId: string, query?: MessageQuery): Promise<number>
  /** Known UIDs of a folder within from..to (inclusive), ascending. */
  knownUids(folderId: string, uidValidity: string, from: number, to: number): Promise<KnownUid[]>
  /** Messages whose placement vanished before `before` and was not told yet, oldest first. */
  gone(accountId: string, before: number, limit: number): Promise<MessageRecord[]>
  /** Live messages of the account older in (sentAt, id) order than `after`, newest first: the historical scan. */
  older(
    accountId: string,
    after: { readonly sentAt: number; readonly id: string } | null,
    limit: number,
  ): Promise<MessageRecord[]>
  /** Our own write of flags. Answers the new row; null when the placement is unknown. */
  setFlags(
    accountId: string,
    messageId: string,
    at: { readonly folderId: string; readonly uid: number },
    flags: readonly string[],
    modseq: string | null,
  ): Promise<MessageRecord | null>
  /** Our own move or copy: takes `from` away (null = copy) and puts `to` (null = new UID unknown: the sync will find it). */
  relocate(
    accountId: string,
    messageId: string,
    from: { readonly folderId: string; readonly uid: number } | null,
    to: Placement | null,
  ): Promise<MessageRecord | null>
  /** Attachments of live messages, for 2.0 file lists: newest message first. */
  attachments(
    accountId: string,
    query: MessageQuery,
    page: Page,
  ): Promise<{ readonly message: MessageRecord; readonly attachment: AttachmentRecord }[]>
}

/** A message as the sync read it: the row to insert when unknown, and the placement to add. */
export interface AddedMessage {
  readonly id: string
  readonly identity: string
  readonly facts: MessageFacts
  readonly placement: Placement
  /** Set on insert only. null for back-fill. */
  readonly firstChangeId: string | null
}

export interface FlagUpdate {
  readonly messageId: string
  readonly uid: number
  readonly flags: readonly string[]
  readonly modseq: string
  /** The placement's rev after this update. */
  readonly rev: number
}

/** A change before it has its sequence number. */
export type ChangeDraft = Omit<ChangeRecord, 'seq'>
/** An outbox row whose seq is its change's seq, filled in by the store. */
export type OutboxDraft = OutboxRecord

/**
 * One batch of one folder. Order of writes: new message rows → changes → outbox → updates of existing rows (flags, vanished, told)
 * → contacts → cursor. Repeating a batch, or a larger one that contains it, changes nothing that was written and tells nothing twice.
 */
export interface SyncBatch {
  readonly accountId: string
  readonly epoch: number
  readonly folderId: string
  /** The cursor as it was read; null = folder never opened. Another one in the store: `lease_lost`, nothing written. */
  readonly cursorBefore: FolderCursor | null
  readonly cursorAfter: FolderCursor
  readonly added: readonly AddedMessage[]
  readonly flagUpdates: readonly FlagUpdate[]
  /** UIDs confirmed to be gone from the folder: the placement moves to `gone` with this time. */
  readonly vanished: readonly number[]
  readonly vanishedAt: number
  /** Placements whose disappearance these changes tell: taken out of `gone`. */
  readonly told: readonly {
    readonly messageId: string
    readonly folderId: string
    readonly uidValidity: string
    readonly uid: number
  }[]
  readonly changes: readonly ChangeDraft[]
  readonly outbox: readonly OutboxDraft[]
  readonly contacts: readonly ContactDelta[]
  /** Folder counts to store along; null = leave. */
  readonly counts: { readonly messages: number; readonly unseen: number } | null
}

export interface SyncStore {
  /** `lease_lost` when epoch or cursorBefore do not match; then nothing of the batch is visible. Answers the changes with their seq. */
  apply(batch: SyncBatch): Promise<{ readonly changes: ChangeRecord[]; readonly outbox: OutboxRecord[] }>
  /**
   * UIDVALIDITY changed: every placement of the folder with another uidValidity loses its place (moves to `gone` without being told,
   * to be matched again by identity), in bounded steps; answers how many are left.
   */
  forgetPlacements(
    accountId: string,
    epoch: number,
    folderId: string,
    keepUidValidity: string,
    limit: number,
  ): Promise<number>
}

export interface ChangeStore {
  get(accountId: string, id: string): Promise<ChangeRecord | null>
  /** seq > after, ascending. */
  since(accountId: string, after: number, limit: number): Promise<ChangeRecord[]>
  /** 0 when there is none. */
  lastSeq(accountId: string): Promise<number>
  /** Changes of one message, oldest first (for explain). */
  ofMessage(accountId: string, messageId: string): Promise<ChangeRecord[]>
  /** Retention: removes changes older than `before`, at most `limit`; the newest of an account always stays. Answers how many. */
  expire(before: number, limit: number): Promise<number>
}

export interface WebhookStore {
  create(webhook: WebhookRecord): Promise<void>
  get(id: string): Promise<WebhookRecord | null>
  /** User level, oldest first. */
  listByUser(userId: string): Promise<WebhookRecord[]>
  /** Application level, oldest first. */
  listByDeveloper(developerId: string): Promise<WebhookRecord[]>
  /** Keyset page over all webhooks by id, for the start of the engine. */
  page(afterId: string | null, limit: number): Promise<WebhookRecord[]>
  edit(
    id: string,
    patch: Partial<Omit<WebhookRecord, 'id' | 'developerId' | 'userId' | 'createdAt'>>,
  ): Promise<WebhookRecord | null>
  /** Health and, when a failure is announced, its notification row: the row first, then the health. */
  recordHealth(id: string, health: WebhookHealth, outbox: readonly OutboxRecord[]): Promise<void>
  /** Removes the webhook, its pending rows and scans. */
  remove(id: string): Promise<void>
  scan(webhookId: string, accountId: string): Promise<HistoricalScan | null>
  /** Enqueues the rows, then moves the scan on. */
  saveScan(scan: HistoricalScan, outbox: readonly OutboxRecord[]): Promise<void>
}

export interface DeliveryQuery {
  readonly webhookId?: string
  readonly developerId?: string
  readonly accountId?: string
  readonly messageId?: string
  readonly states?: readonly OutboxState[]
  readonly createdFrom?: number
  readonly createdUntil?: number
  /** HTTP status of the last attempt. */
  readonly statusFrom?: number
  readonly statusTo?: number
}

export interface OutboxStore {
  /** Inserts rows that are not there yet (by id). Answers those that were new. */
  enqueue(rows: readonly OutboxRecord[]): Promise<OutboxRecord[]>
  get(id: string): Promise<OutboxRecord | null>
  /** Channels with pending rows, for the start of the engine. */
  channels(): Promise<string[]>
  /** Pending rows of a channel in order of (lane, createdAt, seq), leaving out accounts that are blocked or in flight. */
  pending(channelId: string, exceptAccounts: readonly string[], limit: number): Promise<OutboxRecord[]>
  /** Pending count and the time of the oldest, for actors and metrics. */
  backlog(channelId: string): Promise<{ readonly pending: number; readonly oldestAt: number | null }>
  /** Records an attempt and the row's next state, several rows in one step. */
  record(results: readonly OutboxResult[]): Promise<void>
  /** Newest first. */
  list(query: DeliveryQuery, page: Page): Promise<OutboxRecord[]>
  /** Sets finished rows back to pending with attemptCount 0 and dueAt now. Answers how many. */
  requeue(query: DeliveryQuery & { readonly ids?: readonly string[] }, now: number, limit: number): Promise<number>
  /** A paused webhook keeps no backlog: its pending message rows become 'skipped'. Answers how many. */
  skipPending(channelId: string, reason: string, now: number): Promise<number>
  /** Retention of finished rows. Answers how many went. */
  expire(before: number, limit: number): Promise<number>
}

export interface OutboxResult {
  readonly id: string
  readonly attempt: DeliveryAttempt | null
  readonly state: OutboxState
  readonly dueAt: number
  readonly finishedAt: number | null
  readonly reason: string | null
}

export type ContactSort = 'total_count' | 'direct_count' | 'indirect_count'

export interface ContactStore {
  get(userId: string, id: string): Promise<ContactRecord | null>
  list(userId: string, sortBy: ContactSort, order: 'asc' | 'desc', page: Page): Promise<ContactRecord[]>
  /** 2.0: by part of name or address. */
  search(userId: string, text: string, page: Page): Promise<ContactRecord[]>
}

export interface TokenStore {
  create(token: ConnectTokenRecord): Promise<void>
  get(developerId: string, token: string): Promise<ConnectTokenRecord | null>
  /** For the public wizard: by token alone. */
  find(token: string): Promise<ConnectTokenRecord | null>
  /** Newest first. */
  list(
    developerId: string,
    filter: { readonly userId?: string; readonly accountId?: string; readonly version?: 'lite' | '2.0' },
  ): Promise<ConnectTokenRecord[]>
  /** Marks used, once: answers null when it was used or expired already. */
  use(token: string, usedAt: number, userId: string, accountId: string): Promise<ConnectTokenRecord | null>
  remove(developerId: string, token: string): Promise<boolean>
}

export interface ProviderStore {
  /** Replaces one with the same developer and key. */
  put(provider: OAuthProviderRecord): Promise<void>
  get(developerId: string, consumerKey: string): Promise<OAuthProviderRecord | null>
  list(developerId: string): Promise<OAuthProviderRecord[]>
  remove(developerId: string, consumerKey: string): Promise<boolean>
}

export interface NonceStore {
  /** true when (key, nonce, timestamp) is new; false = a replay. Forgotten after expiresAt. */
  remember(apiKey: string, nonce: string, timestamp: number, expiresAt: number): Promise<boolean>
}

export interface CallLogQuery {
  readonly developerId: string
  readonly userId?: string
  readonly from?: number
  readonly until?: number
  readonly statusFrom?: number
  readonly statusTo?: number
  readonly method?: string
  readonly path?: string
}

export interface CallLogStore {
  append(calls: readonly CallLogRecord[]): Promise<void>
  /** Newest first. */
  list(query: CallLogQuery, page: Page): Promise<CallLogRecord[]>
  expire(before: number, limit: number): Promise<number>
}

export interface Store {
  readonly kind: 'sqlite' | 'mongodb'
  readonly developers: DeveloperStore
  readonly users: UserStore
  readonly accounts: AccountStore
  readonly folders: FolderStore
  readonly messages: MessageStore
  readonly sync: SyncStore
  readonly changes: ChangeStore
  readonly webhooks: WebhookStore
  readonly outbox: OutboxStore
  readonly contacts: ContactStore
  readonly tokens: TokenStore
  readonly providers: ProviderStore
  readonly nonces: NonceStore
  readonly calls: CallLogStore
  /** Resolves when the database answers; else `store_unavailable` within 5 s. */
  ping(): Promise<void>
  close(): Promise<void>
}
