/** Webhooks and callbacks as operators see them. */
import { z } from 'zod'
import {
  type Engine,
  type FilterVerdict,
  freshHealth,
  noActor,
  type OutboxRecord,
  type PoolFacts,
  shownStates,
  userAgent,
  type WebhookRecord,
} from '../../engine/index.ts'
import { seconds, secondsOrNull } from '../addresses.ts'
import { answer, exampleOf, ids, time, view } from '../examples.ts'
import { presentDelivery } from '../lite/webhooks/deliveries.ts'
import { deliveryFields, deliveryStates, redeliverAnswer } from '../lite/webhooks/schema.ts'
import { choice, filledText, flag, given, optional } from '../values.ts'
import { adminRoute, count, developerId, factsById, found, nextView, paging, presentNext } from './shared.ts'
import { presentSteps, presentWays, stepView, total, wayFields } from './shared.ts'

const webhookFields = {
  id: [z.string(), ids.webhook],
  developer_id: developerId,
  user_id: [z.string().nullable(), ids.user],
  callback_url: [z.string(), 'https://app.example.com/callback'],
  active: [z.boolean(), true],
  state: [z.string(), 'idle'],
  since: [z.int(), time],
  failing_since: [z.int().nullable(), null],
  failures: [count, 0, 'failed attempts in a row'],
  message: [z.string().nullable(), null],
  next: [nextView, null],
  pending: [count, 0, 'callbacks that wait'],
  oldest: [z.int().nullable(), null, 'the oldest of them is of then'],
  latency_ms: [
    count.nullable(),
    60,
    'from the event to the delivery, median of the last ten; null = none was delivered',
  ],
} as const
const webhookRow = view('AdminWebhook', webhookFields)
type WebhookRow = z.input<typeof webhookRow>

const webhookList = answer({ total, webhooks: [z.array(webhookRow), [exampleOf(webhookRow)]] })
export type WebhookList = z.input<typeof webhookList>

const webhookView = view('AdminWebhookDetail', {
  ...webhookFields,
  created: [z.int(), time],
  tags: [z.array(z.string()), ['idle']],
  active_states: [z.array(z.string()), ['running.work.idle'], 'the states of its chart that are active, as paths'],
  ...wayFields,
  steps: [z.array(stepView), []],
})
export type WebhookDetail = z.input<typeof webhookView>

const waits = [
  answer({
    behind: [
      z.enum(['receiver', 'callback', 'schedule', 'turn']),
      'callback',
      '`receiver`: it fails, and one callback is tried at `until`; `callback`: an earlier one of the same email account; `schedule`: its own next attempt',
    ],
    callback: [z.string().nullable(), ids.delivery, 'the earlier one'],
    until: [z.int().nullable(), time],
  }).nullable(),
  null,
  'what a pending callback waits for',
] as const

const adminCallback = view('AdminCallback', { ...deliveryFields, waits })
export type DeliveryRow = z.input<typeof adminCallback>

function presentRow(
  engine: Engine,
  row: OutboxRecord,
  webhook: Pick<WebhookRecord, 'callbackUrl'> | null,
): DeliveryRow {
  const waiting = engine.webhooks.waits(row)
  return { ...presentDelivery(row, webhook), waits: waiting && { ...waiting, until: secondsOrNull(waiting.until) } }
}

/** A callback, and what led to it. */
const deliveryDetail = view('AdminDelivery', {
  ...deliveryFields,
  waits,
  developer_id: developerId,
  email_account: [z.string().nullable(), '7c9e6679f81d4b1c8a2e3d4f', 'id of the email account'],
  channel_id: [z.string(), ids.webhook, 'where it waits: the webhook, or u… of a bare URL'],
  data: [z.record(z.string(), z.unknown()), {}, 'what is kept of the request; the body is made when it is sent'],
  request: answer({
    method: [z.literal('POST'), 'POST'],
    url: [z.string().nullable(), 'https://app.example.com/callback'],
    headers: [z.record(z.string(), z.string()), { 'webhook-id': ids.webhook }, 'signatures are masked'],
    body: [
      z.record(z.string(), z.unknown()).nullable(),
      {},
      'made anew of what the index has now, without texts of the mail, token and signature; null = see why_no_body',
    ],
    why_no_body: [z.string().nullable(), null],
  }),
  why: [
    z.array(
      answer({ filter: [z.string(), 'filter_from'], matched: [z.boolean(), true], why: [z.string(), 'it fits'] }),
    ),
    [],
    'what each filter says of the message; none when message or webhook are gone, or it is about no message',
  ],
})
export type DeliveryDetail = z.input<typeof deliveryDetail>

