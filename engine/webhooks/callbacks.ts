/** Makes rows of the outbox. Callbacks to a bare URL are delivered and signed like those of webhooks. */
import { outboxId, urlChannelId } from '../store/ids.ts'
import type {
  AccountRecord,
  ChangeKind,
  MessageRecord,
  OutboxKind,
  OutboxRecord,
  WebhookRecord,
} from '../store/records.ts'
import type { EventFacts } from './match.ts'

type NewRow = Pick<OutboxRecord, 'id' | 'channelId' | 'webhookId' | 'developerId' | 'userId' | 'kind' | 'createdAt'>

/** A new row: due at once, live, without an account and a message. */
export function newRow(row: NewRow & Partial<OutboxRecord>): OutboxRecord {
  return {
    accountId: null,
    lane: 0,
    seq: 0,
    changeId: null,
    messageId: null,
    event: null,
    data: {},
    url: null,
    state: 'pending',
    dueAt: row.createdAt,
    attemptCount: 0,
    attempts: [],
    finishedAt: null,
    reason: null,
    ...row,
  }
}

interface UrlCallback extends Pick<OutboxRecord, 'developerId' | 'userId' | 'accountId' | 'webhookId' | 'data'> {
  readonly kind: Exclude<OutboxKind, 'message' | 'test'>
  readonly url: string
  /** A deterministic name of the event: `status:<account>:<version>` … */
  readonly event: string
  readonly at: number
}

export function urlRow({ event, at, ...callback }: UrlCallback): OutboxRecord {
  const channelId = urlChannelId(callback.developerId, callback.url)
  return newRow({ ...callback, id: outboxId(channelId, event), channelId, createdAt: at })
}

/** The body without timestamp, token and signature. */
export function urlCallbackBody(row: OutboxRecord): Readonly<Record<string, unknown>> {
  const user = row.userId === null ? {} : { account_id: row.userId, user_id: row.userId }
  return { ...user, ...row.data }
}

/** An email account went DISABLED (`permanent`) or is OK again (`cleared`): one row per status version. */
export function statusRow(
  account: AccountRecord,
  news: { readonly status: 'OK' | 'DISABLED'; readonly message: string | null; readonly version: number },
  url: string,
  at: number,
): OutboxRecord {
  const failure = news.status === 'DISABLED' ? 'permanent' : 'cleared'
  const data = { failure, failure_message: news.message ?? '' }
  return accountRow(account, { kind: 'status', url, event: `status:${account.id}:${news.version}`, data, at })
}

/** 2.0: the initial sync of a source is complete: one row to its callback_url. null = the source has none. */
export function syncRow(account: AccountRecord, at: number): OutboxRecord | null {
  const url = account.options.callbackUrl
  if (url === null) return null
  return accountRow(account, { kind: 'sync', url, event: `sync:${account.id}`, data: { sync: 'completed' }, at })
}

function accountRow(
  { id, developerId, userId, label, email }: AccountRecord,
  { data, ...callback }: Pick<UrlCallback, 'kind' | 'url' | 'event' | 'data' | 'at'>,
): OutboxRecord {
  const owner = { developerId, userId, accountId: id, webhookId: null }
  return urlRow({ ...callback, ...owner, data: { server_label: label, email_account: email, ...data } })
}

/**
 * A webhook's `failure` became true: one row per failure version. Without a failure_notif_url the row is skipped, for
 * the delivery log. `last`: the row whose attempt ended last, which names the user for an application's webhook.
 */
export function failureRow(
  webhook: WebhookRecord,
  news: { readonly version: number; readonly message: string; readonly at: number },
  last: Pick<OutboxRecord, 'userId' | 'accountId'> | null,
): OutboxRecord {
  const url = webhook.failureNotifUrl ?? ''
  const row = urlRow({
    kind: 'failure',
    url,
    developerId: webhook.developerId,
    userId: webhook.userId ?? last?.userId ?? null,
    accountId: last?.accountId ?? null,
    webhookId: webhook.id,
    event: `failure:${webhook.id}:${news.version}`,
    data: { webhook_id: webhook.id, data: news.message },
    at: news.at,
  })
  if (url !== '') return row
  return { ...row, state: 'skipped', finishedAt: news.at, reason: 'no failure_notif_url' }
}

interface Occasion extends Partial<Pick<OutboxRecord, 'lane' | 'seq' | 'changeId'>> {
  /** Makes the row's id, so that planning the row again makes no second row. */
  readonly name: string
  readonly kind: ChangeKind
  readonly facts: EventFacts
  readonly undecided: boolean
  readonly at: number
}

/** A callback for a message. The store takes the seq of a live row from its change. */
export function messageRow(
  webhook: WebhookRecord,
  account: Pick<AccountRecord, 'id' | 'userId'>,
  message: Pick<MessageRecord, 'id'>,
  { name, kind, facts, undecided, at, ...more }: Occasion,
): OutboxRecord {
  const { first, path, folderId, uid, flags, folders } = facts
  return newRow({
    id: outboxId(webhook.id, name),
    channelId: webhook.id,
    webhookId: webhook.id,
    developerId: webhook.developerId,
    userId: account.userId,
    accountId: account.id,
    messageId: message.id,
    kind: 'message',
    event: kind,
    data: { first, path, folderId, uid, flags, folders, ...(undecided ? { undecided: true } : {}) },
    createdAt: at,
    ...more,
  })
}

const noFacts: EventFacts = { first: false, path: '', folderId: '', uid: 0, flags: [], folders: [] }

export function readEventFacts(data: OutboxRecord['data']): EventFacts {
  return { ...noFacts, ...data }
}
