/**
 * Failure notifications: a webhook's `failure` became true. One per failing period, named by the webhook's failure version. Without a
 * failure_notif_url it goes nowhere, and stands in the delivery log all the same.
 */
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import { urlRow } from './rows.ts'

export interface FailureNews {
  readonly version: number
  /** Why, in words. */
  readonly message: string
  readonly at: number
}

/** `last`: the row whose failure tipped the scale; says whose callbacks wait. */
export function failureRow(
  webhook: WebhookRecord,
  news: FailureNews,
  last: { readonly userId: string | null; readonly accountId: string | null },
): OutboxRecord {
  const url = webhook.failureNotifUrl ?? ''
  const row = urlRow({
    kind: 'failure',
    url,
    developerId: webhook.developerId,
    userId: webhook.userId ?? last.userId,
    accountId: last.accountId,
    webhookId: webhook.id,
    event: `failure:${webhook.id}:${news.version}`,
    data: { webhook_id: webhook.id, data: news.message },
    at: news.at,
  })
  if (url !== '') return row
  return { ...row, state: 'skipped', finishedAt: news.at, reason: 'no failure_notif_url' }
}
