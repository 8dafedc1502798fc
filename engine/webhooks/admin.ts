/** Webhooks as developers make, edit and remove them; secrets; samples and redelivery. */
import { AppError, badParameter, isAppError, notFound } from '../errors.ts'
import { checkUrl } from '../net/address.ts'
import type { Sealer } from '../secrets/seal.ts'
import { newId, outboxId } from '../store/ids.ts'
import type { OutboxRecord, WebhookFilters, WebhookRecord } from '../store/records.ts'
import { freshHealth } from '../store/rows.ts'
import type { Undo } from '../undo.ts'
import type { Actors } from './actors.ts'
import { type Attempts, readSchedule } from './attempts.ts'
import { newRow } from './callbacks.ts'
import type { Composer } from './compose.ts'
import type { History } from './history.ts'
import { compileMatcher } from './match.ts'
import type { Redeliveries } from './redelivery.ts'
import { currentSecret, newSecret, openSecrets, rotated, sealSecrets } from './envelope.ts'
import { dated, type WebhookParts } from './targets.ts'
import type { WebhookInput, Webhooks } from './types.ts'

interface AdminDeps extends WebhookParts {
  readonly sealer: Sealer
  readonly actors: Actors
  readonly attempts: Attempts
  readonly composer: Composer
  readonly history: History
  readonly redeliveries: Redeliveries
  readonly undo: Undo
}

type Admin = Pick<Webhooks, 'create' | 'edit' | 'remove' | 'rotateSecret' | 'secret' | 'test' | 'redeliver' | 'resend'>

export function createAdmin(deps: AdminDeps): Admin {
  const inOrder = createQueues()
  return {
    create: (owner, input) => create(deps, owner, input),
    edit: (webhook, input) => inOrder(webhook.id, () => edit(deps, webhook, input)),
    remove: (webhook) => remove(deps, webhook),
    rotateSecret: (webhook) => inOrder(webhook.id, () => rotateSecret(deps, webhook)),
    secret: (webhook) => currentSecret(secretsOf(deps, webhook)),
    test: (webhook) => test(deps, webhook),
    redeliver: (webhook, which) => redeliver(deps, webhook, which),
    resend: (row) => resend(deps, row),
  }
}

/** Edits of one webhook follow one another: each reads what the one before has written. */
function createQueues(): <T>(webhookId: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>()
  return async (webhookId, work) => {
    const turn = (last.get(webhookId) ?? Promise.resolve()).then(work, work)
    last.set(webhookId, turn)
    try {
      return await turn
    } finally {
      if (last.get(webhookId) === turn) last.delete(webhookId)
    }
  }
}

async function rotateSecret(deps: AdminDeps, webhook: WebhookRecord): Promise<string> {
  const secrets = rotated(secretsOf(deps, webhook), deps.now(), deps.config.MAILROOM_SECRET_OVERLAP)
  await store(deps, webhook, { sealedSecrets: sealSecrets(deps.sealer, webhook.id, secrets) })
  return currentSecret(secrets)
}

/** The cache may know of a newer secret than the record that the caller holds. */
function secretsOf({ sealer, targets }: AdminDeps, webhook: WebhookRecord) {
  const current = targets.get(webhook.id)?.webhook ?? webhook
  return openSecrets(sealer, current.id, current.sealedSecrets)
}

async function checkUrls({ config }: AdminDeps, input: WebhookInput): Promise<void> {
  if (input.callbackUrl !== undefined) await checkUrl('callback_url', input.callbackUrl, config.MAILROOM_ALLOW_PRIVATE)
  if (input.failureNotifUrl) await checkUrl('failure_notif_url', input.failureNotifUrl, config.MAILROOM_ALLOW_PRIVATE)
}

async function create(
  deps: AdminDeps,
  owner: Parameters<Webhooks['create']>[0],
  input: WebhookInput,
): Promise<WebhookRecord> {
  if (!input.callbackUrl) throw badParameter('callback_url', 'is missing')
  await checkUrls(deps, input)
  const now = deps.now()
  const id = newId(now)
  const secrets = [{ secret: newSecret(), createdAt: now, expiresAt: null }]
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
    sealedSecrets: sealSecrets(deps.sealer, id, secrets),
    health: freshHealth,
    createdAt: now,
  }
  const webhook = { ...blank, ...patchOf(blank, input) }
  compileMatcher(webhook)
  const facts = { webhookId: id }
  await deps.undo.creation(facts, insert(deps, webhook), () => deps.store.webhooks.remove(id))
  deps.targets.put(webhook)
  deps.actors.start(id, webhook)
  await deps.undo.creation(facts, deps.history.startFor(webhook), () => remove(deps, webhook))
  return webhook
}

/** Counted by the store itself. */
async function insert({ config, store }: AdminDeps, webhook: WebhookRecord): Promise<void> {
  const limits = { owner: config.MAILROOM_WEBHOOKS_PER_USER, developer: config.MAILROOM_WEBHOOKS_PER_DEVELOPER }
  try {
    await store.webhooks.create(webhook, limits)
  } catch (error) {
    if (!isAppError(error, 'too_many')) throw error
    const ofDeveloper = error.details['limit'] === 'developer'
    const most = ofDeveloper ? limits.developer : limits.owner
    const whose = ofDeveloper ? 'one developer' : webhook.userId === null ? 'the application' : 'one user'
    const setting = ofDeveloper ? 'MAILROOM_WEBHOOKS_PER_DEVELOPER' : 'MAILROOM_WEBHOOKS_PER_USER'
    throw new AppError('too_many', `at the limit of ${most} webhooks of ${whose} (${setting}): delete one first`)
  }
}

