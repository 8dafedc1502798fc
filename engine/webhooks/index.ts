/** The webhooks' room: from stored changes to signed callbacks. */
import { EventEmitter } from 'node:events'
import type { ChangeListener } from '../accounts/types.ts'
import { toAppError } from '../errors.ts'
import { createHttpClient } from '../net/http.ts'
import type { PoolFacts } from '../observe/steps.ts'
import type { RequeueQuery } from '../store/port.ts'
import { sharedSlot, slotCount, slotOf, type News } from '../store/slots.ts'
import type { OutboxRecord } from '../store/records.ts'
import { Actors } from './actors.ts'
import { createAdmin } from './admin.ts'
import { createAttempts, createRecorder } from './attempts.ts'
import { statusRow, syncRow } from './callbacks.ts'
import { createComposer } from './compose.ts'
import { createPace } from './envelope.ts'
import { createQuestions } from './explain.ts'
import { History } from './history.ts'
import type { WebhookParts, WebhooksDeps } from './parts.ts'
import { createRedeliveries, createResends } from './requeues.ts'
import { Searches } from './searches.ts'
import { createTargets, planRows } from './targets.ts'

export type Webhooks = ReturnType<typeof createWebhooks>

type Works = ReturnType<typeof createWorks>

export function createWebhooks(deps: WebhooksDeps) {
  const works = createWorks(deps)
  const { parts, actors, composer, streams } = works
  const life = createLife(works)
  /** Adds the next attempt of a blocked callback when the chart itself has no timer. */
  const timed = <T extends PoolFacts>(facts: T): T => {
    const at = facts.next === null ? actors.channels.get(facts.id)?.queue.nextRelease() : null
    return at == null ? facts : { ...facts, next: { what: 'sends a callback again', at } }
  }
  return {
    ...createAdmin({ ...parts, ...works, hear: life.rereadWebhook }),
    ...createQuestions(parts),
    ...createListener(works),
    ...life,
    rereadChannel: (channelId: string) => actors.wake(channelId),
    /** The callback as it would be composed now, without texts of the mail and signatures; or why it is skipped. */
    preview: composer.preview,
    /** The developer's secret was changed, or its key was revoked or restored: waiting callbacks are tried at once. */
    keyChanged: () => actors.release(),
    /** Call after a user or account was added, edited or removed. */
    forget(userId: string): void {
      composer.forget(userId)
      if (!deps.store.nodes.owns(userId)) works.tell({ what: 'user', id: userId })
      dropRemoved(works, userId).catch((error: unknown) =>
        deps.log.warn({ userId, err: toAppError(error) }, 'webhooks of a removed user not ended yet'),
      )
    },
    /**
     * Calls the listener, which must not throw, for each stored live change of the accounts. Returns the function that
     * unsubscribes.
     */
    subscribe: streams.subscribe,
    view(webhookId: string) {
      const view = actors.registry.view(webhookId)
      return view && timed(view)
    },
    /** Why a callback waits; null = it is finished. */
    waits: (row: OutboxRecord): Waits | null => (row.state === 'pending' ? waitsOf(actors, row) : null),
    /** Sends the failed callbacks of the filter again; see requeues.ts. */
    resendFailed: (filter: RequeueQuery) => works.resends.start(filter),
    resending: () => works.resends.current(),
    several: parts.targets.several,
    /** A webhook that this node serves; null = another node has it, or none. */
    served: (id: string) => parts.targets.get(id)?.webhook ?? null,
    all: parts.targets.every,
    /** All channels of this node, or these, without steps. Channels of bare URLs (ids start with u) are included. */
    facts: (ids?: readonly string[]) => actors.registry.facts(ids).map(timed),
    countTags: () => actors.registry.countTags(),
  }
}

/**
 * Why a callback waits. `receiver`: the receiver fails, one callback is tried at `until`. `callback`: an earlier
 * callback of the account (its id is `callback`) is blocked until `until`.
 */
export interface Waits {
  readonly behind: 'receiver' | 'callback' | 'schedule' | 'turn'
  readonly callback: string | null
  readonly until: number | null
}

function waitsOf(actors: Actors, row: OutboxRecord): Waits {
  const facts = actors.registry.view(row.channelId)
  const held = ['probing', 'waiting', 'resting'].find((tag) => facts?.tags.includes(tag))
  const triedAt = held === 'probing' ? null : (facts?.next?.at ?? null)
  if (held !== undefined) return { behind: 'receiver', callback: null, until: triedAt }
  const wait = actors.channels.get(row.channelId)?.queue.waitOf(row)
  if (wait == null) return { behind: 'turn', callback: null, until: null }
  const isOwn = wait.id === row.id
  return { behind: isOwn ? 'schedule' : 'callback', callback: isOwn ? null : wait.id, until: wait.dueAt }
}

function createWorks(deps: WebhooksDeps) {
  const { config, store, log } = deps
  const { now } = Date
  const { random } = Math
  const tell = (news: News): void => void store.nodes.tell(news)
  const parts: WebhookParts = {
    ...deps,
    targets: createTargets(store, log),
    pace: createPace(),
    searches: new Searches(config.MAILROOM_FILTER_TIMEOUT, config.MAILROOM_BODY_SEARCH_MAX),
    now,
    random,
    reread: (channelId) => actors.wake(channelId),
    rereadAll: (channelId) => {
      actors.wake(channelId)
      tell({ what: 'channel', id: channelId })
    },
    // A user's webhooks are on the user's node alone.
    changed: (id) => {
      if (parts.targets.get(id)?.webhook.userId != null) return
      tell({ what: 'webhook', id })
    },
  }
  const { MAILROOM_ALLOW_PRIVATE: allowPrivate, MAILROOM_WEBHOOK_TIMEOUT: connectTimeoutMs } = config
  const http = createHttpClient({ allowPrivate, connectTimeoutMs })
  const composer = createComposer(parts)
  const recorder = createRecorder(store.outbox, log)
  const attempts = createAttempts({ ...parts, http, composer, recorder })
  const actors = new Actors({ ...parts, attempts })
  const history = new History(parts)
  const redeliveries = createRedeliveries(parts)
  const resends = createResends(parts)
  const streams = createStreams()
  return { parts, tell, http, composer, recorder, attempts, actors, history, redeliveries, resends, streams }
}

