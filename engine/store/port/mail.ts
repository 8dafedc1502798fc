/** Folders, messages, and the sync's batches. */
import type {
  AccountRecord,
  ChangeRecord,
  ContactDelta,
  FolderCursor,
  FolderRecord,
  MessageFacts,
  MessageRecord,
  OutboxRecord,
  Placement,
  SpecialUse,
} from '../records.ts'
import type { attachmentReads, folderBasics } from '../aggregates.ts'
import type { AccountPatch, Page } from '../port.ts'

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

/** A filter on an address list: whole addresses, or domains and their parents ('example.com', 'com'), lower-cased. */
export interface MessageQuery {
  /** Folder id; absent = all folders. */
  readonly folderId?: string
  /** Case-insensitive part of the subject. */
  readonly subject?: string
  /**
   * Each a list of alternatives (OR); different fields are combined (AND). `email` matches any of from, to, cc, bcc.
   */
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
  /** Any of these threads. */
  readonly threadIds?: readonly string[]
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
  readonly generation?: number
}

export interface MessageStore extends ReturnType<typeof attachmentReads> {
  get(accountId: string, id: string): Promise<MessageRecord | null>
  byIds(accountId: string, ids: readonly string[]): Promise<MessageRecord[]>
  /** Our id, an RFC 5322 Message-ID (no brackets), or a hosted provider's id. Live messages first, newest first. */
  find(accountId: string, reference: string): Promise<MessageRecord | null>
  /** By Message-ID (no brackets): of each the live message before others, then the newest; unknown ones are absent. */
  byMessageIds(accountId: string, references: readonly string[]): Promise<ReadonlyMap<string, MessageRecord>>
  /** Live messages only. */
  list(accountId: string, query: MessageQuery, page: Page): Promise<readonly MessageRecord[]>
  count(accountId: string, query?: MessageQuery): Promise<number>
  /** Known UIDs of a folder within from..to (inclusive), ascending. */
  knownUids(folderId: string, uidValidity: string, from: number, to: number): Promise<KnownUid[]>
  /** Messages whose placement vanished before `before` and was not reported yet, oldest first. */
  gone(accountId: string, before: number, limit: number): Promise<MessageRecord[]>
  /** Live messages of the account older in (sentAt, id) order than `after`, newest first: the historical scan. */
  older(
    accountId: string,
    after: { readonly sentAt: number; readonly id: string } | null,
    limit: number,
  ): Promise<MessageRecord[]>
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

/**
 * One batch of one folder. Order of writes: contacts → new message rows → changes → outbox → updates of existing rows
 * (flags, vanished, told) → cursor. Repeating a batch, or a larger one that contains it, changes nothing that was
 * written and reports nothing twice.
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
  /** Placements whose disappearance these changes report: taken out of `gone`. */
  readonly told: readonly {
    readonly messageId: string
    readonly folderId: string
    readonly uidValidity: string
    readonly uid: number
  }[]
  readonly changes: readonly ChangeDraft[]
  /** The store fills in the seq of the row's change. */
  readonly outbox: readonly OutboxRecord[]
  readonly contacts: readonly ContactDelta[]
  /** Folder counts to store along; null = leave. */
  readonly counts: { readonly messages: number; readonly unseen: number } | null
}

export interface SyncStore {
  /**
   * Answers the changes with their seq. One batch of an account at a time. `lease_lost` when epoch or cursorBefore do
   * not match; then nothing of the batch is visible. MongoDB, when the account is claimed in the middle of a batch:
   * what was written is as after a crash, and the new owner's batch makes it whole.
   */
  apply(batch: SyncBatch): Promise<{ readonly changes: ChangeRecord[]; readonly outbox: OutboxRecord[] }>
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
  /**
   * The account becomes another mailbox (`patch` = its settings) and is read like a new one (initialSyncAt null).
   * Folders, cursors and places go without a report; identities of messages stay, so that nothing is reported twice;
   * mail that arrived after `since` and was never seen is reported. The settings are written last: cut short, it is the
   * former mailbox, to be read anew. `lease_lost` when another owner claims it meanwhile; null when it is gone.
   */
  replaceMailbox(accountId: string, patch: AccountPatch, since: number): Promise<AccountRecord | null>
}
