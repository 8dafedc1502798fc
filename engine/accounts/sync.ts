/**
 * Brings the index up to date with one folder: new messages, changed flags, vanished messages.
 *
 * New mail is everything at or above the cursor's UIDNEXT. CONDSTORE gives flag changes since the cursor's modseq;
 * without CONDSTORE flags are compared in windows. When the counts do not add up, UIDs are compared, which finds
 * every missed change.
 */
import { AppError, notFound } from '../errors.ts'
import type { FolderCursor, FolderRecord } from '../store/records.ts'
import {
  checkReuse,
  compareFlags,
  compareFlagsOf,
  compareUids,
  flagsSince,
  readMissing,
  takeVanished,
} from './compare.ts'
import type { Touched } from './dirty-folders.ts'
import { arrivalSlackMs } from './identity.ts'
import { type Poison, readRange, readUids } from './read.ts'
import type { FetchedMessage, SelectedMailbox } from './session-types.ts'
import type { AccountState, SyncDeps } from './state.ts'
import {
  batchesOf,
  cursorOf,
  type FolderContext,
  type InAccount,
  moveCursor,
  quarantine,
  refusedIn,
  storeRead,
  type SyncContext,
} from './write.ts'
import type { Session } from './session/index.ts'
import { joined } from './session/uids.ts'

export const dayMs = 86_400_000
const forgetStep = 500
/** Distance between two tries of quarantined messages, and the messages of one try. */
const retryMs = 5 * 60_000
const retriedMost = 20
/** Least time between two readings of a folder that changes its UIDVALIDITY too often. */
const slowedMs = 3_600_000

/** Selects the folder and brings the index up to date with it, without backfill (background.ts). */
export async function catchUp(context: SyncContext, path: string, touched: Touched = []): Promise<void> {
  await readOpened(context, await context.session.select(path, { refresh: true }), touched)
}

/** Selects INBOX when another folder is selected, and reads the mail that came to INBOX meanwhile. */
export async function openInbox(context: SyncContext): Promise<void> {
  const { session, state } = context
  if (session.selected?.path === 'INBOX') return
  const selected = await session.select('INBOX')
  const cursor = state.folderByPath('INBOX')?.cursor ?? null
  if (cursor === null || !isAsKnown(selected, cursor)) await readOpened(context, selected)
}

/** Whether SELECT reports what the cursor has. false without modseqs: flags may have changed. */
function isAsKnown({ uidValidity, uidNext, exists, highestModseq }: SelectedMailbox, cursor: FolderCursor): boolean {
  const isSame = uidValidity === cursor.uidValidity && uidNext === cursor.uidNext && exists === cursor.exists
  return isSame && highestModseq !== null && highestModseq === cursor.highestModseq
}

/** Brings the index up to date with the selected folder. */
async function readOpened(context: SyncContext, selected: SelectedMailbox, touched: Touched = []): Promise<void> {
  const { state } = context
  const { path } = selected
  const known = requireFolder(state, path).cursor
  const folder = await openCursor(context, requireFolder(state, path), selected)
  const opened = { ...context, folderId: folder.id }
  // A cursor that was made of this SELECT lacks only messages that the server has announced since.
  const isFresh = known === null && context.session.selected?.exists === selected.exists
  if (!isFresh && !isEmptyAsKnown(selected, folder)) await readNew(opened)
  await syncFlags(opened, selected)
  if (touched === 'all') {
    await readMissing(opened, cursorOf(opened).quarantined)
    await compareFlags(opened, 'all')
  } else if (!hasModseqs(context.session, cursorOf(opened))) await compareFlagsOf(opened, touched)
  // A vanished message may have been moved to a folder that is polled seldom, or whose NOTIFY status came earlier.
  if (await compareIfDue(opened, selected, touched === 'all')) state.askLook()
}

/** An empty folder that was empty before has no message to fetch. */
function isEmptyAsKnown({ exists, uidNext }: SelectedMailbox, { cursor }: FolderRecord): boolean {
  return exists === 0 && cursor?.exists === 0 && uidNext === cursor.uidNext
}

