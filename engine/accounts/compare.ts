/**
 * Compares the index with the server: flags, and UIDs. Omission is not deletion: a UID that a SEARCH leaves out is
 * asked for again before its message counts as gone.
 */
import type { KnownUid } from '../store/port.ts'
import type { FolderCursor, FolderRecord } from '../store/records.ts'
import { sameCursor } from '../store/rows.ts'
import { isLikeMail } from './identity.ts'
import { planFlags, readMessage } from './plan.ts'
import { readUids } from './read.ts'
import type { FetchedMessage, FlagsOf } from './session-types.ts'
import { yieldToLoop } from '../scheduling.ts'
import { toSet } from './session/uids.ts'
import type { BatchParts } from './state.ts'
import {
  batchesOf,
  commit,
  cursorOf,
  knownAt,
  moveCursor,
  quarantine,
  rowsById,
  storeRead,
  type FolderContext,
} from './write.ts'

const newestWindow = 500
const window = 1000

/** CONDSTORE: stores flags that changed since the cursor's modseq, which then becomes `highest` or the highest seen. */
export async function flagsSince(context: FolderContext, highest: string | null): Promise<void> {
  const before = cursorOf(context).highestModseq
  const { seen, isWhole } = await takeFlags(context, '1:*', before)
  if (!isWhole) await compareFlags(context, 'all')
  const modseqs = [before, ...(highest === null ? [] : [highest]), ...seen.map((one) => one.modseq ?? '0')]
  const next = modseqs.reduce((max, one) => (BigInt(one) > BigInt(max) ? one : max))
  if (next !== before) await moveCursor(context, (newest) => ({ ...newest, highestModseq: next }))
}

/** Compares the flags of the newest window, or of all windows. */
export async function compareFlags(context: FolderContext, which: 'newest' | 'all'): Promise<void> {
  const cursor = cursorOf(context)
  const lowest = Math.max(1, cursor.backfillBelow)
  for (let to = cursor.uidNext - 1; to >= lowest; to -= newestWindow) {
    await takeFlags(context, `${Math.max(lowest, to - newestWindow + 1)}:${to}`)
    context.state.heard()
    if (which === 'newest') break
    await context.giveWay?.()
  }
}

export async function compareFlagsOf(context: FolderContext, uids: readonly number[]): Promise<void> {
  if (uids.length > 0) await takeFlags(context, toSet(uids))
}

/** Fetches flags and stores the changed ones; none when the answer is cut at the bound of memory (isWhole = false). */
function takeFlags(context: FolderContext, range: string, since?: string) {
  return context.state.flagsTurn(async () => {
    let isWhole = true as boolean
    const onMore = since === undefined ? undefined : () => void (isWhole = false)
    const seen = await context.session.fetchFlags(range, since, onMore)
    for (let start = 0; isWhole && start < seen.length; start += window)
      await storeFlags(context, seen.slice(start, start + window))
    return { seen, isWhole }
  })
}

function storeFlags(context: FolderContext, flags: readonly FlagsOf[]): Promise<void> {
  return commit(context, async (cursor, folder) => {
    const parts = await flagParts(context, folder, flags)
    return parts && { cursor: { ...cursor, syncedAt: context.deps.now() }, ...parts }
  })
}

/** The hint of a command of ours that takes the message away. */
function takenByUs({ state, folderId }: Pick<FolderContext, 'state' | 'folderId'>, uid: number) {
  const { uidValidity } = cursorOf({ state, folderId })
  return state.hints.departures.get({ folderId, uidValidity, uid })
}

/** Whether a command of ours takes the message away, and the folders that the command touched are not read yet. */
function isLeaving(context: FolderContext, uid: number): boolean {
  const hint = takenByUs(context, uid)
  return hint !== undefined && !context.state.moved.isSettled(hint.mark)
}

/** Whether others took a message away. Messages that we took are few, so the answer is found early. */
function hasForeign(context: FolderContext, vanished: readonly KnownUid[]): boolean {
  return vanished.some(({ uid }) => takenByUs(context, uid) === undefined)
}

/** null = nothing to store. */
async function flagParts(
  context: FolderContext,
  folder: FolderRecord,
  seen: readonly FlagsOf[],
): Promise<Omit<BatchParts, 'cursor'> | null> {
  const { uidValidity } = cursorOf(context)
  // A session may still show a message that we have taken away, as \Deleted.
  const flags = seen.filter(({ uid }) => !isLeaving(context, uid))
  if (flags.length === 0) return null
  const uids = flags.map(({ uid }) => uid)
  const known = await knownAt(context, uids)
  const changed = uids.flatMap((uid) => known.get(uid)?.messageId ?? [])
  const rows = await rowsById(context, changed.length > window ? [] : changed)
  const plan = { account: context.state.account, folder, uidValidity, now: context.deps.now() }
  const { updates, changes } = planFlags(plan, flags, known, rows)
  return updates.length === 0 ? null : { flagUpdates: updates, changes }
}

