/**
 * The channels and their root actors: one per webhook, one per bare URL that has rows to send. The chart (machines/webhook.machine.ts)
 * decides when to send and keeps the health; the channel sends; what the chart wants stored is stored here.
 */
import { createActor, fromCallback, fromPromise } from 'xstate'
import type { DrainEvent, ProbeOutput, WebhookEvent, WebhookInput, WebhookReport } from '../../machines/events.ts'
import { describeWebhook } from '../../machines/view.ts'
import { type WebhookSnapshot, webhookMachine } from '../../machines/webhook.machine.ts'
import type { WebhookMachineInput, WebhookSettings } from '../../machines/webhook.rules.ts'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import { type ActorRegistry, createRegistry } from '../observe/registry.ts'
import type { Store } from '../store/port.ts'
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import { freshHealth } from '../store/rows.ts'
import type { Attempts } from './attempts.ts'
import { type Channel, createChannel } from './channel.ts'
import { noteNews, storeReport } from './report.ts'
import { scheduleOf } from './schedule.ts'
import type { Targets } from './targets.ts'

export interface ActorsDeps {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly store: Pick<Store, 'webhooks' | 'outbox'>
  readonly targets: Targets
  readonly attempts: Attempts
  readonly now: () => number
  readonly random: () => number
}

export interface Actors {
  readonly registry: ActorRegistry<WebhookMachineInput, WebhookEvent, WebhookSnapshot>
  /** Starts the webhook's actor, or one for a bare URL (null). */
  start(channelId: string, webhook: WebhookRecord | null): void
  /** Rows that were just stored go to their channels; those of unknown URLs get one. */
  dispatch(rows: readonly OutboxRecord[]): void
  /** Rows were written without being dispatched: the channel reads the store. */
  reread(channelId: string): void
  /** Sends a stored row at once, whatever its schedule says. */
  sendNow(row: OutboxRecord): void
  isUnderWay(row: OutboxRecord): boolean
  /** An edit with active=1: the failing period is over, waiting rows go out at once. */
  activate(webhook: WebhookRecord): void
  deactivate(webhookId: string): void
  remove(channelId: string): Promise<void>
  /** Ends every actor and waits for what is under way. */
  stopAll(withinMs: number): Promise<void>
}

type Registry = Actors['registry']

interface House {
  readonly deps: ActorsDeps
  readonly channels: Map<string, Channel>
  readonly registry: Registry
  /** stopAll was called: rows that are stored from now on wait for the next start. */
  ended: boolean
}

export function createActors(deps: ActorsDeps): Actors {
  const channels = new Map<string, Channel>()
  const registry = createPool(deps, channels, (channelId) => reread(house, channelId))
  const house: House = { deps, channels, registry, ended: false }
  return {
    registry,
    start: (channelId, webhook) => startChannel(house, channelId, webhook),
    dispatch: (rows) => dispatch(house, rows),
    reread: (channelId) => reread(house, channelId),
    sendNow: (row) => ensure(house, row.channelId)?.sendNow(row),
    isUnderWay: (row) => channels.get(row.channelId)?.isUnderWay(row.id) === true,
    activate(webhook) {
      ensure(house, webhook.id)?.recovered()
      const scheduleMs = scheduleOf(deps.config, webhook)
      registry.send(webhook.id, { type: 'ACTIVATE', now: deps.now(), jitter: deps.random(), scheduleMs })
    },
    deactivate: (webhookId) => void registry.send(webhookId, { type: 'DEACTIVATE' }),
    async remove(channelId) {
      await registry.stop(channelId)
      channels.delete(channelId)
    },
    async stopAll(withinMs) {
      house.ended = true
      await registry.stopAll()
      const settled = Promise.all([...channels.values()].map((channel) => channel.settled()))
      await Promise.race([settled, new Promise((resolve) => setTimeout(resolve, withinMs).unref())])
      channels.clear()
    },
  }
}

const restartFirstMs = 1_000
const restartMaxMs = 300_000

function createPool(deps: ActorsDeps, channels: Map<string, Channel>, again: (channelId: string) => void): Registry {
  const machine = webhookMachine.provide({
    actors: {
      drain: fromCallback<DrainEvent, WebhookInput>(({ input, receive }) => {
        const channel = channelOf(channels, input.webhookId)
        channel.start()
        receive(() => channel.wake(false))
        return () => channel.stop()
      }),
      probe: fromPromise<ProbeOutput, WebhookInput>(({ input }) => channelOf(channels, input.webhookId).probe()),
      report: fromPromise<unknown, WebhookReport>(({ input }) => report(deps, channels, again, input)),
    },
  })
  const registry: Registry = createRegistry({
    kind: 'webhook',
    create(input, inspect) {
      const actor = createActor(machine, { input, inspect })
      actor.on('*', (news) => noteNews(deps, news))
      return actor
    },
    load: (id) => Promise.resolve(channels.has(id) ? inputOf(deps, id, deps.targets.get(id)?.webhook ?? null) : null),
    describe: describeWebhook,
    stopEvent: { type: 'STOP' },
    stopTimeoutMs: deps.config.MAILROOM_STORE_TIMEOUT,
    restartFirstMs,
    restartMaxMs,
    log: deps.log,
    metrics: deps.metrics,
  })
  return registry
}

function reread(house: House, channelId: string): void {
  ensure(house, channelId)?.wake(true)
  house.registry.send(channelId, { type: 'WAKE' })
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

function startChannel(house: House, channelId: string, webhook: WebhookRecord | null): Channel {
  const { deps, channels, registry } = house
  const known = channels.get(channelId)
  const channel =
    known ??
    createChannel(channelId, {
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
  registry.start(channelId, inputOf(deps, channelId, webhook))
  return channel
}

/** Webhook ids are 24 hex characters, those of bare URLs start with u. A removed webhook gets no actor. */
function ensure(house: House, channelId: string): Channel | null {
  const { channels, registry, deps, ended } = house
  if (ended) return null
  const known = channels.get(channelId)
  const bareUrl = channelId.startsWith('u')
  // A bare URL has no developer's edit that could make it active again: the next row does.
  const given = bareUrl && registry.snapshot(channelId)?.hasTag('paused') === true
  if (known !== undefined && !given) return known
  const target = deps.targets.get(channelId)
  return bareUrl || target !== null ? startChannel(house, channelId, target?.webhook ?? null) : null
}

function dispatch(house: House, rows: readonly OutboxRecord[]): void {
  const byChannel = Map.groupBy(rows, (row) => row.channelId)
  for (const [channelId, own] of byChannel) {
    ensure(house, channelId)?.offer(own)
    house.registry.send(channelId, { type: 'WAKE' })
  }
}

async function report(
  deps: ActorsDeps,
  channels: ReadonlyMap<string, Channel>,
  again: (channelId: string) => void,
  news: WebhookReport,
): Promise<void> {
  const last = channels.get(news.webhookId)?.last ?? { userId: null, accountId: null }
  for (const notice of await storeReport(deps, news, last)) again(notice.channelId)
}
