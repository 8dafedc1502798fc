/**
 * The channels and their root actors: one per webhook, one per bare URL that has rows to send. The chart
 * (machines/webhook.machine.ts) decides when to send and keeps the health; the channel sends; what the chart wants
 * stored is stored here.
 */
import { createActor, fromCallback, fromPromise } from 'xstate'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import { workAs } from '../observe/loop.ts'
import { type ActorRegistry, createRegistry } from '../observe/registry.ts'
import type { Store } from '../store/port.ts'
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import { withinTime } from '../waits.ts'
import { freshHealth } from '../store/rows.ts'
import { type Attempts, scheduleOf } from './attempts.ts'
import { failureRow } from './callbacks.ts'
import { Channel } from './channel.ts'
import { dated, type WebhookParts } from './targets.ts'
import type {
  DrainEvent,
  FailureAnnouncement,
  ProbeOutput,
  WebhookEmitted,
  WebhookEvent,
  WebhookInput,
  WebhookReport,
} from '../../machines/events.ts'
import { activeStates, describeWebhook } from '../../machines/view.ts'
import { webhookMachine, type WebhookSnapshot } from '../../machines/webhook.machine.ts'
import type { WebhookMachineInput, WebhookSettings } from '../../machines/webhook.rules.ts'

interface ActorsDeps extends WebhookParts {
  readonly attempts: Attempts
}

export type Actors = ReturnType<typeof createActors>

type Registry = ActorRegistry<WebhookMachineInput, WebhookEvent, WebhookSnapshot>

interface Pool {
  readonly deps: ActorsDeps
  readonly channels: Map<string, Channel>
  readonly registry: Registry
  /** stopAll was called: rows that are stored from now on wait for the next start. */
  ended: boolean
}

export function createActors(deps: ActorsDeps) {
  const channels = new Map<string, Channel>()
  const registry = createRootActors(deps, channels, (channelId) => reread(pool, channelId))
  const pool: Pool = { deps, channels, registry, ended: false }
  return {
    registry,
    /** Starts the webhook's actor, or one for a bare URL (null). */
    start: (channelId: string, webhook: WebhookRecord | null) => void startChannel(pool, channelId, webhook),
    /** Rows that were just stored go to their channels; those of unknown URLs get one. */
    dispatch: (rows: readonly OutboxRecord[]) => dispatch(pool, rows),
    /** Rows were written without being dispatched: the channel reads the store. */
    reread: (channelId: string) => reread(pool, channelId),
    sendNow: (row: OutboxRecord) => ensure(pool, row.channelId)?.sendNow(row),
    isUnderWay: (row: OutboxRecord) => channels.get(row.channelId)?.isUnderWay(row.id) === true,
    /** An edit with active=1: the failing period is over, waiting rows go out at once. */
    activate(webhook: WebhookRecord): void {
      ensure(pool, webhook.id)?.recovered()
      const scheduleMs = scheduleOf(deps.config, webhook)
      registry.send(webhook.id, { type: 'ACTIVATE', now: deps.now(), jitter: deps.random(), scheduleMs })
    },
    deactivate: (webhookId: string) => void registry.send(webhookId, { type: 'DEACTIVATE' }),
    async remove(channelId: string): Promise<void> {
      await registry.stop(channelId)
      channels.delete(channelId)
    },
    async stopAll(withinMs: number): Promise<void> {
      pool.ended = true
      await registry.stopAll()
      const settled = Promise.all([...channels.values()].map((channel) => channel.settled()))
      await withinTime(withinMs, settled)
      channels.clear()
    },
  }
}

