/**
 * The list of folders and their counts, and which folders differ from their cursors. LIST-STATUS gives all counts in
 * one command. Without LIST-STATUS each poll sends STATUS for the likely folders, and now and then for the others.
 */
import { freshCursor } from '../store/rows.ts'
import type { ListedFolder } from '../store/port.ts'
import type { FolderCursor, FolderRecord } from '../store/records.ts'
import { isAppError } from '../errors.ts'
import { isParkedLong, isFolderGone } from './absent.ts'
import type { ListedMailbox, MailboxStatus } from './session-types.ts'
import type { AccountState } from './state.ts'
import { hasModseqs, isRetryDue } from './sync.ts'
import type { SyncContext } from './write.ts'
import type { Session } from './session/index.ts'

/** Folders with a STATUS at every poll, without LIST-STATUS. */
const askedMost = 50
/** Missing folders with a STATUS after one LIST. */
const namedMost = 20
/** Folders whose flags are compared at one poll: each costs a SELECT. */
const comparedMost = 10

export function createFolderPoll(context: SyncContext) {
  const { state, session } = context
  const { now, config } = context.deps
  const asked = new Map<string, number>()
  /** By path: when `uncompared` returned it last. */
  const compared = new Map<string, number>()
  let hasPolled = false
  /** Paths of the last list whose counts differ from the cursor's. */
  let ahead: readonly string[] = []
  let listedAt = Number.NEGATIVE_INFINITY

  /** Stores the list anew. Returns the paths that have to be caught up, INBOX included. */
  async function list(): Promise<string[]> {
    const listed = await session.list({ status: session.capabilities.listStatus, most: config.MAILROOM_FOLDERS_MAX })
    listedAt = now()
    const gone = await findGone(context, listed)
    state.absent.noteListed(listed.map(({ path }) => path).filter((path) => !gone.has(path)))
    await reconcile(context, listed, gone)
    const moved = listed.flatMap(({ path, status }) => {
      const folder = state.folderByPath(path)
      return folder !== null && isMoved(context, folder, status) ? [folder] : []
    })
    ahead = moved.filter((folder) => !isDue(context, folder)).map(({ path }) => path)
    return moved.map(({ path }) => path)
  }

  /**
   * Returns the paths that have to be caught up; the first call returns all silentPaths besides. `look`: lists the
   * folders anew in any case. `giveWay` is called between two folders.
   */
  async function poll(look = false, giveWay?: () => Promise<void>): Promise<string[]> {
    const isFirst = !hasPolled
    hasPolled = true
    const silent = (): string[] => (isFirst ? silentPaths(context) : [])
    if (session.capabilities.listStatus) return [...(await list()), ...silent()]
    const isListed = !look && now() - listedAt < config.MAILROOM_FOLDER_LIST
    const moved = new Set(isListed && !state.absent.isDue ? [] : await list())
    let lacking = false
    const likely = likelyIds(state)
    for (const { id, path } of [...state.folders.values()]) {
      const folder = state.folders.get(id)
      if (folder?.selectable !== true) continue
      if (!likely.has(id) && now() - (asked.get(id) ?? 0) < config.MAILROOM_FOLDER_POLL_COLD) continue
      asked.set(id, now())
      // NOOP reports new mail of the selected mailbox; on some servers only STATUS does.
      if (path === session.selected?.path) await session.noop()
      const reported = await askStatus(context, folder)
      state.heard()
      if (reported === 'missing') lacking ||= folder.cursor !== null
      else if (reported) moved.add(path)
      await giveWay?.()
    }
    return [...moved, ...silent(), ...(lacking ? await list() : [])]
  }

  return {
    list,
    ahead: (): readonly string[] => ahead,
    poll,
    /** Sends STATUS. Returns whether the folder has to be caught up. */
    async ask(path: string): Promise<boolean> {
      const folder = state.folderByPath(path)
      return folder !== null && (await askStatus(context, folder)) === true
    },
    /** The next few of silentPaths, in turn. */
    uncompared: (): string[] => takeSilent(context, compared),
    /** Takes a STATUS of NOTIFY. Without HIGHESTMODSEQ its counts do not show that flags changed. */
    hear: async (folder: FolderRecord, status: MailboxStatus): Promise<boolean> =>
      (await takeStatus(context, folder, status)) || status.highestModseq === null,
    /** When the longest unasked folder had its last STATUS, in ms since 1970; Infinity with LIST-STATUS. */
    get askedAt(): number {
      return session.capabilities.listStatus ? Infinity : firstOf(context, asked)
    },
  }
}

/** The earliest of these times, of the folders that are read. */
function firstOf({ state, deps }: SyncContext, times: ReadonlyMap<string, number>): number {
  const read = [...state.folders.values()].filter((folder) => !isParkedLong(folder, deps.now()))
  return Math.min(...read.map(({ id }) => times.get(id) ?? 0))
}

