/** The trail of a message from its arrival to each delivery attempt, or what is known when the index lacks it. */
import { z } from 'zod'
import {
  type AccountRecord,
  bracketed,
  type Engine,
  explainAbsence,
  folderNamer,
  type MessageRecord,
  messagesMeant,
} from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { address, answer, ids, time, view } from '../examples.ts'
import { filledText, optional } from '../values.ts'
import { findAccount } from './accounts.ts'
import { presentSent, sentCallback, verdictView } from './deliveries.ts'
import { adminRoute, count } from './shared.ts'

const messageView = answer({
  id: [z.string(), ids.message],
  email_message_id: [z.string().nullable(), ids.emailMessage],
  subject: [z.string(), 'Hello'],
  from: [z.array(z.string()), ['ben@example.org']],
  to: [z.array(z.string()), [address], 'the first twenty'],
  sent: [z.int(), time],
  received: [z.int(), time, 'by its mail server'],
  indexed: [z.int(), time],
  folders: [z.array(z.string()), ['INBOX'], 'none = it has left all of them'],
})

const webhookTrail = answer({
  id: [z.string(), ids.webhook],
  callback_url: [z.string(), 'https://app.example.com/callback'],
  active: [z.boolean(), true],
  matched: [z.boolean(), true, 'a callback was due'],
  why: [z.array(verdictView), []],
  callbacks: [z.array(sentCallback), [], 'the newest ten'],
})

const trailView = view('AdminTrail', {
  messages: [z.array(messageView), [], 'that are meant, at most twenty; what follows is of the only one'],
  known: [
    z.array(z.string()),
    ['INBOX is caught up, and watched since 2026-11-22 14:30:00 UTC.'],
    'of mail that is not in the index: how account and folders are',
  ],
  events: [
    z.array(answer({ kind: [z.string(), 'received'], folder: [z.string(), 'INBOX'], seen: [z.int(), time] })),
    [],
    'what was seen of it, while the change log has it',
  ],
  webhooks: [z.array(webhookTrail), [], 'that hear of the account, at most twenty'],
  more_webhooks: [count, 0, 'beside these'],
  others: [z.array(sentCallback), [], 'callbacks of webhooks that are gone'],
})
export type Trail = z.input<typeof trailView>
export type TrailMessage = Trail['messages'][number]

const mostMessages = 20
const mostAddresses = 20

export const trailQuery = z.object({
  q: optional(filledText, 'message id, Message-ID or part of the subject; without it the newest messages', 'Hello'),
})

/** The trail of the message that `asked` means; without it the newest messages. Throws `not_found`: the account. */
export async function trailOf(engine: Engine, id: string, signal: AbortSignal, asked?: string): Promise<Trail> {
  const { store } = engine
  const account = await findAccount(engine, id)
  const page = { limit: mostMessages, offset: 0 }
  const messages =
    asked === undefined ? await store.messages.list(id, {}, page) : await messagesMeant(store, id, asked, mostMessages)
  const folders = await store.folders.list(id)
  const name = folderNamer(folders)
  const [message, ...others] = messages
  const found = {
    messages: messages.map((one) => presentMessage(one, name)),
    known: messages.length > 0 ? [] : explainAbsence(engine, account, folders),
    ...{ events: [], webhooks: [], more_webhooks: 0, others: [] },
  }
  if (message === undefined || others.length > 0 || asked === undefined) return found
  return { ...found, ...(await wayOf(engine, account, message, name, signal)) }
}

function presentMessage(message: MessageRecord, name: (path: string) => string): TrailMessage {
  const { id, emailMessageId, subject, addresses, sentAt, receivedAt, indexedAt, placements } = message
  return {
    ...{ id, subject, email_message_id: bracketed(emailMessageId) },
    from: addresses.from.map(({ email }) => email),
    to: addresses.to.slice(0, mostAddresses).map(({ email }) => email),
    ...{ sent: seconds(sentAt), received: seconds(receivedAt), indexed: seconds(indexedAt) },
    folders: placements.map(({ path }) => name(path)),
  }
}

async function wayOf(
  engine: Engine,
  account: AccountRecord,
  message: MessageRecord,
  name: (path: string) => string,
  signal: AbortSignal,
): Promise<Omit<Trail, 'messages' | 'known'>> {
  const { changes, ways, more, others } = await engine.webhooks.trail(account, message, signal)
  const webhooks = ways.map(async ({ webhook: { id, callbackUrl, active }, matched, verdicts, callbacks }) => ({
    ...{ id, callback_url: callbackUrl, active, matched, why: [...verdicts] },
    callbacks: await presentSent(engine, callbacks),
  }))
  return {
    events: changes.map(({ kind, path, at }) => ({ kind, folder: name(path), seen: seconds(at) })),
    webhooks: await Promise.all(webhooks),
    more_webhooks: more,
    others: await presentSent(engine, others),
  }
}

export const trailRoute = adminRoute('GET /admin/accounts/{id}/trail', {
  summary: 'The trail of a message: when it came, which webhooks wanted it and why or why not, and each attempt',
  description: 'Of a mail that is not in the index: how account and folders are.',
  query: trailQuery,
  response: trailView,
  handler: ({ path, query }, { engine, signal }) => trailOf(engine, path.id, signal, query.q),
})
