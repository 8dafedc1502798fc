/**
 * The watching session's work besides INBOX: dirty folders, then backfill. A folder that the server refuses does not
 * hold up the others (parking.ts).
 *
 * Backfill reads the mail that lay in a folder before its first SELECT, newest first, a page at a time, and resumes at
 * the cursor's `backfillBelow`. Each page needs a place in a queue of all accounts; the session listens meanwhile.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isAppError } from '../errors.ts'
import type { Asked, FairQueue } from '../fair-queue.ts'
import type { KnownHost } from './hosts.ts'
import { isParked, isParkedLong } from './absent.ts'
import { reportGone } from './departures.ts'
import type { Touched } from './dirty-folders.ts'
import { createParking, isOfFolder } from './parking.ts'
import { progressOf } from './progress.ts'
import type { AccountState } from './state.ts'
import { catchUp, dayMs, forget, hasModseqs, openInbox } from './sync.ts'
import type { AccountRecord, FolderRecord } from '../store/records.ts'
import { messageId } from '../store/ids.ts'
import { serverIdentity } from './identity.ts'
import type { ReadMessage } from './plan.ts'
import { readUids } from './read.ts'
import type { IdentifiedFlags } from './session-types.ts'
import { toSet } from './session/uids.ts'
import { cursorOf, type FolderContext, quarantine, rowsById, storeRead, type SyncContext } from './write.ts'
import type { Session } from './session/index.ts'

/** INBOX waits while a page is read: after a page that took longer the next pages are shorter. */
const pageMs = 1000
const shortestPage = 10

export interface BackgroundOptions {
  readonly host: KnownHost
  /** Bounds how many accounts backfill at once; a place is for one page. */
  readonly backfilling: Pick<FairQueue, 'run'>
  /** Called once per actor, when every folder is complete. */
  readonly onComplete: () => Promise<void>
  /** Old mail of this account, over all its sessions. */
  readonly traffic: Traffic
}

/** Gmail closes an account that has sent 2,500 MB in a day to all mail programs, for a day. */
const mostBytesADay = 1_000_000_000

export type Traffic = ReturnType<typeof createTraffic>

export function createTraffic(now: () => number) {
  let bytes = 0
  let endsAt = 0
  return {
    /** Counts bytes of old mail. Returns when more may be read, in ms since 1970; 0 = now. */
    count(more: number): number {
      if (now() >= endsAt) [bytes, endsAt] = [0, now() + dayMs]
      bytes += more
      return bytes < mostBytesADay ? 0 : endsAt
    },
  }
}

interface Place {
  /** Aborts at its deadline. */
  readonly late: AbortSignal
  readonly end: () => void
}

type Turn = Omit<Asked, 'urgent'>

/** Places in a queue, one at a time. `wake` is called when a place comes, and when it has ended. */
export function createPlaces(turn: Turn, queue: Pick<FairQueue, 'run'>, wake: () => void, signal: AbortSignal) {
  let place: Place | null = null
  let isAsked = false
  const hold = async (late: AbortSignal): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<null>()
    const end = (): void => resolve(null)
    late.addEventListener('abort', end, { once: true })
    place = { late, end }
    wake()
    await promise
  }
  return {
    get held(): Place | null {
      return place
    },
    /** Resolves when the place has ended: by `end`, or at its deadline. */
    async ask(): Promise<void> {
      if (isAsked) return
      isAsked = true
      await queue.run({ ...turn, urgent: false }, hold, signal).catch(() => undefined)
      isAsked = false
      place = null
      wake()
    },
  }
}

const ownTurn = ({ developerId, id }: AccountRecord): Turn => ({ developerId, key: id })

