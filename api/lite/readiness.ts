/**
 * Never an incomplete answer as if it were whole: while folders are read for the first time, an answer that could lack something is
 * a 503 that says how far the reading is and when to come back. Asked only where something is missing (a short page, an unknown id),
 * so what is answered in full costs nothing.
 */
import { AppError, folderName, isBeingRead, type FolderRecord } from '../../engine/index.ts'
import type { Call } from '../route.ts'

const comeBackMs = 2000
const comeBackMaxMs = 30_000

/**
 * Throws `account_unavailable` while a message of the account, or of one `folder`, may be missing from the index. Folders that the
 * server refuses for now (parked) hold up nothing but INBOX and a list of their own.
 */
export async function mustBeRead(
  call: Call,
  accountId: string,
  folder: FolderRecord | null,
  folders?: readonly FolderRecord[],
): Promise<void> {
  const concerned = folder === null ? (folders ?? (await call.engine.store.folders.list(accountId))) : [folder]
  const unread = concerned.filter(
    (one) => isBeingRead(one, totalOf(one)) || ((folder !== null || one.path === 'INBOX') && isUntouched(one)),
  )
  const [first] = unread
  if (first !== undefined) throw await notRead(call, first, unread.length - 1)
  if (concerned.length === 0) throw unlisted(call, accountId)
}

/** The same for a full page of the newest over several folders: each that is being read has to be read as far back as the page goes. */
export async function mustReachBack(call: Call, folders: readonly FolderRecord[], sentAt: number): Promise<void> {
  const unread = folders.filter((folder) => isBeingRead(folder, totalOf(folder)) && totalOf(folder) > 0)
  for (const folder of unread) {
    const query = { folderId: folder.id, order: 'asc' } as const
    const [oldest] = await call.engine.store.messages.list(folder.accountId, query, { limit: 1, offset: 0 })
    if (oldest === undefined || oldest.sentAt > sentAt) throw await notRead(call, folder, unread.length - 1)
  }
}

/** The same for an unknown folder: nothing is known to be missing before the server's list was read once. */
export function mustBeListed(call: Call, accountId: string, folders: readonly FolderRecord[]): void {
  if (folders.length === 0) throw unlisted(call, accountId)
}

/** Never opened, or not even its newest page is there. */
function isUntouched(folder: FolderRecord): boolean {
  const { selectable, cursor } = folder
  if (!selectable || cursor === null) return selectable
  const untouched = cursor.backfillBelow > 1 && cursor.backfillBelow >= (cursor.liveFrom ?? cursor.uidNext)
  return untouched && totalOf(folder) > 0
}

function totalOf({ messages, cursor }: FolderRecord): number {
  return Math.max(messages, cursor?.exists ?? 0)
}

async function notRead(call: Call, folder: FolderRecord, others: number): Promise<AppError> {
  const total = totalOf(folder)
  const read =
    folder.cursor === null ? 0 : await call.engine.store.messages.count(folder.accountId, { folderId: folder.id })
  const name = folderName(folder)
  const progress =
    read === 0
      ? `folder ${name} has not been read yet`
      : `${grouped(Math.min(read, total))} of ${grouped(total)} messages of ${name} read`
  const more = others === 0 ? '' : `, ${others} more ${others === 1 ? 'folder' : 'folders'} to read`
  // A thousand messages a second is a usual pace.
  return unavailable(call, folder.accountId, progress + more, Math.min(comeBackMaxMs, total - read))
}

function unlisted(call: Call, accountId: string): AppError {
  return unavailable(call, accountId, 'the folders of the email account have not been read yet', comeBackMs)
}

function unavailable(call: Call, accountId: string, progress: string, waitMs: number): AppError {
  const view = call.engine.accounts.view(accountId)
  const why = view?.lastError == null ? '' : `: ${view.lastError.message}`
  const busy = view?.tags.some((tag) => tag === 'connecting' || tag === 'syncing') ?? false
  const next = busy || view?.next == null ? 0 : view.next.at - Date.now()
  return new AppError('account_unavailable', progress + why, { retryAfterMs: Math.max(comeBackMs, waitMs, next) })
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