function createRootActors(
  deps: ActorsDeps,
  channels: Map<string, Channel>,
  again: (channelId: string) => void,
): Registry {
  const machine = webhookMachine.provide({
    actors: {
      drain: fromCallback<DrainEvent, WebhookInput>(({ input, receive }) => {
        const channel = channelOf(channels, input.webhookId)
        channel.start()
        receive(() => channel.wake())
        return () => channel.stop()
      }),
      claim: fromPromise<unknown, WebhookInput>(({ input: { webhookId: id } }) =>
        workAs({ kind: 'webhook', id }, () => channelOf(channels, id).claim()),
      ),
      probe: fromPromise<ProbeOutput, WebhookInput>(({ input: { webhookId: id } }) =>
        workAs({ kind: 'webhook', id }, () => channelOf(channels, id).probe()),
      ),
      report: fromPromise<unknown, WebhookReport>(async ({ input }) => {
        const last = channels.get(input.webhookId)?.last ?? { userId: null, accountId: null }
        for (const notice of await storeReport(deps, input, last)) again(notice.channelId)
      }),
    },
  })
  return createRegistry({
    kind: 'webhook',
    create(input, inspect) {
      const actor = createActor(machine, { input, inspect })
      actor.on('*', (news) => noteNews(deps, news))
      return actor
    },
    load: (id) => Promise.resolve(channels.has(id) ? inputOf(deps, id, deps.targets.get(id)?.webhook ?? null) : null),
    describe: describeWebhook,
    active: ({ value }) => activeStates(value),
    stopEvent: { type: 'STOP' },
    stopTimeoutMs: deps.config.MAILROOM_STORE_TIMEOUT,
    restartFirstMs: 1_000,
    restartMaxMs: 300_000,
    log: deps.log,
    metrics: deps.metrics,
  })
}

function reread(pool: Pool, channelId: string): void {
  ensure(pool, channelId)?.wake(null)
  pool.registry.send(channelId, { type: 'WAKE' })
}

function channelOf(channels: ReadonlyMap<string, Channel>, id: string): Channel {
  const channel = channels.get(id)
  if (channel === undefined) throw new AppError('shutting_down', `channel ${id} has ended`)
  return channel
}

/** Silence longer than any callback and the mail server's answer before it may take. */
function settingsOf(config: Config, webhook: WebhookRecord | null): WebhookSettings {
  const silenceMs = config.MAILROOM_WEBHOOK_TIMEOUT * 2 + config.MAILROOM_COMMAND_TIMEOUT * 3 + 60_000
  return {
    scheduleMs: scheduleOf(config, webhook),
    jitterPercent: config.MAILROOM_WEBHOOK_JITTER,
    retryAfterMaxMs: config.MAILROOM_WEBHOOK_RETRY_AFTER_MAX,
    probeMs: config.MAILROOM_WEBHOOK_PROBE,
    abandonMs: config.MAILROOM_WEBHOOK_ABANDON,
    announceAfter: 3,
    drainDeadlineMs: silenceMs,
    probeDeadlineMs: silenceMs,
    stallRetryMs: 2_000,
    successReportMs: 60_000,
    reportDeadlineMs: config.MAILROOM_STORE_TIMEOUT + 1_000,
    reportRetryMs: 1_000,
  }
}

function inputOf(deps: ActorsDeps, channelId: string, webhook: WebhookRecord | null): WebhookMachineInput {
  return {
    webhookId: channelId,
    settings: settingsOf(deps.config, webhook),
    now: deps.now(),
    jitter: deps.random(),
    active: webhook?.active ?? true,
    health: webhook?.health ?? freshHealth,
  }
}

function startChannel(pool: Pool, channelId: string, webhook: WebhookRecord | null): Channel {
  const { deps, channels, registry } = pool
  const known = channels.get(channelId)
  const channel =
    known ??
    new Channel(channelId, {
      store: deps.store.outbox,
      attempts: deps.attempts,
      log: deps.log,
      now: deps.now,
      random: deps.random,
      concurrency: deps.config.MAILROOM_WEBHOOK_CONCURRENCY,
      capacity: deps.config.MAILROOM_WEBHOOK_BATCH,
      notify: (event) => void registry.send(channelId, event),
    })
  channels.set(channelId, channel)
  // Whoever asked for it, from here on it is the channel's own work.
  workAs({ kind: 'webhook', id: channelId }, () => registry.start(channelId, inputOf(deps, channelId, webhook)))
  return channel
}

