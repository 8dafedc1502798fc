/** Why a message is or is not sent: the dry run over stored messages, and the story of one message. */
import { toAppError } from '../errors.ts'
import { folderNamer } from '../messages/folder-names.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, ChangeRecord, FolderRecord, MessageRecord, OutboxRecord } from '../store/records.ts'
import { type Mail, readContents } from './contents.ts'
import type { MessageEvent } from './events.ts'
import type { Judgement, Known } from './match.ts'
import { type Target, findThreads } from './targets.ts'
import type { DryRunRow, FilterVerdict } from './types.ts'

export interface ExplainDeps {
  readonly store: Pick<Store, 'messages' | 'changes' | 'outbox' | 'folders'>
  readonly mail: Mail
  readonly maxBodyBytes: number
}

/** The last `limit` stored messages, each with the words of the filters. */
export async function dryRun(
  deps: ExplainDeps,
  target: Target,
  account: AccountRecord,
  limit: number,
): Promise<DryRunRow[]> {
  const messages = await deps.store.messages.list(account.id, { order: 'desc' }, { limit, offset: 0 })
  const folders = await deps.store.folders.list(account.id)
  const rows: DryRunRow[] = []
  for (const message of messages) {
    const { outcome, verdicts } = await judgeStored(deps, target, folders, message)
    rows.push({ message, matched: outcome === 'match', verdicts })
  }
  return rows
}

/**
 * What was seen of the message, what the filters say of it now (the same as in the dry run) and whether the webhook is active, and
 * what was queued for it.
 */
export async function explain(
  deps: ExplainDeps,
  target: Target,
  account: AccountRecord,
  message: MessageRecord,
): Promise<{ changes: ChangeRecord[]; verdicts: FilterVerdict[]; deliveries: OutboxRecord[] }> {
  const { store } = deps
  const { webhook } = target
  const { changes, verdicts } = await judgeStored(deps, target, await store.folders.list(account.id), message)
  const query = { webhookId: webhook.id, accountId: account.id, messageId: message.id }
  const deliveries = await store.outbox.list(query, { limit: 100, offset: 0 })
  const why = webhook.active ? 'the webhook is active' : 'the webhook is paused'
  return { changes, verdicts: [{ filter: 'active', matched: webhook.active, why }, ...verdicts], deliveries }
}

export async function sentFolders(
  deps: { readonly store: Pick<Store, 'folders'> },
  accountId: string,
): Promise<ReadonlySet<string>> {
  return sentOf(await deps.store.folders.list(accountId))
}

function sentOf(folders: readonly FolderRecord[]): ReadonlySet<string> {
  return new Set(folders.filter((folder) => folder.specialUse === '\\Sent').map((folder) => folder.id))
}

/** Events as if the message arrived now, one for each place where it lies. */
export function arrivals(message: MessageRecord, sent: ReadonlySet<string>): MessageEvent[] {
  return message.placements.map(({ folderId, path, uid, flags }) => {
    const kind = flags.includes('\\Draft') ? 'draft' : sent.has(folderId) ? 'sent' : 'received'
    return { kind, first: true, path, folderId, uid, flags }
  })
}

const nothing: Judgement = {
  outcome: 'no',
  verdicts: [{ filter: 'receive_all_changes', matched: false, why: 'the message is in no folder and has no event' }],
}
const rank = { match: 2, undecided: 1, no: 0 } as const

interface StoredJudgement extends Judgement {
  /** What was seen of the message. */
  readonly changes: ChangeRecord[]
}

/**
 * Every event that was seen of the message, and besides those its arrival as if it came now: a message that was there before the
 * account was added has none, and of an old one the log of changes has forgotten it.
 */
async function judgeStored(
  deps: ExplainDeps,
  target: Target,
  folders: readonly FolderRecord[],
  message: MessageRecord,
): Promise<StoredJudgement> {
  const changes = await deps.store.changes.ofMessage(message.accountId, message.id)
  const events = [...changes, ...arrivals(message, sentOf(folders))]
  return { changes, ...(await judgeBest(deps, target, message, events, { folderName: folderNamer(folders) })) }
}

/** The most favourable event decides; bodies and threads are looked up only when nothing else says no. */
async function judgeBest(
  deps: ExplainDeps,
  target: Target,
  message: MessageRecord,
  events: readonly MessageEvent[],
  known: Known,
): Promise<Judgement> {
  let best: { judged: Judgement; event: MessageEvent } | null = null
  for (const event of events) {
    const judged = target.matcher.judge(event, message, known)
    if (best === null || rank[judged.outcome] > rank[best.judged.outcome]) best = { judged, event }
  }
  if (best === null) return nothing
  if (best.judged.outcome !== 'undecided') return best.judged
  return target.matcher.judge(best.event, message, { ...known, ...(await lookUp(deps, target, message)) })
}

async function lookUp(deps: ExplainDeps, target: Target, message: MessageRecord): Promise<Known> {
  const threads =
    target.matcher.threadReference === null ? {} : { threads: await findThreads(deps.store, target, message.accountId) }
  if (!target.matcher.needsBody) return threads
  try {
    const options = { search: true, maxBytes: deps.maxBodyBytes }
    const wishes = { ...target.webhook, includeBody: false, includeHeader: null }
    const { searchable } = await readContents(deps.mail, message, wishes, options)
    return { ...threads, bodies: searchable }
  } catch (error) {
    // Still undecided: the verdict says that the body has not been read.
    if (toAppError(error).fault === 'us') throw error
    return threads
  }
}
