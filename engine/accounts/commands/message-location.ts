/**
 * Shared by the commands: work over the command connection, and work on a placement, in its folder and only under its
 * UIDVALIDITY. A record may be old when the command's turn comes: it is read again.
 */
import { AppError, isAppError, notFound } from '../../errors.ts'
import type { KnownUid, Store } from '../../store/port.ts'
import type { FolderRecord, MessageRecord, Placement } from '../../store/records.ts'
import { isView, liesAt } from '../../store/rows.ts'
import type { Upload } from '../../spool.ts'
import { withinTime } from '../../scheduling.ts'
import { isUnawaited, isFolderGone, isFolderLost } from '../absent.ts'
import { reportGone } from '../departures.ts'
import { busy, notBegun, wasRenewed, type Link, type Priority } from '../link.ts'
import type { AccountState, SyncDeps } from '../state.ts'
import type { InAccount, SyncContext } from '../write.ts'

export interface LiveAccount {
  readonly state: AccountState
  readonly link: Link
}

export interface CommandDeps {
  readonly sync: SyncDeps
  /** Rejects with `account_disabled` or `account_unavailable`, the reason and when the next try is. */
  readonly live: (accountId: string) => Promise<LiveAccount>
}

/** Works over the command connection. Work that had not begun when the link was renewed runs over the new link. */
export async function onLink<T>(
  { live, sync }: CommandDeps,
  accountId: string,
  work: (context: SyncContext) => Promise<T>,
  priority: Priority = 'api',
  moreMs = 0,
): Promise<T> {
  const once = async (): Promise<T> => {
    const { link, state } = await live(accountId)
    return link.run((session) => work({ deps: sync, state, session }), priority, moreMs)
  }
  return once().catch((error: unknown) => {
    if (!notBegun(error)) throw error
    return once()
  })
}

/** Work of the watching session for a call, within MAILROOM_COMMAND_TIMEOUT, without the command connection. */
export async function byReader(
  { live, sync }: CommandDeps,
  accountId: string,
  work: (state: AccountState) => Promise<void>,
): Promise<void> {
  const once = async (): Promise<void> => {
    const { state } = await live(accountId)
    await withinTime(sync.config.MAILROOM_COMMAND_TIMEOUT, work(state), () => {
      throw busy()
    })
  }
  await once().catch((error: unknown) => {
    if (!wasRenewed(error)) throw error
    return once()
  })
}

/** The slowest upload that a call waits for; a slower one goes on all the same. */
const bytesInMs = 64

export interface WriteContext extends SyncContext {
  /** Marks a folder that the command is about to change, at these UIDs. */
  readonly touch: (path: string, uids?: readonly number[]) => void
}

/** Part of the call's time in which the folders are read: after it the link would say that the command is late. */
const readPart = 0.95

/** The answer waits so long for the report of departures. */
const settleMs = 2000

/**
 * Runs a command that writes on the server by `act`. The answer waits until the folders that `act` touched have been
 * read after it, so that the caller reads its own write. Nothing of the command is stored. When the folders cannot be
 * read in the time of the call, the command has succeeded all the same, and the index follows.
 */
export async function writing<T>(
  deps: CommandDeps,
  accountId: string,
  act: (context: WriteContext) => Promise<T>,
  upload?: Upload,
): Promise<T> {
  const { now, config } = deps.sync
  const moreMs = (upload?.size ?? 0) / bytesInMs
  const until = now() + readPart * config.MAILROOM_COMMAND_TIMEOUT + moreMs
  const acting = upload === undefined ? act : (context: WriteContext) => upload.holding(() => act(context))
  const work = (context: SyncContext) => actAndRead(context, acting, until)
  const { value, state, mark } = await onLink(deps, accountId, work, 'api', moreMs)
  if (state.hints.departures.isEmpty()) return value
  const told = withinTime(settleMs, state.moved.settled(mark, AbortSignal.timeout(settleMs))).then(() =>
    reportGone({ deps: deps.sync, state }),
  )
  // When the connection has ended, or the store is away, the next connection reports the departures.
  await withinTime(
    Math.max(0, until - now()),
    told.catch(() => undefined),
  )
  return value
}

/** Acts and has the touched folders read: the next command begins after that, or when the time is over. */
async function actAndRead<T>(context: SyncContext, act: (context: WriteContext) => Promise<T>, until: number) {
  const { state } = context
  const touched = new Map<string, readonly number[]>()
  const touch: WriteContext['touch'] = (path, uids = []) => {
    state.moved.expect(path)
    touched.set(path, [...(touched.get(path) ?? []), ...uids])
  }
  const readTouched = (): Promise<unknown> =>
    Promise.allSettled(Array.from(touched, ([path, uids]) => state.moved.read(path, uids)))
  try {
    const value = await act({ ...context, touch })
    const mark = state.moved.mark()
    await withinTime(Math.max(0, until - context.deps.now()), readTouched())
    return { value, state, mark }
  } catch (error) {
    // The command may have done some or all of its work.
    void readTouched()
    throw error
  }
}

/**
 * Has a folder without a cursor read: an appended message would count as history. Not done for a folder that holds no
 * mail (\\Noselect); a refusal is ignored.
 */