type Channel = Pick<WebhookRecord, 'id' | 'developerId' | 'userId' | 'callbackUrl' | 'active' | 'health' | 'createdAt'>

async function rowOf({ store }: Engine, channel: Channel, facts: PoolFacts | null | undefined): Promise<WebhookRow> {
  const { id, developerId: developer_id, userId: user_id, callbackUrl: callback_url, active, health } = channel
  const { pending, oldestAt } = await store.outbox.backlog(id)
  return {
    ...{ id, developer_id, user_id, callback_url, active },
    state: facts?.state ?? noActor,
    since: seconds(facts?.since ?? channel.createdAt),
    failing_since: secondsOrNull(health.failingSince),
    failures: facts?.attempt ?? health.consecutiveFailures,
    message: health.lastError ?? facts?.lastError?.message ?? null,
    next: presentNext(facts),
    pending,
    oldest: secondsOrNull(oldestAt),
    latency_ms: await latencyOf(store, id),
  }
}

const newest = { limit: 10, offset: 0 }

async function latencyOf({ outbox }: Engine['store'], webhookId: string): Promise<number | null> {
  const delivered = await outbox.list({ webhookId, states: ['delivered'] }, newest)
  const took = delivered.map(({ createdAt, finishedAt }) => (finishedAt ?? createdAt) - createdAt)
  return took.toSorted((one, other) => one - other)[Math.floor(took.length / 2)] ?? null
}

export const webhookQuery = z.object({
  developer: optional(filledText, 'only webhooks of this developer, by id'),
  state: optional(choice(shownStates.webhook), 'only webhooks whose actor does this'),
  failing: optional(flag, '1 = only those whose receiver fails now, 0 = only others'),
  ...paging,
})
type WebhookQuery = z.output<typeof webhookQuery>

/** Failing ones come first; of them, and of the others, those that are in their state for longest. */
export async function listWebhooks(engine: Engine, query: WebhookQuery): Promise<WebhookList> {
  const known = factsById(engine.webhooks)
  const matching = engine.webhooks
    .all()
    .map((webhook) => ({ webhook, facts: known.get(webhook.id) }))
    .filter(({ webhook, facts }) => isLike(webhook, facts, query))
    .toSorted((left, right) => (left.facts?.since ?? Infinity) - (right.facts?.since ?? Infinity))
    .toSorted((left, right) => Number(fails(right.webhook, right.facts)) - Number(fails(left.webhook, left.facts)))
  const page = matching.slice(query.offset, query.offset + query.limit)
  const webhooks = await Promise.all(page.map(({ webhook, facts }) => rowOf(engine, webhook, facts)))
  return { total: matching.length, webhooks }
}

function isLike(
  { developerId, active }: WebhookRecord,
  facts: PoolFacts | undefined,
  { developer, state, failing }: WebhookQuery,
): boolean {
  if (developer !== undefined && developer !== developerId) return false
  if (state !== undefined && state !== (facts?.state ?? noActor)) return false
  return failing === undefined || failing === fails({ active }, facts)
}

function fails({ active }: Pick<WebhookRecord, 'active'>, facts: PoolFacts | undefined): boolean {
  return active && facts?.tags.some((tag) => tag === 'failed' || tag === 'retrying') === true
}

/** Of a webhook, or of a bare URL (its id begins with u), which is known while something waits for it. */
function findChannel({ store }: Engine, id: string): Promise<Channel> {
  const bare = async (): Promise<Channel | null> => bareUrl((await store.outbox.pending(id, [], 1))[0])
  return found<Channel>('webhook', id, id.startsWith('u') ? bare() : store.webhooks.get(id))
}

function bareUrl(row: OutboxRecord | undefined): Channel | null {
  if (row === undefined) return null
  const { channelId: id, developerId: developer, url, createdAt } = row
  return {
    id,
    developerId: developer,
    userId: null,
    callbackUrl: url ?? '',
    active: true,
    health: freshHealth,
    createdAt,
  }
}

