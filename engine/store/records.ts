/**
 * Records of developers, users, email accounts, webhooks and callbacks: plain objects, the same in both stores. Names
 * end in At for milliseconds since 1970 (UTC); ids are lower-case hex. A record never holds a driver type, a class
 * instance or a secret in the clear.
 */
import type { AccountResume, AccountStatus, Condition, WebhookHealth } from '../../machines/events.ts'

export type * from './mail.ts'

/** A developer's brand in the connect wizard. null = the configured one. */
export interface BrandRecord {
  readonly name: string | null
  /** A URL that `logoOrigin` of connect/brand.ts accepts. */
  readonly logo: string | null
  /** #rrggbb */
  readonly color: string | null
}

/** A developer: an application with an API key and a secret. */
export interface DeveloperRecord {
  readonly id: string
  readonly apiKey: string
  /** The secrets of secrets/list.ts, with the developer id as associated data. */
  readonly sealedSecret: string
  /** Application-wide receiver of status callbacks. */
  readonly statusCallbackUrl: string | null
  readonly createdAt: number
  /** For operators. */
  readonly name?: string
  readonly brand?: BrandRecord
  /** null or absent = the key is valid. */
  readonly revokedAt?: number | null
}

/** A user (lite) or account (2.0). */
export interface UserRecord {
  readonly id: string
  readonly developerId: string
  readonly firstName: string
  readonly lastName: string
  /** Lower-cased addresses, the creation's email first. */
  readonly emailAddresses: readonly string[]
  /** The default for new email accounts. null or absent = none. */
  readonly statusCallbackUrl?: string | null
  readonly createdAt: number
}

/** Options of 2.0 sources. */
export interface SourceOptions {
  readonly syncFlags: boolean
  readonly syncAllFolders: boolean
  readonly expungeOnDeletedFlag: boolean
  readonly rawFileList: boolean
  /** POSTed once when the initial sync completes. */
  readonly callbackUrl: string | null
}

export type { AccountResume as ResumeRecord, AccountStatus, Condition, WebhookHealth }

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
  /** The number of transitions between OK and DISABLED; part of the id of a transition's callback. */
  readonly statusVersion: number
  readonly paused: boolean
  readonly resume: AccountResume
  /** While a replaced mailbox is read: unknown mail received after this time is reported. */
  readonly remapSince?: number
  /** Since when all selectable folders are complete; null or absent = one is not. Stored with that folder. */
  readonly completeAt?: number | null
  /** Fencing number: each claim adds 1; a writer with an older epoch gets `lease_lost`. */
  readonly epoch: number
  readonly createdAt: number
}

export interface ContactCounts {
  readonly name: string
  readonly totalCount: number
  readonly directCount: number
  readonly indirectCount: number
  /** 0 = no mail was received from the contact. */
  readonly lastReceivedAt: number
}

export interface ContactRecord extends ContactCounts {
  /** contactId(userId, email) */
  readonly id: string
  readonly userId: string
  readonly email: string
}

/** The counts of one email account for a contact. Internal to stores and copies. */
export interface StoredContact extends ContactRecord {
  readonly accountId: string
}

/** What one message adds to a contact. The same (contact, key) is added once. */
export interface ContactDelta {
  readonly userId: string
  readonly email: string
  readonly name: string
  /** `<messageId>:r` = received from the contact, `:d` = replied to, `:o` = another address. */
  readonly key: string
  readonly total: number
  readonly direct: number
  readonly indirect: number
  /** 0 = not received from the contact; `lastReceivedAt` stays. */
  readonly receivedAt: number
}

