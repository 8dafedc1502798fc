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
import type { accountBasics, changeReads, createAggregates, folderBasics, mailboxReplacement } from './aggregates.ts'
import type { outboxBasics, pickedReads, userBasics } from './aggregates.ts'
import type { contactReads } from './contacts.ts'
import type { FolderRecord, MessageRecord } from './mail.ts'
import type { AccountFilter, AccountPlace, Applied, Backlog, ChannelBacklog, DeliveryCount } from './port-types.ts'
import type { KnownUid, ListedFolder, MailTotals, MessageQuery, OutboxKey, OutboxResult } from './port-types.ts'
import type { Page, RequeueQuery, SyncBatch, UserFilter } from './port-types.ts'
import type { AccountRecord, ContactDelta, OutboxRecord, UserRecord, WebhookRecord } from './records.ts'
import type { Nodes } from './slots.ts'

export type * from './port-types.ts'

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

export interface ContactStore extends ReturnType<typeof contactReads> {
  /** Adds deltas of mail that is stored already, each once as in a batch. Nothing when the account is gone. */
  count(accountId: string, deltas: readonly ContactDelta[]): Promise<void>
}

export interface NonceStore {
  /** true when (key, nonce, timestamp) is new; false = a replay. Forgotten after expiresAt. */
  remember(apiKey: string, nonce: string, timestamp: number, expiresAt: number): Promise<boolean>
}

export interface FolderStore extends ReturnType<typeof folderBasics> {
  /** Sorted: INBOX first, then by path. */
  list(accountId: string): Promise<FolderRecord[]>
  /** Folders not listed are removed with their placements only when `complete`. `lease_lost`. */
  reconcile(
    accountId: string,
    epoch: number,
    listed: readonly ListedFolder[],
    complete: boolean,
  ): Promise<FolderRecord[]>
}

export interface MessageStore extends ReturnType<typeof pickedReads> {
  get(accountId: string, id: string): Promise<MessageRecord | null>
  byIds(accountId: string, ids: readonly string[]): Promise<MessageRecord[]>
  /** Of any account, those that are there. */
  several(ids: readonly string[]): Promise<MessageRecord[]>
  /** By Message-ID (no brackets), over all accounts: each is asked. */
  everywhere(reference: string, limit: number): Promise<MessageRecord[]>
  /** Our id, an RFC 5322 Message-ID (no brackets), or a hosted provider's id. Live messages first, newest first. */
  find(accountId: string, reference: string): Promise<MessageRecord | null>
  /** All of this name, in that order: a Message-ID may be that of several messages. */
  findAll(accountId: string, reference: string, limit: number): Promise<MessageRecord[]>
  /** By Message-ID (no brackets): of each the live message before others, then the newest; unknown ones are absent. */
  byMessageIds(accountId: string, references: readonly string[]): Promise<ReadonlyMap<string, MessageRecord>>
  /** Live messages only. */
  list(accountId: string, query: MessageQuery, page: Page): Promise<readonly MessageRecord[]>
  count(accountId: string, query?: MessageQuery): Promise<number>
  /** Live messages of the account, and the attachments of all of them together. */
  totals(accountId: string): Promise<MailTotals>
  /** Known UIDs of a folder within from..to (inclusive), ascending. */
  knownUids(folderId: string, uidValidity: string, from: number, to: number): Promise<KnownUid[]>
  /** Those of these, ascending: what lies between them is not read. */
  knownAmong(folderId: string, uidValidity: string, uids: readonly number[]): Promise<KnownUid[]>
  /** Messages whose placement vanished before `before` and was not reported yet, oldest first. */
  gone(accountId: string, before: number, limit: number): Promise<MessageRecord[]>
  /** Live messages of the account older in (sentAt, id) order than `after`, newest first: the historical scan. */
  older(
    accountId: string,
    after: { readonly sentAt: number; readonly id: string } | null,
    limit: number,
  ): Promise<MessageRecord[]>
}

export interface SyncStore extends ReturnType<typeof mailboxReplacement> {
  /**
   * Answers the changes with their seq, and the folder's progress. One batch of an account at a time. `lease_lost` when
   * epoch or cursorBefore do not match; then nothing of the batch is visible. MongoDB, when the account is claimed in
   * the middle of a batch: what was written is as after a crash, and the new owner's batch makes it whole.
   */
  apply(batch: SyncBatch): Promise<Applied>
  /**
   * UIDVALIDITY changed: every placement of the folder with another uidValidity loses its place (moves to `gone`
   * without being reported, to be matched again by identity), in bounded steps; answers how many are left, counted no
   * further than `limit` + 1.
   */
  forgetPlacements(
    accountId: string,
    epoch: number,
    folderId: string,
    keepUidValidity: string,
    limit: number,
  ): Promise<number>
}

/* The change log, webhooks and the outbox. */

export interface ChangeStore extends ReturnType<typeof changeReads> {
  /** 0 when there is none. */
  lastSeq(accountId: string): Promise<number>
  /** Removes at most `limit` older than `before`; the newest of an account stays. Answers how many. */
  expire(before: number, limit: number): Promise<number>
}

type WebhookBasics = ReturnType<typeof createAggregates>['webhooks']

export interface WebhookStore extends WebhookBasics {
  /** Keyset page over all webhooks by id, or over those of these slots, for the start of the engine. */
  page(afterId: string | null, limit: number, slots?: readonly number[]): Promise<WebhookRecord[]>
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
