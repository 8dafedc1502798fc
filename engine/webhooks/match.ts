/**
 * Filters of a webhook, compiled once and applied to every event. All filters of a webhook have to match (AND); the
 * items of one comma list are alternatives (OR). Every filter gives a verdict with its reason, for `explain` and the
 * dry run.
 *
 * A filter is "undecided" while its answer needs a look-up: a body is read only before the callback (contents.ts), and
 * a thread may have to be looked up by a Message-ID. The event is then queued and judged again before the callback. A
 * filter that would hold the event loop (many patterns on thousands of recipients) is judged in a worker (searches.ts).
 *
 * Events that a webhook gets: without options a message's first event; with `receive_all_changes` every event; with a
 * folder filter every event that puts the message into the folder (its arrival too) or takes it out (its deletion too).
 * Drafts make no callback without `receive_drafts`. A draft that is sent under the same identity makes its first event
 * when it reaches its first folder without the \Draft flag.
 */
import { badParameter } from '../errors.ts'
import { domainsOf } from '../messages/addresses.ts'
import { answeredIds, threadIds } from '../messages/threads.ts'
import type {
  Address,
  ChangeKind,
  ChangeRecord,
  FolderRecord,
  MessageRecord,
  WebhookFilters,
  WebhookRecord,
} from '../store/records.ts'
import { compilePatterns, costOf, fold, type Grammar, type Pattern } from './patterns.ts'

/** Name of a filter in the record → its parameter in the API, which errors, verdicts and reasons name. */
export const filterParameters = {
  to: 'filter_to',
  from: 'filter_from',
  cc: 'filter_cc',
  subject: 'filter_subject',
  thread: 'filter_thread',
  fileName: 'filter_file_name',
  folderAdded: 'filter_folder_added',
  folderRemoved: 'filter_folder_removed',
  toDomain: 'filter_to_domain',
  fromDomain: 'filter_from_domain',
  bodySearch: 'body_search',
} as const satisfies Record<keyof WebhookFilters, string>

type FilterName = keyof WebhookFilters
export type FilterParameter = (typeof filterParameters)[FilterName]

/** Verdicts of `explain` besides the filters: the state of webhook and callback at the event. */
export type Circumstance = 'event' | 'created' | 'active' | 'edited' | 'delivery'

export interface FilterVerdict {
  readonly filter: FilterParameter | 'receive_drafts' | 'receive_all_changes' | Circumstance
  readonly matched: boolean
  readonly why: string
}

/** Results of look-ups for a judgement, beyond event and message. Absent = not looked up yet. */
export interface KnownFacts {
  readonly body?: Finding
  /** Thread ids that belong to the webhook's thread reference in this account. */
  readonly threads?: ReadonlySet<string>
  /** The stored messages that this message answers, and those that they answer. */
  readonly ancestors?: readonly MessageRecord[]
  /** Server path → the folder's name as the API shows it. Absent = the path. */
  readonly folderName?: (path: string) => string
  /** true = filters have no bound on their cost: the judgement runs in a worker. */
  readonly unhurried?: boolean
}

export interface Judgement {
  readonly outcome: 'match' | 'no' | 'undecided'
  readonly verdicts: readonly FilterVerdict[]
  /** Filters that need a look-up; their verdicts are not matched until then. */
  readonly undecided: readonly FilterParameter[]
  /** Those of `undecided` that only need a worker. */
  readonly long: readonly FilterParameter[]
}

/** null = undecided. */
export interface Finding {
  readonly matched: boolean | null
  readonly why: string
}

/** Charges the cost (see costOf) to the judgement. false = too much for the event loop. */
type Afford = (cost: number) => boolean

type Check = (event: MessageEvent, message: MessageRecord, known: KnownFacts, afford: Afford) => Finding

/** Bound on the cost (see costOf) of one judgement in the main thread: some 10 ms. */
export const mostCost = 600_000

const long: Finding = { matched: null, why: 'too much to look through at once' }

