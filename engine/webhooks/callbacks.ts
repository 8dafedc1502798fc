/** Rows of the outbox. Callbacks to a bare URL have the same outbox, promises and signature as those of webhooks. */
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

type NewRow = Pick<
  OutboxRecord,
  'id' | 'channelId' | 'webhookId' | 'developerId' | 'userId' | 'accountId' | 'kind' | 'data' | 'createdAt'
>

/** A row that nothing was done about yet: due at once, live, without a message. */
export function newRow(row: NewRow & Partial<OutboxRecord>): OutboxRecord {
  return {
    lane: 0,
    seq: 0,
    changeId: null,
    messageId: null,
    event: null,
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

interface UrlCallback extends Pick<NewRow, 'developerId' | 'userId' | 'accountId' | 'webhookId' | 'data'> {
  readonly kind: Exclude<OutboxKind, 'message' | 'test'>
  readonly url: string
  /** Names what happened, the same whenever it is found: `status:<account>:<version>` … */
  readonly event: string
  readonly at: number
}

export function urlRow({ event, at, ...callback }: UrlCallback): OutboxRecord {
  const channelId = urlChannelId(callback.developerId, callback.url)
  return newRow({ ...callback, id: outboxId(channelId, event), channelId, createdAt: at })
}

/** The body, apart from timestamp, token and signature. */
export function urlCallbackBody(row: OutboxRecord): Readonly<Record<string, unknown>> {
  const user = row.userId === null ? {} : { account_id: row.userId, user_id: row.userId }
  return { ...user, ...row.data }
}

/**
 * An email account went DISABLED (`permanent`) or is OK again (`cleared`). One per transition, named by the account's
 * status version after it; `url`: the account's own or else the developer's.
 */
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

/** 2.0: the initial sync of a source is complete; POSTed once to the callback_url of the source. null = it has none. */
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
 * A webhook's `failure` became true. One per failing period, named by the webhook's failure version. Without a
 * failure_notif_url it is not sent, and is in the delivery log all the same. `last`: the row that failed last; it names
 * the user whose callbacks wait.
 */
export function failureRow(
  webhook: WebhookRecord,
  news: { readonly version: number; readonly message: string; readonly at: number },
  last: Pick<OutboxRecord, 'userId' | 'accountId'>,
): OutboxRecord {
  const url = webhook.failureNotifUrl ?? ''
  const row = urlRow({
    kind: 'failure',
    url,
    developerId: webhook.developerId,
    userId: webhook.userId ?? last.userId,
    accountId: last.accountId,
    webhookId: webhook.id,
    event: `failure:${webhook.id}:${news.version}`,
    data: { webhook_id: webhook.id, data: news.message },
    at: news.at,
  })
  if (url !== '') return row
  return { ...row, state: 'skipped', finishedAt: news.at, reason: 'no failure_notif_url' }
}

interface Occasion extends Partial<Pick<OutboxRecord, 'lane' | 'seq' | 'changeId'>> {
  /** Makes the row's id: the same row whenever it is planned. */
  readonly name: string
  readonly kind: ChangeKind
  readonly facts: EventFacts
  readonly undecided: boolean
  readonly at: number
}

/** A callback for a message. The store fills in the seq of a live one from its change. */
export function messageRow(
  webhook: WebhookRecord,
  account: Pick<AccountRecord, 'id' | 'userId'>,
  message: Pick<MessageRecord, 'id'>,
  { name, kind, facts, undecided, at, ...more }: Occasion,
): OutboxRecord {
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
    data: { ...eventFacts(facts), ...(undecided ? { undecided: true } : {}) },
    createdAt: at,
    ...more,
  })
}

function eventFacts({ first, path, folderId, uid, flags, folders }: EventFacts): EventFacts {
  return { first, path, folderId, uid, flags, folders }
}

const noFacts: EventFacts = { first: false, path: '', folderId: '', uid: 0, flags: [], folders: [] }

/** The facts out of an outbox row's data. */
export function readEventFacts(data: OutboxRecord['data']): EventFacts {
  return { ...noFacts, ...data }
}