export async function openFirst({ folderByPath, moved }: AccountState, path: string): Promise<void> {
  const folder = folderByPath(path)
  if (folder?.selectable === false || (folder?.cursor ?? null) !== null) return
  await moved.read(path).catch((error: unknown) => {
    if (!isAppError(error, 'server_refused')) throw error
  })
}

export async function currentMessage({ messages }: Store, { accountId, id }: MessageRecord): Promise<MessageRecord> {
  const now = await messages.get(accountId, id)
  if (now === null) throw notFound('message', id)
  return now
}

/** The message that the index has at this place. */
export async function knownThere(
  { messages }: Store,
  { folderId, uidValidity, uid }: Pick<Placement, 'folderId' | 'uidValidity' | 'uid'>,
): Promise<KnownUid | undefined> {
  const [known] = await messages.knownUids(folderId, uidValidity, uid, uid)
  return known
}

/** The place, or the message's present place in the same folder. */
export async function currentPlace(context: InAccount, message: MessageRecord, at: Placement): Promise<Placement> {
  const here = message.placements.filter((place) => place.folderId === at.folderId)
  const place = here.find((one) => liesAt(one, at)) ?? here[0]
  if (place === undefined) throw await notThere(context, message, at.folderId)
  return place
}

/**
 * `not_found`; `account_unavailable` while a folder is read in which the message may turn up: the folder `meant`, or
 * any for a message without placements. The store knows a renamed folder earlier than the memory does.
 */
export async function notThere(
  { deps, state }: InAccount,
  { id, accountId, placements }: MessageRecord,
  meant?: string,
): Promise<AppError> {
  const isUnread = (folder: FolderRecord): boolean =>
    (placements.length === 0 || folder.id === meant) && isBeingRead(folder)
  const unread = state.folders.values().find(isUnread) ?? (await deps.store.folders.list(accountId)).find(isUnread)
  return unread === undefined ? notFound('message', id) : readAnew(unread.path)
}

/** `account_unavailable` until the folder has been read. details.anew is its path. */
function readAnew(path: string, cause?: unknown): AppError {
  return new AppError('account_unavailable', `folder ${path} is being read anew`, {
    retryAfterMs: 2000,
    details: { anew: path },
    cause,
  })
}

export function isReadAnew(error: unknown): error is AppError & { readonly details: { readonly anew: string } } {
  return isAppError(error, 'account_unavailable') && typeof error.details['anew'] === 'string'
}

/** null = the server refuses, or the folder is gone or has another UIDVALIDITY. */
export function unlessRefused<T>(answer: Promise<T>): Promise<T | null> {
  return answer.catch((error: unknown) => {
    const refused = isAppError(error, 'server_refused') || isAppError(error, 'not_found')
    if (refused || isReadAnew(error)) return null
    throw error
  })
}

export type CommandContext = Pick<SyncContext, 'state' | 'session'>

type Place = Pick<Placement, 'path' | 'uidValidity'> & Partial<Pick<Placement, 'uid'>>

/** Marks the folder: where its mail lies is known after a reading. */
function lost({ state }: CommandContext, { path }: Place, cause?: unknown): AppError {
  state.moved.found([path])
  return readAnew(path, cause)
}

/**
 * Selects the folder; `refresh`: also when it is selected already. Rejects with `readAnew` when the folder is gone or
 * has another UIDVALIDITY: the UID may be another message's.
 */
async function selectPlace(here: CommandContext, at: Place, refresh: boolean): Promise<void> {
  const { uidValidity } = await here.session.select(at.path, { refresh }).catch((error: unknown) => {
    if (isFolderGone(error)) here.state.absent.reportMissing(at.path)
    throw isFolderLost(error) ? lost(here, at, error) : error
  })
  if (uidValidity !== null && uidValidity !== at.uidValidity) throw lost(here, at)
}

/**
 * Works in the placement's folder. null from `work` = the message is not there; `work` is then tried once more after
 * another SELECT. With `refresh`, and for mail that the server may not have shown to this session yet (RFC 3501 §5.2),
 * the folder is selected again before the first try.
 */
export async function inPlace<T>(
  here: CommandContext,
  at: Place,
  work: () => Promise<T | null>,
  refresh = false,
): Promise<T | null> {
  const tried = (): Promise<T | null> => work().catch((error: unknown) => explain(here, at, error))
  const isFresh = refresh || (at.uid ?? 0) >= (here.session.selected?.uidNext ?? 0)
  await selectPlace(here, at, isFresh)
  let done = await tried()
  if (done === null && !isFresh) {
    await selectPlace(here, at, true)
    done = await tried()
  }
  if (done === null) here.state.moved.found([at.path])
  return done
}

async function explain(here: CommandContext, at: Place, error: unknown): Promise<never> {
  if (!isFolderLost(error)) throw error
  if (here.session.closed) throw lost(here, at, error)
  await selectPlace(here, at, true).catch((now: unknown) => {
    throw here.session.closed ? lost(here, at, error) : now
  })
  throw error
}

/** Whether the index may lack mail of this folder, and a reading will bring it. */
export function isBeingRead(folder: FolderRecord): boolean {
  return folder.completeAt === null && !isUnawaited(folder, Date.now())
}

/** Whether the placement is in a view of all mail. */
export function isShown({ folders }: AccountState, { folderId }: Placement): boolean {
  const folder = folders.get(folderId)
  return folder !== undefined && isView(folder)
}
