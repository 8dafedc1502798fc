/** Outbox rows of callbacks to a bare URL: same outbox, same promises, same signature as those of webhooks. */
import { outboxId, urlChannelId } from '../store/ids.ts'
import type { OutboxKind, OutboxRecord } from '../store/records.ts'

export interface UrlCallback {
  readonly kind: Exclude<OutboxKind, 'message' | 'test'>
  readonly url: string
  readonly developerId: string
  readonly userId: string | null
  readonly accountId: string | null
  readonly webhookId: string | null
  /** Names what happened, the same whenever it is found: `status:<account>:<version>` … */
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
  readonly at: number
}

export function urlRow({ event, at, ...callback }: UrlCallback): OutboxRecord {
  const channelId = urlChannelId(callback.developerId, callback.url)
  return {
    ...callback,
    id: outboxId(channelId, event),
    channelId,
    lane: 0,
    seq: 0,
    changeId: null,
    messageId: null,
    event: null,
    state: 'pending',
    createdAt: at,
    dueAt: at,
    attemptCount: 0,
    attempts: [],
    finishedAt: null,
    reason: null,
  }
}
