/** What the filters say of stored messages, with all that they may ask for looked up. */
import { toAppError } from '../errors.ts'
import type { Store } from '../store/port.ts'
import type { FolderRecord, MessageRecord } from '../store/records.ts'
import { type Mail, readContents } from './contents.ts'
import type { MessageEvent } from './events.ts'
import type { Judgement, Known } from './match.ts'
import { type Target, lookUpThread } from './targets.ts'

export interface JudgeDeps {
  readonly store: Pick<Store, 'messages'>
  readonly mail: Mail
  readonly maxBodyBytes: number
}

export function sentOf(folders: readonly FolderRecord[]): ReadonlySet<string> {
  return new Set(folders.filter((folder) => folder.specialUse === '\\Sent').map((folder) => folder.id))
}

/** Events as if the message arrived now, one for each place where it lies. */
export function arrivals(message: MessageRecord, sent: ReadonlySet<string>): MessageEvent[] {
  return message.placements.map(({ folderId, path, uid, flags }) => {
    const kind = flags.includes('\\Draft') ? 'draft' : sent.has(folderId) ? 'sent' : 'received'
    return { kind, first: true, path, folderId, uid, flags }
  })
}

const rank = { match: 2, undecided: 1, no: 0 } as const

export interface Judged<TEvent> extends Judgement {
  readonly event: TEvent
}

/** The most favourable event decides; bodies and threads are looked up only when nothing else says no. null = no event. */
export async function judgeBest<TEvent extends MessageEvent>(
  deps: JudgeDeps,
  target: Target,
  message: MessageRecord,
  events: readonly TEvent[],
  known: Known,
): Promise<Judged<TEvent> | null> {
  let best: Judged<TEvent> | null = null
  for (const event of events) {
    const judged = target.matcher.judge(event, message, known)
    if (best === null || rank[judged.outcome] > rank[best.outcome]) best = { ...judged, event }
  }
  if (best?.outcome !== 'undecided') return best
  const all = { ...known, ...(await lookUp(deps, target, message)) }
  return { ...target.matcher.judge(best.event, message, all), event: best.event }
}

async function lookUp(deps: JudgeDeps, target: Target, message: MessageRecord): Promise<Known> {
  const thread = await lookUpThread(deps.store, target, message)
  if (!target.matcher.needsBody) return thread
  try {
    const options = { search: true, maxBytes: deps.maxBodyBytes }
    const wishes = { ...target.webhook, includeBody: false, includeHeader: null }
    const { searchable } = await readContents(deps.mail, message, wishes, options)
    return { ...thread, bodies: searchable }
  } catch (error) {
    // Still undecided: the verdict says that the body has not been read.
    if (toAppError(error).fault === 'us') throw error
    return thread
  }
}