function takeSilent(context: SyncContext, compared: Map<string, number>): string[] {
  const at = (path: string): number => compared.get(path) ?? 0
  const next = silentPaths(context)
    .sort((one, other) => at(one) - at(other))
    .slice(0, comparedMost)
  for (const path of next) compared.set(path, context.deps.now())
  return next
}

/** Folders with a special use first, then those with the latest cursors. */
function likelyIds({ folders }: AccountState): Set<string> {
  const rank = ({ specialUse }: FolderRecord): number => Number(specialUse === null)
  const sorted = [...folders.values()].sort(
    (one, other) => rank(one) - rank(other) || (other.cursor?.syncedAt ?? 0) - (one.cursor?.syncedAt ?? 0),
  )
  return new Set(sorted.slice(0, askedMost).map(({ id }) => id))
}

/** Returns whether the folder has to be caught up. */
async function askStatus(context: SyncContext, folder: FolderRecord): Promise<boolean | 'missing'> {
  const { session, state } = context
  try {
    return await takeStatus(context, folder, await session.status(folder.path))
  } catch (error) {
    if (isFolderGone(error) && folder.cursor !== null) state.absent.reportMissing(folder.path)
    if (isFolderGone(error) || isAppError(error, 'not_found')) return 'missing'
    if (isAppError(error, 'server_refused')) return false
    throw error
  }
}

/** Stores the counts of a folder that is not complete. Returns whether the folder has to be caught up. */
async function takeStatus(context: SyncContext, folder: FolderRecord, status: MailboxStatus): Promise<boolean> {
  const { deps, state } = context
  const { messages, unseen } = status
  const moved = isMoved(context, folder, status)
  if (messages === null || unseen === null) return moved
  await state.exclusive(async () => {
    const known = state.folders.get(folder.id)
    if (known?.completeAt !== null || (known.messages === messages && known.unseen === unseen)) return
    await deps.store.folders.setReported(folder.id, { messages, unseen })
    state.change(folder.id, { messages, unseen })
  })
  return moved
}

/** Folders that the list lacks, or has without mail where the index has mail. */
function lackedBy({ folders }: AccountState, listed: readonly ListedMailbox[]): FolderRecord[] {
  const there = new Map(listed.map(({ path, selectable }) => [path, selectable]))
  return [...folders.values()].filter(({ path, selectable, cursor }) => {
    const shown = there.get(path)
    return shown === undefined || (!shown && (selectable || cursor !== null))
  })
}

/**
 * Returns the paths of folders that are gone. A removed folder that has children may still be listed, but without a
 * status: it gets a STATUS of its own.
 */
async function findGone(context: SyncContext, listed: readonly ListedMailbox[]): Promise<Set<string>> {
  const { session, state } = context
  const said = state.absent.drainReportedMissing()
  const shown = new Map(listed.map((mailbox) => [mailbox.path, mailbox]))
  const isFull = listed.some(({ byName }) => !byName)
  const lacked = lackedBy(state, listed)
    .map(({ path }) => path)
    .filter(isRemovable)
  const gone = new Set([...said].filter(isRemovable))
  for (const path of isFull ? state.absent.missing(lacked) : []) gone.add(path)
  const isDoubtful = ({ path, selectable, status }: ListedMailbox): boolean =>
    session.capabilities.listStatus &&
    selectable &&
    status === null &&
    state.folderByPath(path)?.cursor != null &&
    isRemovable(path)
  const doubtful = listed.filter(isDoubtful).map(({ path }) => path)
  for (const path of [...lacked.slice(0, namedMost), ...doubtful.slice(0, namedMost)]) {
    if (gone.has(path)) continue
    if (await isGone(session, path, shown.get(path) ?? (isFull ? 'unlisted' : 'no list'))) gone.add(path)
  }
  return gone
}

/** INBOX is always there (RFC 9051 §5.1). */
function isRemovable(path: string): boolean {
  return path !== 'INBOX'
}

/** Whether STATUS fails as of a missing folder. `shown`: the folder's row of the list. */
async function isGone(session: Session, path: string, shown: ListedMailbox | 'unlisted' | 'no list'): Promise<boolean> {
  try {
    await session.status(path)
    return false
  } catch (error) {
    if (isFolderGone(error)) return true
    if (isAppError(error, 'not_found')) return shown === 'unlisted'
    if (!isAppError(error, 'server_refused')) throw error
    return typeof shown === 'object' && !shown.selectable
  }
}

/**
 * Stores the list. A folder that the list lacks is kept until it is gone (absent.ts). A folder that is gone is removed
 * with its mail, and created anew when it is listed, by LIST-STATUS without a status as not selectable.
 */
