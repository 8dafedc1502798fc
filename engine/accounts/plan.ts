/**
 * Plans one sync batch: from the server's answers to rows and changes. Pure: nothing here waits or writes.
 *
 * A message is live when its UID lies at or above the folder's cursor, or when a comparison finds it missing from the
 * index. Live messages make changes. Messages that lay in the folder when it was first selected are history, and make
 * none. Exceptions: while a folder is read anew, unknown messages that arrived since make changes; so do, in a folder
 * that appeared after the initial sync, messages known from elsewhere and new mail; so does mail that came since the
 * account was added, at a UID below those of the first opening.
 */
import { changeId, messageId } from '../store/ids.ts'
import type { AddedMessage, ChangeDraft, FlagUpdate, KnownUid } from '../store/port.ts'
import type { AccountRecord, ChangeKind, FolderRecord, GonePlacement, MessageFacts } from '../store/records.ts'
import type { MessageRecord, Place, Placement } from '../store/records.ts'
import { factsOf } from '../messages/facts.ts'
import { readHeaders } from '../messages/headers.ts'
import { addPlacement, liesAt, newMessage } from '../store/rows.ts'
import { arrivalSlackMs, generationAt, identityOf } from './identity.ts'
import type { FetchedMessage, FlagsOf, SessionCapabilities } from './session-types.ts'

export interface PlanContext {
  readonly account: AccountRecord
  readonly folder: FolderRecord
  readonly uidValidity: string
  readonly now: number
}

export interface ReadMessage {
  readonly id: string
  readonly identity: string
  readonly facts: MessageFacts
  readonly fetched: Pick<FetchedMessage, 'uid' | 'flags' | 'modseq'>
}

/** A change with the message as it is right after it. */
export interface PlannedChange {
  readonly change: ChangeDraft
  readonly message: MessageRecord
}

export function readMessage(
  account: AccountRecord,
  fetched: FetchedMessage,
  kind: SessionCapabilities['identity'],
): ReadMessage {
  const headers = readHeaders(fetched.headers)
  const facts = factsOf(account.id, fetched, headers)
  const identity = identityOf(fetched, kind, headers)
  return { id: messageId(account.id, identity), identity, facts, fetched }
}

export type Source = 'live' | 'backfill'

interface Arrivals {
  readonly added: AddedMessage[]
  readonly changes: PlannedChange[]
  /** History that is new to the index. */
  readonly old: MessageRecord[]
}

/** Returns new placements, and the changes that report them. `existing`: the rows of the index. */
export function planAdded(
  context: PlanContext,
  read: readonly ReadMessage[],
  existing: ReadonlyMap<string, MessageRecord>,
  source: Source,
): Arrivals {
  const plan: Omit<Arrivals, 'old'> = { added: [], changes: [] }
  const old = new Map<string, MessageRecord>()
  const current = new Map(existing)
  const found = new Map(read.map((message) => [message.fetched.uid, message.id]))
  for (const message of read) {
    const { uid } = message.fetched
    const before = current.get(message.id) ?? null
    const place = placeOf(context, uid)
    const generation = generationAt(context.folder.cursor, place, before)
    const id = idOf(context, { messageId: message.id, uid, generation }, 'added')
    const reported = isReported(context, message, before, source, id)
    const one: AddedMessage = {
      id: message.id,
      identity: message.identity,
      facts: message.facts,
      placement: placementOf(context, message, generation),
      firstChangeId: reported ? id : null,
    }
    const after = addPlacement(before ?? newMessage(context.account.id, one, context.now), one.placement)
    current.set(message.id, after)
    plan.added.push(one)
    if (reported) plan.changes.push({ change: arrival(context, id, message, before, after), message: after })
    else if (isUnknown(context, before, found)) old.set(message.id, after)
  }
  return { ...plan, old: [...old.values()] }
}

/** A cut-short run of this very batch may have left `before`: the result is the same. `id`: of the change. */
function isReported(
  context: PlanContext,
  message: ReadMessage,
  before: MessageRecord | null,
  source: Source,
  id: string,
): boolean {
  const { folder } = context
  const { liveFrom = 0, remapSince, appearedAt } = folder.cursor ?? {}
  if (source === 'live' && message.fetched.uid >= liveFrom) return true
  const { receivedAt } = message.facts
  if (remapSince !== undefined) return isFirst(before, id) && receivedAt >= remapSince
  if (appearedAt !== undefined) return isKnownBesides(folder, before) || receivedAt >= appearedAt
  const isNews = source === 'live' && receivedAt >= watchedSince(context.account)
  return isNews && (isFirst(before, id) || !isBack(folder, before))
}

/** Whether the message has left this folder, and that has not been reported. */
function isBack({ id }: FolderRecord, before: MessageRecord | null): boolean {
  return before?.gone.some(({ folderId }) => folderId === id) === true
}

function watchedSince({ createdAt, remapSince = 0 }: AccountRecord): number {
  return Math.max(createdAt, remapSince) - arrivalSlackMs
}

/** Whether `id` is the message's first change. */
function isFirst(before: MessageRecord | null, id: string): boolean {
  return before === null || before.firstChangeId === id
}

/**
 * Whether the index lacks the message, but for rows that a cut-short run of this very batch has left. In a folder that
 * is read anew it may be known under another identity. `found`: ids of the batch by UID.
 */
function isUnknown(
  { folder, uidValidity }: PlanContext,
  before: MessageRecord | null,
  found: ReadonlyMap<number, string>,
): boolean {
  if (folder.cursor?.remapSince !== undefined) return false
  if (before === null) return true
  const { id, placements, gone, firstChangeId } = before
  const isOfBatch = (place: Placement): boolean =>
    found.get(place.uid) === id && liesAt(place, { folderId: folder.id, uidValidity, uid: place.uid })
  return firstChangeId === null && gone.length === 0 && placements.length > 0 && placements.every(isOfBatch)
}