/**
 * Compares UIDs in the range that the index claims to know. `exists`: the server's count. Returns whether a message
 * vanished that no command of ours took away.
 */
export async function compareUids(context: FolderContext, exists: number): Promise<boolean> {
  const { session, deps, folderId } = context
  const before = cursorOf(context)
  const { vanished, unknown, unread } = await differences(context, before, exists)
  await takeOut(context, vanished, { before, exists: exists - unread })
  // Our own EXPUNGE may have removed them since; NOOP shows that to this connection.
  if (unknown.length > 0) await session.noop()
  await readAgain(context, unknown)
  deps.log.debug({ folder: folderId, vanished: vanished.length, missing: unknown.length }, 'compared')
  return hasForeign(context, vanished)
}

/**
 * Removes the messages that the server has reported as VANISHED (QRESYNC), where a SEARCH agrees: the counts then add
 * up without a comparison of UIDs. Returns whether a message vanished that no command of ours took away.
 */
export async function takeVanished(context: FolderContext): Promise<boolean> {
  const named = context.session.takeVanished()
  if (named.length === 0) return false
  const before = cursorOf(context)
  const known = await knownAt(context, named)
  const suspects = named.filter((uid) => known.has(uid))
  const vanished = (await confirmGone(context, suspects)).flatMap((uid) => known.get(uid) ?? [])
  if (vanished.length === 0) return false
  await takeOut(context, vanished, { before, exists: before.exists - vanished.length })
  return hasForeign(context, vanished)
}

/** The differences between index and server, in the range that the index claims to know. */
interface Differences {
  /** In the index alone. */
  readonly vanished: readonly KnownUid[]
  /** On the server alone. */
  readonly unknown: readonly number[]
  /** Messages above the cursor that `exists` counts: the cursor counts them when they are read. */
  readonly unread: number
}

/** UIDs that are compared in one turn of the event loop. */
const step = 5000

/** The width of a range of UIDs with about `step` of these messages. */
const widthOf = (from: number, below: number, messages: number): number =>
  Math.ceil((below - from) / Math.ceil(Math.max(1, messages) / step))

async function differences(context: FolderContext, cursor: FolderCursor, exists: number): Promise<Differences> {
  const from = Math.max(1, cursor.backfillBelow)
  const present = await context.session.searchUids(`${from}:*`)
  const quarantined = new Set(cursor.quarantined)
  const vanished: KnownUid[] = []
  const unknown: number[] = []
  const width = widthOf(from, cursor.uidNext, Math.max(present.length, cursor.exists))
  let at = 0
  for (let low = from; low < cursor.uidNext;) {
    await yieldToLoop()
    const end = Math.min(low + width, cursor.uidNext, present[at + step] ?? Infinity)
    const suspects = await knownAt(context, { from: low, to: end - 1 })
    for (let uid = present[at]; uid !== undefined && uid < end; uid = present[(at += 1)])
      if (!suspects.delete(uid) && !quarantined.has(uid)) unknown.push(uid)
    const gone = new Set(await confirmGone(context, [...suspects.keys()]))
    vanished.push(...suspects.values().filter(({ uid }) => gone.has(uid)))
    await context.giveWay?.()
    low = end
  }
  const above = present.length - at
  // Before the end of the backfill the number of messages below the cursor is not known.
  const below = from > 1 ? exists : at
  return { vanished, unknown, unread: Math.min(Math.max(0, exists - below), above) }
}

/** Returns the UIDs that a second SEARCH and a FETCH leave out too. */
async function confirmGone({ session }: FolderContext, suspects: readonly number[]): Promise<number[]> {
  if (suspects.length === 0) return []
  await session.noop()
  const found = new Set(await session.searchUids(toSet(suspects)))
  const still = suspects.filter((uid) => !found.has(uid))
  if (still.length === 0) return []
  const fetched = new Set((await session.fetchFlags(toSet(still))).map((one) => one.uid))
  return still.filter((uid) => !fetched.has(uid))
}

/** The server's count of messages, and the cursor when it was read. */
interface Counted {
  readonly before: FolderCursor
  readonly exists: number
}

/**
 * Removes messages from the folder, and stores the count. A count that is not stored leads to another comparison: after
 * a crash between two pages, and when a call had the folder read meanwhile, which makes the count an old one.
 */
