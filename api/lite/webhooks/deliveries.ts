/** Beyond the original: the delivery log, redelivery, a sample, the secret and a dry run, at both levels. */
import { z } from 'zod'
import { notFound, type AccountRecord, type WebhookRecord } from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { findAccount } from '../find.ts'
import { presentDelivery, presentDryRun } from './present.ts'
import {
  deliveriesQuery,
  deliveryView,
  dryRunAnswer,
  dryRunQuery,
  redeliverAnswer,
  redeliverBody,
  secretAnswer,
} from './schema.ts'
import { findWebhook, hookPath, levels, type Level } from './scope.ts'

function list({ base, tag }: Level): Route {
  return defineRoute({
    method: 'GET',
    path: `${base}/{webhook_id}/deliveries`,
    auth: 'developer',
    tag,
    summary: 'List the callbacks of a webhook: state, attempts, timings, answers',
    request: { path: hookPath, query: deliveriesQuery },
    response: z.array(deliveryView),
    async handler({ path, query }, call) {
      const webhook = await findWebhook(call, path)
      const rows = await call.engine.store.outbox.list(
        {
          webhookId: webhook.id,
          ...(query.state === undefined ? {} : { states: [query.state] }),
          ...(query.kind === undefined ? {} : { kind: query.kind }),
          ...(query.message_id === undefined ? {} : { messageId: query.message_id }),
          ...(query.timestamp_after === undefined ? {} : { createdFrom: query.timestamp_after }),
          ...(query.timestamp_before === undefined ? {} : { createdUntil: query.timestamp_before + 999 }),
        },
        query,
      )
      return rows.map(presentDelivery)
    },
  })
}

function redeliverOne({ base, tag }: Level): Route {
  return defineRoute({
    method: 'POST',
    path: `${base}/{webhook_id}/deliveries/{delivery_id}/redeliver`,
    auth: 'developer',
    tag,
    summary: 'Send one callback again, under the same webhook-id',
    request: { path: hookPath.extend({ delivery_id: z.string() }) },
    response: redeliverAnswer,
    errors: [409],
    async handler({ path }, call) {
      const webhook = await findWebhook(call, path)
      const row = await call.engine.store.outbox.get(path.delivery_id)
      if (row?.webhookId !== webhook.id) throw notFound('delivery', path.delivery_id)
      return { success: true, redelivered: await call.engine.webhooks.redeliver(webhook, { ids: [row.id] }) }
    },
  })
}

function redeliverMany({ base, tag }: Level): Route {
  return defineRoute({
    method: 'POST',
    path: `${base}/{webhook_id}/redeliver`,
    auth: 'developer',
    tag,
    summary: 'Send callbacks again: of a time, or those that failed',
    request: { path: hookPath, body: redeliverBody },
    response: redeliverAnswer,
    errors: [409],
    async handler({ path, body }, call) {
      const webhook = await findWebhook(call, path)
      const which = {
        ...(body.from === undefined ? {} : { from: body.from }),
        ...(body.to === undefined ? {} : { until: body.to + 999 }),
        failedOnly: body.failed_only ?? (body.from === undefined && body.to === undefined),
      }
      return { success: true, redelivered: await call.engine.webhooks.redeliver(webhook, which) }
    },
  })
}

function test({ base, tag }: Level): Route {
  return defineRoute({
    method: 'POST',
    path: `${base}/{webhook_id}/test`,
    auth: 'developer',
    tag,
    summary: 'Send a sample callback now and answer what came of it',
    request: { path: hookPath },
    response: deliveryView,
    handler: async ({ path }, call) => presentDelivery(await call.engine.webhooks.test(await findWebhook(call, path))),
  })
}

function secret({ base, tag }: Level, method: 'GET' | 'POST'): Route {
  return defineRoute({
    method,
    path: `${base}/{webhook_id}/secret`,
    auth: 'developer',
    tag,
    summary:
      method === 'GET' ? 'Get the Standard Webhooks secret' : 'Make a new secret; the old one signs along for a day',
    request: { path: hookPath },
    response: secretAnswer,
    async handler({ path }, call) {
      const webhook = await findWebhook(call, path)
      const { webhooks } = call.engine
      return {
        success: true,
        secret: method === 'GET' ? webhooks.secret(webhook) : await webhooks.rotateSecret(webhook),
      }
    },
  })
}

function dryRun({ base, tag }: Level): Route {
  return defineRoute({
    method: 'GET',
    path: `${base}/{webhook_id}/dry_run`,
    auth: 'developer',
    tag,
    summary: 'Which of the last stored messages would match, filter by filter',
    description:
      'At application level name the user with `user_id`; `label` chooses the email account, the first one otherwise.',
    request: { path: hookPath, query: dryRunQuery.extend({ user_id: z.string().optional() }) },
    response: dryRunAnswer,
    async handler({ path, query }, call) {
      const webhook = await findWebhook(call, path)
      const account = await accountFor(call, webhook, query)
      return presentDryRun(account === null ? [] : await call.engine.webhooks.dryRun(webhook, account, query.limit))
    },
  })
}

/** The account to look at; null when there is none yet. */
async function accountFor(
  call: Call,
  webhook: WebhookRecord,
  query: { readonly user_id?: string | undefined; readonly label?: string | undefined },
): Promise<AccountRecord | null> {
  const { store } = call.engine
  const userId =
    webhook.userId ?? query.user_id ?? (await store.users.list(call.developer.id, {}, { limit: 1, offset: 0 }))[0]?.id
  if (userId === undefined) return null
  if (query.label !== undefined || query.user_id !== undefined)
    return (await findAccount(call, userId, query.label ?? '0')).account
  return (await store.accounts.listByUser(userId))[0] ?? null
}

export const deliveryRoutes: readonly Route[] = levels.flatMap((level) => [
  list(level),
  redeliverOne(level),
  redeliverMany(level),
  test(level),
  secret(level, 'GET'),
  secret(level, 'POST'),
  dryRun(level),
])
