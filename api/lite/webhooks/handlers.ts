/** /lite/users/{id}/webhooks and /lite/webhooks: list, create, get, edit, delete. */
import { z } from 'zod'
import { defineRoute, type Route } from '../../route.ts'
import { success } from '../../values.ts'
import { liteUrls } from '../urls.ts'
import { presentWebhook, webhookInput } from './present.ts'
import { createAnswer, createBody, editAnswer, editBody, webhookView } from './schema.ts'
import { findWebhook, hookPath, levels, scopePath, scopeUser, type Level } from './scope.ts'

function list({ base, tag, name }: Level): Route {
  return defineRoute({
    method: 'GET',
    path: base,
    auth: 'developer',
    tag,
    summary: `List ${name}-level webhooks`,
    request: { path: scopePath },
    response: z.array(webhookView),
    async handler({ path }, call) {
      const { webhooks } = call.engine.store
      const user = await scopeUser(call, path.id)
      const found =
        user === null ? await webhooks.listByDeveloper(call.developer.id) : await webhooks.listByUser(user.id)
      return found.map((webhook) => presentWebhook(webhook, liteUrls(call.baseUrl)))
    },
  })
}

function create({ base, tag, name }: Level): Route {
  return defineRoute({
    method: 'POST',
    path: base,
    auth: 'developer',
    tag,
    summary: `Create a ${name}-level webhook`,
    description:
      'All filters have to match. Case does not matter. A text that begins with / is a regular expression (RE2) and has to end with one. ' +
      'A backslash takes its meaning from the wildcard, comma or bracket after it where [] is a wildcard. A bad or blank pattern is a ' +
      '400 that says where.',
    request: { path: scopePath, body: createBody },
    response: createAnswer,
    async handler({ path, body }, call) {
      const user = await scopeUser(call, path.id)
      const owner = { developerId: call.developer.id, userId: user?.id ?? null, version: 'lite' as const }
      const webhook = await call.engine.webhooks.create(owner, webhookInput(body))
      return { success: true, webhook_id: webhook.id, resource_url: liteUrls(call.baseUrl).webhook(webhook) }
    },
  })
}

function get({ base, tag }: Level): Route {
  return defineRoute({
    method: 'GET',
    path: `${base}/{webhook_id}`,
    auth: 'developer',
    tag,
    summary: 'Get a webhook',
    request: { path: hookPath },
    response: webhookView,
    async handler({ path }, call) {
      return presentWebhook(await findWebhook(call, path), liteUrls(call.baseUrl))
    },
  })
}

function edit({ base, tag }: Level): Route {
  return defineRoute({
    method: 'POST',
    path: `${base}/{webhook_id}`,
    auth: 'developer',
    tag,
    summary: 'Edit a webhook',
    description:
      'Changes the parameters that are named; an empty one removes the value. `active` is 1 unless it is named.',
    request: { path: hookPath, body: editBody },
    response: editAnswer,
    async handler({ path, body }, call) {
      const webhook = await findWebhook(call, path)
      const edited = await call.engine.webhooks.edit(webhook, webhookInput({ ...body, active: body.active ?? true }))
      return { success: true, resource_url: liteUrls(call.baseUrl).webhook(edited) }
    },
  })
}

function remove({ base, tag }: Level): Route {
  return defineRoute({
    method: 'DELETE',
    path: `${base}/{webhook_id}`,
    auth: 'developer',
    tag,
    summary: 'Cancel a webhook',
    request: { path: hookPath },
    response: success,
    async handler({ path }, call) {
      await call.engine.webhooks.remove(await findWebhook(call, path))
      return { success: true }
    },
  })
}

export const webhookRoutes: readonly Route[] = levels.flatMap((level) => [
  list(level),
  create(level),
  get(level),
  edit(level),
  remove(level),
])
