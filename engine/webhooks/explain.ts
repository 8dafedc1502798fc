/**
 * Questions of developers and operators about the filters of webhooks.
 *
 * - `explain`: what happened to one message at one webhook, from the records: the message's events, the webhook's state
 *   at their time, and the queued callbacks. A queued callback decides. Without one, today's filters judge the events.
 * - `trail`: the same for every webhook of the message's account, for operators.
 * - `dryRun`: the filters' verdicts on the last stored messages of one account, or of all accounts of the webhook.
 */
import { badParameter, toAppError } from '../errors.ts'
import { yieldToLoop } from '../scheduling.ts'
import { folderNamer } from '../messages/names.ts'
import { pagesOf } from '../store/keyed.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, ChangeRecord, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { memoryFor, readContents } from './contents.ts'
import {
  arrivals,
  bareReference,
  type Circumstance,
  type FilterVerdict,
  type Judgement,
  type KnownFacts,
  type MessageEvent,
  sentOf,
} from './match.ts'
import { judgeAtLength } from './searches.ts'
import { activeAt, lookUpThread, newTarget, type Target } from './targets.ts'
import type { WebhookParts } from './parts.ts'

/** The API call that asks. */
export interface Asking {
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal
  /** Charges the user for a read of mail from the mail server. Throws `rate_limited` above the user's limit. */
  readonly reads: (userId: string) => void
  /** false = no text is read from the mail server: body_search stays undecided. */
  readonly texts?: boolean
}

export interface DryRunRow {
  readonly account: AccountRecord
  readonly message: MessageRecord
  readonly matched: boolean
  readonly verdicts: readonly FilterVerdict[]
}

interface Question extends WebhookParts {
  readonly target: Target
  readonly asking: Asking
}

export function createQuestions(parts: WebhookParts) {
  const { store, targets } = parts
  /** A webhook that is not in memory (just removed, or unreadable) is judged by its record. */
  const questionOf = (webhook: WebhookRecord, asking: Asking): Question => {
    return { ...parts, target: targets.get(webhook.id) ?? newTarget(webhook), asking }
  }
  return {
    /** The last `limit` stored messages of the account, or of all accounts in the coverage, each with all verdicts. */
    async dryRun(webhook: WebhookRecord, of: AccountRecord | Coverage, limit: number, asking: Asking) {
      const accounts = 'email' in of ? [of] : await coveredAccounts(store, of, 'user_id')
      return dryRun(questionOf(webhook, asking), accounts, limit)
    },
    /** The messages with this Message-ID or hosted id in the email accounts that the webhook covers. */
    async findMessages(webhook: WebhookRecord, reference: string): Promise<MessageRecord[]> {
      const name = bareReference(reference)
      const covered = await coveredAccounts(store, webhook, 'message_id')
      return (await ofEach(covered, ({ id }) => store.messages.findAll(id, name, mostSameId))).flat()
    },
    /** Why this message was or was not sent, from the records of its arrival. */
    explain: (webhook: WebhookRecord, account: AccountRecord, message: MessageRecord, asking: Asking) =>
      explain(questionOf(webhook, asking), account, message),
    /**
     * The message's events, and the verdicts of each webhook of its account. Callbacks are the newest ten of each
     * webhook; `others` are those of removed webhooks. No text of the mail is read.
     */
    async trail(account: AccountRecord, message: MessageRecord, signal: AbortSignal) {
      // The user is not charged for an operator's question.
      const asking = { signal, reads: () => undefined, texts: false }
      const hearing = targets.of(account)
      const ways = []
      for (const target of hearing.slice(0, mostWebhooks)) {
        const { matched, verdicts, deliveries } = await explain({ ...parts, target, asking }, account, message)
        ways.push({ webhook: target.webhook, matched, verdicts, callbacks: deliveries.slice(0, mostCallbacks) })
      }
      const query = { messageId: message.id, accountId: account.id }
      const rows = await store.outbox.list(query, { limit: mostDeliveries, offset: 0 })
      const known = new Set<string | null>(hearing.map(({ webhook }) => webhook.id))
      return {
        changes: (await store.changes.ofMessage(account.id, message.id)).slice(-mostEvents),
        ways,
        more: hearing.length - ways.length,
        others: rows.filter(({ webhookId }) => !known.has(webhookId)).slice(0, mostCallbacks),
      }
    },
  }
}

