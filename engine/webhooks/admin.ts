/** Developers' work on webhooks: create, edit, remove, rotate secrets, send a sample, redeliver. */
import { parseDurations } from '../config.ts'
import { AppError, badParameter, checkLimit, isAppError, notFound } from '../errors.ts'
import { checkUrl } from '../net/address.ts'
import { newId, outboxId } from '../store/ids.ts'
import { currentSecret, keptSecrets, onlySecret, openSecrets, rotated, sealSecrets } from '../secrets/list.ts'
import type { OutboxRecord, WebhookFilters, WebhookRecord } from '../store/records.ts'
import { freshHealth } from '../store/rows.ts'
import type { Undo } from '../creation-undo.ts'
import { createExclusiveByKey } from '../scheduling.ts'
import type { Actors } from './actors.ts'
import type { Attempts } from './attempts.ts'
import { newRow } from './callbacks.ts'
import type { History } from './history.ts'
import { compileMatcher } from './match.ts'
import type { Redeliveries, RedeliveryTime } from './requeues.ts'
import { newSecret } from './envelope.ts'
import { dated } from './targets.ts'
import type { WebhookParts } from './parts.ts'

/** Input of create and edit. undefined = unchanged, null or '' = removed. A bad pattern throws `bad_request`. */
export interface WebhookInput extends Partial<Pick<WebhookRecord, PlainField>> {
  /** Waits between attempts as in the configuration: at most 20, each 1s to 7d. `active` makes the actor use them. */
  readonly retrySchedule?: string | null
  readonly filters?: { readonly [K in keyof WebhookFilters]?: string | null }
}

type PlainField =
  | ('callbackUrl' | 'failureNotifUrl' | 'active' | 'includeBody' | 'bodyType' | 'includeHeader')
  | ('receiveAllChanges' | 'receiveDrafts' | 'receiveHistorical')

type Owner = Pick<WebhookRecord, 'developerId' | 'userId' | 'version'>

interface AdminDeps extends WebhookParts {
  readonly actors: Actors
  readonly attempts: Attempts
  readonly history: History
  readonly redeliveries: Redeliveries
  readonly undo: Undo
  /** Reads a webhook that another node has made, changed or removed. */
  readonly hear: (webhookId: string) => Promise<void>
}

export function createAdmin(deps: AdminDeps) {
  // Edits and the removal of a webhook run one after the other: each sees the record that the one before has written.
  const inOrder = createExclusiveByKey()
  return {
    /** Checks the URLs (SSRF guard) and patterns, stores the webhook, starts its actor. */
    create: (owner: Owner, input: WebhookInput) => create(deps, owner, input),
    /** active=1 also clears `failure` and sends at once; active=0 drops the backlog. */
    edit: (webhook: WebhookRecord, input: WebhookInput) => inOrder(webhook.id, () => edit(deps, webhook, input)),
    /** Changes the user's 2.0 webhooks to lite, which applies to waiting callbacks too. */
    async toLite(userId: string): Promise<void> {
      for (const webhook of await deps.store.webhooks.listByUser(userId))
        if (webhook.version !== 'lite') await inOrder(webhook.id, () => store(deps, webhook, { version: 'lite' }))
    },
    remove: (webhook: WebhookRecord) => inOrder(webhook.id, () => remove(deps, webhook)),
    /** The new secret (`whsec_…`). The old secret signs too for MAILROOM_SECRET_OVERLAP, if its key is here. */
    rotateSecret: (webhook: WebhookRecord) => inOrder(webhook.id, () => rotateSecret(deps, webhook)),
    /** The current secret (`whsec_…`). */
    secret: (webhook: WebhookRecord) =>
      currentSecret(openSecrets(deps.sealer, webhook.id, currentOf(deps, webhook).sealedSecrets)),
    /** Sends a sample now, without queue, schedule and filters. Returns the row with its attempt. */
    test: (webhook: WebhookRecord) => test(deps, webhook),
    /**
     * Queues the callbacks of a time range again. Returns how many are queued within a moment; the rest follows, also
     * after a restart, and the webhook's `redelivery` has the progress. `conflict` for a paused webhook, or while
     * another range is under way; the same range joins the work.
     */
    async redeliver(webhook: WebhookRecord, which: RedeliveryTime): Promise<number> {
      checkActive(deps, webhook)
      return deps.redeliveries.start(webhook.id, which)
    },
    /**
     * Sends one callback of any kind again: a finished row is queued again, a pending row is sent at once. Its schedule
     * begins anew. Returns 1, or 0 when the row is already under way.
     */
    resend: (row: OutboxRecord) => resend(deps, row),
  }
}

