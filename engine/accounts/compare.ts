/**
 * Comparing the index with the server: flags, and UIDs. Omission is not deletion: a UID that a SEARCH leaves out is
 * asked for once more before it counts as gone.
 *
 * And the counts of a folder, carried on by what a batch brings. The server tells them too, now and then (LIST-STATUS,
 * STATUS): what it had counted by then is not counted once more when the folder itself is read.
 */
import type { FlagUpdate, KnownUid } from '../store/port.ts'
import type { FolderCursor, FolderRecord } from '../store/records.ts'
import { isAwaited, withNotes, withoutNotes } from './generations.ts'
import { planFlags } from './plan.ts'
import { readUids } from './read.ts'
import type { FetchedMessage, FlagsOf, MailboxStatus } from './session-types.ts'
import { toSet } from './session/sets.ts'
import type { BatchParts } from './state.ts'
import { batchesOf, cursorOf, knownAt, moveCursor, quarantine, rowsById, storeRead, type SyncContext } from './write.ts'

const newestWindow = 500
const window = 1000

interface Seen {
  readonly flags: readonly FlagsOf[]
  readonly isUnsure: (known: KnownUid) => boolean
}

async function askFlags(
  { session, state }: SyncContext,
  folderId: string,
  range: string,
  since?: string,
): Promise<Seen & { readonly more: boolean }> {
  const { own } = state
  const asked = own.mark()
  const isUnsure = ({ uid }: KnownUid): boolean =>
    own.isLeaving(folderId, uid) || own.isWrittenSince(folderId, uid, asked)
  let more = false
  const onMore = since === undefined ? undefined : () => void (more = true)
  const flags = await session.fetchFlags(range, since, onMore)
  return { isUnsure, flags, more }
}

/** Each own write makes at most one answer of the server unsure. */
const unsureMost = 5

/** Asks again while something is left out as unsure; false when it is to the end. */
async function untilSure(ask: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < unsureMost; tries += 1) if (await ask()) return true
  return false
}

/**
 * CONDSTORE: what changed since the cursor's modseq, which then becomes `highest` or the highest seen. What is unsure
 * is asked for again, at the latest by the next look: the cursor does not pass it.
 */
export async function flagsSince(context: SyncContext, folderId: string, highest: string | null): Promise<void> {
  await untilSure(() => passFlags(context, folderId, highest))
}

async function passFlags(context: SyncContext, folderId: string, highest: string | null): Promise<boolean> {
  const cursor = cursorOf(context.state, folderId)
  const seen = await askFlags(context, folderId, '1:*', cursor.highestModseq)
  const modseqs = [
    cursor.highestModseq,
    ...(highest === null ? [] : [highest]),
    ...seen.flags.map((one) => one.modseq ?? '0'),
  ]
  const next = modseqs.reduce((max, one) => (BigInt(one) > BigInt(max) ? one : max))
  let sure = !seen.more || (await compareFlags(context, folderId, 'all'))
  for (let start = 0; !seen.more && start < seen.flags.length; start += window) {
    sure = (await storeFlags(context, folderId, { ...seen, flags: seen.flags.slice(start, start + window) })) && sure
  }
  if (!sure) return false
  if (next !== cursor.highestModseq) {
    await moveCursor(context, folderId, (newest) => ({ ...newest, highestModseq: next }))
  }
  return true
}

/** All in windows, or the newest window alone. false = something was unsure: it has to be compared once more. */
export async function compareFlags(context: SyncContext, folderId: string, which: 'newest' | 'all'): Promise<boolean> {
  const cursor = cursorOf(context.state, folderId)
  const lowest = Math.max(1, cursor.backfillBelow)
  let sure = true
  for (let to = cursor.uidNext - 1; to >= lowest; to -= newestWindow) {
    const range = `${Math.max(lowest, to - newestWindow + 1)}:${to}`
    const compare = async () => storeFlags(context, folderId, await askFlags(context, folderId, range))
    sure = (await untilSure(compare)) && sure
    if (which === 'newest') break
  }
  return sure
}

