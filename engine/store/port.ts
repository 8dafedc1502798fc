/**
 * The store port; what both stores do alike is in aggregates.ts. Each method is one whole business step: SQLite runs it
 * in one transaction; MongoDB as ordered, idempotent writes with deterministic ids and the cursor last, so that a crash
 * at any point is mended by repeating the step.
 *
 * Errors: every method rejects with AppError `store_unavailable` when the database cannot be reached or is too slow;
 * others are named at the method. "null" answers mean "no such record".
 *
 * A record that was answered is never changed in place.
 */
import type { accountBasics, changeReads, createAggregates } from './aggregates.ts'
import type { contactReads } from './contacts.ts'
import type { outboxBasics, userBasics } from './aggregates.ts'
import type { FolderStore, MessageStore, SyncStore } from './mail.ts'
import type {
  AccountRecord,
  AccountStatus,
  CallLogRecord,
  Condition,
  ContactDelta,
  DeliveryAttempt,
  OutboxKind,
  OutboxRecord,
  OutboxState,
  UserRecord,
  WebhookRecord,
} from './records.ts'

import type { Nodes } from './slots.ts'

export type * from './mail.ts'

export interface Store extends ReturnType<typeof createAggregates> {
  readonly kind: 'sqlite' | 'mongodb'
  readonly users: UserStore
  readonly accounts: AccountStore
  readonly folders: FolderStore
  readonly messages: MessageStore
  readonly sync: SyncStore
  readonly changes: ChangeStore
  readonly outbox: OutboxStore
  readonly contacts: ContactStore
  readonly nonces: NonceStore
  readonly webhooks: WebhookStore
  /** The processes that share the store. Rows of the outbox, in `pending` and `channels`, are those of own slots. */
  readonly nodes: Nodes
  /**
   * Goes on with removals that were cut short, and takes away what is left of accounts, users and webhooks that are
   * gone. Answers how many rows went.
   */
  tidy(): Promise<number>
  /**
   * Resolves when the database takes a write, of a few bytes or of `room` bytes that are taken away again; else
   * `store_unavailable` within 5 s.
   */
  ping(room?: number): Promise<void>
  /** A whole copy of the store as it is now, to a new file, while it is used. Absent with MongoDB: it has mongodump. */
  readonly backup?: (target: string) => Promise<void>
  close(): Promise<void>
}

export interface Page {
  readonly limit: number
  readonly offset: number
}

export interface UserFilter {
  /** A user or account address, compared without case. */
  readonly email?: string
  /** Users with at least one email account in this status. */
  readonly status?: AccountStatus
}

export interface UserStore extends ReturnType<typeof userBasics> {
  /** Cut short, it leaves at most an account without its user, which no list shows. `store_unavailable`: undoCreate. */
  createWithAccount(user: UserRecord, account: AccountRecord): Promise<void>
  /** The user first, so that it is never there without its account. */
  undoCreate(id: string, accountId: string): Promise<void>
  /** Oldest first. */
  list(developerId: string, filter: UserFilter, page: Page): Promise<UserRecord[]>
  /**
   * Of all developers, oldest first: each of these words is part of the user's name or of an address, whatever the case
   * of ASCII letters. It walks all users.
   */
  search(words: readonly string[], limit: number): Promise<UserRecord[]>
  /**
   * Removes the user, its accounts and all that hangs on them (cascade, resumable: the user row goes last). Answers the
   * ids of the accounts it took, also of those that came while it was at work.
   */
  remove(id: string): Promise<readonly string[]>
}

/** The status changes by transitions, the epoch by claims. */
export type AccountPatch = Partial<
  Omit<
    AccountRecord,
    'id' | 'developerId' | 'userId' | 'label' | 'status' | 'statusVersion' | 'remapSince' | 'epoch' | 'createdAt'
  >
>

export interface StatusTransition extends Pick<AccountRecord, 'epoch' | 'status' | 'statusMessage' | 'resume'> {
  readonly accountId: string
  /** The version this transition starts from; another one there already means it was recorded before: answers null. */
  readonly fromVersion: number
  /** The status callback to send, or none. Written before the account. */
  readonly outbox: readonly OutboxRecord[]
}

/** undefined = not asked for. */
export interface AccountFilter {
  readonly developerId?: string | undefined
  readonly userId?: string | undefined
  /** As the record has it: lower case. */
  readonly server?: string | undefined
  readonly condition?: Condition['is'] | undefined
  /** In its condition since this time or longer. */
  readonly sinceUntil?: number | undefined
  /** Part of the email address, without case; or a whole id or label. */
  readonly text?: string | undefined
}

export interface AccountPlace extends Pick<AccountRecord, 'id' | 'server' | 'developerId'> {
  readonly condition: Condition
}

export interface AccountStore extends ReturnType<typeof accountBasics> {
  /** Keyset page over all accounts by id, or over those of these slots, for the start of the engine. */
  page(afterId: string | null, limit: number, slots?: readonly number[]): Promise<AccountRecord[]>
  /**
   * All accounts like this, longest in their condition first: little of each, so that ten thousand cost little. With
   * `most` some of them.
   */
  places(filter: AccountFilter, most?: number): Promise<AccountPlace[]>
  /**
   * Takes the account over: epoch + 1 on the account and its folders. null when it is gone. `lease_lost` when another
   * node owns it.
   */
  claim(id: string): Promise<AccountRecord | null>
  /**
   * Removes the account, all that hangs on it, and what it has counted of the user's contacts: these are left as the
   * other accounts have counted them, and go with the last of them. The account row goes last.
   */
  remove(id: string): Promise<void>
}

