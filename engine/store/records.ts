/**
 * What the store keeps: plain records, the same in every adapter. Names end in At for milliseconds since 1970 (UTC),
 * ids are lower-case hex. A record never holds a driver type, a class instance or a secret in the clear.
 */
import type { FailureClass } from '../errors.ts'

/** A developer: an application with an API key and a secret. */
export interface DeveloperRecord {
  readonly id: string
  readonly apiKey: string
  /** Sealed (secrets/seal.ts) with the developer id as associated data. */
  readonly sealedSecret: string
  /** Application-wide receiver of status callbacks. */
  readonly statusCallbackUrl: string | null
  readonly createdAt: number
}

/** A user (lite) or account (2.0): one record serves both API versions. */
export interface UserRecord {
  readonly id: string
  readonly developerId: string
  readonly firstName: string
  readonly lastName: string
  /** Lower-cased addresses, the creation's email first. */
  readonly emailAddresses: readonly string[]
  readonly createdAt: number
}

/** Options that only 2.0 sources know. */
export interface SourceOptions {
  readonly syncFlags: boolean
  readonly syncAllFolders: boolean
  readonly expungeOnDeletedFlag: boolean
  readonly rawFileList: boolean
  /** POSTed once when the initial sync completes. */
  readonly callbackUrl: string | null
}

export type AccountStatus = 'OK' | 'DISABLED'

/** Where an account's actor starts from after a restart: the durable truth about its failures. */
export interface ResumeRecord {
  /** Failed attempts in a row, 0 after a success. */
  readonly attempt: number
  /** Of those, failures in a row that count toward DISABLED. */
  readonly strikes: number
  /** No reconnect before this time; null = at once. */
  readonly retryAt: number | null
  readonly lastError: { readonly class: FailureClass; readonly message: string; readonly at: number } | null
  readonly lastConnectedAt: number | null
  /** When the initial sync of all folders was complete; null = not yet. */
  readonly initialSyncAt: number | null
}

/** An email account (lite) or source (2.0). */
export interface AccountRecord {
  readonly id: string
  readonly developerId: string
  readonly userId: string
  /** `<local part>::<provider>`, unique within the user. */
  readonly label: string
  readonly email: string
  readonly server: string
  readonly port: number
  readonly useSsl: boolean
  readonly username: string
  readonly authType: 'password' | 'oauth2'
  /** Sealed JSON {password} or {refreshToken}, account id as associated data. */
  readonly sealedCredential: string
  /** oauth2: the registered provider's consumer key. */
  readonly providerKey: string | null
  readonly statusCallbackUrl: string | null
  readonly options: SourceOptions
  readonly status: AccountStatus
  readonly statusMessage: string | null
  /** Counts the transitions between OK and DISABLED; names each transition's callback. */
  readonly statusVersion: number
  readonly paused: boolean
  readonly resume: ResumeRecord
  /** Fencing number: each claim adds one; a writer with an older epoch is refused with `lease_lost`. */
  readonly epoch: number
  readonly createdAt: number
}

/**
 * How far a folder has been read. UIDs >= uidNext are unseen and count as live mail; UIDs < backfillBelow are still to be
 * back-filled (0 or 1 = nothing left).
 */
export interface FolderCursor {
  readonly uidValidity: string
  readonly uidNext: number
  readonly backfillBelow: number
  /** Decimal string; '0' = unknown. */
  readonly highestModseq: string
  /** Number of messages on the server when this cursor was written. */
  readonly exists: number
  /** Last full comparison of flags and UIDs. */
  readonly comparedAt: number
  /** UIDs the server failed to give; retried later. */
  readonly quarantined: readonly number[]
  /** When this cursor was last written by a catch-up. */
  readonly syncedAt?: number
  /** Set while a folder is read anew after a UIDVALIDITY change: unknown messages received since then are told as arrivals. */
  readonly remapSince?: number
  /** Times of the last UIDVALIDITY changes (the guard against loops). */
  readonly resets?: readonly number[]
}

