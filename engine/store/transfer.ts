/**
 * All that a store holds, as plain records, for moving it to another one. Not part of the port: only the copy uses it, while
 * no engine runs on either side.
 */
import type * as stored from './records.ts'

/** A message with the kinds of contact deltas that it has been counted for. */
export interface CountedMessage {
  readonly message: stored.MessageRecord
  readonly counted: readonly string[]
}

/** A contact with `<account> <delta's key>` of counted deltas whose messages may not be there to say so. */
export interface CountedContact {
  readonly contact: stored.StoredContact
  readonly counted: readonly string[]
}

export interface NonceRow {
  readonly apiKey: string
  readonly nonce: string
  readonly timestamp: number
  readonly expiresAt: number
}

export interface TransferRecords {
  readonly developers: stored.DeveloperRecord
  readonly users: stored.UserRecord
  readonly accounts: stored.AccountRecord
  readonly folders: stored.FolderRecord
  readonly messages: CountedMessage
  readonly changes: stored.ChangeRecord
  readonly webhooks: stored.WebhookRecord
  readonly scans: stored.HistoricalScan
  readonly outbox: stored.OutboxRecord
  readonly contacts: CountedContact
  readonly tokens: stored.ConnectTokenRecord
  readonly providers: stored.OAuthProviderRecord
  readonly nonces: NonceRow
  readonly calls: stored.CallLogRecord
}

export type TransferName = keyof TransferRecords

/** Records that expire by themselves, at any moment of a copy: their counts prove nothing. */
export const expiring: ReadonlySet<TransferName> = new Set(['nonces', 'tokens'])

/** In the order in which they are copied: what others lean on comes first. */
export const transferNames = [
  'developers',
  'users',
  'accounts',
  'folders',
  'messages',
  'changes',
  'webhooks',
  'scans',
  'outbox',
  'contacts',
  'tokens',
  'providers',
  'nonces',
  'calls',
] as const satisfies readonly TransferName[]

export interface ExportedPage<N extends TransferName> {
  readonly records: readonly TransferRecords[N][]
  /** Where the next page starts; null = this was the last. */
  readonly next: string | null
}

export interface StoreTransfer {
  /** What it is, for people: host and database, or the path. Never a password. */
  readonly name: string
  /** What names it however it is spelt and reached. */
  identity(): Promise<string>
  /** What has expired does not count, and is not exported. */
  count(collection: TransferName): Promise<number>
  /** A page in a stable order, after the position that the page before gave (null = from the start). */
  export<N extends TransferName>(collection: N, after: string | null, limit: number): Promise<ExportedPage<N>>
  /** Writes them, over what has the same id. */
  import<N extends TransferName>(collection: N, records: readonly TransferRecords[N][]): Promise<void>
  /** What a copy into this store has noted of its progress; null = none is under way. */
  progress(): Promise<string | null>
  saveProgress(note: string | null): Promise<void>
  close(): Promise<void>
}