const listGrammar: Grammar = { list: true, wildcards: 'all', anchoring: 'whole' }
const folderGrammar: Grammar = { list: false, wildcards: 'no brackets', anchoring: 'whole' }
const subjectGrammar: Grammar = { ...folderGrammar, anchoring: 'within' }
const bodyGrammar: Grammar = { list: false, wildcards: 'all', anchoring: 'within' }

/** Bound on the cost for a name of a thousand characters: one call may try many names. */
const mostNameCost = 200_000

/** A test for file names, with the patterns of filter_file_name. Throws `bad_request` like `compileMatcher`. */
export function compileFileName(parameter: string, text: string): (name: string) => boolean {
  const patterns = compilePatterns(parameter, text, listGrammar)
  if (costOf(patterns, ['x'.repeat(1000)]) > mostNameCost) throw badParameter(parameter, 'takes too long to look for')
  return (name) => patterns.some((pattern) => pattern.matches(name))
}

/** The fields of a webhook that decide which events match. */
export type Rules = Pick<WebhookRecord, 'filters' | 'receiveAllChanges' | 'receiveDrafts'>

export type Matcher = ReturnType<typeof compileMatcher>

/** Throws `bad_request` naming the parameter and the position of a bad pattern. */
export function compileMatcher(webhook: Rules) {
  const { filters } = webhook
  const checks = (Object.keys(filterParameters) as FilterName[]).flatMap((name) => {
    const text = filters[name]
    return text === undefined ? [] : [{ filter: filterParameters[name], check: compileCheck(name, text, filters) }]
  })
  return {
    /** null = no such filter. */
    bodySearch: filters.bodySearch === undefined ? null : compileBodySearch(filters.bodySearch),
    /** The thread filter's text without brackets; null = no such filter. */
    threadReference: filters.thread === undefined ? null : bareReference(filters.thread),
    judge(event: MessageEvent, message: MessageRecord, known: KnownFacts = {}): Judgement {
      const verdicts = [judgeOccasion(webhook, event, message), judgeDraft(webhook, event)]
      let refused = verdicts.some((verdict) => !verdict.matched)
      const undecided: FilterParameter[] = []
      const tooLong: FilterParameter[] = []
      let left = known.unhurried === true ? Number.POSITIVE_INFINITY : mostCost
      const afford = (cost: number): boolean => {
        if (cost > left) return false
        left -= cost
        return true
      }
      for (const { filter, check } of checks) {
        const finding = check(event, message, known, afford)
        if (finding === long) tooLong.push(filter)
        if (finding.matched === null) undecided.push(filter)
        else if (!finding.matched) refused = true
        verdicts.push({ filter, matched: finding.matched ?? false, why: finding.why })
      }
      const outcome = refused ? 'no' : undecided.length > 0 ? 'undecided' : 'match'
      return { outcome, verdicts, undecided, long: tooLong }
    },
  }
}

export type BodySearch = ReturnType<typeof compileBodySearch>

/** The filter body_search. `steps`: the cost of one character, as in Pattern. */
export function compileBodySearch(wanted: string) {
  const patterns = compilePatterns(filterParameters.bodySearch, wanted, bodyGrammar)
  const steps = patterns.reduce((sum, pattern) => sum + pattern.steps, 0)
  return { wanted, steps, matches: (text: string) => patterns.some((pattern) => pattern.matches(text)) }
}

function compileCheck(name: FilterName, text: string, filters: WebhookFilters): Check {
  if (name === 'thread') return threadCheck(bareReference(text))
  if (name === 'bodySearch')
    return (_event, _message, { body }) => body ?? { matched: null, why: 'the text has not been read yet' }
  const compile = (grammar: Grammar) => compilePatterns(filterParameters[name], text, grammar)
  if (name === 'folderAdded') return folderCheck(compile(folderGrammar), 'added', filters.folderRemoved !== undefined)
  if (name === 'folderRemoved') return folderCheck(compile(folderGrammar), 'removed', filters.folderAdded !== undefined)
  const patterns = compile(name === 'subject' ? subjectGrammar : listGrammar)
  const values = candidates[name]
  return (_event, message, _known, afford) => {
    const found = values(message)
    return afford(costOf(patterns, found)) ? anyOf(patterns, found) : long
  }
}

