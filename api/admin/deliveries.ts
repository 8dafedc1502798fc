/** Callbacks in the admin API: the log over all webhooks, a callback in full, and sending callbacks again. */
import { z } from 'zod'
import {
  callbacksLike,
  type Engine,
  namesOf,
  type OutboxRecord,
  ownerOf,
  type Resending,
  userAgent,
} from '../../engine/index.ts'
import { seconds, secondsOrNull } from '../addresses.ts'
import { address, answer, exampleOf, ids, time, view } from '../examples.ts'
import { presentDelivery } from '../lite/webhooks/deliveries.ts'
import { deliveryFields, deliveryStates, redeliverAnswer } from '../lite/webhooks/schema.ts'
import { choice, filledText, integer, optional, timestamp } from '../values.ts'
import { adminRoute, count, developerId, found, paging, silent } from './shared.ts'

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

const callbackFields = {
  ...deliveryFields,
  waits,
  developer_id: developerId,
  developer_name: [z.string().nullable(), 'Example'],
  email_account: [z.string().nullable(), '7c9e6679f81d4b1c8a2e3d4f', 'id of the email account'],
  mailbox: [z.string().nullable(), address, 'its address'],
  subject: [z.string().nullable(), 'Hello', 'of the message, while the index has it'],
  took_ms: [count.nullable(), 39, 'from the event to the end of the callback; null = it is pending'],
  owner: [
    z.string().nullable(),
    'Anna Example',
    'name or address of the user whose webhook it is, or `application-wide`; null = the webhook is gone, or it is a bare URL',
  ],
} as const
export const adminCallback = view('AdminCallback', callbackFields)
export type DeliveryRow = z.input<typeof adminCallback>

/** `silent`: addresses of the nodes that did not answer what their pending callbacks wait for. */
export async function presentRows(engine: Engine, rows: readonly OutboxRecord[]) {
  const { store, webhooks } = engine
  const messageIds = rows.flatMap(({ messageId }) => messageId ?? [])
  const hooks = await webhooks.several(rows.flatMap(({ webhookId }) => webhookId ?? []))
  const known = rows.map(({ webhookId }) => hooks.get(webhookId ?? '') ?? null)
  const [messages, { waits, silent }, name] = await Promise.all([
    messageIds.length === 0 ? [] : store.messages.several(messageIds),
    waitsOf(engine, rows),
    namesOf(store, {
      developers: rows.map((row) => row.developerId),
      accounts: rows.map((row) => row.accountId),
      users: known.map((webhook) => webhook?.userId ?? null),
    }),
  ])
  const subjects = new Map(messages.map(({ id, subject }) => [id, subject]))
  const deliveries = rows.map((row, index): DeliveryRow => {
    const waiting = waits.get(row.id) ?? null
    const webhook = known[index] ?? null
    return {
      ...presentDelivery(row, webhook),
      waits: waiting && { ...waiting, until: secondsOrNull(waiting.until) },
      developer_id: row.developerId,
      developer_name: name(row.developerId),
      email_account: row.accountId,
      mailbox: name(row.accountId),
      subject: subjects.get(row.messageId ?? '') ?? null,
      took_ms: row.finishedAt && Math.max(0, row.finishedAt - row.createdAt),
      owner: webhook && ownerOf(webhook, name),
    }
  })
  return { deliveries, silent }
}

/** The reason why each pending callback waits, by id of the callback. */
async function waitsOf({ everyNode }: Engine, rows: readonly OutboxRecord[]) {
  const pending = rows.filter(({ state }) => state === 'pending').map((row) => ({ ...row, data: {}, attempts: [] }))
  const { answers, silent } = await everyNode.ask('waits', pending)
  const waits = answers.flatMap(({ answer }) => answer.map((one, at) => [pending[at]?.id, one] as const))
  return { waits: new Map(waits.filter(([, one]) => one !== null)), silent }
}

