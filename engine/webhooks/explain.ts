/**
 * What a developer may ask about a webhook's filters.
 *
 * `explain`: what happened to one message at one webhook, from the records: the events that were seen of it, how the
 * webhook was when they came, and the callbacks that were queued. A queued callback decides; only where there is none
 * are today's filters applied to the events that were seen.
 *
 * The dry run: what the filters say of stored messages. Over every email account that a webhook covers it takes the
 * last stored messages of all of them together: it reads the newest message of each account, and more only of those
 * accounts whose newest one may be among the last.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { badParameter } from '../errors.ts'
import { folderNamer } from '../messages/names.ts'
import { pagesOf } from '../store/pages.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, ChangeRecord, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { arrivals, type Asking, judgeBest, type Judged, type JudgeDeps, sentOf } from './verdicts.ts'
import { bareReference } from './match.ts'
import { activeAt, type Target } from './targets.ts'
import type { Circumstance, DryRunRow, Explanation, FilterVerdict } from './types.ts'

interface ExplainDeps extends JudgeDeps {
  readonly store: Pick<Store, 'messages' | 'changes' | 'outbox' | 'folders'>
}

const mostDeliveries = 100

export async function explain(
  deps: ExplainDeps,
  target: Target,
  account: AccountRecord,
  message: MessageRecord,
  asking: Asking,
): Promise<Explanation> {
  const { store } = deps
  const changes = await store.changes.ofMessage(account.id, message.id)
  const query = { webhookId: target.webhook.id, accountId: account.id, messageId: message.id }
  const deliveries = await store.outbox.list(query, { limit: mostDeliveries, offset: 0 })
  const queued = deliveries.filter(isDecided)
  if (queued.length > 0) {
    const verdicts = await sentVerdicts(deps, target, message, changes, queued)
    return { changes, matched: true, verdicts, deliveries }
  }
  const judging = { ...deps, beforeReading: () => asking.reads(account.userId) }
  const verdicts = await unsentVerdicts(judging, target, message, changes, deliveries)
  return { changes, matched: verdicts.every(({ matched }) => matched), verdicts, deliveries }
}

/** Every filter has said yes: at once, or when the callback was about to go out. */
function isDecided(row: OutboxRecord): boolean {
  return row.data['undecided'] !== true || row.state === 'delivered' || row.attempts.length > 0
}

/** What today's filters cannot say any more (the body is gone) the callback itself says. */
async function sentVerdicts(
  deps: ExplainDeps,
  target: Target,
  message: MessageRecord,
  changes: readonly ChangeRecord[],
  queued: readonly OutboxRecord[],
): Promise<FilterVerdict[]> {
  const { webhook, matcher } = target
  const sent = changes.filter(({ id }) => queued.some(({ changeId }) => changeId === id))
  const known = { folderName: await namerOf(deps, message.accountId) }
  const [event] = sent
  const first = queued.reduce((left, right) => (right.createdAt < left.createdAt ? right : left))
  const delivery = verdict('delivery', true, `a callback was queued at ${time(first.createdAt)}`)
  if (event === undefined) return [delivery, ...editNote(webhook, first.createdAt)]
  const now = matcher.judge(event, message, known)
  const open = new Set<string>(now.undecided)
  const filters = now.verdicts.map((one) =>
    open.has(one.filter) ? { ...one, matched: true, why: 'matched when the callback was about to go out' } : one,
  )
  return [delivery, ...editNote(webhook, event.at), ...filters]
}

async function unsentVerdicts(
  deps: Parameters<typeof judgeBest>[0] & ExplainDeps,
  target: Target,
  message: MessageRecord,
  changes: readonly ChangeRecord[],
  waiting: readonly OutboxRecord[],
): Promise<FilterVerdict[]> {
  const dropped = waiting.map((row) =>
    row.finishedAt === null
      ? verdict('delivery', false, 'a callback waits for what the filters have to look up')
      : verdict('delivery', false, `the callback was dropped at ${time(row.finishedAt)}: ${row.reason ?? row.state}`),
  )
  const known = { folderName: await namerOf(deps, message.accountId) }
  const best = await judgeBest(deps, target, message, heardFirst(target.webhook, changes), known)
  if (best === null) return [...dropped, noEvent(target.webhook)]
  return [...circumstances(target.webhook, best.event, dropped), ...dropped, ...best.verdicts]
}

