/**
 * Catching up with one folder: what is new, what changed, what vanished. INBOX's watcher calls `readNew` at every push; other
 * folders are caught up on the command connection when their counts move.
 *
 * New mail is everything at or above the cursor's UIDNEXT. CONDSTORE tells flag changes since the cursor's modseq; without it
 * flags are compared in windows. A count that does not add up leads to a comparison of UIDs, which heals whatever was missed.
 */
import { AppError } from '../errors.ts'
import type { FolderCursor, FolderRecord } from '../store/records.ts'
import { compareFlags, compareUids, flagsSince } from './compare.ts'
import { readRange, readUids } from './read.ts'
import type { FetchedMessage, SelectedMailbox, Session } from './session-types.ts'
import type { AccountState } from './state.ts'
import { cursorOf, quarantine, storeRead, type SyncContext } from './write.ts'

const dayMs = 86_400_000
/** How far back an unknown message may have arrived and still count as new after a UIDVALIDITY change. */
const remapSlackMs = 10 * 60_000
const forgetStep = 500

/** Selects the folder and brings the index up to date with it; back-fill is another matter (backfill.ts). */
export async function catchUp(context: SyncContext, path: string): Promise<void> {
  const selected = await context.session.select(path, { refresh: true })
  const folder = await openCursor(context, requireFolder(context.state, path), selected)
  await readNew(context, folder.id)
  await syncFlags(context, folder.id, selected)
  await compareIfDue(context, folder.id, selected)
}

function requireFolder(state: AccountState, path: string): FolderRecord {
  const folder = state.folderByPath(path)
  if (folder === null) throw new AppError('not_found', `folder ${path} is invalid`)
  return folder
}

/** Makes the cursor at the first opening; on a UIDVALIDITY change starts the folder anew, matched by identity. */
async function openCursor(
  context: SyncContext,
  folder: FolderRecord,
  selected: SelectedMailbox,
): Promise<FolderRecord> {
  const { state, session } = context
  const known = folder.cursor
  if (known !== null && (selected.uidValidity === null || selected.uidValidity === known.uidValidity)) return folder
  const uidNext = selected.uidNext ?? (await highestUid(session)) + 1
  const fresh: FolderCursor = {
    uidValidity: selected.uidValidity ?? '0',
    uidNext,
    backfillBelow: selected.exists > 0 ? uidNext : 0,
    highestModseq: selected.highestModseq ?? '0',
    exists: selected.exists,
    comparedAt: context.deps.now(),
    syncedAt: context.deps.now(),
    quarantined: [],
    ...(known === null ? {} : remap(context, folder, known)),
  }
  if (known !== null) await forget(context, folder, fresh.uidValidity)
  await state.commit(folder.id, () => ({ cursor: fresh, counts: { messages: selected.exists, unseen: folder.unseen } }))
  return requireFolder(state, folder.path)
}

/** Rows 7 and 8 of imap-servers.md: the server says no UIDNEXT at all. */
async function highestUid(session: Session): Promise<number> {
  return Math.max(0, ...(await session.searchUids('*')))
}

/** One reset, told in the log; more than the allowed number a day slows the folder down. */
function remap(
  context: SyncContext,
  folder: FolderRecord,
  known: FolderCursor,
): Pick<FolderCursor, 'remapSince' | 'resets'> {
  const now = context.deps.now()
  const resets = [...(known.resets ?? []).filter((at) => at > now - dayMs), now]
  const { log, config } = context.deps
  log.warn(
    { accountId: context.state.account.id, folder: folder.path, resets: resets.length },
    'uidvalidity changed: folder is read anew',
  )
  if (resets.length > config.MAILROOM_UIDVALIDITY_CHANGES) {
    throw new AppError(
      'protocol',
      `${folder.path}: the server changed UIDVALIDITY ${resets.length} times within a day`,
      {
        details: { folder: folder.path, slowDown: true },
      },
    )
  }
  const complete = known.backfillBelow <= 1
  return { resets, remapSince: (known.syncedAt ?? known.comparedAt) - (complete ? dayMs : remapSlackMs) }
}

async function forget(context: SyncContext, folder: FolderRecord, uidValidity: string): Promise<void> {
  const { state, deps } = context
  let left = 1
  while (left > 0) {
    left = await state.exclusive(() =>
      deps.store.sync.forgetPlacements(state.account.id, state.account.epoch, folder.id, uidValidity, forgetStep),
    )
  }
}

