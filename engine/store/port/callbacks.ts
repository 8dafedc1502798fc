/** The change log, webhooks and the outbox. */
import type { DeliveryAttempt, OutboxKind, OutboxRecord, OutboxState } from '../records.ts'
import type { changeReads } from '../aggregates.ts'
import type { Page } from '../port.ts'

export interface ChangeStore extends ReturnType<typeof changeReads> {
  /** 0 when there is none. */
  lastSeq(accountId: string): Promise<number>
  /** Removes at most `limit` older than `before`; the newest of an account stays. Answers how many. */
  expire(before: number, limit: number): Promise<number>
}

/** How many webhooks there may be; 0 = any number. */
export interface WebhookLimits {
  /** Of one user; and as many at application level. */
  readonly owner: number
  /** Of one developer, at both levels. */
  readonly developer: number
}

export interface DeliveryQuery {
  readonly webhookId?: string
  readonly developerId?: string
  readonly accountId?: string
  readonly messageId?: string
  readonly kind?: OutboxKind
  readonly states?: readonly OutboxState[]
  readonly createdFrom?: number
  readonly createdUntil?: number
  /** HTTP status of the last attempt. */
  readonly statusFrom?: number
  readonly statusTo?: number
}

/** A row's place in the order of (createdAt, id). */
export interface OutboxKey {
  readonly createdAt: number
  readonly id: string
}

export interface RequeueQuery extends DeliveryQuery {
  readonly ids?: readonly string[]
  /** Rows finished later stay as they are. */
  readonly finishedUntil?: number
}

export interface OutboxStore {
  /** Inserts rows that are not there yet (by id). Answers those that were new. */
  enqueue(rows: readonly OutboxRecord[]): Promise<OutboxRecord[]>
  get(id: string): Promise<OutboxRecord | null>
  /** Channels with pending rows, for the start of the engine. */
  channels(): Promise<string[]>
  /** In order of (lane, createdAt, seq), without these accounts ('' = none), and the historical rows of others. */
  pending(
    channelId: string,
    exceptAccounts: readonly string[],
    limit: number,
    exceptHistorical?: readonly string[],
  ): Promise<OutboxRecord[]>
  /** Pending count and the time of the oldest, for actors and metrics. */
  backlog(channelId: string): Promise<{ readonly pending: number; readonly oldestAt: number | null }>
  /** Records an attempt and the row's next state, several rows in one step. */
  record(results: readonly OutboxResult[]): Promise<void>
  /** Newest first. */
  list(query: DeliveryQuery, page: Page): Promise<OutboxRecord[]>
  /**
   * One batch: sets finished rows, and pending ones that are named by `ids`, back to pending with attemptCount 0 and
   * dueAt now, oldest first, at most `limit` of those behind `after`. Answers how many, and where the next batch goes
   * on; null = these were the last.
   */
  requeue(
    query: RequeueQuery,
    now: number,
    limit: number,
    after?: OutboxKey | null,
  ): Promise<{ readonly count: number; readonly next: OutboxKey | null }>
  /** A paused webhook keeps no backlog: its pending message rows become 'skipped'. Answers how many. */
  skipPending(channelId: string, reason: string, now: number): Promise<number>
  /** Retention of finished rows. Answers how many went. */
  expire(before: number, limit: number): Promise<number>
}

export interface OutboxResult {
  readonly id: string
  readonly attempt: DeliveryAttempt | null
  /** false = the attempt is kept for the log and uses nothing of the row's schedule up. */
  readonly counted?: false
  readonly state: OutboxState
  readonly dueAt: number
  /** Absent = as it was. */
  readonly countsAt?: number
  readonly finishedAt: number | null
  readonly reason: string | null
}
