/** Parameters and results of the store port other than records: pages, filters, patches, batches. */
import type { FolderProgress } from './folder-counts.ts'
import type { FolderCursor, FolderRecord, MessageFacts, MessageRecord, Place, Placement } from './mail.ts'
import type { AccountRecord, AccountStatus, CallLogRecord, ChangeRecord, Condition, ContactDelta } from './records.ts'
import type { DeliveryAttempt, OutboxKind, OutboxRecord, OutboxState } from './records.ts'

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

/** Transitions change the status, claims the epoch. */
export type AccountPatch = Partial<
  Omit<
    AccountRecord,
    'id' | 'developerId' | 'userId' | 'label' | 'status' | 'statusVersion' | 'remapSince' | 'epoch' | 'createdAt'
  >
>

export interface StatusTransition extends Pick<AccountRecord, 'epoch' | 'status' | 'statusMessage' | 'resume'> {
  readonly accountId: string
  /** The version before this transition. Another stored version means that the transition is recorded: returns null. */
  readonly fromVersion: number
  /** The status callback to send, or none. Stored before the account. */
  readonly outbox: readonly OutboxRecord[]
}

/** undefined = any. */
export interface AccountFilter {
  readonly developerId?: string | undefined
  readonly userId?: string | undefined
  /** In lower case. */
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

export type ContactSort = 'total_count' | 'direct_count' | 'indirect_count'

export interface TokenFilter {
  readonly userId?: string
  readonly accountId?: string
  readonly version?: 'lite' | '2.0'
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
  /** Only calls behind this call in the list. */
  readonly before?: Pick<CallLogRecord, 'at' | 'id'>
}

/** The most webhooks; 0 = no limit. */
export interface WebhookLimits {
  /** Of one user; also the most of one developer at application level. */
  readonly owner: number
  /** Of one developer, with those of its users. */
  readonly developer: number
}

export interface DeliveryQuery {
  /** A list means any of its ids, here and below. */
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
  /** Excludes rows that finished later. */
  readonly finishedUntil?: number
}

export interface Backlog {
  /** The number of pending callbacks. */
  readonly pending: number
  /** When the oldest pending callback was created; null = none is pending. */
  readonly oldestAt: number | null
}

export interface ChannelBacklog extends Backlog {
  readonly channelId: string
}

export interface OutboxResult extends Pick<OutboxRecord, 'id' | 'state' | 'dueAt' | 'finishedAt' | 'reason'> {
  readonly attempt: DeliveryAttempt | null
  /** false = the attempt is logged, and does not count in the retry schedule. */
  readonly counted?: false
  /** Absent = unchanged. */
  readonly countsAt?: number
}

export interface ListedFolder extends Pick<
  FolderRecord,
  'path' | 'delimiter' | 'attributes' | 'specialUse' | 'selectable'
> {
  /** null = keep the stored number, here and below; a complete folder keeps it always. */
  readonly messages: number | null
  readonly unseen: number | null
  /** The cursor of a new, empty folder, which is complete with it. */
  readonly opened?: FolderCursor
}

/** Hidden placements: those in `folderIds`, and with `deleted` those with the flag \Deleted. */
export interface HiddenPlaces {
  readonly folderIds: readonly string[]
  readonly deleted: boolean
}

/** Address filters are whole addresses, or domains and their parents ('example.com', 'com'), lower-cased. */
export interface MessageQuery {
  /** Folder id; absent = all folders. */
  readonly folderId?: string
  /** A part of the subject, compared without case. */
  readonly subject?: string
  /** A list has alternatives (OR); fields are combined (AND). `email` matches any of from, to, cc, bcc. */
  readonly email?: readonly string[]
  readonly from?: readonly string[]
  readonly to?: readonly string[]
  readonly cc?: readonly string[]
  readonly bcc?: readonly string[]
  /** sentAt bounds in ms, inclusive. */
  readonly sentFrom?: number
  readonly sentUntil?: number
  /** Results of a body search. */
  readonly ids?: readonly string[]
  readonly threadId?: string
  readonly threadIds?: readonly string[]
  readonly hasAttachments?: boolean
  /** Matches messages with a placement that is not hidden (with `folderId`: in this folder). */
  readonly hidden?: HiddenPlaces
  /** By sentAt, then id. Default desc. */
  readonly order?: 'asc' | 'desc'
}

export interface KnownUid extends Pick<Placement, 'uid' | 'flags' | 'modseq' | 'rev' | 'generation'> {
  readonly messageId: string
}

export interface MailTotals {
  readonly messages: number
  readonly attachments: number
}

/** A message that the sync read: the row to insert when the id is new, and the placement to add. */
export interface AddedMessage extends Pick<MessageRecord, 'id' | 'identity' | 'firstChangeId'> {
  readonly facts: MessageFacts
  readonly placement: Placement
}

/** The placement after the update. */
export interface FlagUpdate extends Pick<Placement, 'uid' | 'flags' | 'modseq' | 'rev'> {
  readonly messageId: string
}

/** A change without its sequence number. */
export type ChangeDraft = Omit<ChangeRecord, 'seq'>

/**
 * One batch of one folder. Order of writes: contacts → new message rows → changes → outbox → updates of existing rows
 * (flags, vanished, reported) → cursor. A repeated batch, or a larger batch with the same parts, writes and reports no
 * part twice.
 */
export interface SyncBatch {
  readonly accountId: string
  readonly epoch: number
  readonly folderId: string
  /** The cursor before the sync; null = folder never opened. Another stored cursor: `lease_lost`, nothing written. */
  readonly cursorBefore: FolderCursor | null
  readonly cursorAfter: FolderCursor
  readonly added: readonly AddedMessage[]
  readonly flagUpdates: readonly FlagUpdate[]
  /** UIDs that are gone from the folder: the placements move to `gone` with the time `vanishedAt`. */
  readonly vanished: readonly number[]
  readonly vanishedAt: number
  /** Placements whose departure is reported by `changes`: removed from `gone`. */
  readonly reported: readonly (Place & { readonly messageId: string })[]
  readonly changes: readonly ChangeDraft[]
  /** The store sets `seq` to that of the row's change. */
  readonly outbox: readonly OutboxRecord[]
  readonly contacts: readonly ContactDelta[]
}

export interface Applied {
  readonly changes: ChangeRecord[]
  readonly folder: FolderProgress
  /** Whether the account's completeness has changed. */
  readonly turned: boolean
}
