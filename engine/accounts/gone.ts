/**
 * What the mail server may not have any more: messages, and folders.
 *
 * The disappearance of a message is held, so that a move is reported as a move: for MAILROOM_GONE_HOLD, and until all
 * folders have been looked at since, and those that moved or are new have been read. By then the message has turned up
 * elsewhere, or it is deleted. One that is back in the same folder, under whatever UID, is not reported.
 *
 * A folder is gone when the server says so by its name, to STATUS or SELECT, or when two full lists in a row, `apartMs`
 * apart, lack it. How many are missing at once does not matter.
 *
 * A folder that is refused three times with nothing read in between, or of which the server asks us to slow down, is
 * parked for six hours; one over which the session ends is put off, each time for longer, so that INBOX has its time.
 * Neither holds up the others, and both come due by themselves. The first sync, and what may have been moved into it,
 * wait for a folder that is put off, and for none that is parked.
 */
import { AppError, isAppError, toAppError } from '../errors.ts'
import type { SyncBatch } from '../store/port.ts'
import type { FolderCursor, FolderRecord, GonePlacement, MessageRecord, Place } from '../store/records.ts'
import { planGone } from './plan.ts'
import type { ListedMailbox } from './session-types.ts'
import type { AccountState, BatchParts, SyncDeps } from './state.ts'
import type { SyncContext } from './write.ts'
import type { Session } from './session/index.ts'

/** Messages looked at in one go; more when all of these have to wait. */
const step = 100
const stepMax = 6400

/** No folder that cannot be read holds back what is gone for longer than this, beyond MAILROOM_GONE_HOLD. */
const unsettledMostMs = 15 * 60_000

/**
 * Tells what is due. What our own commands took away waits only for the folders that were known to have moved by then;
 * a move that does not show in its new folder is held like any other. Entries of a folder that is still being read anew
 * after a UIDVALIDITY change wait for its end. Answers whether anything was held.
 */
export async function reportGone(deps: SyncDeps, state: AccountState): Promise<boolean> {
  if ((await deps.store.messages.gone(state.account.id, Number.MAX_SAFE_INTEGER, 1)).length === 0) return false
  const now = deps.now()
  const { before, areReadAnew } = heldUntil(deps, state, now)
  const isDueNow = (entry: GonePlacement, message: MessageRecord): boolean =>
    (!areReadAnew && isOwnDue(state, entry, message)) || isDue(state, entry, before, now)
  await reportAll(deps, state, state.hints.departures.ids(), isDueNow)
  for (let limit = step; limit <= stepMax;) {
    const found = await deps.store.messages.gone(state.account.id, before, limit)
    const isDueIn = (message: MessageRecord) => newestOf(message).some((entry) => isDueNow(entry, message))
    const due = found.filter(isDueIn).map(({ id }) => id)
    await reportAll(deps, state, due, isDueNow)
    if (found.length < limit) break
    if (due.length === 0) limit *= 4
  }
  return true
}

type IsDue = (entry: GonePlacement, message: MessageRecord) => boolean

/** Departures before that time are due. `areReadAnew`: some folder is new, and mail of others may lie in it. */
function heldUntil({ config }: SyncDeps, state: AccountState, now: number) {
  const held = now - config.MAILROOM_GONE_HOLD
  const areReadAnew = isReading(state, now, isNew)
  const settledAt = areReadAnew ? Number.NEGATIVE_INFINITY : state.moved.settledAt - 1
  // Not in the first time of a session: nothing could be read before.
  const most = now - state.beganAt < unsettledMostMs ? Number.NEGATIVE_INFINITY : held - unsettledMostMs
  return { before: Math.min(held, Math.max(settledAt, most)), areReadAnew }
}

function isOwnDue({ hints, moved }: AccountState, entry: GonePlacement, { placements }: MessageRecord): boolean {
  const hint = hints.departures.get(entry)
  if (hint === undefined || !moved.isSettled(hint.mark)) return false
  return hint.to === null || placements.some(({ folderId }) => folderId === hint.to)
}

async function reportAll(deps: SyncDeps, state: AccountState, ids: readonly string[], isDueNow: IsDue): Promise<void> {
  for (let start = 0; start < ids.length; start += step)
    await report(deps, state, ids.slice(start, start + step), isDueNow)
}