export interface ConnectTokenRecord {
  /** The id: 16 of [a-z0-9]. */
  readonly token: string
  readonly developerId: string
  readonly version: 'lite' | '2.0'
  /** The user and the account that the token was requested for, or has created. */
  readonly userId: string | null
  readonly accountId: string | null
  readonly callbackUrl: string
  readonly email: string | null
  readonly firstName: string | null
  readonly lastName: string | null
  /** Of the email account. '' = none; null = not named: a new account takes the user's, a known one keeps its own. */
  readonly statusCallbackUrl: string | null
  /** The named options of the source; null = none. */
  readonly options: Partial<SourceOptions> | null
  readonly createdAt: number
  readonly expiresAt: number
  readonly usedAt: number | null
  /** Tries to connect a mailbox; absent = 0. */
  readonly tries?: number
  /** Stored before the user and the account are created; then `usedAt` is set. null or absent = not claimed. */
  readonly claim?: TokenClaim | null
}

export interface TokenClaim {
  readonly userId: string
  readonly accountId: string
  readonly at: number
}

export interface OAuthProviderRecord {
  readonly developerId: string
  readonly consumerKey: string
  /** With `<developerId>:<consumerKey>` as associated data. */
  readonly sealedSecret: string
  /** 'abc[...]xyz' */
  readonly shownSecret: string
  /** One of providerTypes. */
  readonly type: string
  readonly createdAt: number
}

/** Rights in the admin API: read everything, act on actors and callbacks, manage keys. */
export type OperatorScope = 'read' | 'act' | 'keys'

/** A token of the admin API; the record with the id `console` is the console's password. */
export interface OperatorRecord {
  readonly id: string
  readonly name: string
  /** `sha256:<hex>` of a token, `scrypt:<salt>:<hex>` of a password. */
  readonly hash: string
  readonly scopes: readonly OperatorScope[]
  readonly createdAt: number
  readonly revokedAt: number | null
}

