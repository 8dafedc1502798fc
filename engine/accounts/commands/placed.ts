/** Writing to one message at one place: only while the folder still is the one that the place was read from. */
import { AppError } from '../../errors.ts'
import type { Placement } from '../../store/records.ts'
import type { Session } from '../session-types.ts'

/** Selects the folder. Rejects with `account_unavailable` after a UIDVALIDITY change: the UID may be another message's now. */
export async function selectPlace(session: Session, at: Placement): Promise<void> {
  const selected = await session.select(at.path)
  if (selected.uidValidity !== null && selected.uidValidity !== at.uidValidity) {
    throw new AppError('account_unavailable', `folder ${at.path} is being read anew`, { retryAfterMs: 30_000 })
  }
}
