/** What the filters say of stored messages, with all that they may ask for looked up. */
import { toAppError } from '../errors.ts'
import type { Store } from '../store/port.ts'
import type { FolderRecord, MessageRecord } from '../store/records.ts'
import { type ReadDeps, memoryFor, readContents } from './contents.ts'
import type { MessageEvent } from './events.ts'
import type { BodySearch, Judgement, Known, Word } from './match.ts'
import type { Memory } from './memory.ts'
import { type Target, lookUpThread } from './targets.ts'

export interface JudgeDeps {
  readonly store: Pick<Store, 'messages'>
  readonly reading: ReadDeps
  readonly memory: Memory
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
  const { bodySearch } = target.matcher
  return bodySearch === null ? thread : { ...thread, body: await searchBody(deps, message, bodySearch) }
}

const nothingGiven = { includeBody: false, bodyType: null, includeHeader: null }
/** Of the memory, what the questions of API calls share. */
const asked = 'asked'

/** The same search as before a callback; null = still undecided, with the reason. */
async function searchBody({ reading, memory }: JudgeDeps, message: MessageRecord, search: BodySearch): Promise<Word> {
  const release = await memory.take(asked, memoryFor(reading, message, nothingGiven, true))
  if (release === null) return { matched: null, why: 'not searched: many large messages are being read; ask again' }
  try {
    const { body } = await readContents(reading, message, nothingGiven, search)
    return body ?? { matched: null, why: 'not searched' }
  } catch (error) {
    const { fault, message: reason } = toAppError(error)
    if (fault === 'us') throw error
    return { matched: null, why: `the text could not be read (${reason})` }
  } finally {
    release()
  }
}
