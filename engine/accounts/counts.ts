/**
 * The counts of a folder, carried on by what a batch brings. The server reports them too, now and then (LIST-STATUS,
 * STATUS): what it had counted by then is not counted once more when the folder itself is read.
 */
import type { FlagUpdate, KnownUid } from '../store/port.ts'
import type { FolderCursor, FolderRecord } from '../store/records.ts'
import type { FetchedMessage, MailboxStatus } from './session-types.ts'

/** The last counts that were taken over from the server; undefined = none. */
type ServerCounts = MailboxStatus | undefined

function isSameNumbering(reported: ServerCounts, { uidValidity }: FolderCursor): reported is MailboxStatus {
  return reported !== undefined && (reported.uidValidity === null || reported.uidValidity === uidValidity)
}

/** Unseen messages among these that are new to the counts. */
export function unseenArrived(
  reported: ServerCounts,
  cursor: FolderCursor,
  messages: readonly Pick<FetchedMessage, 'uid' | 'flags'>[],
): number {
  const counted = isSameNumbering(reported, cursor) ? (reported.uidNext ?? 0) : 0
  return messages.filter(({ uid, flags }) => uid >= counted && flags?.includes('\\Seen') === false).length
}

/** By how many the unseen ones are more after these changes of flags. */
export function unseenTurned(
  reported: ServerCounts,
  cursor: FolderCursor,
  updates: readonly FlagUpdate[],
  known: ReadonlyMap<number, KnownUid>,
): number {
  const counted = BigInt((isSameNumbering(reported, cursor) ? reported.highestModseq : null) ?? '0')
  const turned = updates.filter(
    ({ uid, flags, modseq }) =>
      flags.includes('\\Seen') !== known.get(uid)?.flags.includes('\\Seen') &&
      (modseq === '0' || BigInt(modseq) > counted),
  )
  return turned.reduce((sum, { flags }) => sum + (flags.includes('\\Seen') ? -1 : 1), 0)
}

/** Unseen ones among these that are still in the counts. `messages` = how many the folder has without them. */
export function unseenGone(folder: FolderRecord, messages: number, gone: readonly KnownUid[]): number {
  if (folder.messages === messages) return 0
  return gone.filter(({ flags }) => !flags.includes('\\Seen')).length
}
