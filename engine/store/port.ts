/**
 * The store port; aggregates.ts has the methods that are the same in both stores. Each method is one business step: one
 * transaction in SQLite; in MongoDB ordered, idempotent writes with deterministic ids and the cursor last, so that the
 * step is repeated after a crash.
 *
 * Every method rejects with AppError `store_unavailable` when the database is unreachable or too slow; other errors are
 * named at the method. null = no such record. Callers never change a returned record in place.
 */
import type { accountBasics, createAggregates, folderBasics, mailboxReplacement } from './aggregates.ts'
import type { outboxBasics, pickedReads, userBasics } from './aggregates.ts'
import type { changeLog } from './change-log.ts'
import type { contactReads } from './contacts.ts'
import type { FolderRecord, MessageRecord } from './mail.ts'
import type { AccountFilter, AccountPlace, Applied, Backlog, ChannelBacklog, DeliveryCount } from './port-types.ts'
import type { KnownUid, ListedFolder, MailTotals, MessageQuery, OutboxKey, OutboxResult } from './port-types.ts'
import type { Page, RequeueQuery, SyncBatch, UserFilter } from './port-types.ts'
import type { AccountRecord, OutboxRecord, UserRecord } from './records.ts'
import type { Nodes } from './slots.ts'

export type * from './port-types.ts'

export interface Store extends ReturnType<typeof createAggregates> {
  readonly kind: 'sqlite' | 'mongodb'
  readonly users: UserStore
  readonly accounts: AccountStore
  readonly folders: FolderStore
  readonly messages: MessageStore
  readonly sync: SyncStore
  readonly changes: ReturnType<typeof changeLog>
  readonly outbox: OutboxStore
  readonly contacts: ContactStore
  readonly nonces: NonceStore
  /** The processes that share the store. `outbox.pending` and `outbox.channels` read rows of this process's slots. */
  readonly nodes: Nodes
  /** Resumes interrupted removals, and removes rows of removed accounts, users and webhooks. Returns their number. */
  tidy(): Promise<number>
  /** Writes a few bytes, or `room` bytes for a moment. Rejects with `store_unavailable` within 5 s. */
  ping(room?: number): Promise<void>
  /** Copies the running store to a new file. Absent with MongoDB, which has mongodump. */
  readonly backup?: (target: string) => Promise<void>
  close(): Promise<void>
}

export interface UserStore extends ReturnType<typeof userBasics> {
  /**
   * After a crash, the account may be stored without its user, in no list. After `store_unavailable`, the caller calls
   * undoCreate.
   */
  createWithAccount(user: UserRecord, account: AccountRecord): Promise<void>
  /** Removes the user before the account, so that no user lacks its account. */
  undoCreate(id: string, accountId: string): Promise<void>
  /** Oldest first. */
  list(developerId: string, filter: UserFilter, page: Page): Promise<UserRecord[]>
  /**
   * Scans the users of all developers, oldest first: each word is a part of the name or of an address. The case of
   * ASCII letters is ignored.
   */
  search(words: readonly string[], limit: number): Promise<UserRecord[]>
  /** Removes the user's accounts with all their records, then the user. Returns the ids of the removed accounts. */
  remove(id: string): Promise<readonly string[]>
}

export interface AccountStore extends ReturnType<typeof accountBasics> {
  /** Few fields of each matching account, longest in its condition first; at most `most`. */
  places(filter: AccountFilter, most?: number): Promise<AccountPlace[]>
  /** Adds 1 to the epoch of the account and its folders. null = no account. `lease_lost` when another node owns it. */
  claim(id: string): Promise<AccountRecord | null>
  /** Removes all records of the account, and its counts of the user's contacts; the account last. */
  remove(id: string): Promise<void>
}

export type ContactStore = ReturnType<typeof contactReads>

export interface NonceStore {
  /** false = (key, nonce, timestamp) is known: a replay. Forgotten after `expiresAt`. */
  remember(apiKey: string, nonce: string, timestamp: number, expiresAt: number): Promise<boolean>
}

