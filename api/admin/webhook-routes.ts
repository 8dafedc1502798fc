/** /admin/webhooks and /admin/deliveries. */
import { z } from 'zod'
import { deliveryView, redeliverAnswer } from '../lite/webhooks/schema.ts'
import { defineRoute, tagged } from '../route.ts'
import { choice, filledText, flag, limitOf, offset, optional } from '../values.ts'
import * as views from './views.ts'
import { deliveryOf, listWebhooks, redeliver, webhookDeliveries, webhookDetail } from './webhooks.ts'

export const webhookQuery = z.object({
  developer: optional(filledText, 'only webhooks of this developer, by id'),
  state: optional(filledText, 'only webhooks whose actor does this: `idle`, `draining`, `waiting`, `paused` …'),
  failing: optional(flag, '1 = only those whose receiver fails now, 0 = only others'),
  limit: limitOf(50, 200),
  offset,
})

const list = defineRoute('GET /admin/webhooks', {
  auth: 'operator',
  summary: 'List webhooks of all developers, those first that are in their state for longest',
  query: webhookQuery,
  response: views.webhookList,
  handler: ({ query }, { engine }) => Promise.resolve(listWebhooks(engine, query)),
})

const get = defineRoute('GET /admin/webhooks/{id}', {
  auth: 'operator',
  summary: 'Get a webhook: states, steps, and what waits',
  response: views.webhookView,
  handler: ({ path }, { engine }) => webhookDetail(engine, path.id),
})

export const deliveriesQuery = z.object({
  state: optional(choice(['pending', 'delivered', 'failed', 'skipped']), 'only callbacks in this state'),
  limit: limitOf(50, 200),
  offset,
})

const deliveries = defineRoute('GET /admin/webhooks/{id}/deliveries', {
  auth: 'operator',
  summary: 'List the callbacks of a webhook, newest first',
  query: deliveriesQuery,
  response: z.array(deliveryView),
  handler: ({ path, query }, { engine }) => webhookDeliveries(engine, path.id, query),
})

const delivery = defineRoute('GET /admin/deliveries/{id}', {
  auth: 'operator',
  summary: 'Get a callback: its attempts, the answers, and why it matched',
  response: views.deliveryDetail,
  handler: ({ path }, { engine, signal }) => deliveryOf(engine, path.id, signal),
})

const again = defineRoute('POST /admin/deliveries/{id}/redeliver', {
  auth: 'operator',
  scope: 'act',
  summary: 'Send a callback again, under the same webhook-id',
  response: redeliverAnswer,
  errors: [409],
  handler: async ({ path }, { engine }) => ({ success: true, redelivered: await redeliver(engine, path.id) }),
})

export const adminWebhookRoutes = tagged('Admin', [list, get, deliveries, delivery, again])
