/** Routes to list, create, get, edit and delete the webhooks of users (2.0: accounts) and of the application. */
import { z } from 'zod'
import {
  type FilterParameter,
  filterParameters,
  notFound,
  type UserRecord,
  type WebhookFilters,
  type WebhookInput,
  type WebhookRecord,
} from '../../../engine/index.ts'
import * as examples from '../../examples.ts'
import { seconds, type Urls, urlsOf } from '../../addresses.ts'
import { type Call, defineRoute, deprecated, type Route } from '../../route.ts'
import { given, success, successAt } from '../../values.ts'
import { findUser } from '../find.ts'
import * as schema from './schema.ts'

/** Path parameters of either level; `id` is the user's and absent at application level. */
interface ScopePath {
  readonly id?: string
}

const filterNames = Object.keys(filterParameters) as (keyof WebhookFilters)[]

function presentWebhook(webhook: WebhookRecord, urls: Urls): z.input<typeof schema.webhookView> {
  const { userId, developerId, version } = webhook
  return {
    ...presentWebhookFacts(webhook),
    ...(userId === null ? { developerId } : {}),
    ...(userId === null || version !== 'lite' ? { version } : {}),
    resource_url: urls.webhook(webhook),
  }
}

/** The fields of both versions; null and undefined ones are left out. */
function presentWebhookFacts(webhook: WebhookRecord) {
  const { health, filters, includeHeader } = webhook
  const time = (at: number | null): number | undefined => (at === null ? undefined : seconds(at))
  const named = filterNames.map((name) => [filterParameters[name], filters[name]])
  return given({
    webhook_id: webhook.id,
    callback_url: webhook.callbackUrl,
    failure_notif_url: webhook.failureNotifUrl ?? undefined,
    retry_schedule: webhook.retrySchedule || undefined,
    active: webhook.active,
    failure: health.failure,
    last_error: health.lastError ?? undefined,
    failing_since: time(health.failingSince),
    abandoned_since: time(health.abandonedAt),
    retry_at: time(health.retryAt),
    last_success_at: time(health.lastSuccessAt),
    ...(Object.fromEntries(named) as Partial<Record<FilterParameter, string>>),
    include_body: webhook.includeBody,
    body_type: webhook.bodyType ?? undefined,
    include_header: includeHeader !== null,
    header_format:
      includeHeader === null ? undefined : includeHeader === 'raw' ? ('raw' as const) : ('parsed' as const),
    receive_all_changes: webhook.receiveAllChanges,
    receive_drafts: webhook.receiveDrafts,
    receive_historical: webhook.receiveHistorical,
  })
}

/** Has only the parameters of the body; an empty text removes the value. */
function webhookInput(body: schema.WebhookParameters): WebhookInput {
  const named = filterNames.filter((name) => body[filterParameters[name]] !== undefined)
  const filters = Object.fromEntries(named.map((name) => [name, body[filterParameters[name]] || null]))
  return given({
    callbackUrl: body.callback_url,
    failureNotifUrl: orNull(body.failure_notif_url),
    retrySchedule: body.retry_schedule,
    active: body.active,
    filters: named.length === 0 ? undefined : filters,
    includeBody: body.include_body,
    bodyType: orNull(body.body_type),
    includeHeader: body.include_header === false ? null : body.include_header,
    receiveAllChanges: body.receive_all_changes,
    receiveDrafts: body.receive_drafts,
    receiveHistorical: body.receive_historical,
  })
}

const orNull = <T extends string>(value: T | undefined): T | null | undefined => (value === '' ? null : value)

/** How one version of the API shows its webhooks. */
interface Form {
  readonly view: z.ZodType<unknown, object>
  readonly edited: z.ZodType<unknown, object>
  present(webhook: WebhookRecord, urls: Urls): object
  presentEdited(webhook: WebhookRecord, urls: Urls): object
}

const liteForm: Form = {
  view: schema.webhookView,
  edited: successAt(examples.urls.webhook),
  present: presentWebhook,
  presentEdited: (webhook, urls) => ({ success: true, resource_url: urls.webhook(webhook) }),
}

const v2Form: Form = {
  view: schema.v2WebhookView,
  edited: examples.answer({ success: [z.boolean(), true], feedbackCode: [z.string(), ''] }),
  present: presentWebhookFacts,
  presentEdited: () => ({ success: true, feedbackCode: '' }),
}

const levels = [
  { name: 'user', base: '/lite/users/{id}/webhooks' },
  { name: 'application', base: '/lite/webhooks' },
] as const
export const bases = levels.map(({ base }) => base)

