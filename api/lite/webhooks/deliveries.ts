/** Beyond the original: the delivery log, redelivery, a sample, the secret and a dry run, at both levels. */
import { z } from 'zod'
import {
  badParameter,
  notFound,
  type DryRunRow,
  type DeliveryQuery,
  type OutboxRecord,
  type Page,
  type WebhookRecord,
} from '../../../engine/index.ts'
import { defineRoute, type Call, tagged } from '../../route.ts'
import { endOfSecond, given, optional } from '../../values.ts'
import { findAccount, findUser } from '../find.ts'
import { listNewest, presentDelivery, presentDryRun, presentRedelivery } from './present.ts'
import * as schema from './schema.ts'
import { askingOf, findWebhook, levels, type Level } from './handlers.ts'

const list = ({ base }: Level) =>
  defineRoute(`GET ${base}/{webhook_id}/deliveries`, {
    summary: 'List the callbacks of a webhook: state, attempts, timings, answers',
    description:
      'Newest first: its messages, its samples (`kind` test) and its failure notifications (`kind` failure), each with the `url` it went to.',
    query: schema.deliveriesQuery,
    response: z.array(schema.deliveryView),
    async handler({ path, query }, call) {
      const webhook = await findWebhook(call, path)
      const wanted = given({
        webhookId: webhook.id,
        states: query.state === undefined ? undefined : [query.state],
        kind: query.kind,
        createdFrom: query.timestamp_after,
        createdUntil: endOfSecond(query.timestamp_before),
      })
      const rows =
        query.message_id === undefined
          ? await call.engine.store.outbox.list(wanted, query)
          : await listOfMessage(call, webhook, query.message_id, wanted, query)
      return rows.map((row) => presentDelivery(row, webhook))
    },
  })

/** A Message-ID may stand in several of the email accounts that the webhook covers. */
async function listOfMessage(
  call: Call,
  webhook: WebhookRecord,
  name: string,
  wanted: DeliveryQuery,
  page: Page,
): Promise<OutboxRecord[]> {
  const { outbox } = call.engine.store
  if (/^[0-9a-f]{24}$/.test(name)) return outbox.list({ ...wanted, messageId: name }, page)
  const messages = await call.engine.webhooks.findMessages(webhook, name)
  return listNewest(
    outbox,
    messages.map(({ id, accountId }) => ({ ...wanted, accountId, messageId: id })),
    page,
  )
}

const redeliverOne = ({ base }: Level) =>
  defineRoute(`POST ${base}/{webhook_id}/deliveries/{delivery_id}/redeliver`, {
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

const redeliverMany = ({ base }: Level) =>
  defineRoute(`POST ${base}/{webhook_id}/redeliver`, {
    summary: 'Send callbacks again: of a time, or those that failed',
    description:
      'All message callbacks whose event lies in the time, oldest first, under the ids they had. What takes long is answered ' +
      'with `done` false and goes on, also over a restart; the same call again joins it, and GET says how far it is.',
    body: schema.redeliverBody,
    response: schema.redeliverManyAnswer,
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

const redelivery = ({ base }: Level) =>
  defineRoute(`GET ${base}/{webhook_id}/redeliver`, {
    summary: 'How far the last redelivery of a time is',
    response: schema.redeliveryView,
    handler: async ({ path }, call) => presentRedelivery((await findWebhook(call, path)).redelivery),
  })

const test = ({ base }: Level) =>
  defineRoute(`POST ${base}/{webhook_id}/test`, {
    summary: 'Send a sample callback now and answer what came of it',
    response: schema.deliveryView,
    async handler({ path }, call) {
      const webhook = await findWebhook(call, path)
      return presentDelivery(await call.engine.webhooks.test(webhook), webhook)
    },
  })

const secret = ({ base }: Level, method: 'GET' | 'POST') =>
  defineRoute(`${method} ${base}/{webhook_id}/secret`, {
    summary:
      method === 'GET' ? 'Get the Standard Webhooks secret' : 'Make a new secret; the old one signs along for a day',
    response: schema.secretAnswer,
    async handler({ path }, call) {
      const webhook = await findWebhook(call, path)
      const { webhooks } = call.engine
      return {
        success: true,
        secret: method === 'GET' ? webhooks.secret(webhook) : await webhooks.rotateSecret(webhook),
      }
    },
  })

const oneUser = optional(z.string(), 'only messages of this user', '5f3c8a2b9d4e1f6a7b8c9d0e')

const dryRun = ({ base }: Level) =>
  defineRoute(`GET ${base}/{webhook_id}/dry_run`, {
    summary: 'Which of the last stored messages would match, filter by filter',
    description:
      'Of all email accounts that the webhook covers, newest first; each row says whose it is. `user_id` narrows an application-level ' +
      'webhook to one user, `label` to one email account of the user.',
    query: schema.dryRunQuery.extend({ user_id: oneUser }),
    response: schema.dryRunAnswer,
    async handler({ path, query }, call) {
      const webhook = await findWebhook(call, path)
      return presentDryRun(await dryRunRows(call, webhook, query))
    },
  })

interface DryRunQuery {
  readonly user_id?: string | undefined
  readonly label?: string | undefined
  readonly limit: number
}

async function dryRunRows(call: Call, webhook: WebhookRecord, query: DryRunQuery): Promise<DryRunRow[]> {
  const { webhooks } = call.engine
  const { user_id: named, label = '', limit } = query
  const userId = webhook.userId ?? named ?? null
  if (named !== undefined && named !== userId) throw notFound('user', named)
  if (label !== '') {
    if (userId === null) throw badParameter('label', 'name its user as well, with user_id')
    const { account } = await findAccount(call, userId, label)
    return webhooks.dryRun(webhook, account, limit, askingOf(call))
  }
  if (userId !== null) await findUser(call, userId)
  return webhooks.dryRunAll(webhook, userId, limit, askingOf(call))
}

export const deliveryRoutes = levels.flatMap((level) =>
  tagged(level.tag, [
    list(level),
    redeliverOne(level),
    redeliverMany(level),
    redelivery(level),
    test(level),
    secret(level, 'GET'),
    secret(level, 'POST'),
    dryRun(level),
  ]),
)
