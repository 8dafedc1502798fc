/**
 * Folders that may not be there any more, and folders that are not read now.
 *
 * A folder is gone when the server says so by its name, to STATUS or SELECT, or when two full lists in a row, `apartMs`
 * apart, lack it. How many are missing at once does not matter.
 */
import { AppError, isAppError } from '../errors.ts'
import type { FolderRecord } from '../store/records.ts'

const apartMs = 30_000
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

export function isGoneMeanwhile(error: unknown): boolean {
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

/** How long a folder is put off that is refused. */
export const retryMs = 20_000
