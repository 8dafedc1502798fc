/**
 * What the store keeps: plain records, the same in every adapter. Names end in At for milliseconds since 1970 (UTC),
 * ids are lower-case hex. A record never holds a driver type, a class instance or a secret in the clear. Here are
 * developers, users, email accounts, and what hangs on them.
 */
import type { AccountResume, AccountStatus, Condition, WebhookHealth } from '../../machines/events.ts'

export type * from './mail.ts'

/** A developer's brand in the connect wizard. null = as the configuration has it. */
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
  /** For operators. Absent = none. */
  readonly name?: string
  /** Absent = none. */
  readonly brand?: BrandRecord
  /** The key is refused since then. null or absent = it is in force. */
  readonly revokedAt?: number | null
}

/** A user (lite) or account (2.0): one record serves both API versions. */
export interface UserRecord {
  readonly id: string
  readonly developerId: string
  readonly firstName: string
  readonly lastName: string
  /** Lower-cased addresses, the creation's email first. */
  readonly emailAddresses: readonly string[]
  /** Of accounts that are added and name none. null or absent = none. */
  readonly statusCallbackUrl?: string | null
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

/** As the account's chart has them. */
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
  /** Counts the transitions between OK and DISABLED; names each transition's callback. */
  readonly statusVersion: number
  readonly paused: boolean
  readonly resume: AccountResume
  /** Contacts are counted of everybody in a message. Absent = of senders alone so far; maintenance.ts mends it. */
  readonly everybodyCounted?: true
  /** The account was another mailbox: while it is read, what arrived after this time and was never seen is reported. */
  readonly remapSince?: number
  /** Since when every folder that holds mail is complete; null or absent = one is not. Written with that folder. */
  readonly completeAt?: number | null
  /** Fencing number: each claim adds one; a writer with an older epoch is refused with `lease_lost`. */
  readonly epoch: number
  readonly createdAt: number
}

export interface ContactCounts {
  readonly name: string
  readonly totalCount: number
  readonly directCount: number
  readonly indirectCount: number
  /** 0 = nothing was received from the contact. */
  readonly lastReceivedAt: number
}

export interface ContactRecord extends ContactCounts {
  /** contactId(userId, email) */
  readonly id: string
  readonly userId: string
  readonly email: string
}

/** The counts of one email account for a contact. The record leaves the store only for another store. */
export interface StoredContact extends ContactRecord {
  readonly accountId: string
}

/** What one message adds to a contact. Applying the same (contact, message, direct?) twice changes nothing. */
export interface ContactDelta {
  readonly userId: string
  readonly email: string
  readonly name: string
  /** `<messageId>:r` received, `:d` replied to, `:o` one of the others. Counted once. */
  readonly key: string
  readonly total: number
  readonly direct: number
  readonly indirect: number
  /** 0 = not received from the contact: `lastReceivedAt` stays. */
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
  /** Of the email account; '' = none; null = not named: a new account takes the user's, an old one keeps its own. */
  readonly statusCallbackUrl: string | null
  /** Of the source, those that were named; null = none. */
  readonly options: Partial<SourceOptions> | null
  readonly createdAt: number
  readonly expiresAt: number
  readonly usedAt: number | null
  /** Tries with a mailbox so far; absent = 0. */
  readonly tries?: number
  /** What is being made by it, written before that is: `usedAt` follows. null or absent = nothing. */
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
  /** Sealed, `<developerId>:<consumerKey>` as associated data. */
  readonly sealedSecret: string
  /** 'abc[...]xyz' as shown. */
  readonly shownSecret: string
  /** As registered: one of providerTypes. */
  readonly type: string
  readonly createdAt: number
}

/** What an operator may do by the admin API: see all, act on actors and callbacks, handle keys. */
export type OperatorScope = 'read' | 'act' | 'keys'

/** A token of the admin API; the one with the id `console` is the console's password. */
export interface OperatorRecord {
  readonly id: string
  readonly name: string
  /** `sha256:<hex>` of a token, `scrypt:<salt>:<hex>` of a password. */
  readonly hash: string
  readonly scopes: readonly OperatorScope[]
  readonly createdAt: number
  readonly revokedAt: number | null
}

/** What an operator has set while the service ran, by its name; see engine/settings.ts. */
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

/** What an operator has done, or tried to. */
export interface AuditRecord {
  readonly id: string
  readonly at: number
  /** `local`: in the data directory, beside the service. */
  readonly by: 'token' | 'session' | 'local'
  /** Id of the token, or a name of the session that is no secret. */
  readonly actorId: string
  readonly actorName: string
  /** As the call log has it; '' = local. */
  readonly address: string
  /** 'accounts pause' */
  readonly action: string
  /** Id or name of what it was done to; '' = named in the details, or nothing. */
  readonly target: string
  /** Parameters that are no secrets. */
  readonly details: Readonly<Record<string, string>>
  /** HTTP status of the answer. */
  readonly status: number
}

/* The change log, webhooks, and callbacks on their way. */

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
  /**
   * Waits between the attempts of a callback, and the text that gave them; absent or empty = MAILROOM_WEBHOOK_SCHEDULE.
   */
  readonly retryScheduleMs?: readonly number[]
  readonly retrySchedule?: string
  /** Sealed JSON: [{secret, createdAt, expiresAt|null}], newest first, webhook id as associated data. */
  readonly sealedSecrets: string
  readonly health: WebhookHealth
  /** The last one that was asked for; absent = none yet. */
  readonly redelivery?: Redelivery
  /** When `active` changed, oldest first, the newest few; absent = never. */
  readonly switches?: readonly { readonly active: boolean; readonly at: number }[]
  /** When the filters were last edited; absent = never. */
  readonly editedAt?: number
  readonly createdAt: number
}

/** Deliveries of a time on their way back into the queue, oldest first: a restart goes on after the last batch. */
export interface Redelivery {
  /** As asked for: bounds of the rows' createdAt, both inclusive. */
  readonly from: number | null
  readonly until: number | null
  readonly failedOnly: boolean
  /** Rows that were made or finished after this are none of its. */
  readonly startedAt: number
  /** Keyset of the last row set back; null = start. */
  readonly after: { readonly createdAt: number; readonly id: string } | null
  /** Rows set back so far. */
  readonly count: number
  readonly done: boolean
  /** Why it ended early, as a sentence. */
  readonly reason: string | null
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
  /** Where it went. */
  readonly url?: string
}

/** One callback to send, and afterwards the record of its delivery. */
export interface OutboxRecord {
  /** outboxId(channelId, event): sent as webhook-id, the same over retries, restarts and repeated batches. */
  readonly id: string
  /** A webhook's id, or urlChannelId(…) for callbacks to a bare URL. One actor per channel. */
  readonly channelId: string
  /** Of kind message, test and failure: the webhook they are about. */
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
  /** Of a bare-URL channel, or of a sample; '' = none, for the log alone; null = the webhook's callback_url. */
  readonly url: string | null
  readonly state: OutboxState
  readonly createdAt: number
  /** Not before; equals createdAt for a fresh row. */
  readonly dueAt: number
  /** An attempt that fails before this uses nothing of the schedule up: a row that waits for hours is tried between. */
  readonly countsAt?: number
  /** Attempts along the schedule. */
  readonly attemptCount: number
  /** The last 12, newest last. */
  readonly attempts: readonly DeliveryAttempt[]
  readonly finishedAt: number | null
  /** Why it was skipped or failed, as a sentence. */
  readonly reason: string | null
}
