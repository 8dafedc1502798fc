/**
 * The channels and their root actors: one per webhook, and one per bare URL that has rows to send. The chart
 * (machines/webhook.machine.ts) decides when to send and keeps the health; the channel sends; this file stores the
 * chart's reports.
 */
import { createActor, fromCallback, fromPromise } from 'xstate'
import { AppError, toAppError } from '../errors.ts'
import { ActorRegistry } from '../observe/registry.ts'
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import { withinTime } from '../waits.ts'
import { freshHealth } from '../store/rows.ts'
import { type Attempts, scheduleOf } from './attempts.ts'
import { failureRow } from './callbacks.ts'
import { Channel } from './channel.ts'
import type { WebhookParts } from './parts.ts'
import { SharedHealth } from './shared-health.ts'
import { dated } from './targets.ts'
import type {
  DrainEvent,
  FailureAnnouncement,
  WebhookEmitted,
  WebhookEvent,
  WebhookInput,
  WebhookReport,
} from '../../machines/events.ts'
import { activeStates, describeWebhook } from '../../machines/view.ts'
import { webhookMachine, type WebhookSnapshot } from '../../machines/webhook.machine.ts'
import type { WebhookMachineInput } from '../../machines/webhook.rules.ts'

interface ActorsDeps extends WebhookParts {
  readonly attempts: Attempts
}

type Registry = ActorRegistry<WebhookMachineInput, WebhookEvent, WebhookSnapshot>

export class Actors {
  readonly #deps: ActorsDeps
  /** By id. A bare URL has a channel only while it has something to send. */
  readonly channels = new Map<string, Channel>()
  readonly registry: Registry
  readonly health: SharedHealth
  /** stopAll was called: rows that are stored later wait for the next start. */
  #ended = false

  constructor(deps: ActorsDeps) {
    this.#deps = deps
    this.health = new SharedHealth(deps, (id, health) => {
      const waits = this.registry.snapshot(id)?.hasTag('draining') === false
      if (waits && health.retryAt === null) this.channels.get(id)?.recovered(true)
      this.registry.send(id, { type: 'ADOPT', health, at: deps.now() })
    })
    const stepped = (channelId: string): void => void this.#endIfDone(channelId)
    this.registry = createRootActors({ ...deps, health: this.health }, this.channels, stepped)
  }

