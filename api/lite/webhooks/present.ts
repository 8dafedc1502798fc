/** Webhooks and deliveries from records to the wire, and parameters from the wire to the engine. */
import type { z } from 'zod'
import type { DryRunRow, FilterVerdict, OutboxRecord, WebhookInput, WebhookRecord } from '../../../engine/index.ts'
import { seconds, type LiteUrls } from '../urls.ts'
import {
  filterKeys,
  filterNames,
  type deliveryView,
  type dryRunAnswer,
  type WebhookParameters,
  type webhookView,
} from './schema.ts'

export function presentWebhook(webhook: WebhookRecord, urls: LiteUrls): z.input<typeof webhookView> {
  const filters = filterKeys.flatMap((key) => {
    const value = webhook.filters[filterNames[key]]
    return value === undefined ? [] : [[key, value]]
  })
  return {
    webhook_id: webhook.id,
    callback_url: webhook.callbackUrl,
    ...(webhook.failureNotifUrl === null ? {} : { failure_notif_url: webhook.failureNotifUrl }),
    active: webhook.active,
    failure: webhook.health.failure,
    ...(Object.fromEntries(filters) as Record<string, string>),
    include_body: webhook.includeBody,
    ...(webhook.bodyType === null ? {} : { body_type: webhook.bodyType }),
    include_header: webhook.includeHeader === null ? false : webhook.includeHeader === 'raw' ? 'raw' : true,
    receive_all_changes: webhook.receiveAllChanges,
    receive_drafts: webhook.receiveDrafts,
    receive_historical: webhook.receiveHistorical,
    ...(webhook.userId === null ? { developerId: webhook.developerId, version: webhook.version } : {}),
    resource_url: urls.webhook(webhook),
  }
}

/** What is named, and nothing else; an empty text removes. */
export function webhookInput(body: WebhookParameters): WebhookInput {
  const named = filterKeys.filter((key) => body[key] !== undefined)
  const filters = Object.fromEntries(named.map((key) => [filterNames[key], body[key] || null]))
  return {
    ...(body.callback_url === undefined ? {} : { callbackUrl: body.callback_url }),
    ...(body.failure_notif_url === undefined ? {} : { failureNotifUrl: body.failure_notif_url || null }),
    ...(body.active === undefined ? {} : { active: body.active }),
    ...(named.length === 0 ? {} : { filters }),
    ...(body.include_body === undefined ? {} : { includeBody: body.include_body }),
    ...(body.body_type === undefined ? {} : { bodyType: body.body_type || null }),
    ...(body.include_header === undefined
      ? {}
      : { includeHeader: body.include_header === false ? null : body.include_header }),
    ...(body.receive_all_changes === undefined ? {} : { receiveAllChanges: body.receive_all_changes }),
    ...(body.receive_drafts === undefined ? {} : { receiveDrafts: body.receive_drafts }),
    ...(body.receive_historical === undefined ? {} : { receiveHistorical: body.receive_historical }),
  }
}

export function presentDelivery(row: OutboxRecord): z.input<typeof deliveryView> {
  return {
    delivery_id: row.id,
    webhook_id: row.webhookId,
    kind: row.kind,
    event: row.event,
    state: row.state,
    reason: row.reason,
    account_id: row.userId,
    message_id: row.messageId,
    created: seconds(row.createdAt),
    due: row.state === 'pending' ? seconds(row.dueAt) : null,
    finished: row.finishedAt === null ? null : seconds(row.finishedAt),
    attempt_count: row.attemptCount,
    attempts: row.attempts.map((attempt) => ({
      timestamp: seconds(attempt.at),
      duration_ms: attempt.durationMs,
      status_code: attempt.status,
      error: attempt.error,
      response: attempt.response,
    })),
  }
}

export function presentVerdict({ filter, matched, why }: FilterVerdict) {
  const wire = filterKeys.find((key) => filterNames[key] === filter) ?? filter
  return { filter: wire, matched, why }
}

export function presentDryRun(rows: readonly DryRunRow[]): z.input<typeof dryRunAnswer> {
  return rows.map(({ message, matched, verdicts }) => ({
    message_id: message.id,
    email_message_id: message.emailMessageId,
    subject: message.subject,
    matched,
    filters: verdicts.map(presentVerdict),
  }))
}
