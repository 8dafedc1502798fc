/**
 * The list of folders and their counts, and which of them moved since their cursors were written. LIST-STATUS gives all
 * in one command; without it STATUS is asked at every poll of the folders where something is likely to have happened,
 * and of the others now and then.
 */
import { freshCursor } from '../store/rows.ts'
import type { ListedFolder } from '../store/port.ts'
import type { FolderCursor, FolderRecord } from '../store/records.ts'
import { isAppError } from '../errors.ts'
import { isSetAside, saysGone } from './absent.ts'
import type { ListedMailbox, MailboxStatus } from './session-types.ts'
import type { AccountState } from './state.ts'
import { openNotes } from './identity.ts'
import { hasModseqs, isRetryDue } from './sync.ts'
import type { SyncContext } from './write.ts'
import type { Session } from './session/index.ts'

/** Folders asked at every poll where each has to be asked for. */
const askedMost = 50
/** Folders that are asked for by name at one list. */
const namedMost = 20
/** Folders whose flags are compared at one poll: each costs a SELECT. */
const comparedMost = 10

export function createFolderPoll(context: SyncContext) {
  const { deps, state, session } = context
  const asked = new Map<string, number>()
  /** By path: when `uncompared` named it last. */
  const compared = new Map<string, number>()
  let hasPolled = false
  /** Of the last list: paths whose counts are not those of the index. */
  let ahead: readonly string[] = []
  let listedAt = Number.NEGATIVE_INFINITY

  /** Reads the list anew; answers the paths that have to be caught up, INBOX included. */
  async function list(): Promise<string[]> {
    const listed = await listOf(context)
    listedAt = deps.now()
    await reconcile(context, listed, await findGone(context, listed))
    const isHere = ({ path, status }: ListedMailbox) => isMoved(context, state.folderByPath(path), status)
    const moved = listed.filter(isHere).map(({ path }) => path)
    ahead = moved.filter((path) => !isDue(context, state.folderByPath(path)))
    return moved
  }

  /**
   * A cheaper look between two lists. With `look` out of turn: the list too. The first call answers besides all folders
   * whose counts do not say enough (silentPaths). `giveWay` is called between two folders.
   */
  async function poll(look = false, giveWay?: () => Promise<void>): Promise<string[]> {
    const isFirst = !hasPolled
    hasPolled = true
    const silent = (): string[] => (isFirst ? silentPaths(context) : [])
    if (session.capabilities.listStatus) return [...(await list()), ...silent()]
    const isListed = !look && deps.now() - listedAt < deps.config.MAILROOM_FOLDER_LIST
    const moved = new Set(isListed && !state.absent.isDue ? [] : await list())
    let lacking = false
    const likely = likelyIds(state)
    for (const { id, path } of [...state.folders.values()]) {
      const folder = state.folders.get(id)
      if (folder?.selectable !== true) continue
      if (!likely.has(id) && deps.now() - (asked.get(id) ?? 0) < deps.config.MAILROOM_FOLDER_POLL_COLD) continue
      asked.set(id, deps.now())
      // The mailbox that is open reports what is new with NOOP; some servers only know it by STATUS.
      if (path === session.selected?.path) await session.noop()
      const reported = await askStatus(context, folder)
      state.heard()
      if (reported === 'missing') lacking ||= folder.cursor !== null
      else if (reported) moved.add(path)
      await giveWay?.()
    }
    return [...moved, ...silent(), ...(lacking ? await list() : [])]
  }

  async function ask(path: string): Promise<boolean> {
    const folder = state.folderByPath(path)
    return folder !== null && (await askStatus(context, folder)) === true
  }

  return {
    list,
    ahead: (): readonly string[] => ahead,
    poll,
    ask,
    /** Paths of some folders in which flags may have changed unseen; those that were named last come last. */
    uncompared: (): string[] => takeSilent(context, compared),
    /** The server says so unasked. Answers whether the folder has to be caught up. */
    async hear(path: string, status: MailboxStatus): Promise<boolean> {
      const folder = state.folderByPath(path)
      if (folder === null) return false
      // Without HIGHESTMODSEQ the counts do not show that flags changed.
      return (await takeStatus(context, folder, status)) || status.highestModseq === null
    },
    /** All folders have been asked since then, in ms since 1970; Infinity where each poll asks all. */
    get askedAt(): number {
      return session.capabilities.listStatus ? Number.POSITIVE_INFINITY : lastOfAll(context, asked)
    },
  }
}

function lastOfAll({ state, deps }: SyncContext, asked: ReadonlyMap<string, number>): number {
  const read = [...state.folders.values()].filter((folder) => !isSetAside(folder, deps.now()))
  return Math.min(...read.map(({ id }) => asked.get(id) ?? 0))
}

function takeSilent(context: SyncContext, compared: Map<string, number>): string[] {
  const at = (path: string): number => compared.get(path) ?? 0
  const next = silentPaths(context)
    .sort((one, other) => at(one) - at(other))
    .slice(0, comparedMost)
  for (const path of next) compared.set(path, context.deps.now())
  return next
}

