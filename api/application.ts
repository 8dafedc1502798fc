/** /app: the application's status callback URL, and the logs of callbacks and of API calls. */
import { z } from 'zod'
import { badParameter, callsByPath, type DeliveryQuery, notFound } from '../engine/index.ts'
import * as examples from './examples.ts'
import { findAccount } from './lite/find.ts'
import { seconds } from './addresses.ts'
import { deliveriesWanted, presentDelivery } from './lite/webhooks/deliveries.ts'
import { deliveriesQuery, deliveryFields, redeliverAnswer } from './lite/webhooks/schema.ts'
import { type Call, defineRoute, tagged } from './route.ts'
import {
  endOfSecond,
  filledText,
  given,
  integer,
  limit,
  offset,
  optional,
  success,
  successAt,
  timestamp,
  url,
} from './values.ts'

const statusCode = integer(100, 599)

/** Parameters of both logs; times are inclusive. */
const logQuery = {
  account_id: optional(filledText, 'id of the user (lite) or account (2.0)'),
  timestamp_after: optional(timestamp, 'only entries of this Unix timestamp in seconds or later'),
  timestamp_before: optional(timestamp, 'only entries of this Unix timestamp in seconds or earlier'),
  status_code_from: optional(statusCode, 'only entries with this HTTP status or a higher one'),
  status_code_to: optional(statusCode, 'only entries with this HTTP status or a lower one'),
  limit,
  offset,
}

const webhookLogQuery = z.object({
  webhook_id: optional(filledText, 'only callbacks of this webhook'),
  ...logQuery,
  label: optional(filledText, 'one email account of `account_id`'),
  kind: deliveriesQuery.shape.kind,
  state: deliveriesQuery.shape.state,
})

const callLogQuery = z.object({
  request_method: optional(filledText, 'only calls with this HTTP method', 'GET'),
  request_path: optional(
    filledText,
    'the whole path, as it was sent; or a regular expression (RE2) between slashes, which may match anywhere in it, without case',
    '/lite/users',
    '/\\/messages$/',
  ),
  ...logQuery,
})

const webhookLogView = examples.view('WebhookLogEntry', {
  ...deliveryFields,
  timestamp: [z.int(), 1_700_000_002, 'of the last attempt, or of the event while there is none'],
  status_code: [z.int().nullable(), 200, 'of the last attempt; null = no answer'],
  request_method: [z.literal('POST'), 'POST'],
})

const callLogView = examples.view('CallLogEntry', {
  id: [z.string(), 'e5f7a9b1c3d5e7f9a1b3c5d7'],
  timestamp: [z.int(), examples.time],
  account_id: [z.string().nullable(), examples.ids.user],
  request_method: [z.string(), 'GET'],
  request_path: [z.string(), '/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts'],
  status_code: [z.int(), 200],
  duration_ms: [z.int(), 6],
})

const webhooks = defineRoute('GET /app/logs/webhooks', {
  summary: 'List callbacks of every kind, newest first',
  description:
    'Message, status, failure and other callbacks with the `url` of each attempt. `status_code_*` looks at the last attempt. ' +
    'With `account_id` only callbacks about its email accounts, with `label` too about that one: ' +
    '`kind=status` lists its status callbacks.',
  query: webhookLogQuery,
  response: z.array(webhookLogView),
  async handler({ query }, call) {
    const { store, webhooks } = call.engine
    const wanted: DeliveryQuery = given({
      developerId: call.developer.id,
      webhookId: query.webhook_id,
      accountId: await namedAccounts(call, query),
      ...deliveriesWanted(query),
      statusFrom: query.status_code_from,
      statusTo: query.status_code_to,
    })
    const rows = await store.outbox.list(wanted, query)
    const withoutUrl = rows.filter((row) => row.url === null && row.attempts.at(-1)?.url === undefined)
    const hooks = await webhooks.several(withoutUrl.flatMap(({ webhookId }) => webhookId ?? []))
    return rows.map((row) => {
      const last = row.attempts.at(-1)
      return {
        ...presentDelivery(row, hooks.get(row.webhookId ?? '') ?? null),
        timestamp: seconds(last?.at ?? row.createdAt),
        status_code: last?.status ?? null,
        request_method: 'POST' as const,
      }
    })
  },
})