/** Webhook ids are 24 hex characters, those of bare URLs start with u. A removed webhook gets no actor. */
function ensure(pool: Pool, channelId: string): Channel | null {
  const { channels, registry, deps, ended } = pool
  if (ended) return null
  const known = channels.get(channelId)
  const bareUrl = channelId.startsWith('u')
  // A bare URL has no developer's edit that could make it active again: the next row does.
  const given = bareUrl && registry.snapshot(channelId)?.hasTag('paused') === true
  if (known !== undefined && !given) return known
  const target = deps.targets.get(channelId)
  return bareUrl || target !== null ? startChannel(pool, channelId, target?.webhook ?? null) : null
}

function dispatch(pool: Pool, rows: readonly OutboxRecord[]): void {
  const byChannel = Map.groupBy(rows, (row) => row.channelId)
  for (const [channelId, own] of byChannel) {
    ensure(pool, channelId)?.wake(own)
    pool.registry.send(channelId, { type: 'WAKE' })
  }
}

/**
 * Stores what a webhook's chart reports: its health, and a notice to failure_notif_url when it begins to fail, when it
 * has failed for too long, and when a 410 ends it. The chart repeats it until it succeeds, also after a restart:
 * notices have deterministic ids, and the health that counts them is written after them. `last`: the row whose attempt
 * ended last; it names the user whose callbacks wait. Answers the notices to send.
 */
async function storeReport(
  deps: ActorsDeps,
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
  deps: ActorsDeps,
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
 * 410. What waits ends as failed, so that `redeliver` with failed_only finds it. `active` and the health are one write,
 * the last: a crash before it leaves the webhook active, and the next 410 makes the same notice.
 */
async function endByGone(
  { store, targets, now }: ActorsDeps,
  webhook: WebhookRecord,
  { health }: WebhookReport,
  notices: readonly OutboxRecord[],
): Promise<void> {
  const ended = { active: false, ...dated(webhook, { active: false }, now()) }
  targets.touch({ ...webhook, ...ended })
  await failWaiting(store.outbox, webhook.id, now)
  await store.outbox.enqueue(notices)
  // The developer's edit with active=1 may have come meanwhile: it counts.
  const edited = targets.get(webhook.id)?.webhook.active === true
  await store.webhooks.edit(webhook.id, { health, ...(edited ? {} : ended) })
}

const rowsAtOnce = 200

async function failWaiting(outbox: Store['outbox'], channelId: string, now: () => number): Promise<void> {
  for (;;) {
    const rows = await outbox.pending(channelId, [], rowsAtOnce)
    const reason = 'the receiver answered 410 Gone'
    const ended = { attempt: null, state: 'failed', finishedAt: now(), reason } as const
    await outbox.record(rows.map(({ id, dueAt }) => ({ ...ended, id, dueAt })))
    if (rows.length < rowsAtOnce) return
  }
}

const newsLines: Readonly<Record<WebhookEmitted['type'], string>> = {
  failing: 'webhook is failing',
  abandoned: 'webhook has failed for too long: only probes are sent',
  gone: 'webhook set inactive: the receiver answered 410 Gone',
  recovered: 'the failing period of the webhook is over',
}

/** Log line and count of what a webhook's chart says; bare URLs have neither. */
function noteNews({ log, metrics, targets }: ActorsDeps, { type, webhookId, message }: WebhookEmitted): void {
  if (targets.get(webhookId) === null) return
  metrics.webhookNews.inc({ news: type })
  if (type === 'recovered') log.info({ webhookId }, newsLines[type])
  else log.warn({ webhookId, failure: message }, newsLines[type])
}
