/**
 * From what the server says to what the store gets: pure planning of one sync batch. Nothing here waits or writes.
 *
 * A message is live when its UID lies at or above the folder's cursor (or when a comparison finds it missing from the
 * index); live messages make changes. What lay in the folder when it was first opened is history and makes none,
 * whenever it is read. Two exceptions: while a folder is read anew after a UIDVALIDITY change, messages that the index
 * has never seen and that arrived since make changes; so do, in a folder that appeared after the initial sync, messages
 * known from elsewhere and new mail.
 */
import { changeId, messageId } from '../store/ids.ts'
import type { AddedMessage, ChangeDraft, FlagUpdate, KnownUid } from '../store/port.ts'
import type { AccountRecord, ChangeKind, FolderRecord, GonePlacement, MessageFacts } from '../store/records.ts'
import type { MessageRecord, Place, Placement } from '../store/records.ts'
import { factsOf } from '../messages/facts.ts'
import { readHeaders } from '../messages/headers.ts'
import { addPlacement, liesAt, newMessage } from '../store/rows.ts'
import { generationAt, isNewUse, identityOf } from './identity.ts'
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
  readonly fetched: FetchedMessage
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
  /** History that the index did not have. */
  readonly old: MessageRecord[]
}

/** New placements, and the changes that report them. `existing` holds the rows that the index has already. */
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

/** `before` may be what this very batch, cut short, has left: the answer is the same. `id` = of the change. */
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
  const place = placeOf(context, message.fetched.uid)
  if (isNewUse(context.account, folder.cursor, place, receivedAt, before)) return true
  if (remapSince !== undefined) return isFirst(before, id) && receivedAt >= remapSince
  return appearedAt !== undefined && (isKnownBesides(folder, before) || receivedAt >= appearedAt)
}

/** The message's first change is, or was, this one. */
function isFirst(before: MessageRecord | null, id: string): boolean {
  return before === null || before.firstChangeId === id
}

/**
 * The index has no more of it than this very batch, cut short, has left. In a folder that is read anew it may be known
 * under another identity. `found`: what the batch reads, by UID.
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

/** From another folder, or from before: it was reported as gone. */
function isKnownBesides({ id }: FolderRecord, before: MessageRecord | null): boolean {
  if (before === null) return false
  const places = [...before.placements, ...before.gone]
  return places.length === 0 || places.some(({ folderId }) => folderId !== id)
}

/** With the message: a server may give a UID again to other mail. */
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

function placementOf(context: PlanContext, { fetched }: ReadMessage, generation: number): Placement {
  return {
    ...placeOf(context, fetched.uid),
    ...(generation === 0 ? {} : { generation }),
    path: context.folder.path,
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
    ...changeBase(context, id, after, message.fetched.uid),
    kind: first ? firstKind(context.folder, message.fetched.flags ?? []) : 'folder_added',
    first,
    flags: normalFlags(message.fetched.flags ?? []),
  }
}

function firstKind(folder: FolderRecord, flags: readonly string[]): ChangeKind {
  if (folder.specialUse === '\\Drafts' || flags.includes('\\Draft')) return 'draft'
  return folder.specialUse === '\\Sent' ? 'sent' : 'received'
}

function changeBase(context: PlanContext, id: string, after: MessageRecord, uid: number) {
  return {
    id,
    accountId: context.account.id,
    userId: context.account.userId,
    messageId: after.id,
    folderId: context.folder.id,
    path: context.folder.path,
    uid,
    uidValidity: context.uidValidity,
    folders: after.placements.map((one) => one.path),
    at: context.now,
  }
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
    // Another spelling, as an older index has it, is no change.
    const quiet = sameFlags(before.flags, now)
    const rev = quiet ? before.rev : before.rev + 1
    updates.push({ messageId: before.messageId, uid, flags: now, modseq: modseq ?? before.modseq, rev })
    const row = rows.get(before.messageId)
    if (quiet || row === undefined) continue
    const id = idOf(context, before, 'flags', `${rev}`, now.join(' '))
    changes.push({
      change: { ...changeBase(context, id, row, uid), kind: 'flags_changed', first: false, flags: now },
      message: row,
    })
  }
  return { updates, changes }
}

/**
 * Of a placement gone for longer than the hold. `last` = none of the message's other disappearances is still to be
 * reported: a message is deleted once.
 */
export function planGone(
  account: AccountRecord,
  folders: ReadonlyMap<string, FolderRecord>,
  message: MessageRecord,
  entry: GonePlacement,
  last: boolean,
  now: number,
): PlannedChange {
  const change: ChangeDraft = {
    id: changeId(account.id, entry.folderId, entry.uidValidity, entry.uid, 'removed', message.id, entry.generation),
    accountId: account.id,
    userId: account.userId,
    kind: last && message.placements.length === 0 ? 'deleted' : 'folder_removed',
    first: false,
    messageId: message.id,
    folderId: entry.folderId,
    path: folders.get(entry.folderId)?.path ?? entry.path,
    uid: entry.uid,
    uidValidity: entry.uidValidity,
    flags: message.placements[0]?.flags ?? [],
    folders: message.placements.map((one) => one.path),
    at: now,
  }
  return { change, message }
}

/** Flags as the index keeps them: without \Recent, sorted, each once. */
export function normalFlags(flags: readonly string[]): string[] {
  return [...new Set(flags)].filter((flag) => flag !== '\\Recent').sort()
}

/** null is no flags that could be the same. */
function sameFlags(one: readonly string[] | null, other: readonly string[]): boolean {
  return one !== null && keysOf(one).symmetricDifference(keysOf(other)).size === 0
}

function keysOf(flags: readonly string[]): Set<string> {
  return new Set(flags.map((flag) => flag.toLowerCase()))
}

/** The same flags, keywords spelled as they are known: two connections may see one keyword in two spellings. */
function spelledAs(known: readonly string[], flags: readonly string[]): string[] {
  const keywords = new Map(known.filter((flag) => !flag.startsWith('\\')).map((flag) => [flag.toLowerCase(), flag]))
  return flags.map((flag) => keywords.get(flag.toLowerCase()) ?? flag).sort()
}