export function createBackground(
  context: SyncContext,
  { host, backfilling, onComplete, traffic }: BackgroundOptions,
  wake: () => void,
  signal: AbortSignal,
) {
  const { deps, state, session } = context
  const { now, config } = deps
  const { moved } = state
  const park = createParking(deps, state)
  const places = createPlaces(ownTurn(state.account), backfilling, wake, signal)
  let isTold = false
  /** Between two pages. */
  let pausedUntil = 0

  async function readFound(path: string): Promise<void> {
    const reading = () => moved.reading(path, (touched) => catchUp(context, path, touched))
    await (path === 'INBOX' ? reading() : park(path, reading))
    await reportGone(context)
  }

  async function readPage({ id, path }: FolderRecord, { late, end }: Place): Promise<void> {
    const size = Math.min(config.MAILROOM_SYNC_BATCH, host.page)
    const [began, received] = [now(), session.received]
    let messages = size
    try {
      const page = async (): Promise<void> => void (messages = await backfillOpened({ ...context, folderId: id }, size))
      await park(path, () => endable(session, late, page))
    } finally {
      learnPage(host, messages, now() - began)
      pausedUntil = Math.max(now() + config.MAILROOM_BACKFILL_PAUSE, countSince(context, traffic, received))
      end()
    }
  }

  async function readOld(folder: FolderRecord): Promise<boolean> {
    if (now() >= pausedUntil) void places.ask()
    // A free place comes at once: the session need not enter IDLE before.
    await nextTurn()
    if (places.held === null) return false
    await readPage(folder, places.held)
    return true
  }

  return {
    /** Reads one folder, or one page. Returns whether there was anything to do. */
    async work(): Promise<boolean> {
      const path = moved.first() ?? nextToOpen(state, now())
      if (path !== undefined) {
        await readFound(path)
        return true
      }
      const old = nextToBackfill(state, now())
      if (old !== null) return readOld(old)
      places.held?.end()
      if (isTold || !isComplete(state, now())) return false
      isTold = true
      await onComplete()
      return true
    },
    /** Without asking for a place. */
    isDue: (): boolean => moved.isCalled() || moved.first() !== undefined || places.held !== null,
    /** When a pause ends, or the time of a parked folder, in ms since 1970. */
    get at(): number {
      const due = Array.from(state.folders.values(), ({ parkedUntil }) => parkedUntil ?? 0)
      return Math.min(...[pausedUntil, ...due].filter((at) => at > now()))
    },
  }
}

/** Reads the folders that calls wait for, INBOX too. A refusal rejects the calls, and the folder stays marked. */
export async function answerCalls(context: SyncContext): Promise<void> {
  const { moved } = context.state
  for (let path = moved.firstCalled(); path !== undefined; path = moved.firstCalled()) {
    const called = path
    await moved
      .reading(called, (touched) => catchUpFirst(context, called, touched))
      .catch((error: unknown) => {
        if (!isOfFolder(error)) throw error
      })
    await reportGone(context)
  }
}

/** A folder that has never been opened; INBOX has been. */
function nextToOpen({ folders }: AccountState, now: number): string | undefined {
  return folders.values().find((folder) => folder.cursor === null && !isParked(folder, now))?.path
}

/** The session ends at the deadline, which is then its reason: a command that is under way ends no other way. */
async function endable(session: Session, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  const end = (): void => session.end(isAppError(signal.reason) ? signal.reason : null)
  signal.addEventListener('abort', end, { once: true })
  return work().finally(() => signal.removeEventListener('abort', end))
}

/** Adapts the page size of the host, for all its accounts. */
function learnPage(host: KnownHost, messages: number, ms: number): void {
  if (ms > pageMs) host.page = Math.max(shortestPage, Math.floor(messages / 2))
  else if (ms < pageMs / 4) host.page = Math.max(host.page, 2 * messages)
}

/** Catches up with the folder, and backfills its first page. */
export async function catchUpFirst(context: SyncContext, path: string, touched: Touched = []): Promise<void> {
  await catchUp(context, path, touched)
  const folder = context.state.folderByPath(path)
  if (folder !== null) await backfillFirst({ ...context, folderId: folder.id })
}

/** Backfills the newest page of a folder whose backfill has not begun. */
export async function backfillFirst(context: FolderContext): Promise<void> {
  const { backfillBelow, uidNext } = cursorOf(context)
  if (backfillBelow > 1 && backfillBelow === uidNext)
    await backfillPage(context, context.deps.config.MAILROOM_SYNC_BATCH)
}