export type ContactSort = 'total_count' | 'direct_count' | 'indirect_count'

export interface ContactStore extends ReturnType<typeof contactReads> {
  /** Adds deltas of mail that is stored already, each once as in a batch. Nothing when the account is gone. */
  count(accountId: string, deltas: readonly ContactDelta[]): Promise<void>
}

export interface TokenFilter {
  readonly userId?: string
  readonly accountId?: string
  readonly version?: 'lite' | '2.0'
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
  /** Those behind this one in the list. */
  readonly before?: Pick<CallLogRecord, 'at' | 'id'>
}

/* The change log, webhooks and the outbox. */

export interface ChangeStore extends ReturnType<typeof changeReads> {
  /** 0 when there is none. */
  lastSeq(accountId: string): Promise<number>
  /** Removes at most `limit` older than `before`; the newest of an account stays. Answers how many. */
  expire(before: number, limit: number): Promise<number>
}

/** How many webhooks there may be; 0 = any number. */
export interface WebhookLimits {
  /** Of one user; and as many at application level. */
  readonly owner: number
  /** Of one developer, at both levels. */
  readonly developer: number
}

type WebhookBasics = ReturnType<typeof createAggregates>['webhooks']

export interface WebhookStore extends WebhookBasics {
  /** Keyset page over all webhooks by id, or over those of these slots, for the start of the engine. */
  page(afterId: string | null, limit: number, slots?: readonly number[]): Promise<WebhookRecord[]>
}

export interface DeliveryQuery {
  /** Any of several, here and below. */
  readonly webhookId?: string | readonly string[]
  readonly developerId?: string
  readonly accountId?: string | readonly string[]
  readonly messageId?: string | readonly string[]
  readonly kind?: OutboxKind
  readonly states?: readonly OutboxState[]
  readonly createdFrom?: number
  readonly createdUntil?: number
  /** HTTP status of the last attempt. */
  readonly statusFrom?: number
  readonly statusTo?: number
}

export interface DeliveryCount {
  readonly at: number
  readonly state: OutboxState
  readonly count: number
}

/** A row's place in the order of (createdAt, id). */
export type OutboxKey = Pick<OutboxRecord, 'createdAt' | 'id'>

export interface RequeueQuery extends DeliveryQuery {
  readonly ids?: readonly string[]
  /** Rows finished later stay as they are. */
  readonly finishedUntil?: number
}

/** Callbacks that wait; `oldestAt`: when the oldest of them was made, null = none waits. */
export interface Backlog {
  readonly pending: number
  readonly oldestAt: number | null
}

export interface ChannelBacklog extends Backlog {
  readonly channelId: string
}

export interface OutboxStore extends ReturnType<typeof outboxBasics> {
  /** Channels with pending rows, for the start of the engine. */
  channels(): Promise<string[]>
  /**
   * In order of (lane, createdAt, seq), without these accounts ('' = none), and the historical rows of others.
   * `userId`: the user of all rows of the channel; null = there may be several.
   */
  pending(
    channelId: string,
    exceptAccounts: readonly string[],
    limit: number,
    exceptHistorical?: readonly string[],
    userId?: string | null,
  ): Promise<OutboxRecord[]>
  /** Pending count and the time of the oldest, for actors and metrics. null = of all channels together. */
  backlog(channelId: string | null): Promise<Backlog>
  /** The same of each channel of this developer, the one with the oldest row first, the first `limit` of them. */
  late(developerId: string, limit: number): Promise<ChannelBacklog[]>
  /** Records an attempt and the row's next state, several rows in one step. */
  record(results: readonly OutboxResult[]): Promise<void>
  /** Newest first, or oldest first. */
  list(query: RequeueQuery, page: Page, order?: 'DESC' | 'ASC'): Promise<OutboxRecord[]>
  /** How many there are of each state, by steps of time: `at` is the begin of the step in which they were made. */
  counts(query: RequeueQuery, stepMs: number): Promise<DeliveryCount[]>
  /**
   * One batch: sets finished rows, and pending ones that are named by `ids`, back to pending with attemptCount 0 and
   * dueAt now, oldest first, at most `limit` of those behind `after`. Answers how many, and where the next batch goes
   * on; null = these were the last.
   */
  requeue(
    query: RequeueQuery,
    now: number,
    limit: number,
    after?: OutboxKey | null,
  ): Promise<{ readonly count: number; readonly next: OutboxKey | null }>
  /** A paused webhook keeps no backlog: its pending message rows, of every slot, end so. Answers how many. */
  skipPending(channelId: string, reason: string, now: number, end?: 'skipped' | 'failed'): Promise<number>
}

export interface OutboxResult extends Pick<OutboxRecord, 'id' | 'state' | 'dueAt' | 'finishedAt' | 'reason'> {
  readonly attempt: DeliveryAttempt | null
  /** false = the attempt is kept for the log and uses nothing of the row's schedule up. */
  readonly counted?: false
  /** Absent = as it was. */
  readonly countsAt?: number
}