function requireFolder(state: AccountState, path: string): FolderRecord {
  const folder = state.folderByPath(path)
  if (folder === null) throw notFound('folder', path)
  return folder
}

/** Creates the cursor at the first SELECT. When UIDVALIDITY has changed, the folder is read anew, by identity. */
async function openCursor(
  context: SyncContext,
  folder: FolderRecord,
  selected: SelectedMailbox,
): Promise<FolderRecord> {
  const { state, session, deps } = context
  const known = folder.cursor
  if (known !== null && (selected.uidValidity === null || selected.uidValidity === known.uidValidity)) {
    if (known.resets !== undefined) await forget(context, folder.id, known.uidValidity)
    return folder
  }
  const uidNext = selected.uidNext ?? (await highestUid(session)) + 1
  const fresh: FolderCursor = {
    uidValidity: selected.uidValidity ?? '0',
    uidNext,
    backfillBelow: selected.exists > 0 ? uidNext : 0,
    highestModseq: selected.highestModseq ?? '0',
    exists: selected.exists,
    comparedAt: deps.now(),
    syncedAt: deps.now(),
    quarantined: [],
    liveFrom: uidNext,
    ...(known === null ? await firstOpening(context, uidNext) : await remap(context, folder, known, uidNext)),
  }
  await state.commit(folder.id, () => ({ cursor: fresh }))
  // The cursor is written first: a crash in between must not report the folder's mail as gone. Repeated at the next
  // SELECT, and before backfill.
  if (known !== null) await forget(context, folder.id, fresh.uidValidity)
  return requireFolder(state, folder.path)
}

/** Mail is reported in a folder that appeared after the initial sync, and in an account that was another mailbox. */
async function firstOpening({ deps, state }: SyncContext, uidNext: number): Promise<Partial<FolderCursor>> {
  const account = await deps.store.accounts.get(state.account.id)
  if (account === null) return {}
  // A server may give a new folder the UIDVALIDITY of an earlier folder of this name.
  const generation = deps.now()
  if (account.resume.initialSyncAt !== null) return { appearedAt: deps.now() - arrivalSlackMs, generation }
  if (account.remapSince === undefined) return {}
  return { remapSince: account.remapSince - arrivalSlackMs, generation, backfillBelow: Math.max(2, uidNext) }
}

async function highestUid(session: Session): Promise<number> {
  return session.selected?.exists === 0 ? 0 : ((await session.searchUids('1:*')).at(-1) ?? 0)
}

/** Throws after more than MAILROOM_UIDVALIDITY_CHANGES a day: the folder is then read anew once an hour at most. */
async function remap(
  context: SyncContext,
  folder: FolderRecord,
  known: FolderCursor,
  uidNext: number,
): Promise<Partial<FolderCursor>> {
  const { log, config, now } = context.deps
  const earlier = (known.resets ?? []).filter((at) => at > now() - dayMs)
  const resets = [...earlier, now()]
  log.warn(
    { accountId: context.state.account.id, folder: folder.path, resets: resets.length },
    'uidvalidity changed: folder is read anew',
  )
  if (resets.length > config.MAILROOM_UIDVALIDITY_CHANGES && now() - (earlier.at(-1) ?? 0) < slowedMs) {
    const message = `${folder.path}: the server changed UIDVALIDITY ${resets.length} times within a day`
    throw new AppError('protocol', message, { details: { folder: folder.path, slowDown: true } })
  }
  const complete = known.backfillBelow <= 1
  return {
    resets,
    // The server may return to an earlier UIDVALIDITY.
    generation: now(),
    remapSince: (known.syncedAt ?? known.comparedAt) - (complete ? dayMs : arrivalSlackMs),
    ...(await newestPage(context, uidNext)),
  }
}

/**
 * The newest messages of a renumbered folder are read like new mail, in the order of their UIDs: mail that came before
 * the renumbering was noticed is reported before mail that comes after it.
 */
