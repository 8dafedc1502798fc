/**
 * Comparing the index with the server: flags, and UIDs. Omission is not deletion: a UID that a SEARCH leaves out is asked for
 * once more before it counts as gone (imap-servers.md row 11).
 */
import type { KnownUid } from '../store/port.ts'
import type { FolderCursor } from '../store/records.ts'
import { unseenGone, unseenTurned } from './counts.ts'
import { isAwaited, withNotes, withoutNotes } from './generations.ts'
import { planFlags, type SeenFlags } from './plan.ts'
import { readUids } from './read.ts'
import { toSet } from './session/sets.ts'
import { cursorOf, quarantine, rowsById, storeRead, type SyncContext } from './write.ts'

const newestWindow = 500
const window = 1000

/** What the server said of flags, and own.mark() when it was asked. */
interface Seen {
  readonly flags: readonly SeenFlags[]
  readonly asked: number
}

async function askFlags({ session, state }: SyncContext, range: string, since?: string): Promise<Seen> {
  const asked = state.own.mark()
  return { asked, flags: await session.fetchFlags(range, since) }
}

/** Each own write makes at most one answer of the server unsure. */
const unsureMost = 5

/**
 * CONDSTORE: what changed since the cursor's modseq, which then becomes `highest` or the highest seen. What is unsure is asked for
 * again, at the latest by the next look: the cursor does not pass it.
 */
export async function flagsSince(context: SyncContext, folderId: string, highest: string | null): Promise<void> {
  for (let tries = 0; tries < unsureMost; tries += 1) if (await passFlags(context, folderId, highest)) return
}

async function passFlags(context: SyncContext, folderId: string, highest: string | null): Promise<boolean> {
  const cursor = cursorOf(context.state, folderId)
  const seen = await askFlags(context, '1:*', cursor.highestModseq)
  const modseqs = [
    cursor.highestModseq,
    ...(highest === null ? [] : [highest]),
    ...seen.flags.map((one) => one.modseq ?? '0'),
  ]
  const next = modseqs.reduce((max, one) => (BigInt(one) > BigInt(max) ? one : max))
  let sure = true
  for (let start = 0; start < seen.flags.length; start += window) {
    sure = (await storeFlags(context, folderId, { ...seen, flags: seen.flags.slice(start, start + window) })) && sure
  }
  if (!sure) return false
  if (next !== cursor.highestModseq) {
    await context.state.commit(folderId, () => ({
      cursor: { ...cursorOf(context.state, folderId), highestModseq: next },
    }))
  }
  return true
}

/** Without CONDSTORE: fetches flags of the newest messages, or of all in windows, and compares. */
export async function compareFlags(context: SyncContext, folderId: string, which: 'newest' | 'all'): Promise<void> {
  const cursor = cursorOf(context.state, folderId)
  const lowest = Math.max(1, cursor.backfillBelow)
  for (let to = cursor.uidNext - 1; to >= lowest; to -= newestWindow) {
    const from = Math.max(lowest, to - newestWindow + 1)
    await storeFlags(context, folderId, await askFlags(context, `${from}:${to}`))
    if (which === 'newest') return
  }
}

/** false when something was left out as unsure. */
async function storeFlags(context: SyncContext, folderId: string, { flags: seen, asked }: Seen): Promise<boolean> {
  if (seen.length === 0) return true
  let sure = true
  const { state, deps } = context
  const uids = seen.map((one) => one.uid)
  await state.commit(folderId, async (folder) => {
    const cursor = cursorOf(state, folderId)
    const known = await knownWithin(context, folderId, cursor, Math.min(...uids), Math.max(...uids))
    const changed = seen.flatMap((one) => known.get(one.uid)?.messageId ?? [])
    const rows = await rowsById(context, changed)
    const plan = { account: state.account, folder, uidValidity: cursor.uidValidity, own: state.own, now: deps.now() }
    const { updates, changes, unsure } = planFlags(plan, seen, known, rows, asked)
    sure = !unsure
    if (updates.length === 0) return null
    const unseen = folder.unseen + unseenTurned(state.toldCounts.get(folderId), cursor, updates, known)
    const counts = { messages: folder.messages, unseen: Math.max(0, unseen) }
    return { cursor: { ...cursor, syncedAt: deps.now() }, flagUpdates: updates, changes, counts }
  })
  return sure
}