/** Bounds of a trail. */
const [mostWebhooks, mostCallbacks, mostEvents] = [20, 10, 20]

const mostDeliveries = 100
/** Messages of an account with the same Message-ID. Some senders repeat one in every message. */
const mostSameId = 100

/** The message's events, its callbacks, and the verdicts. `matched`: the filters let a callback of the message out. */
async function explain(question: Question, account: AccountRecord, message: MessageRecord) {
  const { store, target } = question
  const changes = await store.changes.ofMessage(account.id, message.id)
  const query = { webhookId: target.webhook.id, accountId: account.id, messageId: message.id }
  const deliveries = await store.outbox.list(query, { limit: mostDeliveries, offset: 0 })
  const known = { folderName: folderNamer(await store.folders.list(account.id)) }
  const queued = deliveries.filter(isDecided)
  if (queued.length > 0) {
    const verdicts = sentVerdicts(target, message, known, changes, queued)
    return { changes, matched: true, verdicts, deliveries }
  }
  const best = await judgeBest(question, account, message, activeFirst(target.webhook, changes), known)
  const verdicts = unsentVerdicts(target.webhook, best, deliveries)
  return { changes, matched: verdicts.every(({ matched }) => matched), verdicts, deliveries }
}

/** Every filter matched, at the event or before the attempt. */
function isDecided(row: OutboxRecord): boolean {
  return row.data['undecided'] !== true || row.state === 'delivered' || row.attempts.length > 0
}

/** A filter that cannot judge any more (the body is gone) takes its verdict from the callback. */
function sentVerdicts(
  { webhook, matcher }: Target,
  message: MessageRecord,
  known: KnownFacts,
  changes: readonly ChangeRecord[],
  queued: readonly OutboxRecord[],
): FilterVerdict[] {
  const event = changes.find(({ id }) => queued.some(({ changeId }) => changeId === id))
  const queuedAt = Math.min(...queued.map(({ createdAt }) => createdAt))
  const delivery = verdict('delivery', true, `a callback was queued at ${time(queuedAt)}`)
  if (event === undefined) return [delivery, ...editNote(webhook, queuedAt)]
  const now = matcher.judge(event, message, known)
  const open = new Set<string>(now.undecided)
  const filters = now.verdicts.map((one) =>
    open.has(one.filter) ? { ...one, matched: true, why: 'matched when the callback was about to go out' } : one,
  )
  return [delivery, ...editNote(webhook, event.at), ...filters]
}

/** `waiting`: callbacks that the filters have not let out. */
function unsentVerdicts(
  webhook: WebhookRecord,
  best: Judged<ChangeRecord> | null,
  waiting: readonly OutboxRecord[],
): FilterVerdict[] {
  const dropped = waiting.map((row) =>
    row.finishedAt === null
      ? verdict('delivery', false, 'a callback waits for what the filters have to look up')
      : verdict('delivery', false, `the callback was dropped at ${time(row.finishedAt)}: ${row.reason ?? row.state}`),
  )
  if (best === null) return [...dropped, noEvent(webhook)]
  return [...circumstances(webhook, best.event.at, dropped), ...dropped, ...best.verdicts]
}

/** Events while the webhook was active come first: they explain more than the others. */
function activeFirst(webhook: WebhookRecord, changes: readonly ChangeRecord[]): ChangeRecord[] {
  const wasActive = ({ at }: ChangeRecord) => webhook.createdAt <= at && activeAt(webhook, at) !== false
  return [...changes.filter(wasActive), ...changes.filter((change) => !wasActive(change))]
}