/**
 * Reads everything at or above the cursor. A short gap is fetched at once, a long one listed first and read page by page.
 * Answers how many messages were new.
 */
export async function readNew(context: SyncContext, folderId: string): Promise<number> {
  const { session, state, deps } = context
  const cursor = cursorOf(state, folderId)
  const ahead = (session.selected?.uidNext ?? cursor.uidNext) - cursor.uidNext
  if (ahead > deps.config.MAILROOM_SYNC_BATCH) return readListed(context, folderId, cursor.uidNext)
  const found = new Map<number, FetchedMessage>()
  await readRange(session, `${cursor.uidNext}:*`, found)
  const fresh = [...found.values()].filter((message) => message.uid >= cursor.uidNext).sort((a, b) => a.uid - b.uid)
  const highest = fresh.at(-1)?.uid ?? cursor.uidNext - 1
  const contiguous = highest - cursor.uidNext + 1 === fresh.length
  const expected = session.selected === null || session.selected.exists - cursor.exists <= fresh.length
  if (!contiguous || !expected) return readListed(context, folderId, cursor.uidNext, found)
  if (fresh.length > 0) await storeRead(context, folderId, fresh, 'live', advance(highest, fresh.length))
  return fresh.length
}

/** Lists the UIDs first; what the direct fetch brought already is not read again. */
async function readListed(
  context: SyncContext,
  folderId: string,
  from: number,
  found: ReadonlyMap<number, FetchedMessage> = new Map(),
): Promise<number> {
  const { session, deps } = context
  const uids = (await session.searchUids(`${from}:*`)).filter((uid) => uid >= from).sort((a, b) => a - b)
  for (let start = 0; start < uids.length; start += deps.config.MAILROOM_SYNC_BATCH) {
    const page = uids.slice(start, start + deps.config.MAILROOM_SYNC_BATCH)
    const { messages, poison } = await readUids(
      session,
      page.filter((uid) => !found.has(uid)),
    )
    const all = [...messages, ...page.flatMap((uid) => found.get(uid) ?? [])].sort((a, b) => a.uid - b.uid)
    const last = page.at(-1) ?? from
    const move = advance(last, page.length)
    await storeRead(context, folderId, all, 'live', (cursor) => ({
      ...move(cursor),
      quarantined: quarantine(cursor, poison),
    }))
  }
  return uids.length
}

function advance(highest: number, count: number): (cursor: FolderCursor) => FolderCursor {
  return (cursor) => ({ ...cursor, uidNext: Math.max(cursor.uidNext, highest + 1), exists: cursor.exists + count })
}

/** Flags that changed since the cursor: by modseq, else by comparing the newest window. */
export async function syncFlags(
  context: SyncContext,
  folderId: string,
  selected: SelectedMailbox | null,
): Promise<void> {
  const cursor = cursorOf(context.state, folderId)
  if (context.session.capabilities.condstore && cursor.highestModseq !== '0') {
    if (selected !== null && selected.highestModseq === cursor.highestModseq) return
    await flagsSince(context, folderId, selected?.highestModseq ?? null)
    return
  }
  await compareFlags(context, folderId, 'newest')
}

/** Compares UIDs when the counts do not add up or UIDNEXT ran backwards; flags in full where CONDSTORE is missing. */
export async function compareIfDue(
  context: SyncContext,
  folderId: string,
  selected: SelectedMailbox | null,
): Promise<void> {
  const { deps, state, session } = context
  const cursor = cursorOf(state, folderId)
  const exists = session.selected?.exists ?? selected?.exists ?? cursor.exists
  const backwards = selected !== null && selected.uidNext !== null && selected.uidNext < cursor.uidNext
  const due = deps.now() - cursor.comparedAt > deps.config.MAILROOM_FLAG_COMPARE
  if (exists !== cursor.exists || backwards) await compareUids(context, folderId, exists)
  if (!due) return
  if (!session.capabilities.condstore) await compareFlags(context, folderId, 'all')
  await state.commit(folderId, () => ({ cursor: { ...cursorOf(state, folderId), comparedAt: deps.now() } }))
}