/** The webhooks of this node, from slot to slot. */
function createLife({ parts, http, recorder, actors, history, redeliveries, resends }: Works) {
  const { targets, store, config, searches } = parts
  let hasShared = false
  return {
    /** Starts the webhooks of these slots. An application's webhooks are loaded with the first slots. */
    async gained(slots: readonly number[]): Promise<void> {
      const wanted = hasShared ? slots : [sharedSlot, ...slots]
      for (const id of await targets.load(slots.length === slotCount ? undefined : wanted)) actors.start(id)
      hasShared = true
      for (const channelId of await store.outbox.channels()) actors.wake(channelId)
      redeliveries.startAll()
    },
    /** Starts the historical scans of the accounts in these slots. Never rejects. */
    scan: (slots: readonly number[]) => history.startAll(slots.length === slotCount ? undefined : slots),
    /** Resolves when no callback of a slot in handover is under way, or after this time. */
    rest: (withinMs: number) => actors.rest(withinMs),
    /** Ends the webhooks of these slots. */
    async shed(slots: readonly number[]): Promise<void> {
      const gone = new Set(slots)
      const all = targets.all().map(({ webhook }) => webhook)
      const ids = all.flatMap(({ id, userId }) => (userId && gone.has(slotOf(userId)) ? [id] : []))
      for (const id of ids) targets.remove(id)
      await Promise.all(ids.map((id) => redeliveries.stop(id)))
      await actors.shed(ids, config.MAILROOM_SHUTDOWN_TIMEOUT)
    },
    /** Another node has made, changed or removed the webhook. */
    async rereadWebhook(id: string): Promise<void> {
      const before = targets.get(id)?.webhook
      const webhook = await store.webhooks.get(id)
      if (actors.health.ending.has(id)) return
      if (webhook === null || (webhook.userId !== null && !store.nodes.owns(webhook.userId))) {
        targets.remove(id)
        await actors.remove(id)
        return
      }
      targets.put(webhook)
      if (before === undefined) actors.start(id)
      else if (before.active && !webhook.active) actors.deactivate(id)
      else if (webhook.active && !before.active) actors.activate(id)
      if (!webhook.active) await actors.endWaiting(id)
      await actors.health.read(webhook)
      await history.startFor(webhook)
    },
    async stopAll(): Promise<void> {
      const withinMs = config.MAILROOM_SHUTDOWN_TIMEOUT
      // At once: no callback goes out after a node knows that it has lost its slots, and none waits for a search.
      const ends = [actors.stopAll(withinMs), searches.close(), history.stop(), redeliveries.stop(), resends.stop()]
      await Promise.all(ends)
      await recorder.close(withinMs)
      await http.close()
    },
  }
}

/** The listener for changes of the email accounts. */
function createListener({ parts, actors, history, composer, streams }: Works): ChangeListener {
  const { store, targets, now } = parts
  return {
    plan: (account, changes, folderName) => planRows(targets.of(account), account, changes, folderName),
    planOld: (account, messages) => history.rowsOfOld(account, messages),
    readAhead: composer.readNew,
    stored(accountId, outbox, changes) {
      // The next owner of a slot in handover finds the rows in the store.
      const sent = outbox.filter((row) => store.nodes.sends(row.userId ?? row.developerId))
      if (sent.length > 0) actors.dispatch(sent)
      if (changes.length > 0) streams.notify(accountId)
    },
    async planStatus(account, transition) {
      const developer = account.statusCallbackUrl === null ? await store.developers.get(account.developerId) : null
      const url = account.statusCallbackUrl ?? developer?.statusCallbackUrl ?? null
      return url === null ? [] : [statusRow(account, transition, url, now())]
    },
    statusStored: (channelId) => actors.wake(channelId),
    async initialSyncDone(account) {
      const row = syncRow(account, now())
      // The row's id comes from the account's: it goes out once, however often this is called.
      if (row !== null) {
        await store.outbox.enqueue([row])
        // The row may be unsent from an earlier call whose answer was lost.
        actors.wake(row.channelId)
      }
      history.accountReady(account)
    },
  }
}

/** Ends the actors of webhooks that the store has removed together with their user. */
async function dropRemoved({ parts, actors }: Works, userId: string): Promise<void> {
  for (const { webhook } of parts.targets.of({ userId, developerId: '' })) {
    if ((await parts.store.webhooks.get(webhook.id)) !== null) continue
    parts.targets.remove(webhook.id)
    await actors.remove(webhook.id)
  }
}

/** Passes live changes to the event stream, by account. */
function createStreams() {
  const changes = new EventEmitter().setMaxListeners(0)
  return {
    subscribe(accountIds: readonly string[], listener: (accountId: string) => void): () => void {
      for (const id of accountIds) changes.on(id, listener)
      return () => {
        for (const id of accountIds) changes.off(id, listener)
      }
    },
    notify: (accountId: string) => void changes.emit(accountId, accountId),
  }
}
