/**
 * What a webhook's chart wants kept and told: its health, and a notice to failure_notif_url when it begins to fail, when it has
 * failed for too long, and when a 410 ends it. Every step is repeated until it succeeds, also after a restart: notices have
 * deterministic ids, and the health that counts them is written after them.
 */
import type { FailureAnnouncement, WebhookEmitted, WebhookReport } from '../../machines/events.ts'
import { failureRow } from '../callbacks/failure.ts'
import type { Config } from '../config.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Store } from '../store/port.ts'
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import type { Targets } from './targets.ts'
import { dated } from './timeline.ts'

export interface ReportDeps {
  readonly config: Pick<Config, 'MAILROOM_WEBHOOK_PROBE'>
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'webhookNews'>
  readonly store: Pick<Store, 'webhooks' | 'outbox'>
  readonly targets: Targets
  readonly now: () => number
}

/** `last`: the row whose attempt ended last, which says whose callbacks wait. Answers the notices to send. */
export async function storeReport(
  deps: ReportDeps,
  news: WebhookReport,
  last: Pick<OutboxRecord, 'userId' | 'accountId'>,
): Promise<readonly OutboxRecord[]> {
  const { store, targets } = deps
  const webhook = targets.get(news.webhookId)?.webhook
  if (webhook === undefined) return []
  const notices = news.announcements.map((one) => noticeOf(deps, webhook, news, one, last))
  if (news.goneAt === null) await store.webhooks.recordHealth(webhook.id, news.health, notices)
  else await endByGone(deps, webhook, news, notices)
  const current = targets.get(webhook.id)?.webhook
  if (current !== undefined) targets.touch({ ...current, health: news.health })
  return notices.filter(({ state }) => state === 'pending')
}

function noticeOf(
  deps: ReportDeps,
  webhook: WebhookRecord,
  { health }: WebhookReport,
  one: FailureAnnouncement,
  last: Pick<OutboxRecord, 'userId' | 'accountId'>,
): OutboxRecord {
  const { version, news, message, at } = one
  const minutes = Math.ceil(deps.config.MAILROOM_WEBHOOK_PROBE / 60_000)
  const since = new Date(health.failingSince ?? at).toISOString()
  const consequence = {
    failing: '',
    abandoned: `; it has failed since ${since}: callbacks wait, and one is tried every ${minutes} min`,
    gone: '; the webhook is inactive until it is edited with active=1',
  }[news]
  return failureRow(webhook, { version, message: message + consequence, at }, last)
}

/**
 * 410. What waits ends as failed, so that `redeliver` with failed_only finds it. `active` and the health are one write, the last:
 * a crash before it leaves the webhook active, and the next 410 tells the same notice.
 */
async function endByGone(
  { store, targets, now }: ReportDeps,
  webhook: WebhookRecord,
  { health }: WebhookReport,
  notices: readonly OutboxRecord[],
): Promise<void> {
  const ended = { active: false, ...dated(webhook, { active: false }, now()) }
  targets.touch({ ...webhook, ...ended })
  await failWaiting(store, webhook.id, 'the receiver answered 410 Gone', now)
  await store.outbox.enqueue(notices)
  // The developer's edit with active=1 may have come meanwhile: it has the last word.
  const edited = targets.get(webhook.id)?.webhook.active === true
  await store.webhooks.edit(webhook.id, { health, ...(edited ? {} : ended) })
}

const rowsAtOnce = 200

async function failWaiting(
  { outbox }: Pick<Store, 'outbox'>,
  channelId: string,
  reason: string,
  now: () => number,
): Promise<void> {
  for (;;) {
    const rows = await outbox.pending(channelId, [], rowsAtOnce)
    const ended = { attempt: null, state: 'failed', finishedAt: now(), reason } as const
    await outbox.record(rows.map(({ id, dueAt }) => ({ ...ended, id, dueAt })))
    if (rows.length < rowsAtOnce) return
  }
}

const words: Readonly<Record<WebhookEmitted['type'], string>> = {
  failing: 'webhook is failing',
  abandoned: 'webhook has failed for too long: only probes are sent',
  gone: 'webhook set inactive: the receiver answered 410 Gone',
  recovered: 'the failing period of the webhook is over',
}

/** Log line and count of what a webhook's chart says; bare URLs have neither. */
export function noteNews({ log, metrics, targets }: ReportDeps, { type, webhookId, message }: WebhookEmitted): void {
  if (targets.get(webhookId) === null) return
  metrics.webhookNews.inc({ news: type })
  if (type === 'recovered') log.info({ webhookId }, words[type])
  else log.warn({ webhookId, failure: message }, words[type])
}