export const verdictView = answer({
  filter: [z.string(), 'filter_from'],
  matched: [z.boolean(), true],
  why: [z.string(), 'it fits'],
})

const sentFields = {
  ...callbackFields,
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
} as const
export const sentCallback = view('AdminSentCallback', sentFields)
export type SentCallback = z.input<typeof sentCallback>

export async function presentSent(engine: Engine, rows: readonly OutboxRecord[]): Promise<SentCallback[]> {
  const { deliveries } = await presentRows(engine, rows)
  const requests = await Promise.all(rows.map((row) => requestOf(engine, row)))
  return deliveries.map((row, index) => ({ ...row, request: requests[index] as SentCallback['request'] }))
}

const deliveryDetail = view('AdminDelivery', {
  ...sentFields,
  channel_id: [z.string(), ids.webhook, 'where it waits: the webhook, or u… of a bare URL'],
  data: [z.record(z.string(), z.unknown()), {}, 'what is kept of the request; the body is made when it is sent'],
  why: [
    z.array(verdictView),
    [],
    'what each filter says of the message; none when message or webhook are gone, or it is about no message',
  ],
})
export type DeliveryDetail = z.input<typeof deliveryDetail>

export async function deliveryOf(engine: Engine, id: string, signal: AbortSignal): Promise<DeliveryDetail> {
  const row = await found('delivery', id, engine.store.outbox.get(id))
  const [sent] = await presentSent(engine, [row])
  const why = await verdictsOf(engine, row, signal)
  return { ...(sent as SentCallback), channel_id: row.channelId, data: row.data, why }
}