async function newestPage({ session, deps }: SyncContext, uidNext: number): Promise<Partial<FolderCursor>> {
  const exists = session.selected?.exists ?? 0
  const from = Math.max(1, uidNext - deps.config.MAILROOM_SYNC_BATCH)
  const found = exists === 0 ? [] : await session.searchUids(`${from}:${uidNext - 1}`)
  // At least 2: the end of the backfill ends the reading anew.
  if (found.length === 0) return { backfillBelow: Math.max(2, uidNext) }
  return { uidNext: from, exists: exists - found.length, backfillBelow: Math.max(2, from) }
}

/** Removes the folder's placements under other UIDVALIDITYs. */
export async function forget({ state, deps }: InAccount, folderId: string, uidValidity: string): Promise<void> {
  const { id, epoch } = state.account
  const forgetSome = () => deps.store.sync.forgetPlacements(id, epoch, folderId, uidValidity, forgetStep)
  let left = 1
  while (left > 0) left = await state.exclusive(forgetSome)
}

/**
 * Reads all messages from the cursor's UIDNEXT on, and the newest known message (see checkReuse). Up to one batch is
 * fetched at once; more messages are listed first.
 */
export async function readNew(context: FolderContext): Promise<void> {
  const { session, deps } = context
  const cursor = cursorOf(context)
  const uidNext = session.selected?.uidNext ?? cursor.uidNext
  const more = (session.selected?.exists ?? cursor.exists) - cursor.exists
  const isLong = Math.max(uidNext - cursor.uidNext, more) > deps.config.MAILROOM_SYNC_BATCH
  const last = cursor.quarantined.includes(cursor.uidNext - 1) ? cursor.uidNext : Math.max(1, cursor.uidNext - 1)
  const found = new Map<number, FetchedMessage>()
  await readRange(session, isLong ? String(last) : `${last}:*`, found, { known: cursor.uidNext })
  const sorted = [...found.values()].sort((a, b) => a.uid - b.uid)
  const fresh = sorted.filter(({ uid }) => uid >= cursor.uidNext)
  const next = (fresh.at(-1)?.uid ?? cursor.uidNext - 1) + 1
  const isContiguous = next - cursor.uidNext === fresh.length && next >= uidNext
  if (isLong || !isContiguous || more > fresh.length) await readListed(context, fresh)
  else if (fresh.length > 0) await storeNew(context, fresh, [])
  const newest = sorted.findLast(({ uid }) => uid < cursor.uidNext)
  if (newest !== undefined) await checkReuse(context, newest)
}

/** Lists the UIDs from the cursor's UIDNEXT on, and reads them. Messages in `fresh` are not read again. */
async function readListed(context: FolderContext, fresh: readonly FetchedMessage[]): Promise<void> {
  const { session, deps } = context
  const { uidNext } = cursorOf(context)
  const found = new Map(fresh.map((message) => [message.uid, message]))
  const listed = await joined([], await session.searchUids(`${uidNext}:*`), (uid) => uid >= uidNext)
  const uids = await joined(listed, [...found.keys()])
  for (const page of batchesOf(deps, uids)) {
    const unread = page.filter((uid) => !found.has(uid))
    const { messages, poison } = await readUids(session, unread)
    const all = [...messages, ...page.flatMap((uid) => found.get(uid) ?? [])].sort((a, b) => a.uid - b.uid)
    await storeNew(context, all, poison)
    await context.giveWay?.()
  }
  await passGap(context)
}

async function storeNew(
  context: FolderContext,
  messages: readonly FetchedMessage[],
  poison: readonly Poison[],
): Promise<void> {
  const uids = [...messages, ...poison].map(({ uid }) => uid)
  await storeRead(context, {
    messages,
    source: 'live',
    move: (cursor) => ({
      ...cursor,
      uidNext: Math.max(cursor.uidNext, ...uids.map((uid) => uid + 1)),
      exists: cursor.exists + uids.filter((uid) => uid >= cursor.uidNext).length,
      ...quarantine(cursor, poison),
    }),
  })
}

