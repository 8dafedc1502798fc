/**
 * All that a store holds, as plain records, for moving it to another one. Not part of the port: only the copy uses it, while
 * no engine runs on either side.
 */
import type {
  AccountRecord,
  CallLogRecord,
  ChangeRecord,
  ConnectTokenRecord,
  ContactRecord,
  DeveloperRecord,
  FolderRecord,
  HistoricalScan,
  MessageRecord,
  OAuthProviderRecord,
  OutboxRecord,
  UserRecord,
  WebhookRecord,
} from './records.ts'

/** A contact with the keys of the deltas that have been counted, oldest first where the store knows. */
export interface CountedContact {
  readonly contact: ContactRecord
  readonly counted: readonly string[]
}

export interface NonceRow {
  readonly apiKey: string
  readonly nonce: string
  readonly timestamp: number
  readonly expiresAt: number
}

export interface TransferRecords {
  readonly developers: DeveloperRecord
  readonly users: UserRecord
  readonly accounts: AccountRecord
  readonly folders: FolderRecord
  readonly messages: MessageRecord
  readonly changes: ChangeRecord
  readonly webhooks: WebhookRecord
  readonly scans: HistoricalScan
  readonly outbox: OutboxRecord
  readonly contacts: CountedContact
  readonly tokens: ConnectTokenRecord
  readonly providers: OAuthProviderRecord
  readonly nonces: NonceRow
  readonly calls: CallLogRecord
}

export type TransferName = keyof TransferRecords

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