/** Whether the index knows the message from another folder, or it was reported as gone. */
function isKnownBesides({ id }: FolderRecord, before: MessageRecord | null): boolean {
  if (before === null) return false
  const places = [...before.placements, ...before.gone]
  return places.length === 0 || places.some(({ folderId }) => folderId !== id)
}

/** The change id contains the message: a server may reuse a UID for other mail. */
function idOf(
  { account, folder, uidValidity }: PlanContext,
  { messageId, uid, generation }: Pick<KnownUid, 'messageId' | 'uid' | 'generation'>,
  kind: 'added' | 'flags',
  ...version: readonly string[]
): string {
  return changeId(account.id, folder.id, uidValidity, uid, kind, [messageId, ...version].join(':'), generation)
}

function placeOf({ folder, uidValidity }: PlanContext, uid: number): Place {
  return { folderId: folder.id, uidValidity, uid }
}

function placeIn(context: PlanContext, uid: number) {
  return { ...placeOf(context, uid), path: context.folder.path }
}

function placementOf(context: PlanContext, { fetched }: ReadMessage, generation: number): Placement {
  return {
    ...placeIn(context, fetched.uid),
    ...(generation === 0 ? {} : { generation }),
    flags: normalFlags(fetched.flags ?? []),
    modseq: fetched.modseq ?? '0',
    rev: 0,
  }
}

function arrival(
  context: PlanContext,
  id: string,
  message: ReadMessage,
  before: MessageRecord | null,
  after: MessageRecord,
): ChangeDraft {
  const first = isFirst(before, id)
  return {
    ...changeBase(context.account, placeIn(context, message.fetched.uid), id, after, context.now),
    kind: first ? firstKind(context.folder, message.fetched.flags ?? []) : 'folder_added',
    first,
    flags: normalFlags(message.fetched.flags ?? []),
  }
}

function firstKind(folder: FolderRecord, flags: readonly string[]): ChangeKind {
  if (folder.specialUse === '\\Drafts' || flags.includes('\\Draft')) return 'draft'
  return folder.specialUse === '\\Sent' ? 'sent' : 'received'
}

function changeBase(
  { id: accountId, userId }: AccountRecord,
  { folderId, path, uid, uidValidity }: Place & Pick<Placement, 'path'>,
  id: string,
  { id: messageId, placements }: MessageRecord,
  at: number,
) {
  const folders = placements.map((one) => one.path)
  return { id, accountId, userId, messageId, folderId, path, uid, uidValidity, folders, at }
}

export function planFlags(
  context: PlanContext,
  seen: readonly FlagsOf[],
  known: ReadonlyMap<number, KnownUid>,
  rows: ReadonlyMap<string, MessageRecord>,
): { readonly updates: FlagUpdate[]; readonly changes: PlannedChange[] } {
  const updates: FlagUpdate[] = []
  const changes: PlannedChange[] = []
  for (const { uid, flags, modseq } of seen) {
    const before = known.get(uid)
    const now = spelledAs(before?.flags ?? [], normalFlags(flags))
    if (before === undefined || before.flags.join(' ') === now.join(' ')) continue
    // Another spelling, of an older index, is no change.
    const quiet = sameFlags(before.flags, now)
    const rev = quiet ? before.rev : before.rev + 1
    updates.push({ messageId: before.messageId, uid, flags: now, modseq: modseq ?? before.modseq, rev })
    const row = rows.get(before.messageId)
    if (quiet || row === undefined) continue
    const id = idOf(context, before, 'flags', `${rev}`, now.join(' '))
    const base = changeBase(context.account, placeIn(context, uid), id, row, context.now)
    changes.push({ change: { ...base, kind: 'flags_changed', first: false, flags: now }, message: row })
  }
  return { updates, changes }
}

/** The change of a due departure. `last` = it is the message's last unreported one: a message is deleted once. */
export function planGone(
  account: AccountRecord,
  folders: ReadonlyMap<string, FolderRecord>,
  message: MessageRecord,
  entry: GonePlacement,
  last: boolean,
  now: number,
): PlannedChange {
  const { folderId, uidValidity, uid, generation } = entry
  const id = changeId(account.id, folderId, uidValidity, uid, 'removed', message.id, generation)
  const place = { ...entry, path: folders.get(folderId)?.path ?? entry.path }
  const change: ChangeDraft = {
    ...changeBase(account, place, id, message, now),
    kind: last && message.placements.length === 0 ? 'deleted' : 'folder_removed',
    first: false,
    flags: message.placements[0]?.flags ?? [],
  }
  return { change, message }
}

/** Flags in the form of the index: without \Recent, sorted, each once. */
export function normalFlags(flags: readonly string[]): string[] {
  return [...new Set(flags)].filter((flag) => flag !== '\\Recent').sort()
}

function sameFlags(one: readonly string[], other: readonly string[]): boolean {
  return keysOf(one).symmetricDifference(keysOf(other)).size === 0
}

function keysOf(flags: readonly string[]): Set<string> {
  return new Set(flags.map((flag) => flag.toLowerCase()))
}

/** The flags, with keywords in their known spelling: two connections may see one keyword in two spellings. */
function spelledAs(known: readonly string[], flags: readonly string[]): string[] {
  const keywords = new Map(known.filter((flag) => !flag.startsWith('\\')).map((flag) => [flag.toLowerCase(), flag]))
  return flags.map((flag) => keywords.get(flag.toLowerCase()) ?? flag).sort()
}
