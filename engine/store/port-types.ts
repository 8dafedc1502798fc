/** What the methods of the port take and answer beside records: pages, filters, patches, batches. */
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
  /** Those behind this one in the list. */
  readonly before?: Pick<CallLogRecord, 'at' | 'id'>
}

/** How many webhooks there may be; 0 = any number. */
export interface WebhookLimits {
  /** Of one user; and as many at application level. */
  readonly owner: number
  /** Of one developer, at both levels. */
  readonly developer: number
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

export interface OutboxResult extends Pick<OutboxRecord, 'id' | 'state' | 'dueAt' | 'finishedAt' | 'reason'> {
  readonly attempt: DeliveryAttempt | null
  /** false = the attempt is kept for the log and uses nothing of the row's schedule up. */
  readonly counted?: false
  /** Absent = as it was. */
  readonly countsAt?: number
}

export interface ListedFolder extends Pick<
  FolderRecord,
  'path' | 'delimiter' | 'attributes' | 'specialUse' | 'selectable'
> {
  /** null = keep what is stored, as of a complete folder. */
  readonly messages: number | null
  readonly unseen: number | null
  /** Of a folder that is not stored yet and holds nothing: it is complete with this cursor. */
  readonly opened?: FolderCursor
}

/** Placements that do not count: in these folders, and with `deleted` those with the flag \Deleted. */
export interface HiddenPlaces {
  readonly folderIds: readonly string[]
  readonly deleted: boolean
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
  /** A message is shown for a placement that is not hidden, in `folderId` where that is named. */
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

/** A message as the sync read it: the row to insert when unknown, and the placement to add. */
export interface AddedMessage extends Pick<MessageRecord, 'id' | 'identity' | 'firstChangeId'> {
  readonly facts: MessageFacts
  readonly placement: Placement
}

/** The placement as it is afterwards. */
export interface FlagUpdate extends Pick<Placement, 'uid' | 'flags' | 'modseq' | 'rev'> {
  readonly messageId: string
}

/** A change before it has its sequence number. */
export type ChangeDraft = Omit<ChangeRecord, 'seq'>

/**
 * One batch of one folder. Order of writes: contacts → new message rows → changes → outbox → updates of existing rows
 * (flags, vanished, reported) → cursor. Repeating a batch, or a larger one that contains it, changes nothing that was
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
  readonly reported: readonly (Place & { readonly messageId: string })[]
  readonly changes: readonly ChangeDraft[]
  /** The store fills in the seq of the row's change. */
  readonly outbox: readonly OutboxRecord[]
  readonly contacts: readonly ContactDelta[]
}

export interface Applied {
  readonly changes: ChangeRecord[]
  readonly outbox: OutboxRecord[]
  readonly folder: FolderProgress
  /** Whether the account became complete, or is so no more. */
  readonly turned: boolean
}
