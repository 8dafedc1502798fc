/**
 * Decides when a folder has left the server, and which folders are not read now.
 *
 * A folder is gone when STATUS or SELECT says so, or when two full lists in a row, `apartMs` apart, lack it. How many
 * folders are missing at once does not matter.
 */
import { AppError, isAppError } from '../errors.ts'
import type { FolderRecord } from '../store/records.ts'

const apartMs = 30_000

export function createAbsent(now: () => number) {
  let reported = new Set<string>()
  let hasListed = false
  /** By path: since when full lists lack the folder. */
  let since = new Map<string, number>()
  let listedPaths = new Set<string>()
  let hasLost = false
  const isLong = (at: number): boolean => now() - at >= apartMs
  return {
    /** STATUS or SELECT of this path said that there is no such folder. */
    reportMissing: (path: string): void => void reported.add(path),
    /** Without the reports from before the first list, which tells the server's form of odd names. */
    drainReportedMissing(): ReadonlySet<string> {
      const drained = hasListed ? reported : new Set<string>()
      hasListed = true
      reported = new Set()
      return drained
    },
    /** A full list lacks these paths. Returns those that an earlier list in a row lacked long enough ago. */
    missing(paths: readonly string[]): string[] {
      since = new Map(paths.map((path) => [path, since.get(path) ?? now()]))
      return paths.filter((path) => isLong(since.get(path) ?? now()))
    },
    /** A list of this session has these paths, without the folders that are gone. */
    noteListed(paths: readonly string[]): void {
      const newest = new Set(paths)
      hasLost ||= !listedPaths.isSubsetOf(newest)
      listedPaths = newest
    },
    /** A command of ours has removed the folder. */
    noteRemoved: (path: string): void => void listedPaths.delete(path),
    /** Whether a list of this session lacked a path of an earlier list. */
    get hasLost(): boolean {
      return hasLost
    },
    /** Whether another list would decide about a missing folder. */
    get isDue(): boolean {
      return since.values().some(isLong)
    },
  }
}

/** Texts of Dovecot for a folder that another client has renamed or removed, mostly without a code. */
const lostTexts =
  /mailbox (?:was|has been) (?:deleted|renamed|removed)|mailbox does(?:n't| not) exist|state is inconsistent/i

/** Whether STATUS or SELECT failed because the server has no such folder. */
export function isFolderGone(error: unknown): boolean {
  const said = isAppError(error, 'not_found') && isAppError(error.cause) ? error.cause : error
  return isFolderLost(said) && said.code !== 'network'
}

/** Whether a command failed because the selected folder is gone, or its name is another folder's. */
export function isFolderLost(error: unknown): error is AppError {
  return isAppError(error) && (error.code === 'not_found' || lostTexts.test(String(error.details['response'])))
}

/** A list has removed the folder during the work. The folder may come back, or have another name. */
export function goneMeanwhile(): AppError {
  const options = { retryAfterMs: 2000, details: { goneMeanwhile: true } }
  return new AppError('account_unavailable', 'the folder was removed or renamed meanwhile', options)
}

export function isGoneMeanwhile(error: unknown): boolean {
  return isAppError(error) && error.details['goneMeanwhile'] === true
}

type Parked = Pick<FolderRecord, 'selectable' | 'parkedUntil'>

/** Whether the folder is not read now: it holds no mail, or is parked, for however short a time. */
export function isParked({ selectable, parkedUntil }: Parked, now: number): boolean {
  return !selectable || (parkedUntil ?? 0) > now
}

/** Whether nothing waits for the folder: it holds no mail, or is parked for longer than `retryMs`. */
export function isParkedLong(folder: Parked, now: number): boolean {
  return isParked(folder, now + retryMs)
}

/** Whether no answer waits for the folder's mail. A folder without a cursor is not waited for while it is parked. */
export function isUnawaited(folder: Parked & Pick<FolderRecord, 'cursor'>, now: number): boolean {
  return folder.cursor === null ? isParked(folder, now) : isParkedLong(folder, now)
}

/** How long a refused folder is parked at first. */
export const retryMs = 20_000