async function remove({ targets, redeliveries, store, actors }: AdminDeps, { id }: WebhookRecord): Promise<void> {
  targets.remove(id)
  await redeliveries.stop(id)
  await store.webhooks.remove(id)
  await actors.remove(id)
}

type Patch = Partial<Omit<WebhookRecord, 'id' | 'developerId' | 'userId' | 'createdAt'>>

/** Only what is named changes; null and '' remove. */
function patchOf(webhook: WebhookRecord, input: WebhookInput): Patch {
  const { filters, bodyType, callbackUrl, failureNotifUrl, retrySchedule, ...plain } = input
  return {
    ...plain,
    ...(callbackUrl === undefined ? {} : { callbackUrl }),
    ...(failureNotifUrl === undefined ? {} : { failureNotifUrl: failureNotifUrl === '' ? null : failureNotifUrl }),
    ...(retrySchedule === undefined ? {} : readSchedule(retrySchedule)),
    ...(bodyType === undefined ? {} : { bodyType: checkedType(bodyType) }),
    ...(filters === undefined ? {} : { filters: mergedFilters(webhook.filters, filters) }),
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
  return edited
}

async function edit(deps: AdminDeps, webhook: WebhookRecord, input: WebhookInput): Promise<WebhookRecord> {
  if (input.callbackUrl === '') throw badParameter('callback_url', 'cannot be removed')
  await checkUrls(deps, input)
  const current = deps.targets.get(webhook.id)?.webhook ?? webhook
  const wanted = patchOf(current, input)
  compileMatcher({ ...current, ...wanted })
  const patch = { ...wanted, ...dated(current, wanted, deps.now()) }
  if (input.active === true) return activate(deps, current, patch)
  const edited = await store(deps, webhook, patch)
  if (input.active === false) {
    deps.actors.deactivate(webhook.id)
    await deps.store.outbox.skipPending(webhook.id, 'the webhook was paused', deps.now())
  }
  await deps.history.startFor(edited)
  return edited
}

/** Ends the failing period. What was planned while the webhook went inactive must not come back to life. */
async function activate(deps: AdminDeps, current: WebhookRecord, patch: Patch): Promise<WebhookRecord> {
  if (!current.active) await deps.store.outbox.skipPending(current.id, 'the webhook was paused', deps.now())
  const { failureVersion, lastSuccessAt } = current.health
  const edited = await store(deps, current, { ...patch, health: { ...freshHealth, failureVersion, lastSuccessAt } })
  deps.actors.activate(edited)
  await deps.history.startFor(edited)
  return edited
}

/** A sample now, past queue and schedule; the log keeps it as a finished row. */
async function test(deps: AdminDeps, webhook: WebhookRecord): Promise<OutboxRecord> {
  const now = deps.now()
  const row = newRow({
    id: outboxId(webhook.id, `test:${newId(now)}`),
    channelId: webhook.id,
    webhookId: webhook.id,
    developerId: webhook.developerId,
    userId: webhook.userId,
    accountId: null,
    kind: 'test',
    data: {},
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

async function redeliver(
  deps: AdminDeps,
  webhook: WebhookRecord,
  { ids, ...wanted }: Parameters<Webhooks['redeliver']>[1],
): Promise<number> {
  if (ids === undefined) {
    checkActive(deps, webhook)
    return deps.redeliveries.start(webhook, wanted)
  }
  const rows = await Promise.all(ids.map((id) => deps.store.outbox.get(id)))
  let count = 0
  for (const row of rows) if (row?.webhookId === webhook.id) count += await resend(deps, row)
  return count
}

function checkActive({ targets }: AdminDeps, webhook: WebhookRecord): void {
  const { active } = targets.get(webhook.id)?.webhook ?? webhook
  if (!active) throw new AppError('conflict', `webhook ${webhook.id} is paused: set active=1 first`)
}

/**
 * A paused webhook's channel is paused too; failure notifications and other callbacks to a bare URL have channels of
 * their own.
 */
async function resend(deps: AdminDeps, row: OutboxRecord): Promise<number> {
  if (row.channelId === row.webhookId) {
    const webhook = await deps.store.webhooks.get(row.webhookId)
    if (webhook === null) throw notFound('webhook', row.webhookId)
    checkActive(deps, webhook)
  }
  if (deps.actors.isUnderWay(row)) return 0
  const query = { developerId: row.developerId, ids: [row.id] }
  const { count } = await deps.store.outbox.requeue(query, deps.now(), 1)
  if (count === 0) return 0
  const waiting = row.state === 'pending' ? await deps.store.outbox.get(row.id) : null
  if (waiting === null) deps.actors.reread(row.channelId)
  else deps.actors.sendNow(waiting)
  return count
}
