/**
 * Folders that the mail server may not have any more, and folders that it refuses.
 *
 * A folder is gone when the server says so by its name, to STATUS or SELECT, or when two full lists in a row, `apartMs`
 * apart, lack it. How many are missing at once does not matter.
 *
 * A folder that cannot be opened three times, or of which the server asks us to slow down, is parked for six hours. It
 * does not hold up the others, and comes due by itself.
 */
import { type AppError, isAppError, toAppError } from '../errors.ts'
import type { FolderRecord } from '../store/records.ts'
import type { ListedMailbox, Session } from './session-types.ts'
import type { AccountState, SyncDeps } from './state.ts'
import type { SyncContext } from './write.ts'

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
    /** What was said since the last call. */
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
export async function findGone(
  { session, state }: SyncContext,
  listed: readonly ListedMailbox[],
): Promise<Set<string>> {
  const said = state.absent.takeSaid()
  const shown = new Map(listed.map((mailbox) => [mailbox.path, mailbox]))
  const isFull = listed.some(({ byName }) => !byName)
  const lacked = lackedBy(state, listed)
    .map(({ path }) => path)
    .filter(isRemovable)
  const gone = new Set([...said].filter(isRemovable))
  for (const path of isFull ? state.absent.missing(lacked) : []) gone.add(path)
  const isDoubtful = ({ path, selectable, status }: ListedMailbox): boolean =>
    session.capabilities.listStatus && selectable && status === null && hasCursor(state, path) && isRemovable(path)
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

function hasCursor(state: AccountState, path: string): boolean {
  return (state.folderByPath(path)?.cursor ?? null) !== null
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

const parkAfter = 3
const parkMs = 6 * 3_600_000
const retryMs = 20_000
/** These concern one folder alone. */
const folderFailures = new Set(['server_refused', 'not_found'])

/** Answers how to work on a folder. A failure that concerns this folder alone is recorded; any other rejects. */
export function createParking(sync: SyncDeps, state: AccountState) {
  const failures = new Map<string, number>()

  async function putOff(path: string, error: AppError, slowDown: boolean): Promise<void> {
    const count = (failures.get(path) ?? 0) + 1
    failures.set(path, count)
    const folder = state.folderByPath(path)
    if (folder === null) return
    if (saysGone(error) && folder.cursor !== null) {
      state.absent.say(path)
      state.askLook(path)
    }
    const park = slowDown || count >= parkAfter
    const parkedUntil = sync.now() + (park ? parkMs : retryMs)
    sync.log.warn(
      { accountId: state.account.id, folder: path, failures: count, reason: error.message },
      park ? 'folder parked' : 'folder refused',
    )
    await sync.store.folders.setParked(folder.id, count, parkedUntil)
    state.change(folder.id, { failures: count, parkedUntil })
  }

  return async (path: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work()
      failures.delete(path)
    } catch (cause) {
      const error = toAppError(cause)
      const slowDown = error.details['slowDown'] === true
      if (!folderFailures.has(error.code) && !slowDown) throw error
      await putOff(path, error, slowDown)
    }
  }
}
