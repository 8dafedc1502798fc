/** /app/status_callback_url: where status callbacks of every email account go that has no URL of its own. */
import { defineRoute, type Call, type Route } from '../route.ts'
import { success } from '../values.ts'
import { statusCallbackAnswer, statusCallbackBody, statusCallbackView } from './schema.ts'

const path = '/app/status_callback_url'
const tag = 'Application'

function ownUrl({ baseUrl }: Call): string {
  return `${baseUrl}${path}`
}

const get = defineRoute({
  method: 'GET',
  path,
  auth: 'developer',
  tag,
  summary: 'Get the application-wide status callback URL',
  request: {},
  response: statusCallbackView,
  async handler(_input, call) {
    // Not call.developer: that may be some seconds old.
    const developer = await call.engine.store.developers.get(call.developer.id)
    return { status_callback_url: developer?.statusCallbackUrl ?? '', resource_url: ownUrl(call) }
  },
})

const set = defineRoute({
  method: 'POST',
  path,
  auth: 'developer',
  tag,
  summary: 'Set the application-wide status callback URL',
  request: { body: statusCallbackBody },
  response: statusCallbackAnswer,
  async handler({ body }, call) {
    await call.engine.mailboxes.setStatusCallbackUrl(call.developer, body.status_callback_url)
    return { success: true, resource_url: ownUrl(call) }
  },
})

const remove = defineRoute({
  method: 'DELETE',
  path,
  auth: 'developer',
  tag,
  summary: 'Remove the application-wide status callback URL',
  request: {},
  response: success,
  async handler(_input, call) {
    await call.engine.mailboxes.setStatusCallbackUrl(call.developer, null)
    return { success: true }
  },
})

export const statusCallbackRoutes: readonly Route[] = [get, set, remove]
