/**
 * What the store keeps: plain records, the same in every adapter. Names end in At for milliseconds since 1970 (UTC),
 * ids are lower-case hex. A record never holds a driver type, a class instance or a secret in the clear. Here are developers, users,
 * email accounts, and what hangs on them.
 */
import type { FailureClass } from '../errors.ts'

export type * from './records/callbacks.ts'
export type * from './records/mail.ts'

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
  /** How often the process ended at this account's work, since an orderly end; absent = 0. */
  readonly deaths?: number
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
  /** Contacts are counted of everybody in a message. Absent = of senders alone so far: recount.ts counts the others. */
  readonly everybodyCounted?: true
  /** The account was another mailbox: while it is read, what arrived after this time and was never seen is reported. */
  readonly remapSince?: number
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

/** What one account has counted of a contact; null = it is not known which. */
export interface ContactPart extends ContactCounts {
  readonly accountId: string | null
}

/** A contact as it lies in the store. It leaves it only for another store. */
export interface StoredContact extends ContactRecord {
  /** Absent = counted by a version that did not count by account. */
  readonly byAccount?: readonly ContactPart[]
}

/** What one message adds to a contact. Applying the same (contact, message, direct?) twice changes nothing. */
export interface ContactDelta {
  readonly userId: string
  readonly email: string
  readonly name: string
  /** Unique per message and kind of count: `<messageId>:r` received, `:d` replied to, `:o` one of the others. Counted once. */
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
  /** As registered: one of providerTypes. */
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
