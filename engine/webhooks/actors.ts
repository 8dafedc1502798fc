/**
 * The channels and their root actors: one per webhook, and one per bare URL that has rows to send. The chart
 * (machines/webhook.machine.ts) decides when to send and keeps the health; the channel sends; this file stores the
 * chart's reports.
 */
import { createActor, fromCallback, fromPromise } from 'xstate'
import { AppError, toAppError } from '../errors.ts'
import { ActorRegistry } from '../observe/registry.ts'
import { isBareUrl } from '../store/ids.ts'
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import { withinTime } from '../scheduling.ts'
import { freshHealth } from '../store/rows.ts'
import { type Attempts, scheduleOf } from './attempts.ts'
import { failureRow } from './callbacks.ts'
import { Channel } from './channel.ts'
import type { WebhookParts } from './parts.ts'
import { SharedHealth } from './shared-health.ts'
import { dated, endOf } from './targets.ts'
import type {
  DrainEvent,
  WebhookEmitted,
  WebhookEvent,
  WebhookHealth,
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
    this.registry = this.#createRegistry()
  }

  #createRegistry(): Registry {
    const { config, log, metrics } = this.#deps
    const channelOf = ({ webhookId }: WebhookInput): Channel => {
      const channel = this.channels.get(webhookId)
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
        report: fromPromise<unknown, WebhookReport>(({ input }) => this.#store(input)),
      },
    })
    // An alarm needs each series before its first event, as in registry.ts.
    for (const news of Object.keys(newsLines)) metrics.webhookNews.inc({ news }, 0)
    return new ActorRegistry({
      kind: 'webhook',
      create: (input, inspect) => {
        const actor = createActor(machine, { input, inspect })
        this.health.begin(input.webhookId, input.health)
        actor.on('*', (news) => this.#note(news))
        if (isBareUrl(input.webhookId)) actor.subscribe(() => void this.#endIfDone(input.webhookId))
        return actor
      },
      load: (id) => Promise.resolve(this.channels.has(id) ? inputOf(this.#deps, id) : null),
      describe: describeWebhook,
      active: ({ value }) => activeStates(value),
      stopTimeoutMs: config.MAILROOM_STORE_TIMEOUT,
      restartMaxMs: 300_000,
      log,
      metrics,
    })
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

  /**
   * `rows` were just stored; null = rows were stored without `dispatch`: the channel reads the store. Rows that were
   * planned before their webhook became inactive end.
   */
  wake(channelId: string, rows: readonly OutboxRecord[] | null = null): void {
    const { targets, log } = this.#deps
    this.#ensure(channelId)?.wake(rows)
    this.registry.send(channelId, { type: 'WAKE' })
    if (this.#ended || targets.get(channelId)?.webhook.active !== false) return
    this.endWaiting(channelId).catch((error: unknown) =>
      log.warn({ channelId, err: toAppError(error) }, 'callbacks of an inactive webhook not ended yet'),
    )
  }

  /** Ends the rows that wait for a webhook which is inactive in the store: an edit with active=1 wins. */
  async endWaiting(webhookId: string): Promise<void> {
    const { store, now } = this.#deps
    const webhook = await store.webhooks.get(webhookId)
    if (webhook?.active !== false) return
    const { state, reason } = endOf(webhook)
    await store.outbox.skipPending(webhookId, reason, now(), state)
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

  /** No row of a slot in handover is under way, or in memory, when it resolves, unless the time is over. */
  async rest(withinMs: number): Promise<void> {
    const { nodes } = this.#deps.store
    await this.#renew((row) => !nodes.sends(row.userId ?? row.developerId), withinMs)
  }

  /** Ends the channels `gone`. In the others no row of a lost slot is under way. */
  async shed(gone: readonly string[], withinMs: number): Promise<void> {
    const { nodes } = this.#deps.store
    await Promise.all(gone.map((id) => this.registry.stop(id)))
    await this.#renew((row) => !nodes.owns(row.userId ?? row.developerId), withinMs)
    for (const id of gone) this.#forget(id)
  }

  async #renew(isShed: (row: OutboxRecord) => boolean, withinMs: number): Promise<void> {
    await withinTime(withinMs, Promise.all(this.channels.values().map((channel) => channel.renew(isShed))))
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

  /**
   * Stores a report of a chart: the webhook's health, and a notice to failure_notif_url when the webhook begins to
   * fail, has failed for too long, or is ended by a 410. The chart repeats the report until it succeeds, also after a
   * restart: notices have deterministic ids, and the health that counts them is written after them.
   */
  async #store(report: WebhookReport): Promise<void> {
    const { config, targets, rereadAll } = this.#deps
    const { webhookId, health, announcements, goneAt } = report
    const webhook = targets.get(webhookId)?.webhook
    if (webhook === undefined) return
    const minutes = Math.ceil(config.MAILROOM_WEBHOOK_PROBE / 60_000)
    const last = this.channels.get(webhookId)?.last ?? null
    const notices = announcements.map(({ version, news, message, at }) => {
      const since = new Date(health.failingSince ?? at).toISOString()
      const consequence = {
        failing: '',
        abandoned: `; it has failed since ${since}: callbacks wait, and one is tried every ${minutes} min`,
        gone: '; the webhook is inactive until it is edited with active=1',
      }[news]
      return failureRow(webhook, { version, message: message + consequence, at }, last)
    })
    if (goneAt !== null) await this.#endByGone(webhook, health, notices)
    else await this.health.write(webhookId, health, notices)
    for (const { state, channelId } of notices) if (state === 'pending') rereadAll(channelId)
  }

  /**
   * Ends a webhook after a 410. `active` and the health are one write: after a crash before it the webhook is active,
   * and the next 410 makes the same notice. Other nodes end the rows that they have planned meanwhile.
   */
  async #endByGone(webhook: WebhookRecord, health: WebhookHealth, notices: readonly OutboxRecord[]): Promise<void> {
    const { store, targets, now, changed } = this.#deps
    const { id } = webhook
    const ended = { active: false, gone: true, ...dated(webhook, { active: false }, now()) }
    targets.touch(id, ended)
    await this.health.end(id, async () => {
      await store.outbox.enqueue(notices)
      // An edit with active=1 that came meanwhile wins.
      const edited = targets.get(id)?.webhook.active === true
      const stored = await store.webhooks.edit(id, { health, ...(edited ? {} : ended) })
      if (stored !== null) targets.put(stored)
    })
    changed(id)
    await this.endWaiting(id)
  }

  /** Logs and counts an event that a webhook's chart emits; events of bare URLs are ignored. */
  #note({ type, webhookId, message }: WebhookEmitted): void {
    const { log, metrics, targets } = this.#deps
    if (this.health.adopting === webhookId || targets.get(webhookId) === null) return
    metrics.webhookNews.inc({ news: type })
    if (type === 'recovered') log.info({ webhookId }, newsLines[type])
    else log.warn({ webhookId, failure: message }, newsLines[type])
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

const newsLines: Readonly<Record<WebhookEmitted['type'], string>> = {
  failing: 'webhook is failing',
  abandoned: 'webhook has failed for too long: only probes are sent',
  gone: 'webhook set inactive: the receiver answered 410 Gone',
  recovered: 'the failing period of the webhook is over',
}
