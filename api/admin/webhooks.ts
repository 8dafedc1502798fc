/** Webhooks and callbacks as operators see them. */
import type { z } from 'zod'
import {
  type Engine,
  type FilterVerdict,
  notFound,
  type OutboxRecord,
  type OutboxState,
  type Page,
  type PoolFacts,
  type WebhookRecord,
} from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { presentDelivery } from '../lite/webhooks/present.ts'
import type { deliveryView } from '../lite/webhooks/schema.ts'
import { given } from '../values.ts'
import { noActor, orNull, presentSteps, presentWebhook } from './rows.ts'
import type { deliveryDetail, webhookList, webhookView } from './views.ts'

/** undefined = not asked for. */
export interface WebhookQuery extends Page {
  readonly developer?: string | undefined
  readonly state?: string | undefined
  /** Its receiver fails now. */
  readonly failing?: boolean | undefined
}

export type WebhookList = z.input<typeof webhookList>
export type WebhookDetail = z.input<typeof webhookView>
export type DeliveryRow = z.input<typeof deliveryView>
export type DeliveryDetail = z.input<typeof deliveryDetail>

/** Those that are in their state for longest come first. */
export function listWebhooks({ webhooks }: Engine, query: WebhookQuery): WebhookList {
  const known = new Map(webhooks.facts().map((facts) => [facts.id, facts]))
  const all = webhooks.all().map((webhook) => ({ webhook, facts: known.get(webhook.id) }))
  const matching = all
    .filter(({ webhook, facts }) => isLike(webhook, facts, query))
    .toSorted((left, right) => (left.facts?.since ?? Infinity) - (right.facts?.since ?? Infinity))
  const page = matching.slice(query.offset, query.offset + query.limit)
  return { total: matching.length, webhooks: page.map(({ webhook, facts }) => presentWebhook(webhook, facts)) }
}

function isLike(
  { developerId }: WebhookRecord,
  facts: PoolFacts | undefined,
  { developer, state, failing }: WebhookQuery,
): boolean {
  if (developer !== undefined && developer !== developerId) return false
  if (state !== undefined && state !== (facts?.state ?? noActor)) return false
  const fails = facts?.tags.some((tag) => tag === 'failed' || tag === 'retrying') === true
  return failing === undefined || failing === fails
}

async function findWebhook({ store }: Engine, id: string): Promise<WebhookRecord> {
  const webhook = await store.webhooks.get(id)
  if (webhook === null) throw notFound('webhook', id)
  return webhook
}

/** `not_found` for an unknown id, here and below. */
export async function webhookDetail(engine: Engine, id: string): Promise<WebhookDetail> {
  const webhook = await findWebhook(engine, id)
  const view = engine.webhooks.view(id)
  const { pending, oldestAt } = await engine.store.outbox.backlog(id)
  return {
    ...presentWebhook(webhook, view),
    created: seconds(webhook.createdAt),
    tags: [...(view?.tags ?? [])],
    active_states: [...(view?.active ?? [])],
    pending,
    oldest: orNull(oldestAt),
    steps: presentSteps(view),
  }
}

/** Newest first. */
export async function webhookDeliveries(
  engine: Engine,
  id: string,
  { state, ...page }: Page & { readonly state?: OutboxState | undefined },
): Promise<DeliveryRow[]> {
  const webhook = await findWebhook(engine, id)
  const query = given({ webhookId: id, states: state === undefined ? undefined : [state] })
  const rows = await engine.store.outbox.list(query, page)
  return rows.map((row) => presentDelivery(row, webhook))
}

async function findDelivery({ store }: Engine, id: string): Promise<OutboxRecord> {
  const row = await store.outbox.get(id)
  if (row === null) throw notFound('delivery', id)
  return row
}

export async function deliveryOf(engine: Engine, id: string, signal: AbortSignal): Promise<DeliveryDetail> {
  const row = await findDelivery(engine, id)
  const webhook = row.webhookId === null ? null : await engine.store.webhooks.get(row.webhookId)
  return {
    ...presentDelivery(row, webhook),
    developer_id: row.developerId,
    email_account: row.accountId,
    data: row.data,
    why: webhook === null ? [] : [...(await verdictsOf(engine, webhook, row, signal))],
  }
}

async function verdictsOf(
  { store, webhooks }: Engine,
  webhook: WebhookRecord,
  { accountId, messageId }: OutboxRecord,
  signal: AbortSignal,
): Promise<readonly FilterVerdict[]> {
  if (accountId === null || messageId === null) return []
  const [account, message] = await Promise.all([
    store.accounts.get(accountId),
    store.messages.get(accountId, messageId),
  ])
  if (account === null || message === null) return []
  // What an operator asks is not the user's to pay for.
  return (await webhooks.explain(webhook, account, message, { signal, reads: () => undefined })).verdicts
}

/** Answers 1, or 0 when it is on its way already. `conflict` when the webhook is paused. */
export async function redeliver(engine: Engine, id: string): Promise<number> {
  return engine.webhooks.resend(await findDelivery(engine, id))
}
