/**
 * What goes on beside the watching: folders that moved are caught up over the command connection, then folders are
 * back-filled, one batch at a time. While a batch waits for its place among all accounts, the others go on. A folder
 * that the server refuses does not hold up the others (gone.ts).
 *
 * Back-fill reads what lay in a folder before it was first opened, newest first, in bounded batches. Resumable: the
 * cursor's `backfillBelow` says how far it came. Each batch is one task at the lowest priority, so that API calls and
 * live mail go first: of INBOX for the watching connection, of other folders for the command connection.
 */
import { isAppError, toAppError } from '../errors.ts'
import type { FairQueue } from '../fair-queue.ts'
import type { KnownHost } from './hosts.ts'
import type { Link } from './link.ts'
import { createParking, isLeftAlone, isSetAside, reportOwn } from './gone.ts'
import type { Session } from './session-types.ts'
import type { AccountState, SyncDeps } from './state.ts'
import { catchUp, type Touched } from './sync.ts'
import type { FolderCursor, FolderRecord } from '../store/records.ts'
import { readUids } from './read.ts'
import { cursorOf, type FolderContext, moveCursor, quarantine, storeRead, type SyncContext } from './write.ts'
import { pause } from '../waits.ts'

const retryFirstMs = 2_000
const retryMaxMs = 5 * 60_000
const lookAgainMs = 60_000
/** How long an account back-fills in a row while others of its developer wait: each new turn may cost a login. */
const turnMs = 30_000
/** While a page of INBOX is read its news wait: after one that took longer the next ones are shorter. */
const pageMs = 1000
const shortestPage = 10
/** These concern the account, not one folder: the watching actor has to know. */
const accountFailures = new Set([
  'auth_rejected',
  'consent_lost',
  'permission',
  'lease_lost',
  'store_unavailable',
  'throttled',
  'internal',
])

interface BackgroundDeps {
  readonly sync: SyncDeps
  readonly state: AccountState
  readonly link: Link
  readonly host: KnownHost
  /** Bounds how many accounts back-fill at once; a place is lent for one batch. */
  readonly backfilling: FairQueue
  /** Every folder has been read to its end; called once per actor, and again when it rejects. */
  readonly onComplete: () => Promise<void>
}

type WorkOnce = (signal: AbortSignal) => Promise<boolean>

export function createBackground(deps: BackgroundDeps) {
  const { sync, state, link, onComplete } = deps
  const park = createParking(sync, state)
  const wakes: (() => void)[] = []
  let complete = false
  /** Before old mail: folders that moved, and such as were never opened. */
  const next = (): string | undefined => state.moved.first ?? nextToOpen(state, sync.now())
  const backfill = createBackfill(deps, () => next() !== undefined)
  const wakeAll = (): void => {
    for (const wake of wakes) wake()
  }
  state.moved.onFound(wakeAll)

  const catchUpOne: WorkOnce = async () => {
    const path = next()
    if (path === undefined) return false
    const read = () => link.run('live', (session) => catchUp({ deps: sync, state, session }, path))
    await state.moved.catchUp(path, () => park(path, read))
    await reportOwn(sync, state)
    // Old mail has waited for it.
    wakeAll()
    return true
  }

  const backfillOne: WorkOnce = async (signal) => {
    if (next() !== undefined) return false
    const folderId = nextToBackfill(state, sync.now())
    if (folderId !== null) {
      await park(state.folders.get(folderId)?.path ?? folderId, () => backfill(folderId, signal))
      return true
    }
    if (!complete && isComplete(state, sync.now())) {
      // Between two batches: what one planned before must be stored before (ChangeListener.planOld).
      complete = await state.exclusive(async () => {
        // The batch before may have brought a folder that is not read yet.
        if (!isComplete(state, sync.now())) return false
        await onComplete()
        return true
      })
    }
    return false
  }

  function worker(workOnce: WorkOnce): (signal: AbortSignal) => Promise<void> {
    let woken = new AbortController()
    wakes.push(() => {
      woken.abort('woken')
    })
    const rest = async (since: number, signal: AbortSignal): Promise<void> => {
      await pause(restMs(state, since), AbortSignal.any([signal, woken.signal]))
      woken = new AbortController()
    }
    return (signal) => run(deps, workOnce, rest, signal)
  }

  const workers = [worker(catchUpOne), worker(backfillOne)]
  /** Works until the signal aborts. Rejects only with what concerns the whole account. */
  return async (signal: AbortSignal): Promise<void> => {
    await Promise.all(workers.map((work) => work(signal)))
  }
}