async function knownWithin(
  context: SyncContext,
  folderId: string,
  cursor: FolderCursor,
  from: number,
  to: number,
): Promise<Map<number, KnownUid>> {
  const known = await context.deps.store.messages.knownUids(folderId, cursor.uidValidity, from, to)
  return new Map(known.map((one) => [one.uid, one]))
}

/**
 * Compares UIDs in the range that the index claims to know. What vanished is taken out (and told after the hold), what is
 * missing is read as live mail. `exists` is the server's count that the cursor will hold afterwards. Answers how many vanished
 * that we did not take away ourselves.
 */
export async function compareUids(context: SyncContext, folderId: string, exists: number): Promise<number> {
  const { session, state, deps } = context
  const cursor = cursorOf(state, folderId)
  const from = Math.max(1, cursor.backfillBelow)
  const present = new Set(await session.searchUids(`${from}:*`))
  const known = await knownWithin(context, folderId, cursor, from, cursor.uidNext - 1)
  const absent = Map.groupBy(
    [...known.keys()].filter((uid) => !present.has(uid)),
    (uid) => (state.own.isDeparture(folderId, uid) ? 'ours' : 'suspect'),
  )
  const vanished = await confirmGone(context, absent.get('suspect') ?? [])
  const quarantined = new Set(cursor.quarantined)
  const isUnknown = (uid: number) => uid >= from && uid < cursor.uidNext && !known.has(uid) && !quarantined.has(uid)
  const unknown = [...present].filter(isUnknown)
  await takeOut(context, folderId, { vanished, leaving: absent.get('ours') ?? [], known, exists })
  await readUnknown(context, folderId, cursor.uidValidity, unknown)
  deps.log.debug({ folder: folderId, vanished: vanished.length, missing: unknown.length }, 'compared')
  return vanished.length
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

interface Absent {
  readonly vanished: readonly number[]
  /** Taken away by ourselves: the write that is under way takes them out, and off the counts. */
  readonly leaving: readonly number[]
  readonly known: ReadonlyMap<number, KnownUid>
  readonly exists: number
}

async function takeOut(
  context: SyncContext,
  folderId: string,
  { vanished, leaving, known, exists }: Absent,
): Promise<void> {
  const { state, deps } = context
  const batch = deps.config.MAILROOM_SYNC_BATCH
  for (let start = 0; start === 0 || start < vanished.length; start += batch) {
    const page = vanished.slice(start, start + batch)
    await state.commit(folderId, async (folder) => {
      const messages = exists + (await placedStill(context, folderId, leaving))
      // The first page takes all of them off the counts: of the next it looks as if they were off already.
      const gone = start === 0 ? unseenGone(folder, messages, vanished, known) : 0
      return {
        cursor: { ...cursorOf(state, folderId), exists, syncedAt: deps.now() },
        vanished: page,
        counts: { messages, unseen: Math.max(0, folder.unseen - gone) },
      }
    })
  }
}

async function placedStill(context: SyncContext, folderId: string, uids: readonly number[]): Promise<number> {
  if (uids.length === 0) return 0
  const cursor = cursorOf(context.state, folderId)
  const known = await knownWithin(context, folderId, cursor, Math.min(...uids), Math.max(...uids))
  return uids.filter((uid) => known.has(uid)).length
}

/** UIDs below the cursor that the index lacks: what a server left out earlier, or gave again (generations.ts). */
async function readUnknown(
  context: SyncContext,
  folderId: string,
  uidValidity: string,
  uids: readonly number[],
): Promise<void> {
  const { state, deps } = context
  const batch = deps.config.MAILROOM_SYNC_BATCH
  for (let start = 0; start < uids.length; start += batch) {
    const page = uids.slice(start, start + batch)
    await state.commit(folderId, async () => {
      const cursor = cursorOf(state, folderId)
      const known = await knownWithin(context, folderId, cursor, Math.min(...page), Math.max(...page))
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
  const batch = context.deps.config.MAILROOM_SYNC_BATCH
  const ascending = [...uids].sort((a, b) => a - b)
  for (let start = 0; start < ascending.length; start += batch) {
    const page = ascending.slice(start, start + batch)
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
