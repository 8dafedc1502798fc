/** …/messages/{message_id}/explain: what became of one message at one webhook, and why. Beyond the original. */
import { z } from 'zod'
import { folderNamer, notFound, type MessageRecord, type WebhookRecord } from '../../../engine/index.ts'
import { defineRoute, type Call, type Route } from '../../route.ts'
import { filledText } from '../../values.ts'
import { findAccount, findFolder, findKnownMessage, type Mailbox } from '../find.ts'
import { delimiter } from '../folders/schema.ts'
import { seconds } from '../urls.ts'
import { presentDelivery } from './present.ts'
import { explainAnswer } from './schema.ts'
import { askingOf } from './scope.ts'

const account = '/lite/users/{id}/email_accounts/{label}'

const explainPath = z.object({
  id: z.string(),
  label: z.string(),
  folder: z.string().optional(),
  message_id: z.string(),
})
const explainQuery = z.object({
  webhook_id: filledText.meta({
    description: 'id of the webhook that is asked about',
    examples: ['6a1f3c8b2d9e4f5a7b8c9d0e'],
  }),
  delimiter,
})

function explainRoute(path: string): Route {
  return defineRoute({
    method: 'GET',
    path,
    auth: 'developer',
    tag: 'Webhooks',
    summary: 'Why a message was or was not sent to a webhook',
    description:
      'When it was seen and as what, what the webhook was like then, what each filter says, and every callback that was queued with its attempts ' +
      'and answers. `matched` tells whether a callback was due. Nothing is judged that did not happen: for that there is the dry run. ' +
      '`webhook_id` is a webhook of the user or of the application.',
    request: { path: explainPath, query: explainQuery },
    response: explainAnswer,
    async handler({ path, query }, call) {
      const mailbox = await findAccount(call, path.id, path.label)
      const message = await findKnownMessage(call, mailbox.account, path.message_id)
      await checkFolder(call, mailbox, message, path.folder, query.delimiter)
      const webhook = await webhookOf(call, mailbox, query.webhook_id)
      return presentExplanation(call, webhook, mailbox, message)
    },
  })
}

/** With a folder in the path the message must lie there; one that has left every folder is found without. */
async function checkFolder(
  call: Call,
  mailbox: Mailbox,
  message: MessageRecord,
  name: string | undefined,
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
  const told = await webhooks.explain(webhook, mailbox.account, message, askingOf(call))
  const folderName = folderNamer(await store.folders.list(mailbox.account.id))
  return {
    message_id: message.id,
    webhook_id: webhook.id,
    indexed: seconds(message.indexedAt),
    events: told.changes.map(({ kind, first, path, at, seq }) => ({
      kind,
      first,
      folder: folderName(path),
      seen: seconds(at),
      sequence: seq,
    })),
    matched: told.matched,
    filters: [...told.verdicts],
    deliveries: told.deliveries.map((row) => presentDelivery(row, webhook)),
  }
}

export const explainRoutes: readonly Route[] = [
  explainRoute(`${account}/messages/{message_id}/explain`),
  explainRoute(`${account}/folders/{folder+}/messages/{message_id}/explain`),
]
