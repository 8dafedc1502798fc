/** /app/logs: what was sent to the developer's servers, and what the developer asked of us. */
import { z } from 'zod'
import type { CallLogRecord, DeliveryQuery, OutboxRecord, Page, Store } from '../../engine/index.ts'
import { presentDelivery } from '../lite/webhooks/present.ts'
import { seconds } from '../lite/urls.ts'
import { defineRoute, type Route } from '../route.ts'
import { callLogQuery, callLogView, webhookLogQuery, webhookLogView, type LogQuery } from './schema.ts'

const tag = 'Application'

const webhooks = defineRoute({
  method: 'GET',
  path: '/app/logs/webhooks',
  auth: 'developer',
  tag,
  summary: 'List callbacks of every kind, newest first',
  description:
    'Message, status, failure and other callbacks with their attempts. `status_code_*` looks at the last attempt. With ' +
    '`account_id` only callbacks about its email accounts.',
  request: { query: webhookLogQuery },
  response: z.array(webhookLogView),
  async handler({ query }, call) {
    const { store } = call.engine
    const wanted: DeliveryQuery = {
      developerId: call.developer.id,
      ...(query.webhook_id === undefined ? {} : { webhookId: query.webhook_id }),
      ...renamed(query, { from: 'createdFrom', until: 'createdUntil' }),
    }
    const rows =
      query.account_id === undefined
        ? await store.outbox.list(wanted, query)
        : await listOfUser(store, query.account_id, wanted, query)
    return rows.map(presentEntry)
  },
})

type Named = Readonly<Record<'from' | 'until', string>>

/** The bounds of both logs, under the names of the store's query. */
function renamed(query: LogQuery, { from, until }: Named): Readonly<Record<string, number>> {
  return {
    ...(query.timestamp_after === undefined ? {} : { [from]: query.timestamp_after }),
    ...(query.timestamp_before === undefined ? {} : { [until]: query.timestamp_before + 999 }),
    ...(query.status_code_from === undefined ? {} : { statusFrom: query.status_code_from }),
    ...(query.status_code_to === undefined ? {} : { statusTo: query.status_code_to }),
  }
}

/** Rows lie by email account: a user's are merged from those of each of its accounts. */
async function listOfUser(store: Store, userId: string, query: DeliveryQuery, page: Page): Promise<OutboxRecord[]> {
  const accounts = await store.accounts.listByUser(userId)
  const head = { limit: page.offset + page.limit, offset: 0 }
  const lists = await Promise.all(accounts.map(({ id }) => store.outbox.list({ ...query, accountId: id }, head)))
  return lists
    .flat()
    .sort((left, right) => right.createdAt - left.createdAt || (left.id < right.id ? 1 : -1))
    .slice(page.offset, page.offset + page.limit)
}

function presentEntry(row: OutboxRecord): z.input<typeof webhookLogView> {
  const last = row.attempts.at(-1)
  return {
    ...presentDelivery(row),
    timestamp: seconds(last?.at ?? row.createdAt),
    status_code: last?.status ?? null,
    request_method: 'POST',
  }
}

const calls = defineRoute({
  method: 'GET',
  path: '/app/logs/calls',
  auth: 'developer',
  tag,
  summary: 'List calls of the API, newest first',
  description: 'A call is here about a second after its answer.',
  request: { query: callLogQuery },
  response: z.array(callLogView),
  async handler({ query }, call) {
    const wanted = {
      developerId: call.developer.id,
      ...(query.account_id === undefined ? {} : { userId: query.account_id }),
      ...(query.request_method === undefined ? {} : { method: query.request_method.toUpperCase() }),
      ...(query.request_path === undefined ? {} : { path: query.request_path }),
      ...renamed(query, { from: 'from', until: 'until' }),
    }
    const rows = await call.engine.store.calls.list(wanted, query)
    return rows.map(presentCall)
  },
})

function presentCall(call: CallLogRecord): z.input<typeof callLogView> {
  return {
    id: call.id,
    timestamp: seconds(call.at),
    account_id: call.userId,
    request_method: call.method,
    request_path: call.path,
    status_code: call.status,
    duration_ms: call.durationMs,
  }
}

export const logRoutes: readonly Route[] = [webhooks, calls]