const redeliver = defineRoute('POST /app/logs/webhooks/{delivery_id}/redeliver', {
  summary: 'Send one callback of any kind again, under the same webhook-id',
  description: 'Status and sync callbacks and failure notifications go to the URL that they went to before.',
  response: redeliverAnswer,
  errors: [409],
  async handler({ path }, call) {
    const row = await call.engine.store.outbox.get(path.delivery_id)
    if (row?.developerId !== call.developer.id) throw notFound('delivery', path.delivery_id)
    return { success: true, redelivered: await call.engine.webhooks.resend(row) }
  },
})

/** Ids of the email accounts that `account_id` and `label` name; undefined = all. */
async function namedAccounts(
  call: Call,
  { account_id: userId, label }: z.output<typeof webhookLogQuery>,
): Promise<string[] | undefined> {
  if (userId === undefined) {
    if (label !== undefined) throw badParameter('label', 'name its account_id as well')
    return undefined
  }
  if (label !== undefined) return [(await findAccount(call, userId, label)).account.id]
  return (await call.engine.store.accounts.listByUser(userId)).map(({ id }) => id)
}

const calls = defineRoute('GET /app/logs/calls', {
  summary: 'List calls of the API, newest first',
  description:
    'A call is here about a second after its answer. A regular expression over the path is tried on the newest 50,000 calls that the other ' +
    'parameters let through; when these do not fill the page, the answer is a 400 that says so.',
  query: callLogQuery,
  response: z.array(callLogView),
  async handler({ query }, call) {
    const wanted = given({
      developerId: call.developer.id,
      userId: query.account_id,
      method: query.request_method?.toUpperCase(),
      from: query.timestamp_after,
      until: endOfSecond(query.timestamp_before),
      statusFrom: query.status_code_from,
      statusTo: query.status_code_to,
    })
    const rows = await callsByPath(call.engine.store.calls, wanted, query.request_path ?? null, query, call.signal)
    return rows.map((one) => ({
      id: one.id,
      timestamp: seconds(one.at),
      account_id: one.userId,
      request_method: one.method,
      request_path: one.path,
      status_code: one.status,
      duration_ms: one.durationMs,
    }))
  },
})

const path = '/app/status_callback_url'

const get = defineRoute(`GET ${path}`, {
  summary: 'Get the application-wide status callback URL',
  response: examples.answer({
    status_callback_url: [z.string(), 'https://app.example.com/status', 'empty when there is none'],
    resource_url: [z.string(), examples.urls.statusCallback],
  }),
  async handler(_input, call) {
    // call.developer may be some seconds old.
    const developer = await call.engine.store.developers.get(call.developer.id)
    return { status_callback_url: developer?.statusCallbackUrl ?? '', resource_url: `${call.baseUrl}${path}` }
  },
})

const set = defineRoute(`POST ${path}`, {
  summary: 'Set the application-wide status callback URL',
  body: z.object({
    status_callback_url: url.meta({
      description: 'takes the status callbacks of every email account that has no URL of its own',
      examples: ['https://app.example.com/status'],
    }),
  }),
  response: successAt(examples.urls.statusCallback),
  async handler({ body }, call) {
    await call.engine.mailboxes.setStatusCallbackUrl(call.developer, body.status_callback_url)
    return { success: true, resource_url: `${call.baseUrl}${path}` }
  },
})

const remove = defineRoute(`DELETE ${path}`, {
  summary: 'Remove the application-wide status callback URL',
  response: success,
  async handler(_input, call) {
    await call.engine.mailboxes.setStatusCallbackUrl(call.developer, null)
    return { success: true }
  },
})

export const applicationRoutes = tagged('Application', [get, set, remove, webhooks, redeliver, calls])