type ValueFilter = Exclude<FilterName, 'thread' | 'bodySearch' | 'folderAdded' | 'folderRemoved'>

const candidates: Readonly<Record<ValueFilter, (message: MessageRecord) => string[]>> = {
  to: (message) => namesAndAddresses(message.addresses.to),
  from: (message) => namesAndAddresses(message.addresses.from),
  cc: (message) => namesAndAddresses(message.addresses.cc),
  toDomain: (message) => domains(message.addresses.to),
  fromDomain: (message) => domains(message.addresses.from),
  subject: (message) => [message.subject],
  fileName: (message) => message.attachments.map((one) => one.fileName).filter((name) => name !== ''),
}

function namesAndAddresses(addresses: readonly Address[]): string[] {
  return addresses.flatMap(({ email, name }) => [email, name]).filter((text) => text !== '')
}

/** Each domain, its parents, and the domain as `@domain`. */
function domains(addresses: readonly Address[]): string[] {
  const found = addresses.flatMap(({ email }) => {
    const [own, ...parents] = domainsOf(email)
    return own === undefined ? [] : [own, ...parents, `@${own}`]
  })
  return [...new Set(found)]
}

function anyOf(patterns: readonly Pattern[], values: readonly string[]): Finding {
  for (const pattern of patterns) {
    const hit = values.find((value) => pattern.matches(value))
    if (hit !== undefined) return { matched: true, why: `${shown(hit)} matches ${pattern.source}` }
  }
  const wanted = patterns.map((pattern) => pattern.source).join(', ')
  if (values.length === 0) return { matched: false, why: `nothing there to match ${wanted}` }
  return {
    matched: false,
    why: `${values.slice(0, 5).map(shown).join(', ')} ${values.length > 5 ? '… ' : ''}do not match ${wanted}`,
  }
}

function shown(value: string): string {
  return `"${value.length > 80 ? `${value.slice(0, 79)}…` : value}"`
}

/** With both folder filters, each judges its own direction only. */
function folderCheck(patterns: readonly Pattern[], direction: 'added' | 'removed', both: boolean): Check {
  return (event, _message, { folderName = (path) => path }, afford) => {
    const move = moves[event.kind]
    if (move !== direction) {
      const other = both && move !== 'none'
      return { matched: other, why: other ? 'the other folder filter decides' : `${event.kind} is not "${direction}"` }
    }
    const name = folderName(event.path)
    if (!afford(costOf(patterns, [name, event.path]))) return long
    const pattern = patterns.find((one) => one.matches(name) || one.matches(event.path))
    const folder = shown(name)
    if (pattern !== undefined) return { matched: true, why: `${folder} matches ${pattern.source}` }
    return { matched: false, why: `${folder} does not match ${patterns.map(({ source }) => source).join(', ')}` }
  }
}

/** Without angle brackets, and without the gm- that some clients put before hosted ids. */
export function bareReference(text: string): string {
  return text
    .trim()
    .replace(/^<(.*)>$/, '$1')
    .replace(/^gm-/i, '')
}

function threadCheck(reference: string): Check {
  if (reference === '') throw badParameter(filterParameters.thread, 'names no thread')
  const wanted = fold(reference)
  const decimal = /^[0-9a-f]{14,16}$/.test(wanted) ? BigInt(`0x${wanted}`).toString() : wanted
  return (_event, message, known) => {
    const line = [message, ...(known.ancestors ?? [])]
    const hit = line.flatMap(threadNames).find((id) => fold(id) === wanted || id === decimal)
    if (hit !== undefined) return { matched: true, why: `${shown(hit)} is of the thread` }
    const { threads } = known
    const related = line.find((one) => threadIds(one).some((id) => threads?.has(id)))
    if (related !== undefined) return { matched: true, why: 'a message of the thread has this id' }
    const unread = threads === undefined || (known.ancestors === undefined && answeredIds(message).length > 0)
    return unread
      ? { matched: null, why: 'the thread has not been looked up yet' }
      : { matched: false, why: `not in the thread of ${reference}` }
  }
}