/** The webhook's state at the event: reasons for no callback besides today's filters. */
function circumstances(webhook: WebhookRecord, at: number, dropped: readonly FilterVerdict[]): FilterVerdict[] {
  const { createdAt } = webhook
  if (createdAt > at)
    return [verdict('created', false, `the webhook was made at ${time(createdAt)}, after the event of ${time(at)}`)]
  const active = activeVerdict(webhook, at)
  // The webhook was active and nothing was queued, so the filters of that time refused the event.
  const refused = active.matched && dropped.length === 0
  return [active, ...editNote(webhook, at).map((one) => (refused ? { ...one, matched: false } : one))]
}

function activeVerdict(webhook: WebhookRecord, at: number): FilterVerdict {
  const active = activeAt(webhook, at)
  if (active === null) return verdict('active', true, 'whether the webhook was active then is not known any more')
  return verdict('active', active, `the webhook was ${active ? 'active' : 'paused'} at ${time(at)}`)
}

function editNote({ editedAt = 0 }: WebhookRecord, at: number): FilterVerdict[] {
  if (editedAt <= at) return []
  const why = `the filters were edited at ${time(editedAt)}, after the event of ${time(at)}: these are today's`
  return [verdict('edited', true, why)]
}

function noEvent({ receiveHistorical }: WebhookRecord): FilterVerdict {
  const why =
    'no event was seen: the message was there before its email account was added, or its events are no longer kept'
  const scan = '; the historical scan has not come to it, or the filters refused it'
  return verdict('event', false, receiveHistorical ? why + scan : why)
}

function verdict(filter: Circumstance, matched: boolean, why: string): FilterVerdict {
  return { filter, matched, why }
}

function time(at: number): string {
  return new Date(at).toISOString()
}

const nowhere: FilterVerdict = {
  filter: 'receive_all_changes',
  matched: false,
  why: 'the message is in no folder and has no event',
}

/**
 * The last `limit` stored messages of these accounts together. The filters judge every event of a message, and its
 * arrival as if it came now: mail from before the account was added, and old mail, has no event in the log.
 */
async function dryRun(question: Question, accounts: readonly AccountRecord[], limit: number): Promise<DryRunRow[]> {
  const { store } = question
  const last = await lastMessages(store, accounts, limit)
  const rows: DryRunRow[] = []
  for (const [account, own] of Map.groupBy(last, (one) => one.account)) {
    const folders = await store.folders.list(account.id)
    const sent = sentOf(folders)
    const known = { folderName: folderNamer(folders) }
    for (const { message } of own) {
      question.asking.signal.throwIfAborted()
      const events = [...(await store.changes.ofMessage(account.id, message.id)), ...arrivals(message, sent)]
      const judged = await judgeBest(question, account, message, events, known)
      rows.push({ account, message, matched: judged?.outcome === 'match', verdicts: judged?.verdicts ?? [nowhere] })
    }
  }
  return rows.sort(newestFirst)
}

interface Stored {
  readonly account: AccountRecord
  readonly message: MessageRecord
}

/** Reads the newest message of each account, then more of the accounts whose newest message may be among the last. */
async function lastMessages(
  store: Pick<Store, 'messages'>,
  accounts: readonly AccountRecord[],
  limit: number,
): Promise<readonly Stored[]> {
  const newest = await ofEach(accounts, async (account) => {
    const [message] = await store.messages.list(account.id, { order: 'desc' }, { limit: 1, offset: 0 })
    return message === undefined ? null : { account, message: { id: message.id, sentAt: message.sentAt } }
  })
  const candidates = newest.sort(newestFirst).slice(0, limit)
  const oldest = candidates[limit - 1]?.message.sentAt
  const query = { order: 'desc', ...(oldest === undefined ? {} : { sentFrom: oldest }) } as const
  let last: readonly Stored[] = []
  for (const { account } of candidates) {
    const messages = await store.messages.list(account.id, query, { limit, offset: 0 })
    const own = messages.map((message) => ({ account, message }))
    last = [...last, ...own].sort(newestFirst).slice(0, limit)
    await yieldToLoop()
  }
  return last
}