async function report(deps: SyncDeps, state: AccountState, ids: readonly string[], isDueNow: IsDue): Promise<void> {
  // A batch needs a folder. Departures have none, so they go with INBOX's.
  const inbox = state.folderByPath('INBOX')
  if (inbox === null || inbox.cursor === null) return
  let told: SyncBatch['reported'] = []
  await state.commit(inbox.id, async ({ cursor }) => {
    if (cursor === null) return null
    // Read anew: until now another batch may have found the message elsewhere.
    const rows = await deps.store.messages.byIds(state.account.id, ids)
    const all = rows.map((message) => {
      const due = newestOf(message).filter((entry) => isDueNow(entry, message))
      return departed(state, message, due, deps.now())
    })
    told = all.flatMap(({ reported }) => reported)
    return told.length === 0 ? null : { cursor, reported: told, changes: all.flatMap(({ changes }) => changes) }
  })
  for (const place of told) state.hints.departures.delete(place)
}

function isDue(state: AccountState, entry: GonePlacement, before: number, now: number): boolean {
  if (entry.at > before) return false
  const folder = state.folders.get(entry.folderId)
  // A folder that is gone may have another name now, under which it is being read.
  if (folder === undefined) return !isReading(state, now)
  return folder.cursor?.remapSince === undefined || folder.completeAt !== null
}

/** Some folder is not read to its end, of those that `which` picks. */
function isReading(
  { folders }: AccountState,
  now: number,
  which: (cursor: FolderCursor) => boolean = () => true,
): boolean {
  return folders.values().some((folder) => {
    const { cursor, completeAt } = folder
    return !isSetAside(folder, now) && cursor !== null && completeAt === null && which(cursor)
  })
}

/** Mail of other folders may lie in it. */
function isNew({ appearedAt, remapSince }: FolderCursor): boolean {
  return appearedAt !== undefined || remapSince !== undefined
}

/** Of several departures from one folder the newest counts: the others are reported with it, and make no change. */
function newestOf({ gone }: MessageRecord): GonePlacement[] {
  return [...new Map(gone.toSorted((a, b) => a.at - b.at).map((entry) => [entry.folderId, entry])).values()]
}

/** What the `entries`, the newest of their folders, report. What lies in the same folder has not left it. */
export function departed(
  { account, folders }: Pick<AccountState, 'account' | 'folders'>,
  message: MessageRecord,
  entries: readonly GonePlacement[],
  now: number,
): Required<Pick<BatchParts, 'reported' | 'changes'>> {
  const { id: messageId, placements, gone } = message
  const isOf = (of: readonly Place[]) => (entry: Place) => of.some(({ folderId }) => folderId === entry.folderId)
  const reported = gone.filter(isOf(entries)).map((entry) => ({ ...entry, messageId }))
  const isLast = (entry: Place): boolean => entry === entries.at(-1) && reported.length === gone.length
  const left = entries.filter((entry) => !isOf(placements)(entry))
  return { reported, changes: left.map((entry) => planGone(account, folders, message, entry, isLast(entry), now)) }
}

const apartMs = 30_000
/** Folders that are asked for by name at one list. */
const askedMost = 20

export function createAbsent(now: () => number) {
  let said = new Set<string>()
  /** Since when full lists lack them. */
  let since = new Map<string, number>()
  const isLong = (at: number): boolean => now() - at >= apartMs
  return {
    /** STATUS or SELECT of this path said that there is no such folder. */
    say: (path: string): void => void said.add(path),
    takeSaid(): ReadonlySet<string> {
      const taken = said
      said = new Set()
      return taken
    },
    /** A full list lacks these paths. Answers those that an earlier one in a row lacked long enough ago. */
    missing(paths: readonly string[]): string[] {
      since = new Map(paths.map((path) => [path, since.get(path) ?? now()]))
      return paths.filter((path) => isLong(since.get(path) ?? now()))
    },
    /** Another list would settle what became of a missing folder. */
    get isDue(): boolean {
      return [...since.values()].some(isLong)
    },
  }
}

/** Folders that the list does not show, or shows as holding no mail where the index has some. */
export function lackedBy({ folders }: AccountState, listed: readonly ListedMailbox[]): FolderRecord[] {
  const there = new Map(listed.map(({ path, selectable }) => [path, selectable]))
  return [...folders.values()].filter(({ path, selectable, cursor }) => {
    const shown = there.get(path)
    return shown === undefined || (!shown && (selectable || cursor !== null))
  })
}

