/** The trail of a message: from its arrival to each attempt; and why a mail is not there. */
import { z } from 'zod'
import {
  type AccountRecord,
  bracketed,
  type Engine,
  folderName,
  folderNamer,
  type FolderRecord,
  type MessageRecord,
  messagesMeant,
  type WebhookRecord,
} from '../../engine/index.ts'
import { seconds } from '../addresses.ts'
import { address, answer, ids, time, view } from '../examples.ts'
import { filledText, optional } from '../values.ts'
import { explainAccount } from './account.ts'
import { findAccount } from './accounts.ts'
import { presentSent, sentCallback, verdictView } from './deliveries.ts'
import { adminRoute, count, utc } from './shared.ts'

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
    ['INBOX was caught up at 2026-11-22 14:30:00 UTC.'],
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
const mostWebhooks = 20
const mostCallbacks = 10

export const trailQuery = z.object({
  q: optional(filledText, 'message id, Message-ID or part of the subject; without it the newest messages', 'Hello'),
})

/** `not_found` for an unknown account. */
export async function trailOf(
  engine: Engine,
  id: string,
  asked: string | undefined,
  signal: AbortSignal,
): Promise<Trail> {
  const { store } = engine
  const account = await findAccount(engine, id)
  const page = { limit: mostMessages, offset: 0 }
  const messages =
    asked === undefined ? await store.messages.list(id, {}, page) : await messagesMeant(store, id, asked, mostMessages)
  const folders = await store.folders.list(id)
  const [message, ...others] = messages
  const found = {
    messages: messages.map((one) => presentMessage(one, folders)),
    known: messages.length > 0 ? [] : knownOf(engine, account, folders),
    ...{ events: [], webhooks: [], more_webhooks: 0, others: [] },
  }
  if (message === undefined || others.length > 0 || asked === undefined) return found
  return { ...found, ...(await wayOf(engine, account, message, folders, signal)) }
}

function presentMessage(message: MessageRecord, folders: readonly FolderRecord[]): TrailMessage {
  const name = folderNamer(folders)
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
  folders: readonly FolderRecord[],
  signal: AbortSignal,
): Promise<Omit<Trail, 'messages' | 'known'>> {
  const { store, webhooks } = engine
  const name = folderNamer(folders)
  const changes = await store.changes.ofMessage(account.id, message.id)
  const hearing = webhooks.of(account)
  const ways: Trail['webhooks'] = []
  // What an operator asks is not the user's to pay for, and reads no text.
  const asking = { signal, reads: () => undefined, texts: false }
  for (const webhook of hearing.slice(0, mostWebhooks)) {
    const { matched, verdicts, deliveries } = await webhooks.explain(webhook, account, message, asking)
    ways.push({
      ...{ id: webhook.id, callback_url: webhook.callbackUrl, active: webhook.active },
      ...{ matched, why: [...verdicts] },
      callbacks: await presentSent(engine, deliveries.slice(0, mostCallbacks)),
    })
  }
  const rows = await store.outbox.list({ messageId: message.id, accountId: account.id }, { limit: 100, offset: 0 })
  const others = rows.filter(({ webhookId }) => isGone(webhookId, hearing)).slice(0, mostCallbacks)
  return {
    events: changes.slice(-mostMessages).map(({ kind, path, at }) => ({ kind, folder: name(path), seen: seconds(at) })),
    webhooks: ways,
    more_webhooks: Math.max(0, hearing.length - mostWebhooks),
    others: await presentSent(engine, others),
  }
}

const isGone = (id: string | null, hearing: readonly WebhookRecord[]): boolean => hearing.every((one) => one.id !== id)

const mostFolders = 20

/** Of a mail that is not in the index: what may keep it from being there. */
function knownOf(engine: Engine, account: AccountRecord, folders: readonly FolderRecord[]): string[] {
  const { why, next } = explainAccount(engine, account)
  const first =
    account.resume.initialSyncAt === null ? ['Its first sync is not complete: older mail is still read.'] : []
  const ofFolders = folders.filter(({ selectable }) => selectable).flatMap(knownOfFolder)
  return [`${why} ${next}`, ...first, ...ofFolders.slice(0, mostFolders)]
}

function knownOfFolder(folder: FolderRecord): string[] {
  const name = folderName(folder)
  const { cursor, failures, parkedUntil } = folder
  const parked = parkedUntil !== null && parkedUntil > Date.now()
  const words = parked
    ? [`${name} was refused ${failures} times in a row: it is tried again at ${utc(parkedUntil)}.`]
    : []
  if (cursor === null) return [...words, `${name} was not opened yet.`]
  const { syncedAt, backfillBelow, quarantined } = cursor
  return [
    ...words,
    ...(backfillBelow > 1 ? [`${name}: its older mail is still being read.`] : []),
    ...(quarantined.length > 0
      ? [`${name}: the mail server did not give ${quarantined.length} messages; they are asked for again.`]
      : []),
    ...(name === 'INBOX' && syncedAt !== undefined
      ? [`INBOX was caught up at ${utc(syncedAt)}: what lay there then is in the index.`]
      : []),
  ]
}

export const trailRoute = adminRoute('GET /admin/accounts/{id}/trail', {
  summary: 'The trail of a message: when it came, which webhooks wanted it and why or why not, and each attempt',
  description: 'Of a mail that is not in the index: how account and folders are.',
  query: trailQuery,
  response: trailView,
  handler: ({ path, query }, { engine, signal }) => trailOf(engine, path.id, query.q, signal),
})