/** A folder that has never been opened; INBOX is the watching session's. */
function nextToOpen({ folders }: AccountState, now: number): string | undefined {
  const isDue = (folder: FolderRecord): boolean => folder.cursor === null && !isLeftAlone(folder, now)
  return folders.values().find((folder) => folder.path !== 'INBOX' && isDue(folder))?.path
}

/** From `since`, when nothing was due, to the next parked folder: until then what lies in it is not in the index. */
function restMs({ folders }: AccountState, since: number): number {
  const due = Array.from(folders.values(), ({ parkedUntil }) => (parkedUntil ?? 0) - since)
  return Math.min(lookAgainMs, ...due.filter((ms) => ms > 0))
}

async function run(
  { sync, state }: BackgroundDeps,
  workOnce: WorkOnce,
  rest: (since: number, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let attempt = 0
  while (!signal.aborted) {
    try {
      const since = sync.now()
      if (!(await workOnce(signal))) await rest(since, signal)
      attempt = 0
    } catch (error) {
      const problem = toAppError(error)
      if (isAborted(signal)) return
      if (accountFailures.has(problem.code)) throw problem
      attempt += 1
      sync.log.info(
        { accountId: state.account.id, code: problem.code, reason: problem.message },
        'command connection failed; trying again',
      )
      await pause(Math.min(retryMaxMs, problem.retryAfterMs ?? retryFirstMs * 2 ** attempt), signal)
    }
  }
}

/** Read anew: it may change while awaiting, which the compiler does not know. */
const isAborted = (signal: AbortSignal): boolean => signal.aborted

/** Interrupted between two batches by live mail in other folders, and by the end of the turn while others wait. */
function createBackfill({ sync, state, link, host, backfilling }: BackgroundDeps, isMoved: () => boolean) {
  /** Until then the account goes before others of its developer: its connection is open. */
  let turnEndsAt = 0

  /** One batch, with a place. The time that a login takes is not the batch's. */
  const inTurn = async <T>(path: string, task: Task<T>, signal: AbortSignal): Promise<T> => {
    const { id, developerId } = state.account
    const isWatched = path === 'INBOX'
    if (!isWatched && !link.open) await link.run('backfill', () => Promise.resolve())
    const urgent = sync.now() < turnEndsAt
    const batch = async (late: AbortSignal): Promise<T> => {
      if (!urgent) turnEndsAt = sync.now() + turnMs
      const work = (session: Session): Promise<T> =>
        endable(session, late, async () => {
          await session.select(path)
          return task(session)
        })
      return isWatched ? state.moved.readOld(work) : link.run('backfill', work)
    }
    try {
      return await backfilling.run({ developerId, key: id, urgent }, batch, signal)
    } catch (error) {
      // The other accounts of the developer go before the next try.
      turnEndsAt = 0
      throw error
    }
  }

  return async (folderId: string, signal: AbortSignal): Promise<void> => {
    const pauseMs = sync.config.MAILROOM_BACKFILL_PAUSE
    const interrupted = new AbortController()
    const both = AbortSignal.any([signal, interrupted.signal])
    const job: BackfillJob = {
      deps: sync,
      state,
      host,
      onFolder: (path, task) => inTurn(path, task, both),
      pause: async () => {
        const turnOver = backfilling.waiting > 0 && sync.now() >= turnEndsAt
        if (isMoved() || turnOver) interrupted.abort()
        else if (pauseMs > 0) await pause(pauseMs, both)
      },
    }
    await backfillFolder(job, folderId, both)
  }
}

/** The session ends at the deadline, which is then its reason: a command that is under way ends no other way. */
async function endable<T>(session: Session, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const end = (): void => session.end(isAppError(signal.reason) ? signal.reason : null)
  signal.addEventListener('abort', end, { once: true })
  return work().finally(() => signal.removeEventListener('abort', end))
}

/** Work on a session that has the folder selected. */
type Task<T> = (session: Session) => Promise<T>

interface BackfillJob {
  readonly deps: SyncDeps
  readonly state: AccountState
  readonly host: KnownHost
  readonly onFolder: <T>(path: string, task: Task<T>) => Promise<T>
  readonly pause: (signal: AbortSignal) => Promise<void>
}

/** UIDs still to read, newest first. */
export async function remainingUids(session: Session, cursor: FolderCursor): Promise<number[]> {
  if (cursor.backfillBelow <= 1) return []
  const uids = await session.searchUids(`1:${cursor.backfillBelow - 1}`)
  return uids.reverse()
}

export async function backfillFolder(job: BackfillJob, folderId: string, signal: AbortSignal): Promise<void> {
  const { deps, state } = job
  const path = state.folders.get(folderId)?.path
  const folder = { state, folderId }
  if (path === undefined || cursorOf(folder).backfillBelow <= 1) return
  const { uidValidity } = cursorOf(folder)
  // UIDs of before a UIDVALIDITY change mean nothing after it: the folder's turn comes again.
  const isOver = (): boolean => signal.aborted || cursorOf(folder).uidValidity !== uidValidity
  const uids = await job.onFolder(path, (session) => remainingUids(session, cursorOf(folder)))
  for (let at = 0; at < uids.length;) {
    if (isOver()) return
    const page = uids.slice(at, at + pageSize(job, path))
    await job.onFolder(path, async (session) => {
      if (!isOver()) await timed(job, page.length, () => backfillPage({ ...folder, deps, session }, page))
    })
    at += page.length
    await job.pause(signal)
  }
  if (isOver()) return
  await moveCursor(folder, (newest) => {
    if (newest.uidValidity !== uidValidity) return newest
    const cursor = { ...newest, backfillBelow: 0 }
    delete cursor.remapSince
    return cursor
  })
}

function pageSize({ deps: { config }, host }: BackfillJob, path: string): number {
  return Math.min(config.MAILROOM_SYNC_BATCH, path === 'INBOX' ? host.page : Infinity)
}

/** All accounts of the host learn from a page of so many messages. */
async function timed({ deps: { now }, host }: BackfillJob, messages: number, work: () => Promise<void>): Promise<void> {
  const began = now()
  try {
    await work()
  } finally {
    const ms = now() - began
    if (ms > pageMs) host.page = Math.max(shortestPage, Math.floor(messages / 2))
    else if (ms < pageMs / 4) host.page = Math.max(host.page, 2 * messages)
  }
}

/** Catches up with the folder, and reads its newest page where nothing was read yet. */
export async function catchUpFirst(context: SyncContext, path: string, touched: Touched = []): Promise<void> {
  await catchUp(context, path, touched)
  const folder = context.state.folderByPath(path)
  if (folder !== null) await backfillFirst({ ...context, folderId: folder.id })
}

/** The newest page of a folder of which nothing was read yet; what it has from then on is enough to show. */
export async function backfillFirst(context: FolderContext): Promise<void> {
  const { deps, session } = context
  const cursor = cursorOf(context)
  if (cursor.backfillBelow <= 1 || cursor.backfillBelow !== cursor.uidNext) return
  const uids = await remainingUids(session, cursor)
  await backfillPage(context, uids.slice(0, deps.config.MAILROOM_SYNC_BATCH))
}

export async function backfillPage(context: FolderContext, page: readonly number[]): Promise<void> {
  if (page.length === 0) return
  const { messages, poison } = await readUids(context.session, page)
  const lowest = Math.min(...page)
  await storeRead(context, {
    messages,
    source: 'backfill',
    move: (cursor) => ({
      ...cursor,
      backfillBelow: Math.min(cursor.backfillBelow, lowest),
      ...quarantine(cursor, poison),
    }),
  })
}

/** The next folder to back-fill: INBOX first, then Sent, then the others as listed. */
export function nextToBackfill(state: AccountState, now: number): string | null {
  const open = [...state.folders.values()].filter(
    (folder) => !isLeftAlone(folder, now) && (folder.cursor?.backfillBelow ?? 0) > 1,
  )
  const rank = (path: string, use: string | null) => (path === 'INBOX' ? 0 : use === '\\Sent' ? 1 : 2)
  return open.sort((a, b) => rank(a.path, a.specialUse) - rank(b.path, b.specialUse))[0]?.id ?? null
}

/** Every selectable folder has been opened and read to its end (those that are set aside do not hold this up). */
function isComplete(state: AccountState, now: number): boolean {
  return state.folders.values().every((folder) => isSetAside(folder, now) || folder.completeAt !== null)
}