/** A removed folder with others below it may be listed on, but has no status: it is asked for by its name too. */
export async function findGone(context: SyncContext, listed: readonly ListedMailbox[]): Promise<Set<string>> {
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
  for (const path of [...lacked.slice(0, askedMost), ...doubtful.slice(0, askedMost)]) {
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

/** Dovecot, of a folder that another client has renamed or removed, open or not, mostly without a code. */
const lostTexts =
  /mailbox (?:was|has been) (?:deleted|renamed|removed)|mailbox does(?:n't| not) exist|state is inconsistent/i

/** Answered to STATUS or SELECT: the server itself says that there is no such folder, not only its list. */
export function saysGone(error: unknown): boolean {
  const said = isAppError(error, 'not_found') && isAppError(error.cause) ? error.cause : error
  return tellsLost(said) && said.code !== 'network'
}

/** Answered to a command on a folder: the folder is lost, or another one has its name. */
export function tellsLost(error: unknown): error is AppError {
  return isAppError(error) && (error.code === 'not_found' || lostTexts.test(String(error.details['response'])))
}

/** A list has removed the folder while it was worked on. It may be there again, or under another name. */
export function goneMeanwhile(): AppError {
  const options = { retryAfterMs: 2000, details: { goneMeanwhile: true } }
  return new AppError('account_unavailable', 'the folder was removed or renamed meanwhile', options)
}

function isGoneMeanwhile(error: unknown): boolean {
  return isAppError(error) && error.details['goneMeanwhile'] === true
}

/** The folder is not read now: it holds no mail, or is parked or put off. */
export function isLeftAlone(
  { selectable, parkedUntil }: Pick<FolderRecord, 'selectable' | 'parkedUntil'>,
  now: number,
): boolean {
  return !selectable || (parkedUntil ?? 0) > now
}

/** The folder is not waited for: it holds no mail, or is parked. A folder that is only put off is due again soon. */
export function isSetAside(folder: Pick<FolderRecord, 'selectable' | 'parkedUntil'>, now: number): boolean {
  return isLeftAlone(folder, now + retryMs)
}

/** Its mail is not waited for by what is answered: of a folder that was opened it is, while that is only put off. */
export function isGivenUp(folder: Pick<FolderRecord, 'selectable' | 'parkedUntil' | 'cursor'>, now: number): boolean {
  return folder.cursor === null ? isLeftAlone(folder, now) : isSetAside(folder, now)
}

const parkAfter = 3
const parkMs = 6 * 3_600_000
const retryMs = 20_000
/** The first time after the session has ended over the folder, and twice as long each further time in a row. */
const endedMs = 5000
/** These concern one folder alone. */
const folderFailures = new Set(['server_refused', 'not_found'])

/** A failure after which the session goes on with other folders. */
export function isOfFolder(error: unknown): boolean {
  return (
    isGoneMeanwhile(error) ||
    (isAppError(error) && (folderFailures.has(error.code) || error.details['slowDown'] === true))
  )
}

/** These end the session, and may be due to the folder. */
const sessionFailures = new Set(['network', 'timeout', 'protocol'])

type Parked = Pick<FolderRecord, 'failures' | 'parkedUntil'>

async function setParked(deps: SyncDeps, state: AccountState, id: string, parked: Parked): Promise<void> {
  await deps.store.folders.setParked(id, parked.failures, parked.parkedUntil)
  state.change(id, parked)
}

/** The folders are not parked any more; their failures count on. */
export async function tryAgain(deps: SyncDeps, state: AccountState, parked: readonly FolderRecord[]): Promise<void> {
  for (const { id, failures, parkedUntil } of parked)
    if (parkedUntil !== null) await setParked(deps, state, id, { failures, parkedUntil: null })
}

/** Answers how to work on a folder. A failure that concerns this folder alone is recorded; any other rejects. */
export function createParking(sync: SyncDeps, state: AccountState) {
  async function putOff(folder: FolderRecord, error: AppError): Promise<void> {
    const { path, cursor } = folder
    const failures = folder.failures + 1
    if (saysGone(error)) {
      if (cursor !== null) state.absent.say(path)
      // The list says what became of it, also of one that was never opened.
      state.askLook()
    }
    const isParked = error.details['slowDown'] === true || (folderFailures.has(error.code) && failures >= parkAfter)
    const waitMs = folderFailures.has(error.code) ? retryMs : Math.min(parkMs, endedMs * 2 ** (failures - 1))
    sync.log.warn(
      { accountId: state.account.id, folder: path, failures, reason: error.message },
      isParked ? 'folder parked' : 'folder refused',
    )
    const parkedUntil = sync.now() + (isParked ? parkMs : waitMs)
    await setParked(sync, state, folder.id, { failures, parkedUntil })
  }

  return async (path: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work()
      const folder = state.folderByPath(path)
      if (folder !== null && folder.failures > 0)
        await setParked(sync, state, folder.id, { failures: 0, parkedUntil: null })
    } catch (cause) {
      const error = toAppError(cause)
      const mayBe = path !== 'INBOX' && sessionFailures.has(error.code) && !state.hasEnded()
      const folder = isGoneMeanwhile(error) || !(isOfFolder(error) || mayBe) ? null : state.folderByPath(path)
      if (state.folderByPath(path) === null) state.moved.forget(path)
      if (folder !== null) await putOff(folder, error)
      if (!isOfFolder(error)) throw error
    }
  }
}
