/**
 * Which events a webhook hears of, apart from its filters on the message.
 *
 * - Without options: a message's first event (received, sent), whatever becomes of it later.
 * - `receive_all_changes=1`: every event, told apart by message_type `created` (the first) and `updated`.
 * - `filter_folder_added`: every event that puts the message into that folder, its arrival there included, not only the first:
 *   a message that is filed an hour after it came is just what the filter asks for. Other events do not match it.
 * - `filter_folder_removed`: every event that takes the message out of that folder, its deletion included. With both folder
 *   filters an event has to match the one of its own direction.
 * - Drafts are silent without `receive_drafts=1`. A draft that is sent under the same identity is told when it reaches its
 *   first folder without the \Draft flag: for the developer that is the message's first event.
 */
import type { ChangeKind, MessageRecord, WebhookRecord } from '../store/records.ts'
import type { FilterVerdict } from './types.ts'

/** What filters know of an event; a stored change has it, and the dry run makes one up of a stored message. */
export interface MessageEvent {
  readonly kind: ChangeKind
  readonly first: boolean
  readonly path: string
  readonly folderId: string
  readonly uid: number
  readonly flags: readonly string[]
}

export type FolderMove = 'added' | 'removed' | 'none'

const moves: Readonly<Record<ChangeKind, FolderMove>> = {
  received: 'added',
  sent: 'added',
  draft: 'added',
  folder_added: 'added',
  folder_removed: 'removed',
  deleted: 'removed',
  flags_changed: 'none',
}

export function moveOf(event: Pick<MessageEvent, 'kind'>): FolderMove {
  return moves[event.kind]
}

export function isDraft(event: Pick<MessageEvent, 'kind' | 'flags'>): boolean {
  return event.kind === 'draft' || event.flags.includes('\\Draft')
}

/** Left its drafts: not a draft here, and everywhere else it still is one. */
function leavesDrafts(event: MessageEvent, message: MessageRecord): boolean {
  if (event.kind !== 'folder_added' || isDraft(event)) return false
  const others = message.placements.filter((one) => one.folderId !== event.folderId || one.uid !== event.uid)
  return others.length > 0 && others.every((one) => one.flags.includes('\\Draft'))
}

export function isFirst(event: MessageEvent, message: MessageRecord): boolean {
  return event.first || leavesDrafts(event, message)
}

type EventRules = Pick<WebhookRecord, 'receiveAllChanges' | 'receiveDrafts' | 'filters'>

/** The verdicts on the event itself, always both. */
export function judgeEvent(rules: EventRules, event: MessageEvent, message: MessageRecord): FilterVerdict[] {
  return [judgeOccasion(rules, event, message), judgeDraft(rules, event)]
}

function judgeOccasion(rules: EventRules, event: MessageEvent, message: MessageRecord): FilterVerdict {
  const filter = 'receive_all_changes'
  if (rules.receiveAllChanges) return { filter, matched: true, why: 'every event is wanted' }
  const move = moveOf(event)
  const asked =
    move === 'added' ? rules.filters.folderAdded : move === 'removed' ? rules.filters.folderRemoved : undefined
  if (asked !== undefined) return { filter, matched: true, why: `a folder filter asks for every ${event.kind} event` }
  if (isFirst(event, message)) return { filter, matched: true, why: "the message's first event" }
  return { filter, matched: false, why: `${event.kind} is not the message's first event` }
}

function judgeDraft(rules: EventRules, event: MessageEvent): FilterVerdict {
  const filter = 'receive_drafts'
  if (!isDraft(event)) return { filter, matched: true, why: 'not a draft' }
  if (rules.receiveDrafts) return { filter, matched: true, why: 'drafts are wanted' }
  return { filter, matched: false, why: 'a draft, and receive_drafts is not set' }
}

/** Facts of the event that an outbox row keeps: the message row may say something else by the time of delivery. */
export interface EventFacts {
  readonly first: boolean
  readonly path: string
  readonly folderId: string
  readonly uid: number
  readonly flags: readonly string[]
  /** Every folder of the message right after the event. */
  readonly folders: readonly string[]
}

export function eventFacts(event: EventFacts): EventFacts {
  const { first, path, folderId, uid, flags, folders } = event
  return { first, path, folderId, uid, flags, folders }
}

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The facts out of an outbox row's data. */
export function readEventFacts(data: Readonly<Record<string, unknown>>): EventFacts {
  return {
    first: data['first'] === true,
    path: text(data['path']),
    folderId: text(data['folderId']),
    uid: typeof data['uid'] === 'number' ? data['uid'] : 0,
    flags: strings(data['flags']),
    folders: strings(data['folders']),
  }
}