export type SpecialUse =
  '\\Inbox' | '\\All' | '\\Archive' | '\\Drafts' | '\\Flagged' | '\\Junk' | '\\Sent' | '\\Trash' | '\\Important'

export interface FolderRecord {
  /** folderId(accountId, path) */
  readonly id: string
  readonly accountId: string
  /** Full path in UTF-8 with the server's own delimiter. INBOX in capitals. */
  readonly path: string
  /** Server's hierarchy delimiter; '' when the server has none. */
  readonly delimiter: string
  /** As listed by the server: \HasChildren, \Noselect … */
  readonly attributes: readonly string[]
  readonly specialUse: SpecialUse | null
  readonly selectable: boolean
  readonly messages: number
  readonly unseen: number
  /** null until the folder was opened once. */
  readonly cursor: FolderCursor | null
  /** Equals the account's epoch of the last claim. */
  readonly epoch: number
  /** Failed opens in a row; parked after 3. */
  readonly failures: number
  readonly parkedUntil: number | null
}

export interface Address {
  /** '' when absent. */
  readonly name: string
  /** As written, domain lower-cased; '' when absent. */
  readonly email: string
}

export interface MessageAddresses {
  readonly from: readonly Address[]
  readonly sender: readonly Address[]
  readonly replyTo: readonly Address[]
  readonly to: readonly Address[]
  readonly cc: readonly Address[]
  readonly bcc: readonly Address[]
  readonly returnPath: readonly Address[]
}

/** A text part that can be shown as a body. */
export interface BodyPartRecord {
  /** IMAP section, '1', '1.2'. */
  readonly section: string
  /** MIME type in lower case. */
  readonly type: string
  readonly charset: string | null
  /** Content-Transfer-Encoding in lower case. */
  readonly encoding: string
  /** Bytes as transferred. */
  readonly size: number
  /** format=flowed, and delsp=yes. */
  readonly flowed: boolean
  readonly delSp: boolean
}

export interface AttachmentRecord {
  /** Index in the message's list, from 0. */
  readonly index: number
  readonly section: string
  readonly type: string
  readonly encoding: string
  /** Bytes as transferred (encoded). */
  readonly size: number
  /** Decoded UTF-8 name, '' when the part has none. */
  readonly fileName: string
  /** 'attachment' or 'inline' or '' when the part says nothing. */
  readonly disposition: string
  /** Without angle brackets. */
  readonly contentId: string | null
  /** Referenced from within a multipart/related: shown inside the body. */
  readonly embedded: boolean
}

/** Where a message lies: one folder, one UID. */
export interface Placement {
  readonly folderId: string
  readonly path: string
  readonly uidValidity: string
  readonly uid: number
  /** System flags and keywords as the server gives them: \Seen, $Forwarded … without \Recent. Sorted. */
  readonly flags: readonly string[]
  /** Decimal string; '0' when the server has no CONDSTORE. */
  readonly modseq: string
  /** Counts this placement's flag changes; part of a flag change's id. */
  readonly rev: number
  /** Put there by our own write: the sync tells nobody about it. */
  readonly quiet: boolean
}

/** A placement that was seen to vanish and has not been told yet. */
export interface GonePlacement {
  readonly folderId: string
  readonly path: string
  readonly uidValidity: string
  readonly uid: number
  readonly at: number
}

/** What mail says of itself; never changes once stored. */
export interface MessageFacts {
  /** RFC 5322 Message-ID without angle brackets; null when absent. */
  readonly emailMessageId: string | null
  /** Hosted provider's own ids. */
  readonly hostedMessageId: string | null
  readonly hostedThreadId: string | null
  /** Hex: hash of the account and the first reference (or hosted thread, or own Message-ID). */
  readonly threadId: string
  /** Date header; INTERNALDATE when absent or unreadable. */
  readonly sentAt: number
  /** INTERNALDATE. */
  readonly receivedAt: number
  readonly size: number
  readonly subject: string
  readonly addresses: MessageAddresses
  readonly inReplyTo: string | null
  readonly references: readonly string[]
  /** Lower-cased header name → value. */
  readonly listHeaders: Readonly<Record<string, string>>
  /** Values of Received, newest first, unfolded. */
  readonly receivedHeaders: readonly string[]
  readonly bodies: readonly BodyPartRecord[]
  readonly attachments: readonly AttachmentRecord[]
}

