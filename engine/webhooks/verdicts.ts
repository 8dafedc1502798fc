/** What the filters say of stored messages, with all that they may ask for looked up. */
import type { Budget } from '../budget.ts'
import { toAppError } from '../errors.ts'
import { createGiveWay } from '../give-way.ts'
import type { Store } from '../store/port.ts'
import type { FolderRecord, MessageRecord } from '../store/records.ts'
import { memoryFor, readContents, type ReadDeps, type Wanted } from './contents.ts'
import type { Judgement, Known, MessageEvent, Finding } from './match.ts'
import type { Searches } from './searches.ts'
import { lookUpThread, type Target } from './targets.ts'

export interface JudgeDeps {
  readonly store: Pick<Store, 'messages'>
  readonly reading: ReadDeps
  readonly budget: Pick<Budget, 'take'>
}

/** Who asks, by an API call. */
export interface Asking {
  /** Aborts when the caller does not wait for the answer any more. */
  readonly signal: AbortSignal
  /** The answer needs mail of this user from the mail server. Throws `rate_limited` when that is too much. */
  readonly reads: (userId: string) => void
}

type AskedDeps = JudgeDeps & { readonly beforeReading: () => void }

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

/**
 * What all filters say; those that may take long run in another thread. One that was ended there does not match, with
 * the reason.
 */
export async function judgeAtLength(
  searches: Searches,
  { webhook, matcher }: Pick<Target, 'webhook' | 'matcher'>,
  event: MessageEvent,
  message: MessageRecord,
  known: Known,
): Promise<Judgement> {
  const judged = matcher.judge(event, message, known)
  if (judged.outcome !== 'undecided' || judged.long.length === 0) return judged
  const { folderName = (path: string) => path, ...plain } = known
  const { filters, receiveAllChanges, receiveDrafts } = webhook
  const found = await searches.run(webhook.developerId, {
    kind: 'judge',
    webhook: { filters, receiveAllChanges, receiveDrafts },
    event,
    message,
    known: plain,
    folderName: folderName(event.path),
  })
  if (found.kind === 'found') return found.answer
  const ended = new Set<string>(judged.long)
  const why = `too much to look through: it ${found.why}`
  const verdicts = judged.verdicts.map((one) => (ended.has(one.filter) ? { ...one, why } : one))
  return { outcome: 'no', verdicts, undecided: [], long: [] }
}

/**
 * The most favourable event decides; bodies and threads are looked up only when nothing else says no. null = no event.
 */
export async function judgeBest<TEvent extends MessageEvent>(
  deps: AskedDeps,
  target: Target,
  message: MessageRecord,
  events: readonly TEvent[],
  known: Known,
): Promise<Judged<TEvent> | null> {
  let best: Judged<TEvent> | null = null
  const giveWay = createGiveWay()
  for (const event of events) {
    await giveWay()
    const judged = target.matcher.judge(event, message, known)
    if (best === null || rank[judged.outcome] > rank[best.outcome]) best = { ...judged, event }
  }
  if (best?.outcome !== 'undecided') return best
  const all = { ...known, ...(await lookUp(deps, target, message)) }
  return { ...(await judgeAtLength(deps.reading.searches, target, best.event, message, all)), event: best.event }
}

async function lookUp(deps: AskedDeps, target: Target, message: MessageRecord): Promise<Known> {
  const thread = await lookUpThread(deps.store, target, message)
  const { bodySearch } = target.matcher
  if (bodySearch === null) return thread
  deps.beforeReading()
  const wanted = { search: bodySearch, owner: target.webhook.developerId }
  return { ...thread, body: await searchBody(deps, message, wanted) }
}

const nothingGiven = { includeBody: false, bodyType: null, includeHeader: null }
/** What a developer's questions share. */
const part = 'searches'

/** The same search as before a callback; null = still undecided, with the reason. */
async function searchBody({ reading, budget }: JudgeDeps, message: MessageRecord, wanted: Wanted): Promise<Finding> {
  const bytes = memoryFor(reading, message, nothingGiven, true)
  const release = await budget.take('contents', { developerId: wanted.owner, part }, bytes)
  if (release === null) return { matched: null, why: 'not searched: many large messages are being read; ask again' }
  try {
    const { body } = await readContents(reading, message, nothingGiven, wanted)
    return body ?? { matched: null, why: 'not searched' }
  } catch (error) {
    const { fault, message: reason } = toAppError(error)
    if (fault === 'us') throw error
    return { matched: null, why: `the text could not be read (${reason})` }
  } finally {
    release()
  }
}