/** Groups routes of both levels in the documents. */
export function byLevel(routes: readonly Route[]): readonly Route[] {
  const isOfUser = ({ path }: Route): boolean => path.startsWith(levels[0].base)
  return routes.map((route) => ({ ...route, tag: isOfUser(route) ? 'Webhooks' : 'Application webhooks' }))
}

const v2Levels = [
  { name: 'account', base: '/2.0/accounts/{id}/webhooks' },
  { name: 'application', base: '/2.0/webhooks' },
] as const
type Level = (typeof levels)[number] | (typeof v2Levels)[number]

/** The user of a user-level path; null at application level. */
async function scopeUser(call: Call, { id }: ScopePath): Promise<UserRecord | null> {
  return id === undefined ? null : findUser(call, id)
}

/** Lite shows the webhooks of 2.0 too: the routes of deliveries exist only in lite. */
function isShown({ version }: Call, webhook: WebhookRecord): boolean {
  return version === 'lite' || webhook.version === version
}

type WebhookPath = ScopePath & { readonly webhook_id: string }

export async function findWebhook(call: Call, path: WebhookPath): Promise<WebhookRecord> {
  const user = await scopeUser(call, path)
  const webhook = await call.engine.store.webhooks.get(path.webhook_id)
  const own = webhook !== null && webhook.developerId === call.developer.id && webhook.userId === (user?.id ?? null)
  if (!own || !isShown(call, webhook)) throw notFound('webhook', path.webhook_id)
  return webhook
}

function routesOf({ base, name }: Level, form: Form): Route[] {
  const isLite = form === liteForm
  const list = defineRoute(`GET ${base}`, {
    summary: `List ${name}-level webhooks`,
    response: z.array(form.view),
    async handler({ path }, call) {
      const { webhooks } = call.engine.store
      const user = await scopeUser(call, path)
      const found = await (user === null ? webhooks.listByDeveloper(call.developer.id) : webhooks.listByUser(user.id))
      return found.filter((webhook) => isShown(call, webhook)).map((webhook) => form.present(webhook, urlsOf(call)))
    },
  })

  const create = defineRoute(`POST ${base}`, {
    summary: isLite ? `Create a webhook at ${name} level` : `Create a webhook of the ${name}`,
    description:
      'All filters have to match. Case does not matter. A text that begins with / is a regular expression (RE2) and has to end with one. ' +
      'A backslash takes its meaning from the wildcard, comma or bracket after it where [] is a wildcard. A bad or blank pattern is a ' +
      `400 that says where.${isLite ? '' : ' Its callbacks are in the shape of 2.0.'}`,
    body: schema.createBody,
    response: examples.answer({
      success: [z.boolean(), true],
      webhook_id: [z.string(), examples.ids.webhook],
      resource_url: [z.string(), examples.urls.webhook],
    }),
    async handler({ path, body }, call) {
      const user = await scopeUser(call, path)
      const owner = { developerId: call.developer.id, userId: user?.id ?? null, version: call.version }
      const webhook = await call.engine.webhooks.create(owner, webhookInput(body))
      return { success: true, webhook_id: webhook.id, resource_url: urlsOf(call).webhook(webhook) }
    },
  })

  const get = defineRoute(`GET ${base}/{webhook_id}`, {
    summary: 'Get a webhook',
    response: form.view,
    handler: async ({ path }, call) => form.present(await findWebhook(call, path), urlsOf(call)),
  })

  const edit = defineRoute(`POST ${base}/{webhook_id}`, {
    summary: 'Edit a webhook',
    description:
      'Changes the parameters that are named; an empty one removes the value. `active` is 1 unless it is named.',
    body: schema.editBody,
    response: form.edited,
    async handler({ path, body }, call) {
      const webhook = await findWebhook(call, path)
      const wanted = webhookInput({ ...body, active: body.active ?? true })
      return form.presentEdited(await call.engine.webhooks.edit(webhook, wanted), urlsOf(call))
    },
  })

  const remove = defineRoute(`DELETE ${base}/{webhook_id}`, {
    summary: 'Cancel a webhook',
    response: success,
    async handler({ path }, call) {
      await call.engine.webhooks.remove(await findWebhook(call, path))
      return { success: true }
    },
  })

  return [list, create, get, edit, remove]
}

export const webhookRoutes = byLevel(levels.flatMap((level) => routesOf(level, liteForm)))

/** The routes of deliveries, redelivery and explain exist only in lite. */
export const v2WebhookRoutes = deprecated(
  'webhooks',
  v2Levels.flatMap((level) => routesOf(level, v2Form)),
)