async function reconcile(
  context: SyncContext,
  listed: readonly ListedMailbox[],
  gone: ReadonlySet<string>,
): Promise<void> {
  const { deps, state, session } = context
  const isEmpty = ({ path, status }: ListedMailbox): boolean =>
    gone.has(path) && status === null && session.capabilities.listStatus
  await state.exclusive(async () => {
    const { id, epoch } = state.account
    const kept = lackedBy(state, listed).filter(({ path }) => !gone.has(path))
    if (kept.length > 0) {
      const fields = { accountId: id, listed: listed.length, missing: kept.length }
      deps.log.warn(fields, 'odd folder list: what it lacks is kept for now')
    }
    const keptPaths = new Set(kept.map(({ path }) => path))
    const others = listed.filter(({ path }) => !keptPaths.has(path))
    const all = [
      ...others.map((one) => listedRow(isEmpty(one) ? { ...one, selectable: false } : one, emptyCursor(context, one))),
      ...kept.map((folder) => ({ ...folder, messages: null, unseen: null })),
    ]
    const holding = all.filter(({ path }) => !gone.has(path))
    if (holding.length < all.length) state.setFolders(await deps.store.folders.reconcile(id, epoch, holding, true))
    state.setFolders(await deps.store.folders.reconcile(id, epoch, all, true))
  })
}

function listedRow(
  { path, delimiter, attributes, specialUse, selectable, status }: ListedMailbox,
  opened: FolderCursor | null,
): ListedFolder {
  const counts = { messages: status?.messages ?? null, unseen: status?.unseen ?? null }
  const row = { path, delimiter, attributes, specialUse, selectable, ...counts }
  return opened === null ? row : { ...row, opened }
}

/**
 * The cursor of a folder that the account's first LIST reports as empty: it need not be selected. null = the folder has
 * to be selected, as INBOX always is, with which the account may become complete.
 */
function emptyCursor({ state, session, deps }: SyncContext, { path, selectable, status }: ListedMailbox) {
  const { account, folders } = state
  const isFirst = folders.size === 0 && account.resume.initialSyncAt === null && account.remapSince === undefined
  if (!isFirst || path === 'INBOX' || !selectable || status?.messages !== 0) return null
  const { uidNext, uidValidity, highestModseq } = status
  if (uidNext === null || uidValidity === null || (highestModseq === null && session.capabilities.condstore))
    return null
  const now = deps.now()
  const times = { comparedAt: now, syncedAt: now }
  return { ...freshCursor(uidValidity), uidNext, liveFrom: uidNext, highestModseq: highestModseq ?? '0', ...times }
}

/**
 * Whether the folder differs from its cursor, or is due for a full comparison. A count that the server leaves out is
 * unchanged. Without modseqs a changed UNSEEN shows that flags changed; the first UNSEEN is compared with the index.
 */
function isMoved({ deps, state, session }: SyncContext, folder: FolderRecord, status: MailboxStatus | null): boolean {
  if (isParkedLong(folder, deps.now())) return false
  const { cursor } = folder
  if (cursor === null || isDue({ deps, session }, folder)) return true
  if (status === null) return false
  const modseqs = hasModseqs(session, cursor)
  const before = state.reportedUnseen.get(folder.id) ?? (folder.completeAt === null ? status : folder.counts).unseen
  if (status.unseen !== null) state.reportedUnseen.set(folder.id, status.unseen)
  const read = !modseqs && status.unseen !== null && status.unseen !== before
  const flagged = modseqs && status.highestModseq !== null && status.highestModseq !== cursor.highestModseq
  return read || flagged || isAhead(status, cursor)
}

/**
 * Paths of folders without modseqs, in which changes may leave the counts as they were. Without INBOX, which is caught
 * up when the watching begins.
 */
function silentPaths({ state, session, deps }: SyncContext): string[] {
  return [...state.folders.values()].flatMap((folder) => {
    const { path, cursor } = folder
    const isSilent = path !== 'INBOX' && cursor !== null && !hasModseqs(session, cursor)
    return isSilent && !isParkedLong(folder, deps.now()) ? [path] : []
  })
}

/**
 * Whether the folder has to be read whatever the server's counts are: from time to time where flags change unseen, or
 * where its rows do not add up to the count of its cursor.
 */
function isDue({ deps, session }: Pick<SyncContext, 'deps' | 'session'>, { cursor, counts }: FolderRecord): boolean {
  if (cursor === null) return true
  const { backfillBelow, exists, quarantined, comparedAt } = cursor
  const known = counts.messages + quarantined.length
  const addsUp = backfillBelow > 1 ? counts.messages <= exists : known === exists
  const isLong = deps.now() - comparedAt > deps.config.MAILROOM_FLAG_COMPARE
  return (isLong && !(addsUp && hasModseqs(session, cursor))) || isRetryDue(deps, cursor)
}

function isAhead(status: MailboxStatus, cursor: FolderCursor): boolean {
  return (
    (status.uidValidity !== null && status.uidValidity !== cursor.uidValidity) ||
    (status.uidNext !== null && status.uidNext > cursor.uidNext) ||
    (status.messages !== null && status.messages !== cursor.exists)
  )
}
