/** Routes of a webhook's deliveries: log, redelivery, sample, secret and dry run; and why a message was sent or not. */
import { z } from 'zod'
import {
  type AccountRecord,
  type Asking,
  badParameter,
  bracketed,
  type DeliveryQuery,
  folderNamer,
  type MessageRecord,
  notFound,
  type OutboxRecord,
  type WebhookRecord,
} from '../../../engine/index.ts'
import { seconds, secondsOrNull } from '../../addresses.ts'
import { answer, ids } from '../../examples.ts'
import { type Call, routesAt, tagged } from '../../route.ts'
import { endOfSecond, filledText, flag, given, optional, timestamp } from '../../values.ts'
import {
  findAccount,
  findFolder,
  findKnownMessage,
  findUser,
  inFolder,
  type Mailbox,
  type MessagePath,
  messagePaths,
} from '../find.ts'
import { delimiter } from '../folders.ts'
import { bases, byLevel, findWebhook } from './handlers.ts'
import * as schema from './schema.ts'

/** `webhook`: the current record of the delivery's webhook; a delivery without attempts goes to its URL. */
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
    finished: secondsOrNull(row.finishedAt),
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

const list = routesAt('GET', bases, '/{webhook_id}/deliveries', {
  summary: 'List the callbacks of a webhook: state, attempts, timings, answers',
  description:
    'Newest first: its messages, its samples (`kind` test) and its failure notifications (`kind` failure), each with the `url` it went to.',
  query: schema.deliveriesQuery,
  response: z.array(schema.deliveryView),
  async handler({ path, query }, call) {
    const webhook = await findWebhook(call, path)
    const named = query.message_id === undefined ? {} : await messagesNamed(call, webhook, query.message_id)
    const wanted = { webhookId: webhook.id, ...deliveriesWanted(query), ...named }
    const rows = await call.engine.store.outbox.list(wanted, query)
    return rows.map((row) => presentDelivery(row, webhook))
  },
})

type Filters = Pick<z.output<typeof schema.deliveriesQuery>, 'state' | 'kind' | 'timestamp_after' | 'timestamp_before'>

export function deliveriesWanted({ state, kind, timestamp_after, timestamp_before }: Filters): DeliveryQuery {
  const states = state === undefined ? undefined : [state]
  return given({ states, kind, createdFrom: timestamp_after, createdUntil: endOfSecond(timestamp_before) })
}

/** Narrows a query to the message with this id, or to the covered messages with this Message-ID. */
async function messagesNamed(call: Call, webhook: WebhookRecord, name: string): Promise<DeliveryQuery> {
  if (/^[0-9a-f]{24}$/.test(name)) return { messageId: name }
  const messages = await call.engine.webhooks.findMessages(webhook, name)
  return { accountId: messages.map((one) => one.accountId), messageId: messages.map(({ id }) => id) }
}

const redeliverOne = routesAt('POST', bases, '/{webhook_id}/deliveries/{delivery_id}/redeliver', {
  summary: 'Send one callback again, under the same webhook-id',
  response: schema.redeliverAnswer,
  errors: [409],
  async handler({ path }, call) {
    const webhook = await findWebhook(call, path)
    const row = await call.engine.store.outbox.get(path.delivery_id)
    if (row?.webhookId !== webhook.id) throw notFound('delivery', path.delivery_id)
    return { success: true, redelivered: await call.engine.webhooks.resend(row) }
  },
})

const redeliverMany = routesAt('POST', bases, '/{webhook_id}/redeliver', {
  summary: 'Send callbacks again: of a time, or those that failed',
  description:
    'All message callbacks whose event lies in the time, oldest first, under the ids they had. What takes long is answered ' +
    'with `done` false and goes on, also over a restart; the same call again joins it, and GET says how far it is.',
  body: z
    .object({
      from: optional(timestamp, 'events of this Unix timestamp in seconds or later'),
      to: optional(timestamp, 'events of this Unix timestamp in seconds or earlier'),
      failed_only: optional(flag, '1 = only callbacks that failed. Default 0, but 1 when neither from nor to is given'),
    })
    .meta({ examples: [{ from: 1_700_000_000, to: 1_700_003_600, failed_only: 1 }] }),
  response: answer({ success: [z.boolean(), true], ...schema.redeliveryProgress }),
  errors: [409],
  async handler({ path, body }, call) {
    const webhook = await findWebhook(call, path)
    const failedOnly = body.failed_only ?? (body.from === undefined && body.to === undefined)
    const which = given({ from: body.from, until: endOfSecond(body.to), failedOnly })
    const redelivered = await call.engine.webhooks.redeliver(webhook, which)
    const { redelivery } = await findWebhook(call, path)
    return { success: true, redelivered, done: redelivery?.done ?? true }
  },
})

const redelivery = routesAt('GET', bases, '/{webhook_id}/redeliver', {
  summary: 'How far the last redelivery of a time is',
  response: schema.redeliveryView,
  async handler({ path }, call) {
    const { redelivery: last } = await findWebhook(call, path)
    return {
      redelivered: last?.count ?? 0,
      done: last?.done ?? true,
      reason: last?.reason ?? null,
      from: secondsOrNull(last?.from),
      to: secondsOrNull(last?.until),
      failed_only: last?.failedOnly ?? false,
      started: secondsOrNull(last?.startedAt),
    }
  },
})

