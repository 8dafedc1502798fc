/**
 * Makes the unsigned callback of an outbox row and finds its signing keys: looks up webhook, account, message and
 * developer, reads bodies and headers from the mail server, and judges filters that needed a look-up (body_search, a
 * thread's Message-ID).
 *
 * While the mail server does not give the bodies, the row is postponed and no attempt is counted: the receiver is not
 * at fault. After `patienceMs` the callback goes out without bodies, marked truncated, and body_search does not match.
 * body_search waits for `awayPatienceMs` while the mailbox is away or the message is being moved.
 */
import { LRUCache } from 'lru-cache'
import type { Release } from '../budget.ts'
import { AppError, toAppError } from '../errors.ts'
import { folderNamer } from '../messages/names.ts'
import type { AccountRecord, OutboxRecord } from '../store/records.ts'
import { type Contents, messageCallback, sampleCallback } from './message-data.ts'
import { readEventFacts, urlCallbackBody } from './callbacks.ts'
import { memoryFor, namedOnly, type ReadContents, readContents, type ReadDeps, wantsContents } from './contents.ts'
import { openSecrets, validSecrets } from '../secrets/list.ts'
import type { SigningKeys, Unsigned } from './envelope.ts'
import type { MessageEvent } from './match.ts'
import { judgeAtLength } from './searches.ts'
import { createReadAhead, type ReadAhead } from './read-ahead.ts'
import { endOf, lookUpThread } from './targets.ts'
import type { WebhookParts } from './parts.ts'

export type Composer = ReturnType<typeof createComposer>

const rememberedMs = 30_000

type Accounts = LRUCache<string, { readonly account: AccountRecord; readonly folderName: (path: string) => string }>

export function createComposer(parts: WebhookParts) {
  const { store } = parts
  const ahead = createReadAhead(parts)
  const accounts: Accounts = new LRUCache({
    max: 2000,
    ttl: rememberedMs,
    async fetchMethod(id) {
      const [account, folders] = await Promise.all([store.accounts.get(id), store.folders.list(id)])
      return account === null ? undefined : { account, folderName: folderNamer(folders) }
    },
  })
  const deps = { ...parts, mail: ahead.mail, ahead, waits: createBodyWaits() }
  return {
    /** `behind`: ids of the messages of the next callbacks, of the same webhook and account. */
    async compose(row: OutboxRecord, behind: readonly string[] = []): Promise<Composed> {
      if (row.kind !== 'message') return composePlain(deps, row)
      const job = await jobOf(parts, accounts, row)
      return 'kind' in job ? job : composeMessage(deps, { ...job, behind })
    },
    /** The callback as it would be composed now, without texts of the mail and without signatures. */
    async preview(row: OutboxRecord): Promise<Skipped | Pick<Sendable, 'kind' | 'url' | 'body'>> {
      if (row.kind !== 'message') return composePlain(deps, row)
      const job = await jobOf(parts, accounts, row)
      if ('kind' in job) return job
      const { body } = unsigned(deps, job, namedOnly(job.webhook))
      return { kind: 'send', url: job.webhook.callbackUrl, body }
    },
    /** null = the developer's key is revoked: callbacks wait. */
    async keysOf(row: OutboxRecord): Promise<SigningKeys | null> {
      const key = await parts.developers.get(row.developerId)
      return key && { apiSecret: key.secret, webhookSecrets: webhookSecrets(parts, row.webhookId) }
    },
    readNew: ahead.readNew,
    forget(userId: string): void {
      for (const [id, { account }] of accounts.entries()) if (account.userId === userId) accounts.delete(id)
    },
  }
}

function webhookSecrets({ targets, sealer, now }: WebhookParts, webhookId: string | null): string[] {
  const target = webhookId === null ? null : targets.get(webhookId)
  if (target === null) return []
  target.secrets ??= openSecrets(sealer, target.webhook.id, target.webhook.sealedSecrets)
  return validSecrets(target.secrets, now()).map((one) => one.secret)
}

/** A callback without a message: a webhook's sample, or a callback to a bare URL. */
function composePlain({ targets, now, baseUrl }: WebhookParts, row: OutboxRecord): Sendable | Skipped {
  if (row.kind === 'test') {
    const webhook = targets.get(row.webhookId ?? '')?.webhook
    if (webhook === undefined) return skip('the webhook was removed')
    return { kind: 'send', url: webhook.callbackUrl, ...sampleCallback(webhook, baseUrl(), now()) }
  }
  if (row.url === null || row.url === '') return skip('no URL to call')
  return { kind: 'send', url: row.url, body: urlCallbackBody(row), texts: null }
}

type MessageJob = Exclude<Awaited<ReturnType<typeof jobOf>>, Skipped> & { readonly behind?: readonly string[] }

async function jobOf({ targets, store }: WebhookParts, accounts: Accounts, row: OutboxRecord) {
  const target = targets.get(row.webhookId ?? '')
  if (target === null) return skip('the webhook was removed')
  if (!target.webhook.active) return { kind: 'skip', ...endOf(target.webhook) } as const
  const known = await accounts.fetch(row.accountId ?? '')
  if (known === undefined) return skip('the email account was removed')
  const message = await store.messages.get(known.account.id, row.messageId ?? '')
  if (message === null) return skip('the message is no longer in the index')
  const { webhook, matcher } = target
  return { ...known, row, webhook, matcher, message, thread: () => lookUpThread(store, target, message) }
}

/** Ready to be signed and sent. `release` returns its memory to the budget; the caller calls it after the attempt. */
export interface Sendable extends Unsigned {
  readonly kind: 'send'
  readonly url: string
  readonly release?: Release
}

