/**
 * Back-fill: what lay in a folder before it was first opened, newest first, in bounded batches. Resumable: the cursor's
 * `backfillBelow` says how far it came. Each batch is one task of the command connection at the lowest priority, so that API
 * calls and live mail go first.
 */
import type { FolderCursor } from '../store/records.ts'
import { readUids } from './read.ts'
import type { Session } from './session-types.ts'
import type { AccountState, SyncDeps } from './state.ts'
import { cursorOf, quarantine, storeRead, type SyncContext } from './write.ts'

/** Runs work on a session that has the folder selected. `heard`: a message has come. */
export type OnFolder = <T>(path: string, work: (session: Session, heard: () => void) => Promise<T>) => Promise<T>

export interface BackfillJob {
  readonly deps: SyncDeps
  readonly state: AccountState
  readonly onFolder: OnFolder
  /** Between two batches. */
  readonly pause: (signal: AbortSignal) => Promise<void>
}

/** UIDs still to read, newest first. */
export async function remainingUids(session: Session, cursor: FolderCursor): Promise<number[]> {
  if (cursor.backfillBelow <= 1) return []
  const uids = await session.searchUids(`1:${cursor.backfillBelow - 1}`)
  return uids.filter((uid) => uid < cursor.backfillBelow).sort((a, b) => b - a)
}

export async function backfillFolder(job: BackfillJob, folderId: string, signal: AbortSignal): Promise<void> {
  const { deps, state } = job
  const path = state.folders.get(folderId)?.path
  if (path === undefined || cursorOf(state, folderId).backfillBelow <= 1) return
  const { uidValidity } = cursorOf(state, folderId)
  // UIDs of before a UIDVALIDITY change mean nothing after it: the folder's turn comes again.
  const isOver = (): boolean => signal.aborted || cursorOf(state, folderId).uidValidity !== uidValidity
  const uids = await job.onFolder(path, (session) => remainingUids(session, cursorOf(state, folderId)))
  for (let start = 0; start < uids.length && !isOver(); start += deps.config.MAILROOM_SYNC_BATCH) {
    const page = uids.slice(start, start + deps.config.MAILROOM_SYNC_BATCH)
    await job.onFolder(path, async (session, heard) => {
      if (!isOver()) await backfillPage({ deps, state, session, heard }, folderId, page)
    })
    await job.pause(signal)
  }
  if (!isOver()) await finish(state, folderId)
}

/** The newest page of a folder of which nothing was read yet; what it has from then on is enough to show. */
export async function backfillFirst(context: SyncContext, folderId: string): Promise<void> {
  const { deps, state, session } = context
  const cursor = cursorOf(state, folderId)
  if (cursor.backfillBelow <= 1 || cursor.backfillBelow !== cursor.uidNext) return
  const uids = await remainingUids(session, cursor)
  await backfillPage(context, folderId, uids.slice(0, deps.config.MAILROOM_SYNC_BATCH))
}

/** One batch. */
export async function backfillPage(
  context: SyncContext & { readonly heard?: () => void },
  folderId: string,
  page: readonly number[],
): Promise<void> {
  if (page.length === 0) return
  const { messages, poison } = await readUids(context.session, page, context.heard)
  const lowest = Math.min(...page)
  await storeRead(context, folderId, {
    messages,
    source: 'backfill',
    only: 'all',
    move: (cursor) => ({
      ...cursor,
      backfillBelow: Math.min(cursor.backfillBelow, lowest),
      quarantined: quarantine(cursor.quarantined, poison),
    }),
  })
}

async function finish(state: AccountState, folderId: string): Promise<void> {
  await state.commit(folderId, () => {
    const cursor = { ...cursorOf(state, folderId), backfillBelow: 0 }
    delete cursor.remapSince
    return { cursor }
  })
}

/** The next folder to back-fill: INBOX first, then Sent, then the others as listed. */
export function nextToBackfill(state: AccountState, now: number): string | null {
  const open = [...state.folders.values()].filter(
    (folder) =>
      folder.selectable &&
      (folder.parkedUntil ?? 0) <= now &&
      folder.cursor !== null &&
      folder.cursor.backfillBelow > 1,
  )
  const rank = (path: string, use: string | null) => (path === 'INBOX' ? 0 : use === '\\Sent' ? 1 : 2)
  return open.sort((a, b) => rank(a.path, a.specialUse) - rank(b.path, b.specialUse))[0]?.id ?? null
}

/** Every selectable folder has been opened and read to its end (parked ones do not hold this up). */
export function isComplete(state: AccountState, now: number): boolean {
  return [...state.folders.values()].every(
    (folder) =>
      !folder.selectable ||
      (folder.parkedUntil ?? 0) > now ||
      (folder.cursor !== null && folder.cursor.backfillBelow <= 1),
  )
}
