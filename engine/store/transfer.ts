/** The interface of a store for copies (copy.ts): records are exported and imported page by page. */
import type { Kinds } from './keyed.ts'
import type { MessageRecord, StoredContact } from './records.ts'

export interface CountedMessage {
  readonly message: MessageRecord
  readonly counted: readonly string[]
}

/** A contact, and the keys of its counted deltas that no message record has. */
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
  /** The position of the next page; null = this is the last page. */
  readonly next: string | null
}

/** All records of a store. */
export interface StoreTransfer {
  /** For messages: host and database, or the path; never a password. */
  readonly name: string
  /** The store's random id, whatever its address. */
  identity(): Promise<string>
  /** Changes whenever a service opens the store: records copied before may be old. */
  served(): Promise<string | null>
  /** Expired records are not counted and not exported. */
  count(collection: TransferName): Promise<number>
  /** A page in a stable order. `after`: `next` of the page before; null = from the start. */
  export<N extends TransferName>(
    collection: N,
    after: string | null,
    limit: number,
  ): Promise<ExportedPage<TransferRecords[N]>>
  import<N extends TransferName>(collection: N, records: readonly TransferRecords[N][]): Promise<void>
  /** The progress of an unfinished copy into this store; null = no such copy. */
  progress(): Promise<string | null>
  saveProgress(note: string | null): Promise<void>
  close(): Promise<void>
}
