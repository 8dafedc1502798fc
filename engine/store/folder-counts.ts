/**
 * Counts and completeness of folders: pure functions for both stores. `counts` of a folder always equals its placements
 * in the index.
 */
import type { FolderCounts, FolderCursor, FolderRecord, Placement } from './records.ts'

export const noCounts: FolderCounts = Object.freeze({ messages: 0, unseen: 0 })

/** By folder id: the differences of the counts. */
export type CountChanges = Map<string, FolderCounts>

/** Adds the differences when a message's placements change from `before` to `after`. */
export function countChange(
  changes: CountChanges,
  before: readonly Placement[],
  after: readonly Placement[],
): CountChanges {
  const count = (place: Placement, sign: 1 | -1): void => {
    const unseen = place.flags.includes('\\Seen') ? 0 : sign
    changes.set(place.folderId, addCounts(changes.get(place.folderId), { messages: sign, unseen }))
  }
  for (const place of before) if (!after.includes(place)) count(place, -1)
  for (const place of after) if (!before.includes(place)) count(place, 1)
  return changes
}

export function addCounts(counts = noCounts, more = noCounts): FolderCounts {
  return { messages: counts.messages + more.messages, unseen: counts.unseen + more.unseen }
}

/** The fields of a folder that a batch writes. */
export type FolderProgress = Pick<FolderRecord, 'cursor' | 'counts' | 'completeAt' | 'messages' | 'unseen'>

/** The folder after a batch. It is complete when no UID is left to back-fill; until then it has the server's EXISTS. */
export function progressed(
  folder: FolderProgress,
  cursor: FolderCursor,
  counts: FolderCounts,
  at: number,
): FolderProgress {
  const { completeAt, messages, unseen } = folder
  if (cursor.backfillBelow <= 1) return { cursor, counts, completeAt: completeAt ?? at, messages, unseen }
  const reported = completeAt === null ? unseen : folder.counts.unseen
  return { cursor, counts, completeAt: null, messages: cursor.exists, unseen: reported }
}

/** An account is complete when all selectable folders are complete. */
export function isWhole(folders: readonly Pick<FolderRecord, 'selectable' | 'completeAt'>[]): boolean {
  return folders.length > 0 && folders.every(({ selectable, completeAt }) => !selectable || completeAt !== null)
}

/** The counts for the API: the server's until the folder is complete. */
export function shownCounts({ completeAt, counts, messages, unseen }: FolderRecord): FolderCounts {
  return completeAt === null ? { messages, unseen } : counts
}