/** One message of one account, however many folders hold it. A row without placements is a tombstone: its identity is remembered. */
export interface MessageRecord extends MessageFacts {
  /** messageId(accountId, identity) */
  readonly id: string
  readonly accountId: string
  /** 'gm:…', 'eid:…', 'mid:…' or 'hdr:…' (weak); see accounts/identity.ts. */
  readonly identity: string
  /** The change that created this row: tells "first event" apart even when a batch is repeated. null = found by back-fill. */
  readonly firstChangeId: string | null
  readonly indexedAt: number
  readonly placements: readonly Placement[]
  readonly gone: readonly GonePlacement[]
}

export type ChangeKind = 'received' | 'sent' | 'draft' | 'folder_added' | 'folder_removed' | 'flags_changed' | 'deleted'

/** One line of an account's change log. */
export interface ChangeRecord {
  /** changeId(…): the same for the same event, however often a batch is repeated. */
  readonly id: string
  readonly accountId: string
  readonly userId: string
  /** 1, 2, 3 … per account, without gaps, given by the account's one owner. */
  readonly seq: number
  readonly kind: ChangeKind
  /** The message's first event. */
  readonly first: boolean
  readonly messageId: string
  readonly folderId: string
  readonly path: string
  readonly uid: number
  readonly uidValidity: string
  /** State right after the event. */
  readonly flags: readonly string[]
  readonly folders: readonly string[]
  readonly at: number
}

/** Filters as the developer wrote them; absent = no filter. */
export interface WebhookFilters {
  readonly to?: string
  readonly from?: string
  readonly cc?: string
  readonly subject?: string
  readonly thread?: string
  readonly fileName?: string
  readonly folderAdded?: string
  readonly folderRemoved?: string
  readonly toDomain?: string
  readonly fromDomain?: string
  readonly bodySearch?: string
}

export interface WebhookHealth {
  /** true from the third failed attempt in a row until the next delivered callback or an edit with active=1. */
  readonly failure: boolean
  readonly consecutiveFailures: number
  readonly retryAt: number | null
  readonly lastError: string | null
  readonly lastSuccessAt: number | null
  /** Since when every attempt has failed; null while healthy. */
  readonly failingSince: number | null
  /** Counts the failures announced; names each failure notification. */
  readonly failureVersion: number
}

export interface WebhookRecord {
  readonly id: string
  readonly developerId: string
  /** null = application level: every user of the developer. */
  readonly userId: string | null
  /** Dialect of the payload, and the API that made it. */
  readonly version: 'lite' | '2.0'
  readonly callbackUrl: string
  readonly failureNotifUrl: string | null
  readonly active: boolean
  readonly filters: WebhookFilters
  readonly includeBody: boolean
  readonly bodyType: string | null
  readonly includeHeader: '1' | 'raw' | null
  readonly receiveAllChanges: boolean
  readonly receiveDrafts: boolean
  readonly receiveHistorical: boolean
  /** Sealed JSON: [{secret, createdAt, expiresAt|null}], newest first, webhook id as associated data. */
  readonly sealedSecrets: string
  readonly health: WebhookHealth
  readonly createdAt: number
}

/** Progress of one webhook's historical scan over one account, newest to oldest. */
export interface HistoricalScan {
  readonly webhookId: string
  readonly accountId: string
  /** Keyset of the last message scanned; null = start. */
  readonly after: { readonly sentAt: number; readonly id: string } | null
  readonly done: boolean
}