/**
 * Moves the cursor over messages that came and left unseen: the server's UIDNEXT would look like new mail for ever.
 * While the server counts more messages than it lists, another message may be about to appear.
 */
async function passGap(context: FolderContext): Promise<void> {
  const { session } = context
  const reported = session.selected?.uidNext ?? 0
  const { uidNext, exists } = cursorOf(context)
  if (reported <= uidNext || (session.selected?.exists ?? 0) > exists) return
  await moveCursor(context, (cursor) => ({ ...cursor, uidNext: Math.max(cursor.uidNext, reported) }))
}

/** Stores flags that changed since the cursor: by modseq, else by comparing the newest window. */
export async function syncFlags(context: FolderContext, selected: SelectedMailbox | null): Promise<void> {
  const { session } = context
  const { highestModseq: known } = cursorOf(context)
  const reported = selected?.highestModseq ?? null
  if (!session.capabilities.condstore || (known === '0' && reported === null)) await compareFlags(context, 'newest')
  else if (reported !== null && (known === '0' || BigInt(reported) < BigInt(known)))
    await learnModseq(context, reported)
  else if (reported !== known) await flagsSince(context, reported)
}

/** HIGHESTMODSEQ was unknown (0), or restarts below the cursor's: all flags are compared once. */
async function learnModseq(context: FolderContext, highestModseq: string): Promise<void> {
  const setModseq = (next: string) => moveCursor(context, (cursor) => ({ ...cursor, highestModseq: next }))
  if (cursorOf(context).highestModseq !== '0') await setModseq('0')
  await compareFlags(context, 'all')
  await setModseq(highestModseq)
}

/**
 * Compares UIDs when the counts do not add up, when UIDNEXT ran backwards, and every MAILROOM_FLAG_COMPARE, then with
 * flags where modseqs are missing. Returns whether a message vanished that none of our commands took away.
 */
export async function compareIfDue(
  context: FolderContext,
  selected: SelectedMailbox | null,
  isAsked = false,
): Promise<boolean> {
  const { deps, session } = context
  const named = await takeVanished(context)
  const cursor = cursorOf(context)
  const exists = session.selected?.exists ?? selected?.exists ?? cursor.exists
  const backwards = selected !== null && selected.uidNext !== null && selected.uidNext < cursor.uidNext
  const due = isAsked || deps.now() - cursor.comparedAt > deps.config.MAILROOM_FLAG_COMPARE
  const isOff = exists !== cursor.exists || backwards || due
  const hasLost = (isOff && (await compareUids(context, exists))) || named
  if (isRetryDue(deps, cursor)) await retryQuarantined(context, cursor)
  if (!due) return hasLost
  if (!hasModseqs(session, cursor)) await compareFlags(context, 'all')
  await moveCursor(context, (newest) => ({ ...newest, comparedAt: deps.now() }))
  return hasLost
}

export function hasModseqs({ capabilities }: Session, { highestModseq }: FolderCursor): boolean {
  return capabilities.condstore && highestModseq !== '0'
}

export function isRetryDue({ now, config }: SyncDeps, cursor: FolderCursor): boolean {
  return cursor.quarantined.length > 0 && now() >= retryAt(config, cursor, 0)
}

/** When the message at this place of the refused ones is due, in ms since 1970; the folder's next reading tries it. */
export function retryAt(config: SyncDeps['config'], { retriedAt = 0 }: FolderCursor, place: number): number {
  return retriedAt + (1 + Math.floor(place / retriedMost)) * Math.min(retryMs, config.MAILROOM_FLAG_COMPARE)
}

/** Tries the refused messages at the front of the quarantine; a message that fails again goes to its end. */
async function retryQuarantined(context: FolderContext, cursor: FolderCursor): Promise<void> {
  const refused = refusedIn(cursor)
  const unasked = cursor.quarantined.filter((uid) => !refused.includes(uid))
  await readMissing(context, [...unasked, ...refused.slice(0, retriedMost)])
  await moveCursor(context, (cursor) => ({ ...cursor, retriedAt: context.deps.now() }))
}