/** Selects the folder, and reads a page; a folder with a changed UIDVALIDITY is caught up instead. */
export async function backfillOpened(context: FolderContext, size: number): Promise<number> {
  const { session, state, folderId } = context
  const path = state.folders.get(folderId)?.path ?? ''
  const cursor = cursorOf(context)
  // A server without modseqs gives the flags of the time of its last untagged responses.
  if (session.selected?.path === path && !hasModseqs(session, cursor)) await session.noop()
  if (path === 'INBOX') await openInbox(context)
  const { uidValidity } = await session.select(path)
  if (uidValidity !== null && uidValidity !== cursor.uidValidity) {
    await catchUp(context, path)
    return size
  }
  // A crash may have come between the new cursor and `forget`.
  if (cursor.remapSince !== undefined) await forget(context, folderId, cursor.uidValidity)
  return backfillPage(context, size)
}

/** Reads the newest unread messages, `size` of them at most. Returns how many. */
async function backfillPage(context: FolderContext, size: number): Promise<number> {
  const { session, state, deps } = context
  const begun = deps.now()
  const { backfillBelow, exists, uidNext } = cursorOf(context)
  let from = backfillBelow
  let found: readonly number[] = []
  // The first range has about two pages.
  for (let width = Math.ceil((2 * size * uidNext) / Math.max(1, exists)); found.length === 0 && from > 1; width *= 2) {
    const to = from - 1
    from = Math.max(1, from - width)
    found = await session.searchUids(`${from}:${to}`)
  }
  const uids = found.slice(-size)
  const known = await knownElsewhere(context, uids)
  const unknown = new Set(uids).difference(new Set(known.map(({ fetched: { uid } }) => uid)))
  const { messages, poison } = await readUids(session, [...unknown])
  const below = found.length > size ? Math.min(...uids) : from
  await storeRead(context, {
    ...{ messages, known },
    source: 'backfill',
    move: ({ remapSince, ...cursor }) => ({
      ...cursor,
      ...(below <= 1 || remapSince === undefined ? {} : { remapSince }),
      backfillBelow: below <= 1 ? 0 : Math.min(cursor.backfillBelow, below),
      ...quarantine(cursor, poison),
    }),
  })
  if (state.pace.page(begun, uids.length)) {
    const progress = progressOf([...state.folders.values()], state.pace.perSecond())
    deps.log.info({ accountId: state.account.id, ...progress }, 'old mail is being read')
  }
  return uids.length
}

/** `received`: bytes of the session before the page. Returns when more may be read, in ms since 1970; 0 = now. */
function countSince({ deps, state, session }: SyncContext, traffic: Traffic, received: number): number {
  const until = isGmail(session) ? traffic.count(session.received - received) : 0
  if (until > 0) deps.log.warn({ accountId: state.account.id, until }, 'old mail waits: Gmail gives no more in a day')
  return until
}

function isGmail({ capabilities }: Session): boolean {
  return capabilities.identity === 'gmail'
}

/** Gmail has a message in All Mail and under each of its labels: messages of the index are not read again. */
async function knownElsewhere(context: FolderContext, uids: readonly number[]): Promise<ReadMessage[]> {
  const { session, state } = context
  if (!isGmail(session) || uids.length === 0) return []
  const idOf = ({ emailId }: IdentifiedFlags) => messageId(state.account.id, serverIdentity(emailId ?? '', 'gmail'))
  const listed = (await session.fetchIds(toSet(uids))) ?? []
  const rows = await rowsById(context, listed.map(idOf))
  return listed.flatMap((fetched) => {
    const row = rows.get(idOf(fetched))
    return row === undefined ? [] : [{ id: row.id, identity: row.identity, facts: row, fetched }]
  })
}

/** The next folder to backfill: INBOX, then Sent, then the others as listed. */
export function nextToBackfill(state: AccountState, now: number): FolderRecord | null {
  const open = [...state.folders.values()].filter(
    (folder) => !isParked(folder, now) && (folder.cursor?.backfillBelow ?? 0) > 1,
  )
  const rank = (path: string, use: string | null) => (path === 'INBOX' ? 0 : use === '\\Sent' ? 1 : 2)
  return open.sort((a, b) => rank(a.path, a.specialUse) - rank(b.path, b.specialUse))[0] ?? null
}

/** Whether every folder is complete, except those that are parked long. */
function isComplete(state: AccountState, now: number): boolean {
  return state.folders.values().every((folder) => isParkedLong(folder, now) || folder.completeAt !== null)
}
