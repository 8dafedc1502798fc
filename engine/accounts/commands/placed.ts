/**
 * The folder of one message, selected: as new as the index, and for writing only while it is the one that the place was read from.
 * A record that was read before a command's turn came may be old by then: it is read again.
 */
import { AppError, notFound } from '../../errors.ts'
import type { Store } from '../../store/port.ts'
import type { MessageRecord, Placement } from '../../store/records.ts'
import type { SelectedMailbox, Session } from '../session-types.ts'

/** The highest UID that a connection was shown to know of the folder it is in. */
const shown = new WeakMap<Session, { readonly place: string; readonly uid: number }>()

/**
 * Selects a folder in which mail up to `uid` (absent = all there is) must be known. A connection that was in the folder before is
 * told of new mail when the server likes (RFC 3501 §5.2), while our watching connection has it in the index already: NOOP asks.
 */
export async function selectKnowing(session: Session, path: string, uid = Infinity): Promise<SelectedMailbox> {
  const wasThere = session.selected?.path === path
  const selected = await session.select(path)
  if (!wasThere) return selected
  const place = `${selected.uidValidity ?? ''} ${path}`
  const before = shown.get(session)
  const known = Math.max((selected.uidNext ?? 0) - 1, before?.place === place ? before.uid : 0)
  if (uid <= known) return selected
  await session.noop()
  if (Number.isFinite(uid)) shown.set(session, { place, uid })
  return selected
}

/** The record as it is now; `not_found` when it has gone. */
export async function currentMessage({ messages }: Store, { accountId, id }: MessageRecord): Promise<MessageRecord> {
  const now = await messages.get(accountId, id)
  if (now === null) throw notFound('message', id)
  return now
}

/** The place that was meant, or the one that the message has in the same folder now. */
export function currentPlace({ id, placements }: MessageRecord, at: Placement): Placement {
  const here = placements.filter((place) => place.folderId === at.folderId)
  const place = here.find(({ uid, uidValidity }) => uid === at.uid && uidValidity === at.uidValidity) ?? here[0]
  if (place === undefined) throw notFound('message', id)
  return place
}

/** The index will know better soon. */
export function readAnew(path: string): AppError {
  return new AppError('account_unavailable', `folder ${path} is being read anew`, { retryAfterMs: 2000 })
}

/** Selects the folder. Rejects with `account_unavailable` after a UIDVALIDITY change: the UID may be another message's now. */
export async function selectPlace(session: Session, at: Placement): Promise<void> {
  const selected = await selectKnowing(session, at.path, at.uid)
  if (selected.uidValidity !== null && selected.uidValidity !== at.uidValidity) {
    throw readAnew(at.path)
  }
}