/** The request of the callback, without its signature; the timestamp is that of the last attempt. */
async function requestOf({ webhooks }: Engine, row: OutboxRecord): Promise<SentCallback['request']> {
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

async function verdictsOf({ store, webhooks }: Engine, row: OutboxRecord, signal: AbortSignal) {
  const { webhookId, accountId, messageId } = row
  if (webhookId === null || accountId === null || messageId === null) return []
  const [webhook, account, message] = await Promise.all([
    store.webhooks.get(webhookId),
    store.accounts.get(accountId),
    store.messages.get(accountId, messageId),
  ])
  if (webhook === null || account === null || message === null) return []
  // The calls to the mail server are not counted against the user's budget.
  const { verdicts } = await webhooks.explain(webhook, account, message, { signal, reads: () => undefined })
  return [...verdicts]
}

/** Returns 1, or 0 when the callback is pending already. Throws `conflict` when the webhook is paused. */
export async function redeliver(engine: Engine, id: string): Promise<number> {
  return engine.webhooks.resend(await found('delivery', id, engine.store.outbox.get(id)))
}

/** The log goes back so far unless the filter has a time. */
export const usualSeconds = 86_400

const filters = {
  developer: optional(filledText, 'only callbacks of this developer, by id'),
  account: optional(filledText, 'only of email accounts with this id, or with this text in their address'),
  webhook: optional(filledText, 'only of webhooks with this id, or with this text in their URL'),
  state: optional(choice(deliveryStates), 'only callbacks in this state'),
  q: optional(
    filledText,
    'id of the callback or message, Message-ID, or part of the subject: of the newest 2,000 that match the rest',
  ),
  within: optional(integer(1), 'only events of the last so many seconds; a day, unless a time is given', usualSeconds),
  from: optional(timestamp, 'only events of this Unix timestamp in seconds or later'),
  until: optional(timestamp, 'only events of this Unix timestamp in seconds or earlier'),
}
export const logQuery = z.object({ ...filters, ...paging })
export type LogQuery = z.output<typeof logQuery>
export const logFilters = z.object(filters)
export type LogFilters = z.output<typeof logFilters>

const resendingView = answer({
  started: [z.int(), time],
  total: [count, 1200, 'failed ones that matched when it began'],
  queued: [count, 400, 'of them those that are queued again'],
  done: [z.boolean(), false],
  reason: [z.string().nullable(), null, 'why some of them are not'],
})

const bar = answer({
  at: [z.int(), time],
  delivered: [count, 118],
  failed: [count, 2],
  pending: [count, 0],
  skipped: [count, 0],
})

export const logView = view('AdminDeliveryLog', {
  from: [z.int(), time],
  until: [z.int(), time + usualSeconds],
  step: [z.int(), 1800, 'seconds of a bar'],
  bars: [z.array(bar), [exampleOf(bar)], 'those that match, by the time of their event; steps without any are absent'],
  failed: [count, 2, 'those that match and have failed, on all pages'],
  resending: [resendingView.nullable(), null, 'the last time that failed ones were sent again since the start'],
  deliveries: [z.array(adminCallback), [exampleOf(adminCallback)]],
  silent,
})
export type DeliveryLog = z.input<typeof logView>

const mostBars = 48
const leastStep = 60

/** The query that a filter means in the store, with begin and end in ms since 1970. */
async function queryOf(engine: Engine, { q: text, within, from, until, ...filter }: LogFilters) {
  const end = until ?? Date.now()
  const begin = from ?? end - (within ?? usualSeconds) * 1000
  const query = await callbacksLike(engine, { ...filter, text, from: begin, until: end })
  return { query, begin, end }
}

/** A page of the log, newest first. */
export async function deliveryLog(engine: Engine, { limit, offset, ...filter }: LogQuery): Promise<DeliveryLog> {
  const { outbox } = engine.store
  const { query, begin, end } = await queryOf(engine, filter)
  const resendings = (await engine.everyNode.ask('resending')).answers.flatMap(({ answer }) => answer ?? [])
  const last = resendings.toSorted((one, other) => one.startedAt - other.startedAt).at(-1) ?? null
  const step = Math.ceil(Math.max(1, end - begin) / 1000 / mostBars / leastStep) * leastStep
  const [rows, counts] = await Promise.all([outbox.list(query, { limit, offset }), outbox.counts(query, step * 1000)])
  const bars = [...Map.groupBy(counts, ({ at }) => at)].map(([at, own]) => {
    const of = (state: string): number => own.find((one) => one.state === state)?.count ?? 0
    const states = { delivered: of('delivered'), failed: of('failed'), pending: of('pending'), skipped: of('skipped') }
    return { at: seconds(at), ...states }
  })
  return {
    ...{ from: seconds(begin), until: seconds(end), step },
    bars: bars.toSorted((left, right) => left.at - right.at),
    failed: bars.reduce((sum, { failed }) => sum + failed, 0),
    resending: last && presentResending(last),
    ...(await presentRows(engine, rows)),
  }
}

const presentResending = ({ startedAt, ...shown }: Resending) => ({ started: seconds(startedAt), ...shown })

/** Sends the failed callbacks that match again. Throws `conflict` while an earlier resending goes on. */
export async function resendFailed(engine: Engine, filter: LogFilters) {
  const { query } = await queryOf(engine, filter)
  return presentResending(await engine.webhooks.resendFailed(query))
}

export const deliveryRoutes = [
  adminRoute('GET /admin/deliveries', {
    summary:
      'The delivery log over all webhooks: callbacks, newest first, and how many were delivered and failed over time',
    query: logQuery,
    response: logView,
    handler: ({ query }, { engine }) => deliveryLog(engine, query),
  }),
  adminRoute('POST /admin/deliveries/redeliver', {
    scope: 'act',
    summary: 'Send the failed callbacks that match a filter again, at most 10,000',
    description:
      'Messages alone, oldest first, under the ids they had; not those of paused webhooks. What takes long is answered with `done` false and goes on; ' +
      'GET /admin/deliveries says how far it is. A restart ends it.',
    body: logFilters.meta({ examples: [{ webhook: ids.webhook, within: usualSeconds }] }),
    response: resendingView,
    errors: [409],
    handler: ({ body }, { engine }) => resendFailed(engine, body),
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
