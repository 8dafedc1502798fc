/** Who is measured: our adapter, or the bare driver doing the same. */
import type { Store, SyncBatch } from '../../../engine/store/port.ts'
import type { DeliveryAttempt } from '../../../engine/store/records.ts'

export interface ListPage {
  readonly accountId: string
  /** null = the whole account. */
  readonly folderId: string | null
  readonly limit: number
  readonly offset: number
}

/** Of all that is stored, by the statistics of the store. */
export interface Bytes {
  readonly data: number
  readonly indexes: number
}

export interface Contestant {
  /** Makes the batch ready outside the measured time; the answer writes it. */
  prepare(batch: SyncBatch): () => Promise<unknown>
  /** Live messages, newest first, as records. Answers how many. */
  page(page: ListPage): Promise<number>
  /** One message by its id. Answers whether it is there. */
  message(accountId: string, id: string): Promise<boolean>
  /** Reads waiting rows of a channel and records each as delivered. Answers how many. */
  claim(channelId: string, limit: number): Promise<number>
  bytes(): Promise<Bytes>
  close(): Promise<void>
}

/** The one attempt of every claimed row. */
export function deliveredAttempt(at: number): DeliveryAttempt {
  return { at, durationMs: 12, status: 200, error: null, response: 'ok' }
}

export function adapter(store: Store, bytes: () => Promise<Bytes>): Contestant {
  return {
    prepare: (batch) => () => store.sync.apply(batch),
    page: async ({ accountId, folderId, limit, offset }) => {
      const query = folderId === null ? {} : { folderId }
      return (await store.messages.list(accountId, query, { limit, offset })).length
    },
    message: async (accountId, id) => (await store.messages.get(accountId, id)) !== null,
    claim: async (channelId, limit) => {
      const rows = await store.outbox.pending(channelId, [], limit)
      const at = Date.now()
      const result = {
        attempt: deliveredAttempt(at),
        state: 'delivered',
        dueAt: at,
        finishedAt: at,
        reason: null,
      } as const
      await store.outbox.record(rows.map(({ id }) => ({ id, ...result })))
      return rows.length
    },
    bytes,
    close: () => store.close(),
  }
}
