/** Webhooks in the admin API: the list over all developers, and a webhook in full. */
import { z } from 'zod'
import {
  type AccountRecord,
  type Engine,
  freshHealth,
  isBareUrl,
  namesOf,
  noActor,
  notFound,
  type PoolFacts,
  shownStates,
  type WebhookRecord,
} from '../../engine/index.ts'
import { seconds, secondsOrNull } from '../addresses.ts'
import { answer, exampleOf, ids, time, view } from '../examples.ts'
import { choice, filledText, flag, optional } from '../values.ts'
import { findAccount } from './accounts.ts'
import { adminCallback, presentRows } from './deliveries.ts'
import { adminRoute, count, developerId, factsById, found, nextView, paging, presentNext } from './shared.ts'
import { presentActor, silent, stepView, total, wayFields } from './shared.ts'

const webhookFields = {
  id: [z.string(), ids.webhook],
  developer_id: developerId,
  developer_name: [z.string().nullable(), 'Example'],
  user_id: [z.string().nullable(), ids.user],
  user_name: [z.string().nullable(), 'Anna Example', 'name or address'],
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

const webhookList = answer({ total, webhooks: [z.array(webhookRow), [exampleOf(webhookRow)]], silent })
export type WebhookList = z.input<typeof webhookList>

const webhookView = view('AdminWebhookDetail', {
  ...webhookFields,
  created: [z.int(), time],
  tags: [z.array(z.string()), ['idle']],
  active_states: [z.array(z.string()), ['running.work.idle'], 'the states of its chart that are active, as paths'],
  ...wayFields,
  steps: [z.array(stepView), []],
  callbacks: [z.array(adminCallback), [], 'the newest fifty; of a bare URL those that are sent next'],
})
export type WebhookDetail = z.input<typeof webhookView>

type Channel = Pick<WebhookRecord, 'id' | 'developerId' | 'userId' | 'callbackUrl' | 'active' | 'health' | 'createdAt'>

/** `facts`: the states of the actors, by id of the webhook. */
async function presentChannels(
  { store }: Engine,
  channels: readonly Channel[],
  facts: ReadonlyMap<string, PoolFacts>,
): Promise<WebhookRow[]> {
  const [developers, users] = [channels.map((one) => one.developerId), channels.map((one) => one.userId)]
  const name = await namesOf(store, { developers, users })
  const rows = channels.map(async (channel) => {
    const { id, developerId: developer_id, userId: user_id, callbackUrl: callback_url, active, health } = channel
    const { pending, oldestAt } = await store.outbox.backlog(id)
    const seen = facts.get(id)
    return {
      ...{ id, developer_id, user_id, callback_url, active },
      ...{ developer_name: name(developer_id), user_name: name(user_id) },
      state: seen?.state ?? noActor,
      since: seconds(seen?.since ?? channel.createdAt),
      failing_since: secondsOrNull(health.failingSince),
      failures: seen?.attempt ?? health.consecutiveFailures,
      message: health.lastError ?? seen?.lastError?.message ?? null,
      next: presentNext(seen),
      pending,
      oldest: secondsOrNull(oldestAt),
      latency_ms: await latencyOf(store, id),
    }
  })
  return Promise.all(rows)
}

const mostCallbacks = 50

/** The median time in ms from the event to the delivery, of the last ten deliveries. */
async function latencyOf({ outbox }: Engine['store'], webhookId: string): Promise<number | null> {
  const delivered = await outbox.list({ webhookId, states: ['delivered'] }, { limit: 10, offset: 0 })
  const took = delivered.map(({ createdAt, finishedAt }) => (finishedAt ?? createdAt) - createdAt)
  return took.toSorted((one, other) => one - other)[Math.floor(took.length / 2)] ?? null
}

export const webhookQuery = z.object({
  developer: optional(filledText, 'only webhooks of this developer, by id'),
  state: optional(choice(shownStates.webhook), 'only webhooks whose actor does this'),
  account: optional(filledText, 'only webhooks that hear of this email account, by id'),
  q: optional(filledText, 'part of the URL, or a whole id'),
  failing: optional(flag, '1 = only those whose receiver fails now, 0 = only others'),
  ...paging,
})
type WebhookQuery = z.output<typeof webhookQuery>

/** Failing webhooks come first; then, of both kinds, those that are in their state for longest. */
export async function listWebhooks(engine: Engine, query: WebhookQuery): Promise<WebhookList> {
  const { facts, silent } = await factsById(engine, 'webhooks')
  const account = query.account === undefined ? null : await findAccount(engine, query.account)
  const matching = (await engine.webhooks.all())
    .filter((webhook) => account === null || hears(webhook, account))
    .map((webhook) => seenWith(webhook, facts.get(webhook.id)))
    .filter((seen) => isLike(seen, query))
    .toSorted((left, right) => Number(right.fails) - Number(left.fails) || left.since - right.since)
  const page = matching.slice(query.offset, query.offset + query.limit).map(({ webhook }) => webhook)
  return { total: matching.length, webhooks: await presentChannels(engine, page, facts), silent }
}

/** A webhook, and what the list takes from the state of its actor. */
function seenWith(webhook: WebhookRecord, actor: PoolFacts | undefined) {
  const fails = webhook.active && actor?.tags.some((tag) => tag === 'failed' || tag === 'retrying') === true
  return { webhook, fails, state: actor?.state ?? noActor, since: actor?.since ?? Infinity }
}

function hears({ userId, developerId }: WebhookRecord, account: AccountRecord): boolean {
  return userId === null ? developerId === account.developerId : userId === account.userId
}

function isLike(seen: ReturnType<typeof seenWith>, { developer, state, failing, q }: WebhookQuery): boolean {
  const { id, developerId, callbackUrl } = seen.webhook
  if (developer !== undefined && developer !== developerId) return false
  if (q !== undefined && q !== id && !callbackUrl.includes(q)) return false
  if (state !== undefined && state !== seen.state) return false
  return failing === undefined || failing === seen.fails
}

/** A webhook, or a bare URL, which is known while it has pending callbacks. */
async function findChannel({ store }: Engine, id: string): Promise<Channel> {
  if (!isBareUrl(id)) return found('webhook', id, store.webhooks.get(id))
  const [row] = await store.outbox.waiting(id, 1)
  if (row === undefined) throw notFound('webhook', id)
  const { developerId, url, createdAt } = row
  return { ...{ id, developerId, createdAt }, userId: null, callbackUrl: url ?? '', active: true, health: freshHealth }
}

/** Throws `not_found` for an unknown id. */
export async function webhookDetail(engine: Engine, id: string): Promise<WebhookDetail> {
  const channel = await findChannel(engine, id)
  const seen = engine.webhooks.view(id)
  const { facts } = await factsById(engine, 'webhooks', [id])
  const { outbox } = engine.store
  const rows = isBareUrl(id)
    ? outbox.waiting(id, mostCallbacks)
    : outbox.list({ webhookId: id }, { limit: mostCallbacks, offset: 0 })
  const [row] = await presentChannels(engine, [channel], facts)
  return {
    ...(row as WebhookRow),
    created: seconds(channel.createdAt),
    ...presentActor(seen),
    active_states: [...(seen?.active ?? [])],
    callbacks: (await presentRows(engine, await rows)).deliveries,
  }
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
]
