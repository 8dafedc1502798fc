/** Webhooks and deliveries from records to the wire, and parameters from the wire to the engine. */
import type { z } from 'zod'
import {
  bracketed,
  filterParameters,
  type DeliveryQuery,
  type DryRunRow,
  type OutboxRecord,
  type Page,
  type Redelivery,
  type Store,
  type WebhookFilters,
  type WebhookInput,
  type WebhookRecord,
} from '../../../engine/index.ts'
import { seconds, type LiteUrls } from '../../addresses.ts'
import { given } from '../../values.ts'
import type * as schema from './schema.ts'

const filterNames = Object.keys(filterParameters) as (keyof WebhookFilters)[]

export function presentWebhook(webhook: WebhookRecord, urls: LiteUrls): z.input<typeof schema.webhookView> {
  const filters = filterNames.flatMap((name) => {
    const value = webhook.filters[name]
    return value === undefined ? [] : [[filterParameters[name], value]]
  })
  return {
    webhook_id: webhook.id,
    callback_url: webhook.callbackUrl,
    ...(webhook.failureNotifUrl === null ? {} : { failure_notif_url: webhook.failureNotifUrl }),
    ...(webhook.retrySchedule ? { retry_schedule: webhook.retrySchedule } : {}),
    active: webhook.active,
    failure: webhook.health.failure,
    ...presentHealth(webhook.health),
    ...(Object.fromEntries(filters) as Record<string, string>),
    include_body: webhook.includeBody,
    ...(webhook.bodyType === null ? {} : { body_type: webhook.bodyType }),
    ...presentHeaderWish(webhook),
    receive_all_changes: webhook.receiveAllChanges,
    receive_drafts: webhook.receiveDrafts,
    receive_historical: webhook.receiveHistorical,
    ...(webhook.userId === null ? { developerId: webhook.developerId, version: webhook.version } : {}),
    resource_url: urls.webhook(webhook),
  }
}

function presentHeaderWish({ includeHeader }: WebhookRecord) {
  if (includeHeader === null) return { include_header: false }
  return { include_header: true, header_format: includeHeader === 'raw' ? ('raw' as const) : ('parsed' as const) }
}

/** Why it fails and what comes next. What has not happened is left out. */
function presentHealth({ lastError, failingSince, abandonedAt, retryAt, lastSuccessAt }: WebhookRecord['health']) {
  const time = (at: number | null): number | undefined => (at === null ? undefined : seconds(at))
  return given({
    last_error: lastError ?? undefined,
    failing_since: time(failingSince),
    abandoned_since: time(abandonedAt),
    retry_at: time(retryAt),
    last_success_at: time(lastSuccessAt),
  })
}

/** What is named, and nothing else; an empty text removes. */
export function webhookInput(body: schema.WebhookParameters): WebhookInput {
  const named = filterNames.filter((name) => body[filterParameters[name]] !== undefined)
  const filters = Object.fromEntries(named.map((name) => [name, body[filterParameters[name]] || null]))
  return given({
    callbackUrl: body.callback_url,
    failureNotifUrl: orNull(body.failure_notif_url),
    retrySchedule: body.retry_schedule,
    active: body.active,
    filters: named.length === 0 ? undefined : filters,
    includeBody: body.include_body,
    bodyType: orNull(body.body_type),
    includeHeader: body.include_header === false ? null : body.include_header,
    receiveAllChanges: body.receive_all_changes,
    receiveDrafts: body.receive_drafts,
    receiveHistorical: body.receive_historical,
  })
}

/** An empty text removes the value. */
const orNull = <T extends string>(value: T | undefined): T | null | undefined => (value === '' ? null : value)

/** `webhook`: the one of a message, as it is now; its callbacks go to where it points. */
export function presentDelivery(
  row: OutboxRecord,
  webhook: Pick<WebhookRecord, 'callbackUrl'> | null,
): z.input<typeof schema.deliveryView> {
  return {
    delivery_id: row.id,
    webhook_id: row.webhookId,
    url: (row.attempts.at(-1)?.url ?? row.url ?? webhook?.callbackUrl) || null,
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
      url: attempt.url ?? null,
      duration_ms: attempt.durationMs,
      status_code: attempt.status,
      error: attempt.error,
      response: attempt.response,
    })),
  }
}

/** Rows lie by email account: a page of several queries, newest first. */
export async function listNewest(outbox: Store['outbox'], queries: readonly DeliveryQuery[], page: Page) {
  const head = { limit: page.offset + page.limit, offset: 0 }
  const lists = await Promise.all(queries.map((query) => outbox.list(query, head)))
  return lists
    .flat()
    .toSorted((left, right) => right.createdAt - left.createdAt || (left.id < right.id ? 1 : -1))
    .slice(page.offset, page.offset + page.limit)
}

/** undefined: none has been asked for yet. */
export function presentRedelivery(last: Redelivery | undefined): z.input<typeof schema.redeliveryView> {
  const orNull = (at: number | null | undefined) => (at === null || at === undefined ? null : seconds(at))
  return {
    redelivered: last?.count ?? 0,
    done: last?.done ?? true,
    reason: last?.reason ?? null,
    from: orNull(last?.from),
    to: orNull(last?.until),
    failed_only: last?.failedOnly ?? false,
    started: orNull(last?.startedAt),
  }
}

export function presentDryRun(rows: readonly DryRunRow[]): z.input<typeof schema.dryRunAnswer> {
  return rows.map(({ account, message, matched, verdicts }) => ({
    account_id: account.userId,
    label: account.label,
    message_id: message.id,
    email_message_id: bracketed(message.emailMessageId) ?? '',
    subject: message.subject,
    matched,
    filters: [...verdicts],
  }))
}