async function rotateSecret(deps: AdminDeps, webhook: WebhookRecord): Promise<string> {
  const { id, sealedSecrets } = currentOf(deps, webhook)
  // A secret that a lost key has sealed is replaced, and does not sign.
  const old = keptSecrets(deps.sealer, id, sealedSecrets)
  const secrets = rotated(old, newSecret(), deps.now(), deps.config.MAILROOM_SECRET_OVERLAP)
  await store(deps, webhook, { sealedSecrets: sealSecrets(deps.sealer, webhook.id, secrets) })
  return currentSecret(secrets)
}

/** The record in memory, which may be newer than the caller's. */
function currentOf({ targets }: AdminDeps, webhook: WebhookRecord): WebhookRecord {
  return targets.get(webhook.id)?.webhook ?? webhook
}

async function checkUrls({ config }: AdminDeps, input: WebhookInput): Promise<void> {
  if (input.callbackUrl !== undefined) await checkUrl('callback_url', input.callbackUrl, config.MAILROOM_ALLOW_PRIVATE)
  if (input.failureNotifUrl) await checkUrl('failure_notif_url', input.failureNotifUrl, config.MAILROOM_ALLOW_PRIVATE)
}

async function create(deps: AdminDeps, owner: Owner, input: WebhookInput): Promise<WebhookRecord> {
  if (!input.callbackUrl) throw badParameter('callback_url', 'is missing')
  await checkUrls(deps, input)
  const now = deps.now()
  const id = newId(now)
  const blank: WebhookRecord = {
    id,
    ...owner,
    callbackUrl: input.callbackUrl,
    failureNotifUrl: null,
    active: true,
    filters: {},
    includeBody: false,
    bodyType: null,
    includeHeader: null,
    receiveAllChanges: false,
    receiveDrafts: false,
    receiveHistorical: false,
    sealedSecrets: sealSecrets(deps.sealer, id, [onlySecret(newSecret(), now)]),
    health: freshHealth,
    createdAt: now,
  }
  const webhook = { ...blank, ...patchOf(blank, input) }
  compileMatcher(webhook)
  const facts = { webhookId: id }
  await deps.undo.creation(facts, insert(deps, webhook), () => deps.store.webhooks.remove(id))
  deps.targets.put(webhook)
  deps.actors.start(id)
  deps.changed(id)
  await deps.undo.creation(facts, deps.history.startFor(webhook), () => remove(deps, webhook))
  return webhook
}

/** Throws `too_many` with the setting's name; the store counts the webhooks. */
async function insert({ config, store }: AdminDeps, webhook: WebhookRecord): Promise<void> {
  const limits = { owner: config.MAILROOM_WEBHOOKS_PER_USER, developer: config.MAILROOM_WEBHOOKS_PER_DEVELOPER }
  try {
    await store.webhooks.create(webhook, limits)
  } catch (error) {
    if (!isAppError(error, 'too_many')) throw error
    const ofDeveloper = error.details['limit'] === 'developer'
    const whose = ofDeveloper ? 'one developer' : webhook.userId === null ? 'the application' : 'one user'
    const setting = ofDeveloper ? 'MAILROOM_WEBHOOKS_PER_DEVELOPER' : 'MAILROOM_WEBHOOKS_PER_USER'
    checkLimit(config, setting, `webhooks of ${whose}`, Infinity)
  }
}

async function remove(
  { targets, redeliveries, store, actors, changed }: AdminDeps,
  { id }: WebhookRecord,
): Promise<void> {
  targets.remove(id)
  await redeliveries.stop(id)
  await store.webhooks.remove(id)
  await actors.remove(id)
  changed(id)
}

type Patch = Partial<Omit<WebhookRecord, 'id' | 'developerId' | 'userId' | 'createdAt'>>

function patchOf(webhook: WebhookRecord, input: WebhookInput): Patch {
  const { filters, bodyType, failureNotifUrl, retrySchedule, ...plain } = input
  return {
    ...plain,
    ...(failureNotifUrl === undefined ? {} : { failureNotifUrl: failureNotifUrl === '' ? null : failureNotifUrl }),
    ...(retrySchedule === undefined ? {} : readSchedule(retrySchedule)),
    ...(bodyType === undefined ? {} : { bodyType: checkedType(bodyType) }),
    ...(filters === undefined ? {} : { filters: mergedFilters(webhook.filters, filters) }),
  }
}

const mostWaits = 20

/** Parses retry_schedule; an empty text removes the schedule. Throws `bad_request`. */
function readSchedule(given: string | null): Required<Pick<WebhookRecord, 'retrySchedule' | 'retryScheduleMs'>> {
  const text = given?.trim() ?? ''
  if (text === '') return { retrySchedule: '', retryScheduleMs: [] }
  const waits = text.split(',').length
  if (waits > mostWaits) throw badParameter('retry_schedule', `expected at most ${mostWaits} waits, got ${waits}`)
  try {
    return { retrySchedule: text, retryScheduleMs: parseDurations(text, '1s', '7d') }
  } catch (error) {
    throw badParameter('retry_schedule', (error as Error).message)
  }
}