export interface FolderStore extends ReturnType<typeof folderBasics> {
  /** Sorted: INBOX first, then by path. */
  list(accountId: string): Promise<FolderRecord[]>
  /** Stores listed folders; with `complete`, removes the others with their placements. `lease_lost`. */
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
  /** The stored messages with these ids, of any account. */
  several(ids: readonly string[]): Promise<MessageRecord[]>
  /** By Message-ID (no brackets), by a lookup in each account. */
  everywhere(reference: string, limit: number): Promise<MessageRecord[]>
  /** Our id, an RFC 5322 Message-ID (no brackets), or a hosted provider's id. Live messages first, newest first. */
  find(accountId: string, reference: string): Promise<MessageRecord | null>
  /** All matches in the order of `find`: several messages may have the same Message-ID. */
  findAll(accountId: string, reference: string, limit: number): Promise<MessageRecord[]>
  /** By Message-ID (no brackets): the newest live message of each, else the newest. Unknown ids are absent. */
  byMessageIds(accountId: string, references: readonly string[]): Promise<ReadonlyMap<string, MessageRecord>>
  /** Live messages only. */
  list(accountId: string, query: MessageQuery, page: Page): Promise<readonly MessageRecord[]>
  count(accountId: string, query?: MessageQuery): Promise<number>
  /** The numbers of live messages and of their attachments. */
  totals(accountId: string): Promise<MailTotals>
  /** Known UIDs of a folder from `from` to `to`, both inclusive, ascending. */
  knownUids(folderId: string, uidValidity: string, from: number, to: number): Promise<KnownUid[]>
  /** The known ones of `uids`, ascending; UIDs in between are not read. */
  knownAmong(folderId: string, uidValidity: string, uids: readonly number[]): Promise<KnownUid[]>
  /** Messages with a placement that vanished before `before` and is not reported, oldest first. */
  gone(accountId: string, before: number, limit: number): Promise<MessageRecord[]>
  /** For the historical scan: live messages behind `after` in the order of (sentAt, id), newest first. */
  older(
    accountId: string,
    after: { readonly sentAt: number; readonly id: string } | null,
    limit: number,
  ): Promise<MessageRecord[]>
}

export interface SyncStore extends ReturnType<typeof mailboxReplacement> {
  /**
   * Returns the changes with their seq, and the folder's progress. Precondition: no other batch of the account runs.
   * A batch that fails may leave some of its callbacks in the outbox.
   * `lease_lost` when epoch or cursorBefore do not match; then no part of the batch is visible. With MongoDB, when the
   * account is claimed during a batch, the state is that after a crash, and the new owner repeats the batch.
   */
  apply(batch: SyncBatch): Promise<Applied>
  /**
   * After a change of UIDVALIDITY: moves up to `limit` placements with another uidValidity to `gone`, unreported, to be
   * matched again by identity. Returns how many are left, at most `limit` + 1.
   */
  forgetPlacements(
    accountId: string,
    epoch: number,
    folderId: string,
    keepUidValidity: string,
    limit: number,
  ): Promise<number>
}

export interface OutboxStore extends ReturnType<typeof outboxBasics> {
  /** Channels with pending rows. */
  channels(): Promise<string[]>
  /**
   * Pending rows of the slots of this process by (lane, createdAt, seq), without rows of `exceptAccounts` ('' = no
   * account). `userId`: the user of all rows; null = several users.
   */
  pending(
    channelId: string,
    exceptAccounts: readonly string[],
    limit: number,
    userId?: string | null,
  ): Promise<OutboxRecord[]>
  /** Pending rows of every slot, in the same order. */
  waiting(channelId: string, limit: number): Promise<OutboxRecord[]>
  /** The backlog of a channel; null = of all channels together. */
  backlog(channelId: string | null): Promise<Backlog>
  /** The backlogs of a developer's channels, the one with the oldest row first. */
  late(developerId: string, limit: number): Promise<ChannelBacklog[]>
  /** Stores the attempts and next states of several rows. */
  record(results: readonly OutboxResult[]): Promise<void>
  /** Newest first, or oldest first. */
  list(query: RequeueQuery, page: Page, order?: 'DESC' | 'ASC'): Promise<OutboxRecord[]>
  /** Counts rows by state and by the time step of their creation; `at` is the start of the step. */
  counts(query: RequeueQuery, stepMs: number): Promise<DeliveryCount[]>
  /**
   * Sets finished rows, and pending rows in `query.ids`, back to pending with attemptCount 0 and dueAt `now`: at most
   * `limit` rows behind `after`, oldest first. Returns their number, and `after` for the next batch; null = no more.
   */
  requeue(
    query: RequeueQuery,
    now: number,
    limit: number,
    after?: OutboxKey | null,
  ): Promise<{ readonly count: number; readonly next: OutboxKey | null }>
  /** For a paused webhook: ends its pending message rows, of every slot, in the state `end`. Returns their number. */
  skipPending(channelId: string, reason: string, now: number, end?: 'skipped' | 'failed'): Promise<number>
}