export type OutboxKind = 'message' | 'status' | 'failure' | 'sync' | 'test'
export type OutboxState = 'pending' | 'delivered' | 'failed' | 'skipped'

export interface DeliveryAttempt {
  readonly at: number
  readonly durationMs: number
  /** HTTP status; null when there was no answer. */
  readonly status: number | null
  /** Error code and words when there was no 2xx. */
  readonly error: string | null
  /** First 4 kB of the answer. */
  readonly response: string | null
}

/** One callback to send, and afterwards the record of its delivery. */
export interface OutboxRecord {
  /** outboxId(channelId, event): sent as webhook-id, the same over retries, restarts and repeated batches. */
  readonly id: string
  /** A webhook's id, or urlChannelId(…) for callbacks to a bare URL. One actor per channel. */
  readonly channelId: string
  readonly webhookId: string | null
  readonly developerId: string
  readonly userId: string | null
  readonly accountId: string | null
  readonly kind: OutboxKind
  /** 0 = live, 1 = historical: live always goes first. */
  readonly lane: 0 | 1
  /** The change's seq; orders rows of one account. */
  readonly seq: number
  readonly changeId: string | null
  readonly messageId: string | null
  /** kind message: the event; null otherwise. */
  readonly event: ChangeKind | null
  /** Facts at the time of the event that the message row does not keep. */
  readonly data: Readonly<Record<string, unknown>>
  /** Receiver of a bare-URL channel; null = the webhook's callback_url. */
  readonly url: string | null
  readonly state: OutboxState
  readonly createdAt: number
  /** Not before; equals createdAt for a fresh row. */
  readonly dueAt: number
  readonly attemptCount: number
  /** The last 12, newest last; only the newest keeps its response. */
  readonly attempts: readonly DeliveryAttempt[]
  readonly finishedAt: number | null
  /** Why skipped or failed, in words. */
  readonly reason: string | null
}

export interface ContactRecord {
  /** contactId(userId, email) */
  readonly id: string
  readonly userId: string
  readonly email: string
  readonly name: string
  readonly totalCount: number
  readonly directCount: number
  readonly indirectCount: number
  readonly lastReceivedAt: number
}

/** What one message adds to a contact. Applying the same (contact, message, direct?) twice changes nothing. */
export interface ContactDelta {
  readonly userId: string
  readonly email: string
  readonly name: string
  /** Unique per message and kind of count: `<messageId>:r` received, `<messageId>:d` replied to. */
  readonly key: string
  readonly total: number
  readonly direct: number
  readonly indirect: number
  readonly receivedAt: number
}

export interface ConnectTokenRecord {
  /** 16 of [a-z0-9]; the id. */
  readonly token: string
  readonly developerId: string
  readonly version: 'lite' | '2.0'
  /** The user (and account) it was asked for, or that it made. */
  readonly userId: string | null
  readonly accountId: string | null
  readonly callbackUrl: string
  readonly email: string | null
  readonly firstName: string | null
  readonly lastName: string | null
  readonly statusCallbackUrl: string | null
  readonly options: SourceOptions | null
  readonly createdAt: number
  readonly expiresAt: number
  readonly usedAt: number | null
}

export interface OAuthProviderRecord {
  readonly developerId: string
  readonly consumerKey: string
  /** Sealed, `<developerId>:<consumerKey>` as associated data. */
  readonly sealedSecret: string
  /** 'abc[...]xyz' as shown. */
  readonly shownSecret: string
  /** As registered: PROVIDER_A_OAUTH2, PROVIDER_B_CONNECT, GMAIL_OAUTH2 or MSLIVECONNECT. */
  readonly type: string
  readonly createdAt: number
}

/** One API call, for GET /app/logs/calls. */
export interface CallLogRecord {
  readonly id: string
  readonly developerId: string
  readonly userId: string | null
  readonly at: number
  readonly method: string
  readonly path: string
  readonly status: number
  readonly durationMs: number
}