const test = routesAt('POST', bases, '/{webhook_id}/test', {
  summary: 'Send a sample callback now and answer what came of it',
  response: schema.deliveryView,
  async handler({ path }, call) {
    const webhook = await findWebhook(call, path)
    return presentDelivery(await call.engine.webhooks.test(webhook), webhook)
  },
})

const secret = (method: 'GET' | 'POST') =>
  routesAt(method, bases, '/{webhook_id}/secret', {
    summary:
      method === 'GET' ? 'Get the Standard Webhooks secret' : 'Make a new secret; the old one signs along for a day',
    response: answer({
      success: [z.boolean(), true],
      secret: [z.string(), 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDQmSSnjK2ZzQ='],
    }),
    async handler({ path }, call) {
      const webhook = await findWebhook(call, path)
      const { webhooks } = call.engine
      const secret = method === 'GET' ? webhooks.secret(webhook) : await webhooks.rotateSecret(webhook)
      return { success: true, secret }
    },
  })

/** A read of mail from the mail server counts against the IMAP budget, once for each call. */
const askingOf = (call: Call): Asking => ({ signal: call.signal, reads: (id) => call.touchesImap({ id }) })

const dryRun = routesAt('GET', bases, '/{webhook_id}/dry_run', {
  summary: 'Which of the last stored messages would match, filter by filter',
  description:
    'Of all email accounts that the webhook covers, newest first; each row says whose it is. `user_id` narrows an application-level ' +
    'webhook to one user, `label` to one email account of the user.',
  query: schema.dryRunQuery,
  response: schema.dryRunAnswer,
  async handler({ path, query }, call) {
    const webhook = await findWebhook(call, path)
    const messagesOf = await dryRunScope(call, webhook, query)
    const rows = await call.engine.webhooks.dryRun(webhook, messagesOf, query.limit, askingOf(call))
    return rows.map(({ account, message, matched, verdicts }) => ({
      account_id: account.userId,
      label: account.label,
      message_id: message.id,
      email_message_id: bracketed(message.emailMessageId) ?? '',
      subject: message.subject,
      matched,
      filters: [...verdicts],
    }))
  },
})

/** The email account that the query names, else the coverage of the webhook for the user that the query names. */
async function dryRunScope(
  call: Call,
  webhook: WebhookRecord,
  { user_id: named, label }: z.output<typeof schema.dryRunQuery>,
): Promise<AccountRecord | WebhookRecord> {
  const userId = webhook.userId ?? named ?? null
  if (named !== undefined && named !== userId) throw notFound('user', named)
  if (!label) {
    if (userId !== null) await findUser(call, userId)
    return { ...webhook, userId }
  }
  if (userId === null) throw badParameter('label', 'name its user as well, with user_id')
  return (await findAccount(call, userId, label)).account
}

const explain = routesAt('GET', messagePaths, '/explain', {
  summary: 'Why a message was or was not sent to a webhook',
  description:
    'When it was seen and as what, what the webhook was like then, what each filter says, and every callback that was queued with its attempts ' +
    'and answers. `matched` tells whether a callback was due. Nothing is judged that did not happen: for that there is the dry run. ' +
    '`webhook_id` is a webhook of the user or of the application.',
  query: z.object({
    webhook_id: filledText.meta({ description: 'id of the webhook that is asked about', examples: [ids.webhook] }),
    delimiter,
  }),
  response: schema.explainAnswer,
  async handler({ path, query }, call) {
    const mailbox = await findAccount(call, path.id, path.label)
    const { account } = mailbox
    const message = await messageAt(call, account, path, query.delimiter)
    const webhook = await webhookOf(call, mailbox, query.webhook_id)
    const { store, webhooks } = call.engine
    const found = await webhooks.explain(webhook, account, message, askingOf(call))
    const folderName = folderNamer(await store.folders.list(account.id))
    return {
      message_id: message.id,
      webhook_id: webhook.id,
      indexed: seconds(message.indexedAt),
      events: found.changes.map(({ kind, first, path, at, seq }) => ({
        kind,
        first,
        folder: folderName(path),
        seen: seconds(at),
        sequence: seq,
      })),
      matched: found.matched,
      filters: [...found.verdicts],
      deliveries: found.deliveries.map((row) => presentDelivery(row, webhook)),
    }
  },
})

/** Without a folder in the path, finds a message that has left every folder too. */
async function messageAt(
  call: Call,
  account: AccountRecord,
  { message_id: id, folder: name }: MessagePath,
  spoken: string | undefined,
): Promise<MessageRecord> {
  const found = await findKnownMessage(call, account, id)
  return name === undefined ? found : inFolder(call, found, await findFolder(call, account, name, spoken), id)
}

/** Finds a webhook of the user or of the application: both get events of the user's email accounts. */
async function webhookOf(call: Call, { user }: Mailbox, id: string): Promise<WebhookRecord> {
  const webhook = await call.engine.store.webhooks.get(id)
  const concerned =
    webhook?.developerId === call.developer.id && (webhook.userId === null || webhook.userId === user.id)
  if (!concerned) throw notFound('webhook', id)
  return webhook
}

export const deliveryRoutes = [
  ...byLevel([list, redeliverOne, redeliverMany, redelivery, test, secret('GET'), secret('POST'), dryRun].flat()),
  ...tagged('Webhooks', explain),
]