async function storeFlags(context: SyncContext, folderId: string, seen: Seen): Promise<boolean> {
  if (seen.flags.length === 0) return true
  let sure = true
  const { state, deps } = context
  await state.commit(folderId, async (folder) => {
    const cursor = cursorOf(state, folderId)
    const { unsure, parts } = await flagParts(context, folder, cursor, seen, state.toldCounts.get(folderId))
    sure = !unsure
    return parts && { cursor: { ...cursor, syncedAt: deps.now() }, ...parts }
  })
  return sure
}

/** null parts = nothing to store. `told` = counts of the folder that have these changes in them already. */
export async function flagParts(
  context: SyncContext,
  folder: FolderRecord,
  cursor: FolderCursor,
  { flags, isUnsure }: Seen,
  told: MailboxStatus | undefined,
): Promise<{ readonly unsure: boolean; readonly parts: Omit<BatchParts, 'cursor'> | null }> {
  const uids = flags.map((one) => one.uid)
  const known = await knownAt(context, folder.id, uids)
  const changed = flags.flatMap((one) => known.get(one.uid)?.messageId ?? [])
  const rows = await rowsById(context, changed.length > window ? [] : changed)
  const plan = { account: context.state.account, folder, uidValidity: cursor.uidValidity, now: context.deps.now() }
  const { updates, changes, unsure } = planFlags(plan, flags, known, rows, isUnsure)
  if (updates.length === 0) return { unsure, parts: null }
  const unseen = Math.max(0, folder.unseen + unseenTurned(told, cursor, updates, known))
  return { unsure, parts: { flagUpdates: updates, changes, counts: { messages: folder.messages, unseen } } }
}

/**
 * Compares UIDs in the range that the index claims to know. `exists`: the server's count, for the cursor. Answers how
 * many vanished that we do not take away ourselves.
 */
export async function compareUids(context: SyncContext, folderId: string, exists: number): Promise<number> {
  const { session, state, deps } = context
  const cursor = cursorOf(state, folderId)
  const from = Math.max(1, cursor.backfillBelow)
  const present = new Set(await session.searchUids(`${from}:*`))
  const known = await knownAt(context, folderId, [from, cursor.uidNext - 1])
  const vanished = await confirmGone(
    context,
    [...known.keys()].filter((uid) => !present.has(uid)),
  )
  const quarantined = new Set(cursor.quarantined)
  const isUnknown = (uid: number) => uid >= from && uid < cursor.uidNext && !known.has(uid) && !quarantined.has(uid)
  const unknown = [...present].filter(isUnknown)
  await takeOut(context, folderId, vanished, known, exists)
  await readUnknown(context, folderId, cursor.uidValidity, unknown)
  deps.log.debug({ folder: folderId, vanished: vanished.length, missing: unknown.length }, 'compared')
  return vanished.filter((uid) => !state.own.isLeaving(folderId, uid)).length
}

/** Gone is what a second SEARCH and a FETCH leave out too. */
async function confirmGone({ session }: SyncContext, suspects: readonly number[]): Promise<number[]> {
  if (suspects.length === 0) return []
  await session.noop()
  const found = new Set(await session.searchUids(toSet(suspects)))
  const still = suspects.filter((uid) => !found.has(uid))
  if (still.length === 0) return []
  const fetched = new Set((await session.fetchFlags(toSet(still))).map((one) => one.uid))
  return still.filter((uid) => !fetched.has(uid))
}

