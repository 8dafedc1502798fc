/** Webhooks at the levels user and application: list, create, get, edit, delete; and what became of a message. */
import { z } from 'zod'
import {
  type Asking,
  folderNamer,
  type MessageRecord,
  notFound,
  type UserRecord,
  type WebhookRecord,
} from '../../../engine/index.ts'
import { type Call, defineRoute, tagged } from '../../route.ts'
import { filledText, success } from '../../values.ts'
import { findAccount, findFolder, findKnownMessage, findUser, type Mailbox } from '../find.ts'
import { delimiter } from '../folders.ts'
import { type MessagePath, messagePaths, type MessagePattern } from '../messages/locate.ts'
import { liteUrls, seconds } from '../../addresses.ts'
import { presentDelivery, presentWebhook, webhookInput } from './present.ts'
import { createAnswer, createBody, editAnswer, editBody, explainAnswer, webhookView } from './schema.ts'

/** Path parameters of either level; `id` is the user's and absent at application level. */
interface ScopePath {
  readonly id?: string
}

export const levels = [
  { name: 'user', base: '/lite/users/{id}/webhooks', tag: 'Webhooks' },
  { name: 'application', base: '/lite/webhooks', tag: 'Application webhooks' },
] as const
export type Level = (typeof levels)[number]

/** The user of a user-level path; null at application level. */
async function scopeUser(call: Call, { id }: ScopePath): Promise<UserRecord | null> {
  return id === undefined ? null : findUser(call, id)
}

export async function findWebhook(
  call: Call,
  path: ScopePath & { readonly webhook_id: string },
): Promise<WebhookRecord> {
  const user = await scopeUser(call, path)
  const webhook = await call.engine.store.webhooks.get(path.webhook_id)
  const own = webhook !== null && webhook.developerId === call.developer.id && webhook.userId === (user?.id ?? null)
  if (!own) throw notFound('webhook', path.webhook_id)
  return webhook
}

/** Where the answer needs mail from a mail server, the call counts as one to the mail servers of that user; once. */
export function askingOf(call: Call): Asking {
  const counted = new Set<string>()
  return {
    signal: call.signal,
    reads(userId) {
      if (counted.has(userId)) return
      counted.add(userId)
      call.touchesImap({ id: userId })
    },
  }
}

const list = ({ base, name }: Level) =>
  defineRoute(`GET ${base}`, {
    summary: `List ${name}-level webhooks`,
    response: z.array(webhookView),
    async handler({ path }, call) {
      const { webhooks } = call.engine.store
      const user = await scopeUser(call, path)
      const found =
        user === null ? await webhooks.listByDeveloper(call.developer.id) : await webhooks.listByUser(user.id)
      return found.map((webhook) => presentWebhook(webhook, liteUrls(call.baseUrl)))
    },
  })

const create = ({ base, name }: Level) =>
  defineRoute(`POST ${base}`, {
    summary: `Create a ${name}-level webhook`,
    description:
      'All filters have to match. Case does not matter. A text that begins with / is a regular expression (RE2) and has to end with one. ' +
      'A backslash takes its meaning from the wildcard, comma or bracket after it where [] is a wildcard. A bad or blank pattern is a ' +
      '400 that says where.',
    body: createBody,
    response: createAnswer,
    async handler({ path, body }, call) {
      const user = await scopeUser(call, path)
      const owner = { developerId: call.developer.id, userId: user?.id ?? null, version: 'lite' as const }
      const webhook = await call.engine.webhooks.create(owner, webhookInput(body))
      return { success: true, webhook_id: webhook.id, resource_url: liteUrls(call.baseUrl).webhook(webhook) }
    },
  })

const get = ({ base }: Level) =>
  defineRoute(`GET ${base}/{webhook_id}`, {
    summary: 'Get a webhook',
    response: webhookView,
    async handler({ path }, call) {
      return presentWebhook(await findWebhook(call, path), liteUrls(call.baseUrl))
    },
  })

const edit = ({ base }: Level) =>
  defineRoute(`POST ${base}/{webhook_id}`, {
    summary: 'Edit a webhook',
    description:
      'Changes the parameters that are named; an empty one removes the value. `active` is 1 unless it is named.',
    body: editBody,
    response: editAnswer,
    async handler({ path, body }, call) {
      const webhook = await findWebhook(call, path)
      const edited = await call.engine.webhooks.edit(webhook, webhookInput({ ...body, active: body.active ?? true }))
      return { success: true, resource_url: liteUrls(call.baseUrl).webhook(edited) }
    },
  })

const remove = ({ base }: Level) =>
  defineRoute(`DELETE ${base}/{webhook_id}`, {
    summary: 'Cancel a webhook',
    response: success,
    async handler({ path }, call) {
      await call.engine.webhooks.remove(await findWebhook(call, path))
      return { success: true }
    },
  })

export const webhookRoutes = levels.flatMap((level) =>
  tagged(level.tag, [list(level), create(level), get(level), edit(level), remove(level)]),
)

const explainQuery = z.object({
  webhook_id: filledText.meta({
    description: 'id of the webhook that is asked about',
    examples: ['6a1f3c8b2d9e4f5a7b8c9d0e'],
  }),
  delimiter,
})

const explainRoute = (pattern: MessagePattern) =>
  defineRoute(`GET ${pattern}/explain`, {
    summary: 'Why a message was or was not sent to a webhook',
    description:
      'When it was seen and as what, what the webhook was like then, what each filter says, and every callback that was queued with its attempts ' +
      'and answers. `matched` tells whether a callback was due. Nothing is judged that did not happen: for that there is the dry run. ' +
      '`webhook_id` is a webhook of the user or of the application.',
    query: explainQuery,
    response: explainAnswer,
    async handler({ path, query }, call) {
      const mailbox = await findAccount(call, path.id, path.label)
      const message = await findKnownMessage(call, mailbox.account, path.message_id)
      await checkFolder(call, mailbox, message, path, query.delimiter)
      const webhook = await webhookOf(call, mailbox, query.webhook_id)
      return presentExplanation(call, webhook, mailbox, message)
    },
  })

/** With a folder in the path the message must lie there; one that has left every folder is found without. */
async function checkFolder(
  call: Call,
  mailbox: Mailbox,
  message: MessageRecord,
  { folder: name }: MessagePath,
  spoken: string | undefined,
): Promise<void> {
  if (name === undefined) return
  const folder = await findFolder(call, mailbox.account, name, spoken)
  if (!message.placements.some(({ folderId }) => folderId === folder.id)) throw notFound('message', message.id)
}

/** User or application level: both hear of this account. */
async function webhookOf(call: Call, { user }: Mailbox, id: string): Promise<WebhookRecord> {
  const webhook = await call.engine.store.webhooks.get(id)
  const concerned =
    webhook?.developerId === call.developer.id && (webhook.userId === null || webhook.userId === user.id)
  if (!concerned) throw notFound('webhook', id)
  return webhook
}

async function presentExplanation(
  call: Call,
  webhook: WebhookRecord,
  mailbox: Mailbox,
  message: MessageRecord,
): Promise<z.input<typeof explainAnswer>> {
  const { store, webhooks } = call.engine
  const found = await webhooks.explain(webhook, mailbox.account, message, askingOf(call))
  const folderName = folderNamer(await store.folders.list(mailbox.account.id))
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
}

export const explainRoutes = tagged('Webhooks', messagePaths.map(explainRoute))
