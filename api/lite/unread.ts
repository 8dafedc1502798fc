/**
 * Prevents incomplete answers: while folders are read for the first time, a read that could lack messages is a 503 that
 * says how far the reading is and when to retry. Handlers check only where a result is short (a short page, an unknown
 * id), so a complete answer costs nothing.
 */
import { setTimeout as pause } from 'node:timers/promises'
import {
  type AccountRecord,
  AppError,
  folderName,
  type FolderRecord,
  isAppError,
  isBeingRead,
  progressOf,
  progressWords,
  totalOf,
} from '../../engine/index.ts'
import type { Call } from '../route.ts'

const comeBackMs = 2000
const comeBackMaxMs = 30_000

/**
 * Throws `account_unavailable` while the index may lack a message of the account, or of one `folder`. A parked folder
 * blocks only reads of itself, except INBOX: while none of its messages is read, it blocks all reads.
 */
export async function mustBeRead(
  call: Call,
  account: Pick<AccountRecord, 'id' | 'completeAt'>,
  folder: FolderRecord | null,
  folders?: readonly FolderRecord[],
): Promise<void> {
  const { completeAt } = folder ?? account
  if (typeof completeAt === 'number') return
  const concerned = folder === null ? (folders ?? (await call.engine.store.folders.list(account.id))) : [folder]
  const unread = concerned.filter(
    (one) => isBeingRead(one) || (folder === null ? one.path === 'INBOX' && isUntouched(one) : isUnread(one)),
  )
  const [first] = unread
  if (first !== undefined) throw notRead(call, first, unread.length - 1)
  if (concerned.length === 0) throw unlisted(call, account.id)
}

/** Throws `account_unavailable` when a folder has a new UIDVALIDITY or is gone: a page may lack its messages. */
export async function mustBeSame(call: Call, accountId: string, folders: readonly FolderRecord[]): Promise<void> {
  const now = await call.engine.store.folders.list(accountId)
  const numbered = new Map(now.map(({ id, cursor }) => [id, cursor?.uidValidity]))
  const other = folders.find(({ id, cursor }) => numbered.get(id) !== cursor?.uidValidity)
  if (other !== undefined)
    throw unavailable(call, accountId, `folder ${folderName(other)} is being read anew`, comeBackMs)
}

/** For a full page of the newest messages: throws unless each folder is read as far back as `sentAt`, in ms. */
export async function mustReachBack(call: Call, folders: readonly FolderRecord[], sentAt: number): Promise<void> {
  const unread = folders.filter((folder) => isBeingRead(folder) && totalOf(folder) > 0)
  for (const folder of unread) {
    const query = { folderId: folder.id, order: 'asc' } as const
    const [oldest] = await call.engine.store.messages.list(folder.accountId, query, { limit: 1, offset: 0 })
    if (oldest === undefined || oldest.sentAt > sentAt) throw notRead(call, folder, unread.length - 1)
  }
}

function isUnread({ selectable, completeAt }: FolderRecord): boolean {
  return selectable && completeAt === null
}

/** Whether the index lacks even the newest page of the folder. */
function isUntouched(folder: FolderRecord): boolean {
  const { cursor } = folder
  return isUnread(folder) && (cursor === null || cursor.backfillBelow >= (cursor.liveFrom ?? cursor.uidNext))
}

function notRead(call: Call, folder: FolderRecord, others: number): AppError {
  const progress = progressOf([folder], call.engine.accounts.pace(folder.accountId))
  const name = folderName(folder)
  const words = progress.read === 0 ? `folder ${name} has not been read yet` : progressWords(progress, name)
  const more = others === 0 ? '' : `, ${others} more ${others === 1 ? 'folder' : 'folders'} to read`
  const waitsFor = isUntouched(folder) && folder.parkedUntil === null ? folder.accountId : null
  // Where the pace is not known: about a thousand messages a second.
  const leftMs = progress.secondsLeft === null ? progress.total - progress.read : progress.secondsLeft * 1000
  return unavailable(call, folder.accountId, words + more, Math.min(comeBackMaxMs, leftMs), waitsFor)
}

/** For an account whose list of folders has not been read yet. */
export function unlisted(call: Call, accountId: string): AppError {
  return unavailable(call, accountId, 'the folders of the email account have not been read yet', comeBackMs, accountId)
}

/** `waitsFor`: id of the account, if the call waits for the first page of one of its folders; see onceRead. */
function unavailable(
  call: Call,
  accountId: string,
  progress: string,
  waitMs: number,
  waitsFor: string | null = null,
): AppError {
  const view = call.engine.accounts.view(accountId)
  const why = view?.lastError == null ? '' : `: ${view.lastError.message}`
  const busy = view?.tags.some((tag) => tag === 'connecting' || tag === 'syncing') ?? false
  const next = busy || view?.next == null ? 0 : view.next.at - Date.now()
  return new AppError('account_unavailable', progress + why, {
    retryAfterMs: Math.max(comeBackMs, waitMs, next),
    details: { waitsFor },
  })
}

/** How long a call waits for the first page of a folder. */
const firstPageMs = 10_000
const lookEveryMs = 100

/**
 * Repeats a read while the newest page of a folder that it needs is being read: clients list mail right after they have
 * created the account. Where the page cannot come soon (the account is paused or DISABLED, its mail server is down or
 * refuses the folder), the first error stands.
 */
export async function onceRead<T>(call: Call, read: () => Promise<T>): Promise<T> {
  const lastsUntil = performance.now() + Math.min(firstPageMs, call.engine.config.MAILROOM_REQUEST_TIMEOUT / 2)
  for (;;) {
    try {
      return await read()
    } catch (error) {
      const accountId = isAppError(error, 'account_unavailable') ? error.details['waitsFor'] : null
      const isAwaited = typeof accountId === 'string' && isComing(call, accountId, lastsUntil)
      if (!isAwaited || performance.now() >= lastsUntil) throw error
    }
    await pause(lookEveryMs, undefined, { signal: call.signal }).catch(() => call.signal.throwIfAborted())
  }
}

/** Whether the account is being connected or read, or will be before `until` (monotonic clock). */
function isComing({ engine }: Call, accountId: string, until: number): boolean {
  const view = engine.accounts.view(accountId)
  if (view?.tags.some((tag) => ['connecting', 'syncing', 'watching'].includes(tag)) === true) return true
  return view?.next != null && view.next.at - Date.now() < until - performance.now()
}
