/**
 * Folders of the index that the mail server may not have any more. One is gone when the server says so by its name, to STATUS or
 * SELECT, or when two full lists in a row, this far apart, lack it. How many are missing at once does not matter.
 */
import { isAppError } from '../errors.ts'
import type { FolderRecord } from '../store/records.ts'
import { saysGone } from './lost.ts'
import type { ListedMailbox, Session } from './session-types.ts'
import type { AccountState } from './state.ts'
import type { SyncContext } from './write.ts'

const apartMs = 30_000
/** Folders that are asked for by name at one list. */
const askedMost = 20

export interface Absent {
  /** STATUS or SELECT of this path said that there is no such folder. */
  say(path: string): void
  /** What was said since the last time. */
  takeSaid(): ReadonlySet<string>
  /** A full list lacks these paths; answers those that an earlier one in a row lacked long enough ago. */
  missing(paths: readonly string[]): string[]
  /** Another list would settle what became of a missing folder. */
  readonly isDue: boolean
}

export function createAbsent(now: () => number): Absent {
  let said = new Set<string>()
  /** Since when full lists lack them. */
  let since = new Map<string, number>()
  const isLong = (at: number): boolean => now() - at >= apartMs
  return {
    say: (path) => void said.add(path),
    takeSaid() {
      const taken = said
      said = new Set()
      return taken
    },
    missing(paths) {
      since = new Map(paths.map((path) => [path, since.get(path) ?? now()]))
      return paths.filter((path) => isLong(since.get(path) ?? now()))
    },
    get isDue() {
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

/**
 * A removed folder that has others below it is listed on, by Dovecot even as one that holds mail, but has no status: it is asked for by
 * its name too.
 */
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
