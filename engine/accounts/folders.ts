/**
 * The list of folders and their counts, and which of them moved since their cursors were written. LIST-STATUS tells all in one
 * command; without it STATUS is asked of hot folders at every poll and of the others now and then.
 */
import type { ListedFolder } from '../store/port.ts'
import type { FolderRecord } from '../store/records.ts'
import { isAppError } from '../errors.ts'
import type { ListedMailbox, MailboxStatus } from './session-types.ts'
import type { SyncContext } from './write.ts'

/** A folder that changed within this time is asked at every poll. */
const hotMs = 10 * 60_000
const hotUses = new Set(['\\Sent', '\\All'])

export interface FolderPoll {
  /** Reads the list anew; answers the paths that have to be caught up, INBOX included. */
  list(): Promise<string[]>
  /** A cheaper look between two lists. */
  poll(): Promise<string[]>
}

export function createFolderPoll(context: SyncContext): FolderPoll {
  const { deps, state, session } = context
  const asked = new Map<string, number>()
  let listedAt = Number.NEGATIVE_INFINITY

  async function list(): Promise<string[]> {
    const listed = await session.list({ status: session.capabilities.listStatus })
    listedAt = deps.now()
    await reconcile(context, listed)
    return listed.flatMap((mailbox) =>
      isMoved(state.folderByPath(mailbox.path), mailbox.status, deps.now()) ? [mailbox.path] : [],
    )
  }

  async function poll(): Promise<string[]> {
    if (session.capabilities.listStatus || deps.now() - listedAt >= deps.config.MAILROOM_FOLDER_LIST) return list()
    const moved: string[] = []
    for (const folder of state.folders.values()) {
      const wait = isHot(folder, deps.now()) ? deps.config.MAILROOM_FOLDER_POLL : deps.config.MAILROOM_FOLDER_POLL_COLD
      if (
        !folder.selectable ||
        folder.path === session.selected?.path ||
        deps.now() - (asked.get(folder.id) ?? 0) < wait
      )
        continue
      asked.set(folder.id, deps.now())
      if (await askStatus(context, folder)) moved.push(folder.path)
    }
    return moved
  }

  return { list, poll }
}

async function askStatus(context: SyncContext, folder: FolderRecord): Promise<boolean> {
  try {
    const status = await context.session.status(folder.path)
    const { messages, unseen } = status
    if (messages !== null && unseen !== null && (messages !== folder.messages || unseen !== folder.unseen)) {
      await context.deps.store.folders.setCounts(folder.id, { messages, unseen })
    }
    return isMoved(folder, status, context.deps.now())
  } catch (error) {
    if (isAppError(error, 'server_refused') || isAppError(error, 'not_found')) return false
    throw error
  }
}

/**
 * Brings the stored list up to date. An odd LIST (without INBOX, or with less than half of what is known) adds and updates, and
 * removes nothing (imap-servers.md row 25).
 */
async function reconcile({ deps, state }: SyncContext, listed: readonly ListedMailbox[]): Promise<void> {
  const complete = listed.some((mailbox) => mailbox.path === 'INBOX') && listed.length * 2 >= state.folders.size
  if (!complete)
    deps.log.warn(
      { accountId: state.account.id, listed: listed.length, known: state.folders.size },
      'odd folder list: nothing is removed',
    )
  const rows: ListedFolder[] = listed.map((mailbox) => ({
    path: mailbox.path,
    delimiter: mailbox.delimiter,
    attributes: mailbox.attributes,
    specialUse: mailbox.specialUse,
    selectable: mailbox.selectable,
    messages: mailbox.status?.messages ?? null,
    unseen: mailbox.status?.unseen ?? null,
  }))
  await state.exclusive(async () => {
    state.setFolders(await deps.store.folders.reconcile(state.account.id, state.account.epoch, rows, complete))
  })
}

function isHot(folder: FolderRecord, now: number): boolean {
  return hotUses.has(folder.specialUse ?? '') || now - (folder.cursor?.syncedAt ?? 0) < hotMs
}

/** Whether the folder differs from its cursor. What the server does not say counts as unchanged. */
function isMoved(folder: FolderRecord | null, status: MailboxStatus | null, now: number): boolean {
  if (folder === null || !folder.selectable || (folder.parkedUntil ?? 0) > now) return false
  const cursor = folder.cursor
  if (cursor === null) return true
  if (status === null) return false
  return (
    (status.uidValidity !== null && status.uidValidity !== cursor.uidValidity) ||
    (status.uidNext !== null && status.uidNext !== cursor.uidNext && status.uidNext > cursor.uidNext) ||
    (status.messages !== null && status.messages !== cursor.exists) ||
    (status.highestModseq !== null && cursor.highestModseq !== '0' && status.highestModseq !== cursor.highestModseq)
  )
}