/** `not_found` for an unknown id, here and below. */
export async function webhookDetail(engine: Engine, id: string): Promise<WebhookDetail> {
  const channel = await findChannel(engine, id)
  const seen = engine.webhooks.view(id)
  return {
    ...(await rowOf(engine, channel, seen)),
    created: seconds(channel.createdAt),
    tags: [...(seen?.tags ?? [])],
    active_states: [...(seen?.active ?? [])],
    steps: presentSteps(seen),
    ...presentWays(seen),
  }
}

export const deliveriesQuery = z.object({
  state: optional(choice(deliveryStates), 'only callbacks in this state'),
  ...paging,
})

type DeliveriesQuery = z.output<typeof deliveriesQuery>

/** Newest first. */
export async function webhookDeliveries(engine: Engine, id: string, query: DeliveriesQuery): Promise<DeliveryRow[]> {
  const webhook = await findChannel(engine, id)
  const { state, limit, offset } = query
  const states = state === undefined ? undefined : [state]
  const rows = id.startsWith('u')
    ? await waitingFor(engine, id, query)
    : await engine.store.outbox.list(given({ webhookId: id, states }), { limit, offset })
  return rows.map((row) => presentRow(engine, row, webhook))
}

/** Of a bare URL only those that wait are known, in the order of sending. */
async function waitingFor({ store }: Engine, id: string, query: DeliveriesQuery): Promise<OutboxRecord[]> {
  const { state = 'pending', limit, offset } = query
  return state === 'pending' ? (await store.outbox.pending(id, [], offset + limit)).slice(offset) : []
}

export async function deliveryOf(engine: Engine, id: string, signal: AbortSignal): Promise<DeliveryDetail> {
  const row = await found('delivery', id, engine.store.outbox.get(id))
  const webhook = row.webhookId === null ? null : await engine.store.webhooks.get(row.webhookId)
  return {
    ...presentRow(engine, row, webhook),
    developer_id: row.developerId,
    email_account: row.accountId,
    channel_id: row.channelId,
    data: row.data,
    request: await requestOf(engine, row),
    why: webhook === null ? [] : [...(await verdictsOf(engine, webhook, row, signal))],
  }
}

/** As each attempt makes it: what differs from one to the next, and is secret, is masked. */
async function requestOf({ webhooks }: Engine, row: OutboxRecord): Promise<DeliveryDetail['request']> {
  const made = await webhooks.preview(row)
  const last = row.attempts.at(-1)
  const headers = {
    'content-type': 'application/json',
    'user-agent': userAgent,
    'webhook-id': row.id,
    'webhook-timestamp': last === undefined ? 'when it is sent' : String(seconds(last.at)),
    'webhook-signature': 'v1,***',
  }
  const given = made.kind === 'send' ? made : { url: null, body: null }
  const why_no_body = made.kind === 'send' ? null : made.reason
  return { method: 'POST', url: last?.url ?? row.url ?? given.url, headers, body: given.body, why_no_body }
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
  return engine.webhooks.resend(await found('delivery', id, engine.store.outbox.get(id)))
}

export const adminWebhookRoutes = [
  adminRoute('GET /admin/webhooks', {
    summary: 'List webhooks of all developers, failing ones first, then those that are in their state for longest',
    query: webhookQuery,
    response: webhookList,
    handler: ({ query }, { engine }) => listWebhooks(engine, query),
  }),
  adminRoute('GET /admin/webhooks/{id}', {
    summary: 'Get a webhook: states, steps, and what waits',
    response: webhookView,
    handler: ({ path }, { engine }) => webhookDetail(engine, path.id),
  }),
  adminRoute('GET /admin/webhooks/{id}/deliveries', {
    summary: 'List the callbacks of a webhook, newest first',
    query: deliveriesQuery,
    response: z.array(adminCallback),
    handler: ({ path, query }, { engine }) => webhookDeliveries(engine, path.id, query),
  }),
  adminRoute('GET /admin/deliveries/{id}', {
    summary: 'Get a callback: its attempts, the answers, and why it matched',
    response: deliveryDetail,
    handler: ({ path }, { engine, signal }) => deliveryOf(engine, path.id, signal),
  }),
  adminRoute('POST /admin/deliveries/{id}/redeliver', {
    scope: 'act',
    summary: 'Send a callback again, under the same webhook-id',
    response: redeliverAnswer,
    errors: [409],
    handler: async ({ path }, { engine }) => ({ success: true, redelivered: await redeliver(engine, path.id) }),
  }),
]