function checkedType(bodyType: string | null): string | null {
  const type = bodyType?.trim().toLowerCase() ?? ''
  if (type === '') return null
  if (!/^text\/[a-z0-9.+-]+$/.test(type))
    throw badParameter('body_type', 'expected text/plain, text/html or another text type')
  return type
}

function mergedFilters(before: WebhookFilters, named: NonNullable<WebhookInput['filters']>): WebhookFilters {
  const all = { ...before, ...named }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => typeof value === 'string' && value !== ''))
}

async function store(deps: AdminDeps, webhook: WebhookRecord, patch: Patch): Promise<WebhookRecord> {
  const edited = await deps.store.webhooks.edit(webhook.id, patch)
  if (edited === null) throw notFound('webhook', webhook.id)
  deps.targets.put(edited)
  deps.changed(edited.id)
  return edited
}

async function edit(deps: AdminDeps, webhook: WebhookRecord, input: WebhookInput): Promise<WebhookRecord> {
  if (input.callbackUrl === '') throw badParameter('callback_url', 'cannot be removed')
  await checkUrls(deps, input)
  const current = currentOf(deps, webhook)
  const wanted = patchOf(current, input)
  compileMatcher({ ...current, ...wanted })
  const patch = { ...wanted, ...dated(current, wanted, deps.now()) }
  if (input.active === true) return activate(deps, current, patch)
  const edited = await store(deps, webhook, patch)
  if (input.active === false) {
    deps.actors.deactivate(webhook.id)
    // Other nodes plan callbacks until they know of the pause.
    await deps.store.nodes.told()
    await deps.actors.endWaiting(webhook.id)
  }
  await deps.history.startFor(edited)
  return edited
}

/** Ends the failing period. Rows that were planned while the webhook was being paused must not be sent. */
async function activate(deps: AdminDeps, current: WebhookRecord, patch: Patch): Promise<WebhookRecord> {
  await deps.actors.endWaiting(current.id)
  const { failureVersion, lastSuccessAt } = current.health
  const health = { ...freshHealth, failureVersion, lastSuccessAt }
  const edited = await store(deps, current, { ...patch, gone: false, health })
  deps.actors.activate(edited.id)
  await deps.history.startFor(edited)
  return edited
}

/** Sends a sample; the delivery log keeps it as a finished row. */
async function test(deps: AdminDeps, webhook: WebhookRecord): Promise<OutboxRecord> {
  // Another node may have made the webhook a moment ago.
  if (deps.targets.get(webhook.id) === null) await deps.hear(webhook.id)
  const now = deps.now()
  const row = newRow({
    id: outboxId(webhook.id, `test:${newId(now)}`),
    channelId: webhook.id,
    webhookId: webhook.id,
    developerId: webhook.developerId,
    userId: webhook.userId,
    kind: 'test',
    url: webhook.callbackUrl,
    createdAt: now,
  })
  const tried = await deps.attempts.send(row)
  if (tried === null) throw notFound('webhook', webhook.id)
  const finished: OutboxRecord = {
    ...row,
    state: tried.failure === null ? 'delivered' : 'failed',
    attemptCount: 1,
    attempts: [tried.attempt],
    finishedAt: deps.now(),
    reason: tried.failure?.message ?? null,
  }
  await deps.store.outbox.enqueue([finished])
  return finished
}

function checkActive(deps: AdminDeps, webhook: WebhookRecord): void {
  if (!currentOf(deps, webhook).active)
    throw new AppError('conflict', `webhook ${webhook.id} is paused: set active=1 first`)
}

/** `conflict` for a row of a paused webhook. Failure notices and other callbacks to bare URLs have own channels. */
async function resend(deps: AdminDeps, row: OutboxRecord): Promise<number> {
  if (row.channelId === row.webhookId) {
    const webhook = await deps.store.webhooks.get(row.webhookId)
    if (webhook === null) throw notFound('webhook', row.webhookId)
    checkActive(deps, webhook)
  }
  const isPending = row.state === 'pending'
  if (isPending && deps.actors.channels.get(row.channelId)?.isUnderWay(row.id) === true) return 0
  const query = { developerId: row.developerId, ids: [row.id] }
  const { count } = await deps.store.outbox.requeue(query, deps.now(), 1)
  if (count === 0) return 0
  if (!deps.store.nodes.owns(row.userId ?? row.developerId)) {
    deps.rereadAll(row.channelId)
    return count
  }
  const waiting = isPending ? await deps.store.outbox.get(row.id) : null
  if (waiting === null) deps.actors.wake(row.channelId)
  else deps.actors.sendNow(waiting)
  return count
}