async function takeOut(
  context: SyncContext,
  folderId: string,
  vanished: readonly number[],
  known: ReadonlyMap<number, KnownUid>,
  exists: number,
): Promise<void> {
  const { state, deps } = context
  const batch = deps.config.MAILROOM_SYNC_BATCH
  for (let start = 0; start === 0 || start < vanished.length; start += batch) {
    const page = vanished.slice(start, start + batch)
    await state.commit(folderId, (folder) => {
      // The first page takes all of them off the counts: of the next it looks as if they were off already.
      const gone = start === 0 ? unseenGone(folder, exists, vanished, known) : 0
      return {
        cursor: { ...cursorOf(state, folderId), exists, syncedAt: deps.now() },
        vanished: page,
        counts: { messages: exists, unseen: Math.max(0, folder.unseen - gone) },
      }
    })
  }
}

/** UIDs below the cursor that the index lacks: what a server left out earlier, or gave again (generations.ts). */
async function readUnknown(
  context: SyncContext,
  folderId: string,
  uidValidity: string,
  uids: readonly number[],
): Promise<void> {
  const { state, deps } = context
  for (const page of batchesOf(deps, uids)) {
    await state.commit(folderId, async () => {
      const cursor = cursorOf(state, folderId)
      const known = await knownAt(context, folderId, page)
      const fresh = page.filter((uid) => !known.has(uid) && !isAwaited(cursor, uid))
      if (cursor.uidValidity !== uidValidity || fresh.length === 0) return null
      const generation = deps.now()
      return {
        cursor: withNotes(
          cursor,
          fresh.map((uid) => ({ uid, generation, replaces: false })),
        ),
      }
    })
    await readMissing(context, folderId, page)
  }
}

/** Reads UIDs below the cursor that it awaits. What still cannot be read is quarantined. */
export async function readMissing(context: SyncContext, folderId: string, uids: readonly number[]): Promise<void> {
  const ascending = [...uids].sort((a, b) => a - b)
  for (const page of batchesOf(context.deps, ascending)) {
    const { messages, poison } = await readUids(context.session, page)
    const asked = new Set(page)
    await storeRead(context, folderId, {
      messages,
      source: 'live',
      only: 'awaited',
      move: (cursor) => ({
        ...withoutNotes(cursor, asked.difference(new Set(poison))),
        quarantined: quarantine(
          cursor.quarantined.filter((uid) => !asked.has(uid)),
          poison,
        ),
      }),
    })
  }
}

/** The last counts that were taken over from the server; undefined = none. */
type ServerCounts = MailboxStatus | undefined

function isSameNumbering(told: ServerCounts, { uidValidity }: FolderCursor): told is MailboxStatus {
  return told !== undefined && (told.uidValidity === null || told.uidValidity === uidValidity)
}

/** Unseen messages among these that are new to the counts. */
export function unseenArrived(
  told: ServerCounts,
  cursor: FolderCursor,
  messages: readonly Pick<FetchedMessage, 'uid' | 'flags'>[],
): number {
  const counted = isSameNumbering(told, cursor) ? (told.uidNext ?? 0) : 0
  return messages.filter(({ uid, flags }) => uid >= counted && flags?.includes('\\Seen') === false).length
}

/** By how many the unseen ones are more after these changes of flags. */
function unseenTurned(
  told: ServerCounts,
  cursor: FolderCursor,
  updates: readonly FlagUpdate[],
  known: ReadonlyMap<number, KnownUid>,
): number {
  const counted = BigInt((isSameNumbering(told, cursor) ? told.highestModseq : null) ?? '0')
  const turned = updates.filter(
    ({ uid, flags, modseq }) =>
      flags.includes('\\Seen') !== known.get(uid)?.flags.includes('\\Seen') &&
      (modseq === '0' || BigInt(modseq) > counted),
  )
  return turned.reduce((sum, { flags }) => sum + (flags.includes('\\Seen') ? -1 : 1), 0)
}

/** Unseen ones among these that are still in the counts. `messages` = how many the folder has without them. */
function unseenGone(
  folder: FolderRecord,
  messages: number,
  uids: readonly number[],
  known: ReadonlyMap<number, KnownUid>,
): number {
  if (folder.messages === messages) return 0
  return uids.filter((uid) => known.get(uid)?.flags.includes('\\Seen') === false).length
}
