/** What a copy moves between stores (copy.ts): their records as they are given out and taken in, page by page. */
import type { Kinds } from './keyed.ts'
import type { MessageRecord, StoredContact } from './records.ts'

export interface CountedMessage {
  readonly message: MessageRecord
  readonly counted: readonly string[]
}

/** A contact with the keys of counted deltas whose messages may not be there to say so. */
export interface CountedContact {
  readonly contact: StoredContact
  readonly counted: readonly string[]
}

export interface NonceRow {
  readonly apiKey: string
  readonly nonce: string
  readonly timestamp: number
  readonly expiresAt: number
}

export interface TransferRecords extends Omit<Kinds, 'contacts'> {
  readonly messages: CountedMessage
  readonly contacts: CountedContact
  readonly nonces: NonceRow
}

export type TransferName = keyof TransferRecords

export interface ExportedPage<R> {
  readonly records: readonly R[]
  /** Where the next page starts; null = this was the last. */
  readonly next: string | null
}

/** All that a store holds, as plain records. Not part of the port: only the copy uses it. */
export interface StoreTransfer {
  /** What it is, for people: host and database, or the path. Never a password. */
  readonly name: string
  /** What names it however it is spelt and reached. */
  identity(): Promise<string>
  /** Another one after each opening as a service: what was copied before may be old. */
  served(): Promise<string | null>
  /** What has expired does not count, and is not exported. */
  count(collection: TransferName): Promise<number>
  /** A page in a stable order, after the position that the page before gave (null = from the start). */
  export<N extends TransferName>(
    collection: N,
    after: string | null,
    limit: number,
  ): Promise<ExportedPage<TransferRecords[N]>>
  import<N extends TransferName>(collection: N, records: readonly TransferRecords[N][]): Promise<void>
  /** What a copy into this store has noted of its progress; null = none is under way. */
  progress(): Promise<string | null>
  saveProgress(note: string | null): Promise<void>
  close(): Promise<void>
}