/** Of events that the filters judge alike, one that the webhook was there for says more. */
function heardFirst(webhook: WebhookRecord, changes: readonly ChangeRecord[]): ChangeRecord[] {
  const noticed = ({ at }: ChangeRecord) => webhook.createdAt <= at && activeAt(webhook, at) !== false
  return [...changes.filter(noticed), ...changes.filter((change) => !noticed(change))]
}

/** Why the event made no callback, whatever the filters of today say. */
function circumstances(
  webhook: WebhookRecord,
  event: Judged<ChangeRecord>['event'],
  dropped: readonly FilterVerdict[],
): FilterVerdict[] {
  const { createdAt } = webhook
  if (createdAt > event.at) {
    return [
      verdict('created', false, `the webhook was made at ${time(createdAt)}, after the event of ${time(event.at)}`),
    ]
  }
  const active = activeVerdict(webhook, event.at)
  const edits = editNote(webhook, event.at)
  // It was on, it is not known to have been off, and nothing was queued: the filters of that time said no.
  const refused = active.matched && dropped.length === 0
  return [active, ...edits.map((one) => (refused ? { ...one, matched: false } : one))]
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

async function namerOf({ store }: ExplainDeps, accountId: string): Promise<(path: string) => string> {
  return folderNamer(await store.folders.list(accountId))
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
 * The last `limit` stored messages of these accounts together, each with the verdicts of the filters on every event
 * that was seen of it, and on its arrival as if it came now: a message that was there before the account was added has
 * no event, and that of an old one is no longer in the log.
 */
export async function dryRun(
  deps: ExplainDeps,
  target: Target,
  accounts: readonly AccountRecord[],
  limit: number,
  asking: Asking,
): Promise<DryRunRow[]> {
  const last = await lastMessages(deps.store, accounts, limit)
  const rows: DryRunRow[] = []
  for (const [account, own] of Map.groupBy(last, (one) => one.account)) {
    const judging = { ...deps, beforeReading: () => asking.reads(account.userId) }
    const folders = await deps.store.folders.list(account.id)
    const sent = sentOf(folders)
    const known = { folderName: folderNamer(folders) }
    for (const { message } of own) {
      asking.signal.throwIfAborted()
      const changes = await deps.store.changes.ofMessage(account.id, message.id)
      const judged = await judgeBest(judging, target, message, [...changes, ...arrivals(message, sent)], known)
      const matched = judged?.outcome === 'match'
      rows.push({ account, message, matched, verdicts: judged?.verdicts ?? [nowhere] })
    }
  }
  return rows.sort(newestFirst)
}

interface Stored {
  readonly account: AccountRecord
  readonly message: MessageRecord
}

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
    await nextTurn()
  }
  return last
}

type Dated = { readonly message: Pick<MessageRecord, 'id' | 'sentAt'> }

/** The order of a list of messages. */
function newestFirst({ message: left }: Dated, { message: right }: Dated): number {
  return right.sentAt - left.sentAt || (left.id < right.id ? 1 : -1)
}

interface Coverage {
  readonly developerId: string
  /** null = every user of the developer. */
  readonly userId: string | null
}

/** Of the store, one for each account. */
const questionsAtOnce = 20
/** More questions would keep the call, and the store, for too long. */
const mostAccounts = 10_000

/** `narrower`: the parameter that asks for less, for the error when there are too many. */
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

export async function findMessages(
  store: Pick<Store, 'accounts' | 'messages'>,
  coverage: Coverage,
  reference: string,
): Promise<MessageRecord[]> {
  const name = bareReference(reference)
  return ofEach(await coveredAccounts(store, coverage, 'message_id'), ({ id }) => store.messages.find(id, name))
}

async function ofEach<T>(
  accounts: readonly AccountRecord[],
  ask: (account: AccountRecord) => Promise<T | null>,
): Promise<T[]> {
  const found: T[] = []
  for (let start = 0; start < accounts.length; start += questionsAtOnce) {
    const answers = await Promise.all(accounts.slice(start, start + questionsAtOnce).map(ask))
    found.push(...answers.filter((answer) => answer !== null))
    await nextTurn()
  }
  return found
}
