/** Whether there may be mail in a folder that the index does not have yet. */
import type { FolderRecord } from '../store/records.ts'

/** For the first time, or anew. `holds` = messages that lie in it; one that the server refuses for now (parked) is not being read. */
export function isBeingRead({ selectable, parkedUntil, cursor }: FolderRecord, holds: number): boolean {
  if (!selectable || (parkedUntil ?? 0) > Date.now()) return false
  return cursor === null || (cursor.backfillBelow > 1 && holds > 0)
}
