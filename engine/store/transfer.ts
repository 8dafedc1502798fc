/** The interface of a store for copies (copy.ts): records are exported and imported page by page. */
import { identityOf, type Facts } from './facts.ts'
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

/** Count, export and import of one collection. Expired records are not counted and not exported. */
export interface Side<R> {
  count(): Promise<number>
  export(after: string | null, limit: number): Promise<ExportedPage<R>>
  import(records: readonly R[]): Promise<void>
}

interface Opened {
  /** For messages: host and database, or the path; never a password. */
  readonly name: string
  readonly facts: Facts
  readonly side: <N extends TransferName>(collection: N) => Side<TransferRecords[N]>
  /** Throws when this process may no longer export and import. */
  readonly check?: () => void
  close(): void | Promise<void>
}

/** All records of a store. */
export function createTransfer({ name, facts, side, check, close }: Opened) {
  return {
    name,
    /** The store's random id, whatever its address. */
    identity: () => identityOf(facts),
    /** Changes whenever a service opens the store: records copied before may be old. */
    served: () => facts.read('served'),
    count: (collection: TransferName) => side(collection).count(),
    /** A page in a stable order. `after`: `next` of the page before; null = from the start. */
    export: async <N extends TransferName>(collection: N, after: string | null, limit: number) => {
      check?.()
      return side(collection).export(after, limit)
    },
    import: async <N extends TransferName>(collection: N, records: readonly TransferRecords[N][]) => {
      check?.()
      await side(collection).import(records)
    },
    /** The progress of an unfinished copy into this store; null = no such copy. */
    progress: () => facts.read('copy'),
    saveProgress: (note: string | null) => facts.save('copy', note),
    close: async () => {
      await close()
    },
  }
}

export type StoreTransfer = ReturnType<typeof createTransfer>
