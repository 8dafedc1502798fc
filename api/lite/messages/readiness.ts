/** Never an empty list for what has not been read: a folder without its first page is a 503 that says why and when to come back. */
import { AppError, type FolderRecord } from '../../../engine/index.ts'
import type { Call } from '../../route.ts'

const comeBackMs = 2000

/** Call when a list is empty. `folder` null = the whole account, which is readable once INBOX is. */
export function mustBeRead(
  call: Call,
  accountId: string,
  folder: FolderRecord | null,
  folders: readonly FolderRecord[],
): void {
  const wanted = folder ?? folders.find(({ path }) => path === 'INBOX') ?? null
  if (wanted !== null && (!wanted.selectable || isRead(wanted))) return
  const view = call.engine.accounts.view(accountId)
  const why = view?.lastError?.message
  const next = view?.next ?? null
  const name = wanted?.path ?? 'INBOX'
  throw new AppError(
    'account_unavailable',
    `folder ${name} has not been read yet${why === undefined ? '' : `: ${why}`}`,
    { retryAfterMs: next === null ? comeBackMs : Math.max(comeBackMs, next.at - Date.now()) },
  )
}

/** Opened, and either empty or past its first page. */
function isRead({ cursor, messages }: FolderRecord): boolean {
  if (cursor === null) return false
  const untouched = cursor.backfillBelow > 1 && cursor.backfillBelow >= (cursor.liveFrom ?? cursor.uidNext)
  return !(untouched && Math.max(messages, cursor.exists) > 0)
}
