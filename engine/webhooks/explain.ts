/**
 * The story of one message at one webhook, told from what was recorded: the events that were seen of it, what the webhook was like
 * when they came, and the callbacks that were queued. A queued callback has the last word; only where there is none do today's
 * filters speak, on the events that were seen.
 */
import { folderNamer } from '../messages/names.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, ChangeRecord, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { type Asking, type JudgeDeps, type Judged, judgeBest } from './judge.ts'
import type { Target } from './targets.ts'
import { activeAt } from './timeline.ts'
import type { Circumstance, Explanation, FilterVerdict } from './types.ts'

export interface ExplainDeps extends JudgeDeps {
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
  const told = changes.filter(({ id }) => queued.some(({ changeId }) => changeId === id))
  const known = { folderName: await namerOf(deps, message.accountId) }
  const [event] = told
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
  const heard = ({ at }: ChangeRecord) => webhook.createdAt <= at && activeAt(webhook, at) !== false
  return [...changes.filter(heard), ...changes.filter((change) => !heard(change))]
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
