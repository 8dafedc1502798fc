/** Takes placements of a folder away without telling: the folder is gone, or its UIDs mean nothing any more. */
import { vanish } from '../rows.ts'
import { createUnit, deletePlacement } from './message-rows.ts'
import type { Statements } from './statements.ts'

/** Placements of a folder but for one UIDVALIDITY: two ranges of the key on either side of it. */
export const others = `(SELECT message_id, uid_validity, uid FROM placements WHERE folder_id = ?1 AND uid_validity < ?2
  UNION ALL SELECT message_id, uid_validity, uid FROM placements WHERE folder_id = ?1 AND uid_validity > ?2)`

/**
 * Moves up to `limit` placements to their messages' `gone`, except those of `keepUidValidity` (null = none is kept).
 * Answers how many are left, counted no further than `limit` + 1: a large folder goes in many steps.
 */
export function forgetFolder(
  sql: Statements,
  folderId: string,
  keepUidValidity: string | null,
  limit: number,
  at: number,
): number {
  // no UIDVALIDITY is the empty string: it keeps nothing
  const keep = keepUidValidity ?? ''
  const unit = createUnit(sql)
  for (const row of sql.rows(`SELECT message_id, uid_validity, uid FROM ${others} LIMIT ?3`, folderId, keep, limit)) {
    const lost = { folderId, uidValidity: String(row['uid_validity']), uid: Number(row['uid']) }
    const message = unit.get(String(row['message_id']))
    if (message) unit.put(vanish(message, lost, at))
    // the row goes in any case: the caller repeats until none is left
    deletePlacement(sql, lost)
  }
  unit.flush()
  return sql.number(`SELECT count(*) FROM (SELECT 1 FROM ${others} LIMIT ?3)`, folderId, keep, limit + 1)
}