function listOf({ session, deps }: SyncContext): Promise<ListedMailbox[]> {
  return session.list({ status: session.capabilities.listStatus, most: deps.config.MAILROOM_FOLDERS_MAX })
}

/** Those with a use of their own, and then the ones in which something happened last. */
function likelyIds({ folders }: AccountState): Set<string> {
  const rank = ({ specialUse }: FolderRecord): number => Number(specialUse === null)
  const sorted = [...folders.values()].sort(
    (one, other) => rank(one) - rank(other) || (other.cursor?.syncedAt ?? 0) - (one.cursor?.syncedAt ?? 0),
  )
  return new Set(sorted.slice(0, askedMost).map(({ id }) => id))
}

async function askStatus(context: SyncContext, folder: FolderRecord): Promise<boolean | 'missing'> {
  const { session, state } = context
  const status = await session.status(folder.path).catch((error: unknown) => {
    if (saysGone(error) && folder.cursor !== null) state.absent.say(folder.path)
    if (saysGone(error) || isAppError(error, 'not_found')) return 'missing' as const
    if (isAppError(error, 'server_refused')) return 'refused' as const
    throw error
  })
  if (status === 'missing') return status
  return status !== 'refused' && takeStatus(context, folder, status)
}

/** Stores the counts of a folder that is not complete. Answers whether the folder has to be caught up. */
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

/** Folders that the list does not show, or shows as holding no mail where the index has some. */
function lackedBy({ folders }: AccountState, listed: readonly ListedMailbox[]): FolderRecord[] {
  const there = new Map(listed.map(({ path, selectable }) => [path, selectable]))
  return [...folders.values()].filter(({ path, selectable, cursor }) => {
    const shown = there.get(path)
    return shown === undefined || (!shown && (selectable || cursor !== null))
  })
}

/** A removed folder with others below it may be listed on, but has no status: it is asked for by its name too. */
async function findGone(context: SyncContext, listed: readonly ListedMailbox[]): Promise<Set<string>> {
  const { session, state } = context
  const said = state.absent.takeSaid()
  const shown = new Map(listed.map((mailbox) => [mailbox.path, mailbox]))
  const isFull = listed.some(({ byName }) => !byName)
  const lacked = lackedBy(state, listed).flatMap(({ path }) => (isRemovable(path) ? [path] : []))
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

/** A refusal of STATUS, beside what the list says. An empty list says nothing. */
async function isGone(session: Session, path: string, shown: ListedMailbox | 'unlisted' | 'no list'): Promise<boolean> {
  try {
    await session.status(path)
    return false
  } catch (error) {
    if (saysGone(error)) return true
    if (isAppError(error, 'not_found')) return shown === 'unlisted'
    if (!isAppError(error, 'server_refused')) throw error
    return typeof shown === 'object' && !shown.selectable
  }
}

/**
 * What the list lacks is kept until it is gone (absent.ts); what is gone is removed with its mail, and made anew when
 * it is listed. By LIST-STATUS a listed folder without a status holds none.
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
 * By the first list of an account, what holds nothing is read to its end: it need not be opened. INBOX always is, and
 * with it the account may become complete. null = the folder has to be opened.
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
 * Whether the folder differs from its cursor, or is due for a full comparison. What the server does not say counts as
 * unchanged. Without mod-sequences another unread count than the last one, or at first than that of
 * the index, shows that flags changed.
 */
function isMoved(
  { deps, state, session }: SyncContext,
  folder: FolderRecord | null,
  status: MailboxStatus | null,
): boolean {
  if (folder === null || isSetAside(folder, deps.now())) return false
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
 * Folders without mod-sequences: mail that was exchanged while we did not watch, as by a restored backup, may leave the
 * counts as they were. INBOX has been caught up when the watching begins.
 */
function silentPaths({ state, session, deps }: SyncContext): string[] {
  return [...state.folders.values()].flatMap((folder) => {
    const { path, cursor } = folder
    const isSilent = path !== 'INBOX' && cursor !== null && !hasModseqs(session, cursor)
    return isSilent && !isSetAside(folder, deps.now()) ? [path] : []
  })
}

/** The folder is to be read whatever its counts are. */
function isDue({ deps, session }: Pick<SyncContext, 'deps' | 'session'>, folder: FolderRecord | null): boolean {
  if (!folder?.cursor) return true
  const { cursor } = folder
  const isLong = deps.now() - cursor.comparedAt > deps.config.MAILROOM_FLAG_COMPARE
  return (isLong && !hasModseqs(session, cursor)) || isRetryDue(deps, cursor) || openNotes(cursor).length > 0
}

function isAhead(status: MailboxStatus, cursor: FolderCursor): boolean {
  return (
    (status.uidValidity !== null && status.uidValidity !== cursor.uidValidity) ||
    (status.uidNext !== null && status.uidNext > cursor.uidNext) ||
    (status.messages !== null && status.messages !== cursor.exists)
  )
}
