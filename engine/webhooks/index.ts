/** Webhooks: from stored changes to signed callbacks. Everything else talks to them through `Webhooks` (types.ts). */
import { EventEmitter } from 'node:events'
import type { Budget } from '../budget.ts'
import type { Config } from '../config.ts'
import { toAppError } from '../errors.ts'
import { createHttpClient } from '../net/http.ts'
import type { Logger } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Tracing } from '../observe/tracing.ts'
import type { Sealer } from '../secrets/seal.ts'
import type { Store } from '../store/port.ts'
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import { createUndo } from '../undo.ts'
import { createActors } from './actors.ts'
import { createAdmin } from './admin.ts'
import { createAttempts, createRecorder } from './attempts.ts'
import { statusRow, syncRow } from './callbacks.ts'
import { createBodyWaits, createComposer } from './compose.ts'
import type { Mail, ReadDeps } from './contents.ts'
import { createPace, type Pace } from './envelope.ts'
import { coveredAccounts, dryRun, explain, findMessages } from './explain.ts'
import { createHistory } from './history.ts'
import { createRedeliveries } from './redelivery.ts'
import { Searches } from './searches.ts'
import { createTargets, newTarget, planRows, type Target, type WebhookParts } from './targets.ts'
import type { Webhooks } from './types.ts'

interface WebhooksDeps {
  readonly config: Config
  readonly log: Logger
  readonly metrics: Metrics
  readonly tracing?: Tracing
  readonly store: Store
  readonly sealer: Sealer
  readonly budget: Budget
  readonly mail: Mail
  /** Base of resource_url in callbacks, without a trailing slash: MAILROOM_PUBLIC_URL or where the API listens. */
  readonly baseUrl: () => string
}

type Parts = ReturnType<typeof build>

export function createWebhooks(deps: WebhooksDeps): Webhooks {
  const parts = build(deps)
  const { targets, actors, composer, admin } = parts
  const streams = createStreams(deps.log)
  const explainDeps = { store: deps.store, ...parts.bodies }
  return {
    ...admin,
    startAll: () => startAll(parts),
    stopAll: () => parts.stop(),
    plan: (account, changes, folderName) => planRows(targets.of(account), account, changes, folderName),
    stored(accountId, outbox, changes) {
      if (outbox.length > 0) actors.dispatch(outbox)
      if (changes.length > 0) streams.notify(accountId)
    },
    planStatus: (account, transition) => planStatus(parts, account, transition),
    initialSyncDone: (account) => initialSyncDone(parts, account),
    dryRun: (webhook, account, limit, asking) =>
      dryRun(explainDeps, targetOf(parts, webhook), [account], limit, asking),
    async dryRunAll(webhook, userId, limit, asking) {
      const coverage = { developerId: webhook.developerId, userId: userId ?? webhook.userId }
      const accounts = await coveredAccounts(deps.store, coverage, 'user_id')
      return dryRun(explainDeps, targetOf(parts, webhook), accounts, limit, asking)
    },
    findMessages: (webhook, reference) => findMessages(deps.store, webhook, reference),
    explain: (webhook, account, message, asking) =>
      explain(explainDeps, targetOf(parts, webhook), account, message, asking),
    forget(userId) {
      composer.forget(userId)
      dropRemoved(parts, userId).catch((error: unknown) =>
        deps.log.warn({ userId, err: toAppError(error) }, 'webhooks of a removed user not ended yet'),
      )
    },
    subscribe: (accountIds, listener) => streams.subscribe(accountIds, listener),
    view: (webhookId) => actors.registry.view(webhookId),
    all: () => targets.all().map(({ webhook }) => webhook),
    facts: () => actors.registry.facts(),
    countTags: () => actors.registry.countTags(),
  }
}