async function takeOut(
  context: FolderContext,
  vanished: readonly KnownUid[],
  { before, exists }: Counted,
): Promise<void> {
  const { deps } = context
  const pages = vanished.length === 0 ? [[]] : [...batchesOf(deps, vanished)]
  for (const page of pages) {
    await commit(context, (cursor) => {
      const isNew = page === pages.at(-1) && sameCursor(cursor, before)
      const counted = isNew ? { exists, syncedAt: deps.now() } : {}
      return { cursor: { ...cursor, ...counted }, vanished: page.map(({ uid }) => uid) }
    })
    await context.giveWay?.()
  }
}

/**
 * Reads UIDs below the cursor that a server left out earlier, or has given to other mail (identity.ts). They are
 * quarantined before: a reading that a crash has cut short is tried again.
 */
async function readAgain(context: FolderContext, uids: readonly number[]): Promise<void> {
  for (const page of batchesOf(context.deps, uids)) {
    await moveCursor(context, (cursor) => ({
      ...cursor,
      quarantined: [...new Set([...cursor.quarantined, ...page])],
      retriedAt: 0,
      generation: Math.max(context.deps.now(), (cursor.generation ?? 0) + 1),
    }))
    await readMissing(context, page)
  }
}

/** Reads quarantined UIDs; the poison stays quarantined. */
export async function readMissing(context: FolderContext, uids: readonly number[]): Promise<void> {
  const ascending = [...uids].sort((a, b) => a - b)
  for (const page of batchesOf(context.deps, ascending)) {
    await takeFormer(context, page)
    const { messages, poison } = await readUids(context.session, page)
    const asked = new Set(page)
    await storeRead(context, {
      messages,
      source: 'live',
      move: (cursor) => ({
        ...cursor,
        ...quarantine(cursor, poison, asked),
      }),
    })
    await context.giveWay?.()
  }
}

/** Takes out the placements at UIDs that are to be read again; those of the folder's generation were read since. */
async function takeFormer(context: FolderContext, uids: readonly number[]): Promise<void> {
  const { generation = 0 } = cursorOf(context)
  const former = (await knownAt(context, uids)).values().filter((one) => (one.generation ?? 0) !== generation)
  const vanished = Array.from(former, ({ uid }) => uid)
  if (vanished.length > 0) await commit(context, (cursor) => ({ cursor, vanished }))
}

/**
 * Finds UIDs that hold another message than in the index, under the same UIDVALIDITY (RFC 3501 §2.3.1.1 forbids it):
 * after a mailbox was restored from a backup, and on a server without a memory. The former message is reported as gone,
 * the new one as new. A difference at the newest known UID leads to a search among the UIDs before it. `newest`: a
 * message below the cursor's UIDNEXT, as the server has it now.
 */
export async function checkReuse(context: FolderContext, newest: FetchedMessage): Promise<void> {
  const { session, state, deps, folderId } = context
  const cursor = cursorOf(context)
  const isUnread = newest.uid < cursor.backfillBelow || cursor.quarantined.includes(newest.uid)
  const there = await knownAt(context, [newest.uid])
  // The former message left the folder before it was read.
  if (there.size === 0) return isUnread ? undefined : readAgain(context, [newest.uid])
  if ((await replacedBy(context, [newest], there)).length === 0) return
  deps.log.warn({ accountId: state.account.id, folder: folderId, uid: newest.uid }, 'uid given again by the server')
  const from = Math.max(1, cursor.backfillBelow)
  const width = widthOf(from, newest.uid + 1, cursor.exists)
  for (let end = newest.uid; end >= from; end -= width) {
    const known = await knownAt(context, { from: Math.max(from, end - width + 1), to: end })
    for (const page of batchesOf(deps, [...known.keys()].reverse())) {
      const { messages } = await readUids(session, page)
      const replaced = await replacedBy(context, messages, known)
      if (replaced.length === 0) return
      await readAgain(context, replaced)
    }
  }
}

/** The UIDs that hold other mail than in the index. */
async function replacedBy(
  context: FolderContext,
  messages: readonly FetchedMessage[],
  known: ReadonlyMap<number, KnownUid>,
): Promise<number[]> {
  const { session, state } = context
  const ids = messages.flatMap(({ uid }) => known.get(uid)?.messageId ?? [])
  const rows = await rowsById(context, ids)
  return messages.flatMap((message) => {
    const there = known.get(message.uid)
    const row = there && rows.get(there.messageId)
    if (row === undefined) return []
    const read = readMessage(state.account, message, session.capabilities.identity)
    return read.id === row.id || isLikeMail(read.facts, row) ? [] : [message.uid]
  })
}
