/**
 * From an outbox row to what its callback says: looks up message and account, reads bodies and headers from the mail server,
 * and lets the filters that waited for them (body_search, a thread's Message-ID) have their say.
 *
 * When the mail server cannot give the bodies now, the row waits (`postpone`): no attempt is counted, the receiver is not at fault.
 * After `patience` the callback goes out without them, marked truncated; a filter that needs the body counts as not matching. While
 * the whole mailbox is away, no row behind could be read either: such a filter waits longer.
 */
import { LRUCache } from 'lru-cache'
import { isAppError, toAppError } from '../errors.ts'
import type { AccountRecord, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import type { Budget, Release } from '../budget.ts'
import { type ReadContents, type ReadDeps, memoryFor, namedOnly, readContents, wantsContents } from './contents.ts'
import type { Unsigned } from './envelope.ts'
import { type EventFacts, type MessageEvent, readEventFacts } from './events.ts'
import { judgeAtLength } from './judge.ts'
import type { Known, Matcher } from './match.ts'
import { type Contents, bodyUrl, messageData } from './message-data.ts'

/** Ready to be signed and sent. `release`: to be called when it has been sent. */
export interface Sendable extends Unsigned {
  readonly kind: 'send'
  readonly url: string
  readonly release?: Release
}

export type Composed =
  | Sendable
  | { readonly kind: 'skip'; readonly reason: string }
  | { readonly kind: 'postpone'; readonly until: number; readonly reason: string }

export interface PayloadDeps {
  readonly reading: ReadDeps
  readonly budget: Pick<Budget, 'take'>
  readonly baseUrl: () => string
  readonly now: () => number
  readonly waits: BodyWaits
}

export interface MessageJob {
  readonly row: OutboxRecord
  readonly webhook: WebhookRecord
  readonly matcher: Matcher
  readonly account: AccountRecord
  readonly message: MessageRecord
  readonly folderName: (path: string) => string
  /** What the thread filter has to look up; nothing without such a filter. */
  readonly thread: () => Promise<Known>
}

/** Since when an account's rows of a webhook wait for bodies; the next body that can be read ends it. A restart forgets it. */
export type BodyWaits = LRUCache<string, number>

/** How long a callback, and with it its account at that webhook, waits for bodies that the mail server cannot give. */
const patienceMs = 10 * 60_000
/** How long a filter on the body waits for a mailbox that is away. */
const awayPatienceMs = 60 * 60_000
const firstWaitMs = 5_000
const noRoomMs = 1_000
const longestWaitMs = 5 * 60_000

export function createBodyWaits(): BodyWaits {
  return new LRUCache({ max: 10_000, ttl: 2 * patienceMs })
}

export async function composeMessage(deps: PayloadDeps, job: MessageJob): Promise<Composed> {
  const { row, webhook, message, matcher } = job
  const searched = matcher.bodySearch !== null
  const gone = message.placements.length === 0
  const facts = readEventFacts(row.data)
  if (!searched && (!wantsContents(webhook) || gone)) return decide(deps, job, facts, null)
  if (gone) return { kind: 'skip', reason: 'body_search: the message is gone from the mailbox' }
  const owner = { developerId: row.developerId, part: row.channelId }
  const bytes = memoryFor(deps.reading, message, webhook, searched)
  const release = await deps.budget.take('contents', owner, bytes)
  if (release === null) {
    return {
      kind: 'postpone',
      until: deps.now() + noRoomMs,
      reason: 'waiting for memory: large callbacks are under way',
    }
  }
  try {
    const composed = await withContents(deps, job, facts)
    if (composed.kind === 'send') return { ...composed, release }
    release()
    return composed
  } catch (error) {
    release()
    throw error
  }
}

async function withContents(deps: PayloadDeps, job: MessageJob, facts: EventFacts): Promise<Composed> {
  try {
    const { bodySearch } = job.matcher
    const wanted = bodySearch === null ? null : { search: bodySearch, owner: job.webhook.developerId }
    const read = await readContents(deps.reading, job.message, job.webhook, wanted)
    deps.waits.delete(waitKey(job))
    return await decide(deps, job, facts, read)
  } catch (error) {
    return withoutContents(deps, job, facts, error)
  }
}

async function withoutContents(
  deps: PayloadDeps,
  job: MessageJob,
  facts: EventFacts,
  error: unknown,
): Promise<Composed> {
  const { code, message: reason } = toAppError(error)
  if (isAppError(error, 'shutting_down')) throw error
  const search = job.matcher.bodySearch !== null
  const away = code === 'account_unavailable' || code === 'account_disabled'
  const waited = code === 'not_found' ? Number.POSITIVE_INFINITY : waitedFor(deps, job)
  if (waited < (search && away ? awayPatienceMs : patienceMs)) {
    const wait = Math.min(Math.max(firstWaitMs, waited), longestWaitMs)
    return { kind: 'postpone', until: deps.now() + wait, reason: `waiting for the body: ${reason}` }
  }
  if (search) return { kind: 'skip', reason: `body_search: the body could not be read (${reason})` }
  return decide(deps, job, facts, null)
}

function waitKey({ webhook, account }: MessageJob): string {
  return `${webhook.id} ${account.id}`
}

/** Since the first body that could not be read: the rows behind it do not wait as long again, each for itself. */
function waitedFor({ waits, now }: PayloadDeps, job: MessageJob): number {
  const since = waits.get(waitKey(job)) ?? now()
  waits.set(waitKey(job), since)
  return now() - since
}

async function decide(
  deps: PayloadDeps,
  job: MessageJob,
  facts: EventFacts,
  read: ReadContents | null,
): Promise<Composed> {
  const { row, webhook, message } = job
  if (row.data['undecided'] === true) {
    const event: MessageEvent = { ...facts, kind: row.event ?? 'received' }
    const body = read?.body ?? null
    const known = { ...(body === null ? {} : { body }), ...(await job.thread()), folderName: job.folderName }
    const judged = await judgeAtLength(deps.reading.searches, job, event, message, known)
    const refusal = judged.verdicts.find((verdict) => !verdict.matched)
    if (refusal !== undefined) return { kind: 'skip', reason: `${refusal.filter}: ${refusal.why}` }
  }
  const contents = read?.contents ?? namedOnly(webhook, message)
  return { kind: 'send', url: webhook.callbackUrl, ...unsigned(deps, job, facts, contents) }
}

function unsigned(deps: PayloadDeps, job: MessageJob, facts: EventFacts, contents: Contents): Unsigned {
  const { row, webhook, account, message, folderName } = job
  const folderFilters = webhook.filters.folderAdded !== undefined || webhook.filters.folderRemoved !== undefined
  const place = { dialect: webhook.version, baseUrl: deps.baseUrl(), account, message }
  const messageType = webhook.receiveAllChanges ? (facts.first ? ('created' as const) : ('updated' as const)) : null
  const body = {
    account_id: account.userId,
    user_id: account.userId,
    webhook_id: webhook.id,
    ...(row.lane === 0 && row.kind === 'message' ? { sequence: row.seq } : {}),
    ...(webhook.receiveAllChanges || folderFilters ? { event: row.event } : {}),
    message_data: messageData({ ...place, folderName, facts, contents, messageType }),
  }
  return { body, texts: contents.texts?.map((text) => ({ ...text, link: bodyUrl(place, text.part) })) ?? null }
}