  start(channelId: string): Channel {
    const channel = this.channels.getOrInsertComputed(channelId, () => {
      const notify = (event: WebhookEvent): void => void this.registry.send(channelId, event)
      const userId = this.#deps.targets.get(channelId)?.webhook.userId ?? null
      return new Channel(channelId, { ...this.#deps, notify, userId, shared: this.health })
    })
    this.registry.start(channelId, inputOf(this.#deps, channelId))
    return channel
  }

  /** Passes rows that were just stored to their channels; a bare URL gets a channel with its first row. */
  dispatch(rows: readonly OutboxRecord[]): void {
    for (const [channelId, own] of Map.groupBy(rows, (row) => row.channelId)) this.wake(channelId, own)
  }

  /** `rows` were just stored; null = rows were stored without `dispatch`: the channel reads the store. */
  wake(channelId: string, rows: readonly OutboxRecord[] | null = null): void {
    this.#ensure(channelId)?.wake(rows)
    this.registry.send(channelId, { type: 'WAKE' })
  }

  sendNow(row: OutboxRecord): void {
    this.#ensure(row.channelId)?.sendNow(row)
  }

  /** After an edit with active=1: ends the failing period and sends waiting rows at once. */
  activate(webhookId: string): void {
    const { now, random } = this.#deps
    this.#ensure(webhookId)?.recovered()
    const scheduleMs = scheduleOf(this.#deps, webhookId)
    this.registry.send(webhookId, { type: 'ACTIVATE', now: now(), jitter: random(), scheduleMs })
  }

  deactivate(webhookId: string): void {
    this.registry.send(webhookId, { type: 'DEACTIVATE' })
  }

  /** Reads blocked rows again, in every channel. */
  release(): void {
    for (const [id, channel] of this.channels) {
      channel.release()
      this.registry.send(id, { type: 'WAKE' })
    }
  }

  async remove(channelId: string): Promise<void> {
    await this.registry.stop(channelId)
    this.#forget(channelId)
  }

  #forget(channelId: string): void {
    this.channels.delete(channelId)
    this.health.forget(channelId)
  }

  /** Ends the channels `gone`. In the others, no row of a lost slot is under way when it resolves. */
  async shed(gone: readonly string[], withinMs: number): Promise<void> {
    const { nodes } = this.#deps.store
    const isShed = (row: OutboxRecord): boolean => !nodes.owns(row.userId ?? row.developerId)
    const all = [...this.channels]
    await Promise.all(gone.map((id) => this.registry.stop(id)))
    await withinTime(withinMs, Promise.all(all.map(([, channel]) => channel.renew(isShed))))
    for (const id of gone) this.#forget(id)
  }

  async stopAll(withinMs: number): Promise<void> {
    this.#ended = true
    await this.registry.stopAll()
    await withinTime(withinMs, Promise.all(this.channels.values().map((channel) => channel.settled())))
    this.channels.clear()
  }

  /**
   * Ends the actor of a bare URL that has no row to send; its next row starts another actor. Called after each step of
   * the chart: a chart without a step during the reads got no new row meanwhile. Never rejects.
   */
  async #endIfDone(channelId: string): Promise<void> {
    const channel = this.channels.get(channelId)
    const seen = this.registry.snapshot(channelId)
    if (channel === undefined || seen === null || !restTags.some((tag) => seen.hasTag(tag))) return
    try {
      await channel.settled()
      const [waiting] = await this.#deps.store.outbox.pending(channelId, [], 1)
      if (waiting !== undefined || channel.isBusy() || seen !== this.registry.snapshot(channelId)) return
      this.#forget(channelId)
      await this.registry.stop(channelId)
    } catch (error) {
      this.#deps.log.warn({ channelId, err: toAppError(error) }, 'outbox of a URL not read: its actor stays')
    }
  }

  /** Starts the channel if it has to run. null = the webhook was removed, or the service is ending. */
  #ensure(channelId: string): Channel | null {
    if (this.#ended) return null
    const known = this.channels.get(channelId)
    const bareUrl = isBareUrl(channelId)
    // No edit can activate a paused bare URL: its next row does.
    const given = bareUrl && this.registry.snapshot(channelId)?.hasTag('paused') === true
    if (known !== undefined && !given) return known
    return bareUrl || this.#deps.targets.get(channelId) !== null ? this.start(channelId) : null
  }
}

/** Tags of charts that send nothing now. */
const restTags = ['idle', 'resting', 'paused'] as const

/** Webhook ids are 24 hex characters, those of bare URLs start with u. */
function isBareUrl(channelId: string): boolean {
  return channelId.startsWith('u')
}

interface RootDeps extends ActorsDeps {
  readonly health: SharedHealth
}

/** `stepped` is called after each step of a bare URL's chart. */
function createRootActors(
  deps: RootDeps,
  channels: ReadonlyMap<string, Channel>,
  stepped: (channelId: string) => void,
): Registry {
  const channelOf = ({ webhookId }: WebhookInput): Channel => {
    const channel = channels.get(webhookId)
    if (channel === undefined) throw new AppError('shutting_down', `channel ${webhookId} has ended`)
    return channel
  }
  const workOf = <T>(run: (channel: Channel) => Promise<T>) =>
    fromPromise<T, WebhookInput>(({ input }) => run(channelOf(input)))
  const machine = webhookMachine.provide({
    actors: {
      drain: fromCallback<DrainEvent, WebhookInput>(({ input, receive }) => {
        const channel = channelOf(input)
        channel.start()
        receive(() => channel.wake())
        return () => channel.stop()
      }),
      claim: workOf<unknown>((channel) => channel.claim()),
      probe: workOf((channel) => channel.probe()),
      report: fromPromise<unknown, WebhookReport>(async ({ input }) => {
        const last = channels.get(input.webhookId)?.last ?? { userId: null, accountId: null }
        for (const notice of await storeReport(deps, input, last)) deps.rereadAll(notice.channelId)
      }),
    },
  })
  // An alarm needs each series before its first event, as in registry.ts.
  for (const news of Object.keys(newsLines)) deps.metrics.webhookNews.inc({ news }, 0)
  return new ActorRegistry({
    kind: 'webhook',
    create(input, inspect) {
      const actor = createActor(machine, { input, inspect })
      deps.health.begin(input.webhookId, input.health)
      actor.on('*', (news) => {
        if (deps.health.adopting !== input.webhookId) noteNews(deps, news)
      })
      if (isBareUrl(input.webhookId)) actor.subscribe(() => stepped(input.webhookId))
      return actor
    },
    load: (id) => Promise.resolve(channels.has(id) ? inputOf(deps, id) : null),
    describe: describeWebhook,
    active: ({ value }) => activeStates(value),
    stopTimeoutMs: deps.config.MAILROOM_STORE_TIMEOUT,
    restartMaxMs: 300_000,
    log: deps.log,
    metrics: deps.metrics,
  })
}

function inputOf(deps: ActorsDeps, channelId: string): WebhookMachineInput {
  const { config, now, random, targets } = deps
  const webhook = targets.get(channelId)?.webhook
  // Longer than any callback takes, with the mail server's answers before it.
  const silenceMs = config.MAILROOM_WEBHOOK_TIMEOUT * 2 + config.MAILROOM_COMMAND_TIMEOUT * 3 + 60_000
  return {
    webhookId: channelId,
    settings: {
      scheduleMs: scheduleOf(deps, channelId),
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
    },
    now: now(),
    jitter: random(),
    active: webhook?.active ?? true,
    health: webhook?.health ?? freshHealth,
  }
}

/**
 * Stores a report of a webhook's chart: its health, and a notice to failure_notif_url when the webhook begins to fail,
 * has failed for too long, or is ended by a 410. The chart repeats the report until it succeeds, also after a restart:
 * notices have deterministic ids, and the health that counts them is written after them. `last`: the row whose attempt
 * ended last; a notice names its user. Returns the notices to send.
 */
async function storeReport(
  deps: RootDeps,
  news: WebhookReport,
  last: Pick<OutboxRecord, 'userId' | 'accountId'>,
): Promise<readonly OutboxRecord[]> {
  const { targets, health } = deps
  const webhook = targets.get(news.webhookId)?.webhook
  if (webhook === undefined) return []
  const notices = news.announcements.map((one) => noticeOf(deps, webhook, news, one, last))
  if (news.goneAt !== null) await endByGone(deps, webhook, news, notices)
  else await health.write(webhook.id, news.health, notices)
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
 * Ends a webhook after a 410. Pending rows become failed, so that `redeliver` with failed_only finds them. `active` and
 * the health are one write: after a crash before it the webhook is active, and the next 410 makes the same notice. Rows
 * that other nodes have planned meanwhile fail last.
 */
async function endByGone(
  { store, targets, now, health: shared, changed }: RootDeps,
  webhook: WebhookRecord,
  { health }: WebhookReport,
  notices: readonly OutboxRecord[],
): Promise<void> {
  const { id } = webhook
  const ended = { active: false, ...dated(webhook, { active: false }, now()) }
  const failWaiting = () => store.outbox.skipPending(id, 'the receiver answered 410 Gone', now(), 'failed')
  targets.touch(id, ended)
  await shared.end(id, async () => {
    await failWaiting()
    await store.outbox.enqueue(notices)
    // An edit with active=1 that came meanwhile wins.
    const edited = targets.get(id)?.webhook.active === true
    const stored = await store.webhooks.edit(id, { health, ...(edited ? {} : ended) })
    if (stored !== null) targets.put(stored)
  })
  changed(id)
  await store.nodes.told()
  if (targets.get(id)?.webhook.active === false) await failWaiting()
}

const newsLines: Readonly<Record<WebhookEmitted['type'], string>> = {
  failing: 'webhook is failing',
  abandoned: 'webhook has failed for too long: only probes are sent',
  gone: 'webhook set inactive: the receiver answered 410 Gone',
  recovered: 'the failing period of the webhook is over',
}

/** Logs and counts an event that a webhook's chart emits; events of bare URLs are ignored. */
function noteNews({ log, metrics, targets }: ActorsDeps, { type, webhookId, message }: WebhookEmitted): void {
  if (targets.get(webhookId) === null) return
  metrics.webhookNews.inc({ news: type })
  if (type === 'recovered') log.info({ webhookId }, newsLines[type])
  else log.warn({ webhookId, failure: message }, newsLines[type])
}