function build(deps: WebhooksDeps) {
  const { config, store, sealer, budget, mail, baseUrl, log, metrics } = deps
  const { now } = Date
  const { random } = Math
  const http = createHttpClient({ connectTimeoutMs: config.MAILROOM_WEBHOOK_TIMEOUT })
  const targets = createTargets(store, log)
  const pace = createPace()
  const bodies = { budget, reading: readingOf(config, mail, pace) }
  const payload = { ...bodies, baseUrl, now, waits: createBodyWaits() }
  const composer = createComposer({ store, sealer, targets, payload })
  const recorder = createRecorder(store.outbox, log)
  const allowPrivate = config.MAILROOM_ALLOW_PRIVATE
  const limits = { timeoutMs: config.MAILROOM_WEBHOOK_TIMEOUT, allowPrivate, maxResponseBytes: 4096 }
  const attempts = createAttempts({
    config,
    targets,
    composer,
    recorder,
    metrics,
    tracing: deps.tracing,
    pace,
    random,
    deliver: { http, limits, config, now },
  })
  const parts: WebhookParts = { config, log, metrics, store, targets, now, random }
  const actors = createActors({ ...parts, attempts })
  const reread = (channelId: string) => actors.reread(channelId)
  const history = createHistory({ ...parts, reread })
  const redeliveries = createRedeliveries({ ...parts, reread })
  const undo = createUndo(log, 2 * config.MAILROOM_STORE_TIMEOUT)
  const own = { ...parts, sealer, actors, attempts, composer, history, redeliveries, undo }
  const stop = async (): Promise<void> => {
    await Promise.all([history.stop(), redeliveries.stop()])
    undo.close()
    await bodies.reading.searches.close()
    await actors.stopAll(config.MAILROOM_SHUTDOWN_TIMEOUT)
    await recorder.close(config.MAILROOM_SHUTDOWN_TIMEOUT)
    await http.close()
  }
  return { ...own, deps, bodies, stop, admin: createAdmin(own) }
}

function readingOf(config: Config, mail: Mail, pace: Pace): ReadDeps {
  return {
    mail,
    pace,
    searches: new Searches(config.MAILROOM_FILTER_TIMEOUT, config.MAILROOM_BODY_SEARCH_MAX),
    giveMax: config.MAILROOM_WEBHOOK_PAYLOAD_MAX,
    searchMax: config.MAILROOM_BODY_SEARCH_MAX,
    withinMs: config.MAILROOM_COMMAND_TIMEOUT * 3,
  }
}

async function startAll({ targets, actors, redeliveries, history, deps }: Parts): Promise<void> {
  await targets.load()
  for (const { webhook } of targets.all()) actors.start(webhook.id, webhook)
  for (const channelId of await deps.store.outbox.channels()) actors.reread(channelId)
  redeliveries.startAll()
  await history.startAll()
}

/** A webhook that is not in the cache (just removed, or unreadable) is judged by its record. */
function targetOf({ targets }: Parts, webhook: WebhookRecord): Target {
  return targets.get(webhook.id) ?? newTarget(webhook)
}

async function planStatus(
  { deps, now }: Parts,
  account: Parameters<Webhooks['planStatus']>[0],
  transition: Parameters<Webhooks['planStatus']>[1],
): Promise<OutboxRecord[]> {
  const developer = account.statusCallbackUrl === null ? await deps.store.developers.get(account.developerId) : null
  const url = account.statusCallbackUrl ?? developer?.statusCallbackUrl ?? null
  return url === null ? [] : [statusRow(account, transition, url, now())]
}

async function initialSyncDone(
  { deps, now, actors, history }: Parts,
  account: Parameters<Webhooks['initialSyncDone']>[0],
): Promise<void> {
  const row = syncRow(account, now())
  // Its id is the account's: it goes out once, however often this is called.
  if (row !== null) actors.dispatch(await deps.store.outbox.enqueue([row]))
  history.accountReady(account)
}

/** Removing a user removes its webhooks from the store; their actors end here. */
async function dropRemoved({ deps, targets, actors }: Parts, userId: string): Promise<void> {
  for (const { webhook } of targets.of({ userId, developerId: '' })) {
    if ((await deps.store.webhooks.get(webhook.id)) !== null) continue
    targets.remove(webhook.id)
    await actors.remove(webhook.id)
  }
}

/** Live changes for the event stream, by account. A listener that throws is dropped. */
function createStreams(log: Logger) {
  const changes = new EventEmitter().setMaxListeners(0)
  return {
    subscribe(accountIds: readonly string[], listener: (accountId: string) => void): () => void {
      const own = (accountId: string): void => {
        try {
          listener(accountId)
        } catch (error) {
          leave()
          log.error({ accountId, err: toAppError(error) }, 'a listener of the event stream failed')
        }
      }
      const leave = (): void => {
        for (const id of accountIds) changes.off(id, own)
      }
      for (const id of accountIds) changes.on(id, own)
      return leave
    },
    notify: (accountId: string) => void changes.emit(accountId, accountId),
  }
}