/** Every id of the message's thread, and of messages in it. */
function threadNames(message: MessageRecord): string[] {
  const { emailMessageId, inReplyTo, references } = message
  const named = [emailMessageId, inReplyTo].filter((id) => id !== null)
  return [...threadIds(message), ...named, ...references]
}

/** Input of the filters: a stored change, or an arrival that the dry run makes from a stored message. */
export type MessageEvent = Omit<EventFacts, 'folders'> & Pick<ChangeRecord, 'kind'>

export function sentOf(folders: readonly FolderRecord[]): ReadonlySet<string> {
  return new Set(folders.filter((folder) => folder.specialUse === '\\Sent').map((folder) => folder.id))
}

/** Events as if the message arrived now, one for each placement. */
export function arrivals(message: MessageRecord, sent: ReadonlySet<string>): MessageEvent[] {
  return message.placements.map(({ folderId, path, uid, flags }) => {
    const kind = flags.includes('\\Draft') ? 'draft' : sent.has(folderId) ? 'sent' : 'received'
    return { kind, first: true, path, folderId, uid, flags }
  })
}

const moves: Readonly<Record<ChangeKind, 'added' | 'removed' | 'none'>> = {
  received: 'added',
  sent: 'added',
  draft: 'added',
  folder_added: 'added',
  folder_removed: 'removed',
  deleted: 'removed',
  flags_changed: 'none',
}

/** The event puts the message into a folder. */
export function isAdded(kind: ChangeKind): boolean {
  return moves[kind] === 'added'
}

function isDraft(event: Pick<MessageEvent, 'kind' | 'flags'>): boolean {
  return event.kind === 'draft' || event.flags.includes('\\Draft')
}

/** The message is not a draft in this folder, and was or is a draft in all others. */
function leavesDrafts(event: MessageEvent, message: MessageRecord): boolean {
  if (event.kind !== 'folder_added' || isDraft(event)) return false
  const others = message.placements.filter((one) => one.folderId !== event.folderId || one.uid !== event.uid)
  const drafts = [
    ...others.map((one) => one.flags.includes('\\Draft')),
    ...message.gone.map(({ draft }) => draft === true),
  ]
  return drafts.length > 0 && drafts.every(Boolean)
}

export function isFirst(event: MessageEvent, message: MessageRecord): boolean {
  return event.first || leavesDrafts(event, message)
}

function judgeOccasion(rules: Rules, event: MessageEvent, message: MessageRecord): FilterVerdict {
  const filter = 'receive_all_changes'
  if (rules.receiveAllChanges) return { filter, matched: true, why: 'every event is wanted' }
  const { folderAdded: added, folderRemoved: removed } = rules.filters
  const asked = { added, removed, none: undefined }[moves[event.kind]]
  if (asked !== undefined) return { filter, matched: true, why: `a folder filter asks for every ${event.kind} event` }
  if (isFirst(event, message)) return { filter, matched: true, why: "the message's first event" }
  return { filter, matched: false, why: `${event.kind} is not the message's first event` }
}

function judgeDraft(rules: Rules, event: MessageEvent): FilterVerdict {
  const filter = 'receive_drafts'
  if (!isDraft(event)) return { filter, matched: true, why: 'not a draft' }
  if (rules.receiveDrafts) return { filter, matched: true, why: 'drafts are wanted' }
  return { filter, matched: false, why: 'a draft, and receive_drafts is not set' }
}

/** Facts of the event in an outbox row: the message's record may have changed before the callback. */
export type EventFacts = Pick<ChangeRecord, 'first' | 'path' | 'folderId' | 'uid' | 'flags' | 'folders'>