type Dated = { readonly message: Pick<MessageRecord, 'id' | 'sentAt'> }

function newestFirst({ message: left }: Dated, { message: right }: Dated): number {
  return right.sentAt - left.sentAt || (left.id < right.id ? 1 : -1)
}

/** Reads of the store, one for each account. */
const questionsAtOnce = 20
/** More reads would keep the call, and the store, for too long. */
const mostAccounts = 10_000

type Coverage = Pick<WebhookRecord, 'developerId' | 'userId'>

/** Throws `bad_request` for more than `mostAccounts`; the error names `narrower`, the parameter that asks for fewer. */
export async function coveredAccounts(
  store: Pick<Store, 'accounts'>,
  { developerId, userId }: Coverage,
  narrower: string,
): Promise<AccountRecord[]> {
  if (userId !== null) return store.accounts.listByUser(userId)
  const covered: AccountRecord[] = []
  for await (const page of pagesOf((after, limit) => store.accounts.page(after, limit))) {
    covered.push(...page.filter((account) => account.developerId === developerId))
    if (covered.length > mostAccounts) {
      throw badParameter(
        narrower,
        `the webhook covers more than ${mostAccounts} email accounts: name one user or message`,
      )
    }
  }
  return covered
}

async function ofEach<T>(
  accounts: readonly AccountRecord[],
  ask: (account: AccountRecord) => Promise<T | null>,
): Promise<T[]> {
  const found: T[] = []
  for (let start = 0; start < accounts.length; start += questionsAtOnce) {
    const answers = await Promise.all(accounts.slice(start, start + questionsAtOnce).map(ask))
    found.push(...answers.filter((answer) => answer !== null))
    await yieldToLoop()
  }
  return found
}

const rank = { match: 2, undecided: 1, no: 0 } as const

interface Judged<TEvent> extends Judgement {
  readonly event: TEvent
}

/** The most favourable event decides. Bodies and threads are read only if no other filter refuses. null = no event. */
async function judgeBest<TEvent extends MessageEvent>(
  question: Question,
  account: AccountRecord,
  message: MessageRecord,
  events: readonly TEvent[],
  known: KnownFacts,
): Promise<Judged<TEvent> | null> {
  const { store, searches, target } = question
  let best: Judged<TEvent> | null = null
  for (const event of events) {
    await yieldToLoop()
    const judged = target.matcher.judge(event, message, known)
    if (best === null || rank[judged.outcome] > rank[best.outcome]) best = { ...judged, event }
  }
  if (best?.outcome !== 'undecided') return best
  const thread = await lookUpThread(store, target, message)
  const all = { ...known, ...thread, ...(await searchBody(question, account, message)) }
  return { ...(await judgeAtLength(searches, target, best.event, message, all)), event: best.event }
}

const noContents = { includeBody: false, bodyType: null, includeHeader: null }

/** body_search as before a callback, if the webhook has this filter. The finding may stay undecided, with a reason. */
async function searchBody(question: Question, { userId }: AccountRecord, message: MessageRecord): Promise<KnownFacts> {
  const { target, asking, budget } = question
  if (target.matcher.bodySearch === null) return {}
  if (asking.texts === false) return undecided('the text is not read for this answer')
  asking.reads(userId)
  const { developerId } = target.webhook
  const wanted = { message, matcher: target.matcher, webhook: { ...target.webhook, ...noContents } }
  const bytes = memoryFor(question, wanted)
  // All questions of a developer share one part of the budget.
  const release = await budget.take('contents', { developerId, part: 'searches' }, bytes)
  if (release === null) return undecided('not searched: many large messages are being read; ask again')
  try {
    const { body } = await readContents(question, wanted)
    return body === null ? {} : { body }
  } catch (error) {
    const { fault, message: reason } = toAppError(error)
    if (fault === 'us') throw error
    return undecided(`the text could not be read (${reason})`)
  } finally {
    release()
  }
}

function undecided(why: string): KnownFacts {
  return { body: { matched: null, why } }
}
