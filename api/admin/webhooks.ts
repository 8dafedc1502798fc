/** Webhooks and callbacks as operators see them. */
import { z } from 'zod'
import {
  type AccountRecord,
  type Engine,
  freshHealth,
  namesOf,
  noActor,
  type OutboxRecord,
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

type Name = Awaited<ReturnType<typeof namesOf>>

const namesOfOwners = ({ store }: Engine, all: readonly Pick<Channel, 'developerId' | 'userId'>[]): Promise<Name> =>
  namesOf(store, { developers: all.map((one) => one.developerId), users: all.map((one) => one.userId) })

async function rowOf(
  { store }: Engine,
  channel: Channel,
  facts: PoolFacts | null | undefined,
  name: Name,
): Promise<WebhookRow> {
  const { id, developerId: developer_id, userId: user_id, callbackUrl: callback_url, active, health } = channel
  const { pending, oldestAt } = await store.outbox.backlog(id)
  return {
    ...{ id, developer_id, user_id, callback_url, active },
    ...{ developer_name: name(developer_id), user_name: name(user_id) },
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

const mostCallbacks = 50
const newest = (limit: number) => ({ limit, offset: 0 })

async function latencyOf({ outbox }: Engine['store'], webhookId: string): Promise<number | null> {
  const delivered = await outbox.list({ webhookId, states: ['delivered'] }, newest(10))
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

/** Failing ones come first; of them, and of the others, those that are in their state for longest. */
export async function listWebhooks(engine: Engine, query: WebhookQuery): Promise<WebhookList> {
  const { facts: known, silent } = await factsById(engine, 'webhooks')
  const account = query.account === undefined ? null : await findAccount(engine, query.account)
  const matching = (await engine.webhooks.all())
    .filter((webhook) => account === null || hears(webhook, account))
    .map((webhook) => ({ webhook, facts: known.get(webhook.id) }))
    .filter(({ webhook, facts }) => isLike(webhook, facts, query))
    .toSorted((left, right) => (left.facts?.since ?? Infinity) - (right.facts?.since ?? Infinity))
    .toSorted((left, right) => Number(fails(right.webhook, right.facts)) - Number(fails(left.webhook, left.facts)))
  const page = matching.slice(query.offset, query.offset + query.limit)
  const name = await namesOfOwners(
    engine,
    page.map(({ webhook }) => webhook),
  )
  const webhooks = await Promise.all(page.map(({ webhook, facts }) => rowOf(engine, webhook, facts, name)))
  return { total: matching.length, webhooks, silent }
}

function hears({ userId, developerId }: WebhookRecord, account: AccountRecord): boolean {
  return userId === null ? developerId === account.developerId : userId === account.userId
}

function isLike(
  { id, developerId, callbackUrl, active }: WebhookRecord,
  facts: PoolFacts | undefined,
  { developer, state, failing, q }: WebhookQuery,
): boolean {
  if (developer !== undefined && developer !== developerId) return false
  if (q !== undefined && q !== id && !callbackUrl.includes(q)) return false
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
  const { channelId: id, developerId, url, createdAt } = row
  return { ...{ id, developerId, createdAt }, userId: null, callbackUrl: url ?? '', active: true, health: freshHealth }
}

/** `not_found` for an unknown id, here and below. */
export async function webhookDetail(engine: Engine, id: string): Promise<WebhookDetail> {
  const channel = await findChannel(engine, id)
  const seen = engine.webhooks.view(id)
  const { facts } = await factsById(engine, 'webhooks', [id])
  const { outbox } = engine.store
  // Of a bare URL only those that wait are known.
  const rows = id.startsWith('u')
    ? outbox.pending(id, [], mostCallbacks)
    : outbox.list({ webhookId: id }, newest(mostCallbacks))
  return {
    ...(await rowOf(engine, channel, facts.get(id), await namesOfOwners(engine, [channel]))),
    created: seconds(channel.createdAt),
    ...presentActor(seen),
    active_states: [...(seen?.active ?? [])],
    callbacks: await presentRows(engine, await rows),
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