interface Skipped {
  readonly kind: 'skip'
  readonly reason: string
  /** Absent = skipped. */
  readonly state?: 'skipped' | 'failed'
}

function skip(reason: string): Skipped {
  return { kind: 'skip', reason }
}

export type Composed =
  Sendable | Skipped | { readonly kind: 'postpone'; readonly until: number; readonly reason: string }

interface PayloadDeps extends ReadDeps, Pick<WebhookParts, 'budget' | 'baseUrl' | 'now'> {
  readonly ahead?: Pick<ReadAhead, 'read'>
  readonly waits: BodyWaits
}

/** Webhook and account → since when its rows wait for bodies. The next readable body, or a restart, ends the wait. */
type BodyWaits = LRUCache<string, number>

/** How long the rows of a webhook and account wait for bodies that the mail server does not give. */
const patienceMs = 10 * 60_000
/** How long body_search waits for a mailbox that is away. */
const awayPatienceMs = 60 * 60_000
const firstWaitMs = 5_000
const noRoomMs = 1_000
const longestWaitMs = 5 * 60_000

export function createBodyWaits(): BodyWaits {
  return new LRUCache({ maxSize: 10_000, sizeCalculation: () => 1, ttl: 2 * patienceMs })
}

export async function composeMessage(deps: PayloadDeps, job: MessageJob): Promise<Composed> {
  const { row, webhook, message, matcher } = job
  const searched = matcher.bodySearch !== null
  const gone = message.placements.length === 0
  if (!searched && (!wantsContents(webhook) || gone)) return decide(deps, job, null)
  if (gone && message.gone.length === 0) return skip('body_search: the message is gone from the mailbox')
  // The index does not say yet that the message was deleted: it may be on its way to another folder.
  if (gone) return withoutContents(deps, job, new AppError('account_unavailable', 'it has left its folder'))
  const owner = { developerId: row.developerId, part: row.channelId }
  const release = await deps.budget.take('contents', owner, memoryFor(deps, job))
  if (release === null) {
    const reason = 'waiting for memory: large callbacks are under way'
    return { kind: 'postpone', until: deps.now() + noRoomMs, reason }
  }
  try {
    const composed = await withContents(deps, job)
    if (composed.kind === 'send') return { ...composed, release }
    release()
    return composed
  } catch (error) {
    release()
    throw error
  }
}

async function withContents(deps: PayloadDeps, job: MessageJob): Promise<Composed> {
  try {
    await deps.ahead?.read(job, job.behind ?? [])
    const read = await readContents(deps, job)
    deps.waits.delete(waitKey(job))
    return await decide(deps, job, read)
  } catch (error) {
    return withoutContents(deps, job, error)
  }
}

async function withoutContents(deps: PayloadDeps, job: MessageJob, error: unknown): Promise<Composed> {
  const { code, message: reason, fault, retryable } = toAppError(error)
  // A passing fault of Mailroom says nothing about the mailbox: the channel tries the row again.
  if (fault === 'us' && retryable) throw error
  const search = job.matcher.bodySearch !== null
  const away = code === 'account_unavailable' || code === 'account_disabled'
  // The mail server may know of a move before the index does, so only body_search waits.
  const waited = code === 'not_found' && !search ? Number.POSITIVE_INFINITY : waitedFor(deps, job)
  if (waited < (search && away ? awayPatienceMs : patienceMs)) {
    const wait = Math.min(Math.max(firstWaitMs, waited), longestWaitMs)
    return { kind: 'postpone', until: deps.now() + wait, reason: `waiting for the body: ${reason}` }
  }
  if (search) return skip(`body_search: the body could not be read (${reason})`)
  return decide(deps, job, null)
}

function waitKey({ webhook, account }: MessageJob): string {
  return `${webhook.id} ${account.id}`
}

/** In ms since the first unreadable body: the rows behind it share its patience. */
function waitedFor({ waits, now }: PayloadDeps, job: MessageJob): number {
  const since = waits.get(waitKey(job)) ?? now()
  waits.set(waitKey(job), since)
  return now() - since
}

async function decide(deps: PayloadDeps, job: MessageJob, read: ReadContents | null): Promise<Composed> {
  const { row, webhook, message } = job
  if (row.data['undecided'] === true) {
    const event: MessageEvent = { ...readEventFacts(row.data), kind: row.event ?? 'received' }
    const body = read?.body ?? null
    const known = { ...(body === null ? {} : { body }), ...(await job.thread()), folderName: job.folderName }
    const judged = await judgeAtLength(deps.searches, job, event, message, known)
    const refusal = judged.verdicts.find((verdict) => !verdict.matched)
    if (refusal !== undefined) return skip(`${refusal.filter}: ${refusal.why}`)
  }
  const contents = read?.contents ?? namedOnly(webhook)
  return { kind: 'send', url: webhook.callbackUrl, ...unsigned(deps, job, contents) }
}

function unsigned({ baseUrl }: PayloadDeps, job: MessageJob, contents: Contents): Unsigned {
  const { row, webhook } = job
  const folderFilters = webhook.filters.folderAdded !== undefined || webhook.filters.folderRemoved !== undefined
  const more = {
    ...(row.lane === 0 && row.kind === 'message' ? { sequence: row.seq } : {}),
    ...(webhook.receiveAllChanges || folderFilters ? { event: row.event } : {}),
  }
  const facts = readEventFacts(row.data)
  return messageCallback({ ...job, baseUrl: baseUrl(), facts, contents }, more)
}