/** A setting that an operator has changed at run time; the id is its name (engine/settings.ts). */
export interface SettingRecord {
  readonly id: string
  readonly value: number
  readonly setAt: number
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

/** An action of an operator, successful or not. */
export interface AuditRecord {
  readonly id: string
  readonly at: number
  /** `local`: by a command in the data directory. */
  readonly by: 'token' | 'session' | 'local'
  /** Id of the token, or a public name of the session. */
  readonly actorId: string
  readonly actorName: string
  /** Client address; '' = local. */
  readonly address: string
  /** 'accounts pause' */
  readonly action: string
  /** Id or name of the target; '' = none, or in the details. */
  readonly target: string
  /** Parameters without secrets. */
  readonly details: Readonly<Record<string, string>>
  /** HTTP status of the answer. */
  readonly status: number
}

export type ChangeKind = 'received' | 'sent' | 'draft' | 'folder_added' | 'folder_removed' | 'flags_changed' | 'deleted'

/** An entry of an account's change log. */
export interface ChangeRecord {
  /** changeId(…): the same in a repeated batch. */
  readonly id: string
  readonly accountId: string
  readonly userId: string
  /** 1, 2, 3 … per account, without gaps. */
  readonly seq: number
  readonly kind: ChangeKind
  /** Whether this is the message's first event. */
  readonly first: boolean
  readonly messageId: string
  readonly folderId: string
  readonly path: string
  readonly uid: number
  readonly uidValidity: string
  /** The state after the event. */
  readonly flags: readonly string[]
  readonly folders: readonly string[]
  readonly at: number
}

type WebhookFilter =
  | ('to' | 'from' | 'cc' | 'subject' | 'thread' | 'fileName' | 'folderAdded' | 'folderRemoved')
  | ('toDomain' | 'fromDomain' | 'bodySearch')

/** Filters in the developer's spelling. */
export type WebhookFilters = { readonly [F in WebhookFilter]?: string }

export interface WebhookRecord {
  readonly id: string
  readonly developerId: string
  /** null = application level: all users of the developer. */
  readonly userId: string | null
  /** The API version of the webhook and its payloads. */
  readonly version: 'lite' | '2.0'
  readonly callbackUrl: string
  readonly failureNotifUrl: string | null
  readonly active: boolean
  /** The receiver has answered 410 since the last edit with active=1; absent = it has not. */
  readonly gone?: boolean
  readonly filters: WebhookFilters
  readonly includeBody: boolean
  readonly bodyType: string | null
  readonly includeHeader: '1' | 'raw' | null
  readonly receiveAllChanges: boolean
  readonly receiveDrafts: boolean
  readonly receiveHistorical: boolean
  /** Waits between attempts; absent or empty = MAILROOM_WEBHOOK_SCHEDULE. `retrySchedule`: the developer's text. */
  readonly retryScheduleMs?: readonly number[]
  readonly retrySchedule?: string
  /** Sealed JSON: [{secret, createdAt, expiresAt|null}], newest first, webhook id as associated data. */
  readonly sealedSecrets: string
  readonly health: WebhookHealth
  /** The last redelivery; absent = none. */
  readonly redelivery?: Redelivery
  /** The last changes of `active`, oldest first; absent = none. */
  readonly switches?: readonly { readonly active: boolean; readonly at: number }[]
  /** When the filters were last edited; absent = never. */
  readonly editedAt?: number
  readonly createdAt: number
}

/** A redelivery: sets deliveries of a period back to pending, oldest first, and resumes after a restart. */
export interface Redelivery {
  /** Bounds of the rows' createdAt, both inclusive. */
  readonly from: number | null
  readonly until: number | null
  readonly failedOnly: boolean
  /** Excludes rows that were created or finished later. */
  readonly startedAt: number
  /** The last row set back; null = start. */
  readonly after: { readonly createdAt: number; readonly id: string } | null
  /** The number of rows set back. */
  readonly count: number
  readonly done: boolean
  /** A sentence: why the redelivery ended early. */
  readonly reason: string | null
}

/** The progress of a webhook's historical scan over an account, newest to oldest. */
export interface HistoricalScan {
  readonly webhookId: string
  readonly accountId: string
  /** The last scanned message; null = start. */
  readonly after: { readonly sentAt: number; readonly id: string } | null
  readonly done: boolean
}

export type OutboxKind = 'message' | 'status' | 'failure' | 'sync' | 'test'
export type OutboxState = 'pending' | 'delivered' | 'failed' | 'skipped'

export interface DeliveryAttempt {
  readonly at: number
  readonly durationMs: number
  /** HTTP status; null = no response. */
  readonly status: number | null
  /** Error code and text without a 2xx response. */
  readonly error: string | null
  /** The first 4 kB of the response. */
  readonly response: string | null
  readonly url?: string
}

/** A callback to send, and the log of its delivery. */
export interface OutboxRecord {
  /** outboxId(channelId, event): sent as webhook-id; the same in retries, restarts and repeated batches. */
  readonly id: string
  /** A webhook's id, or urlChannelId(…) of a bare URL. One actor sends a channel's callbacks. */
  readonly channelId: string
  /** The webhook of a row of kind message, test or failure. */
  readonly webhookId: string | null
  readonly developerId: string
  readonly userId: string | null
  readonly accountId: string | null
  readonly kind: OutboxKind
  /** 0 = live, which is sent first; 1 = historical. */
  readonly lane: 0 | 1
  /** The seq of the change; orders rows of one account. */
  readonly seq: number
  readonly changeId: string | null
  readonly messageId: string | null
  /** The event of a row of kind message; else null. */
  readonly event: ChangeKind | null
  /** Facts of the event that the message record lacks. */
  readonly data: Readonly<Record<string, unknown>>
  /** Of a bare-URL channel, or of a sample. '' = none: the row is only a log; null = the webhook's callback_url. */
  readonly url: string | null
  readonly state: OutboxState
  readonly createdAt: number
  /** The earliest time of the next attempt; at first createdAt. */
  readonly dueAt: number
  /** A failed attempt before this time does not count in the retry schedule: rows with long waits are tried between. */
  readonly countsAt?: number
  /** Attempts that count in the retry schedule. */
  readonly attemptCount: number
  /** The last 12, newest last. */
  readonly attempts: readonly DeliveryAttempt[]
  readonly finishedAt: number | null
  /** A sentence: why the row was skipped or failed. */
  readonly reason: string | null
}
