/**
 * Uses of one UID under one UIDVALIDITY told apart (Placement.generation). Servers without a memory, and mailboxes
 * restored from a backup, give a UID again; the change ids of its new use must not be those of the former one. Pure.
 *
 * A UID below uidNext that the index lacks is noted in the cursor with a new generation before it is read, and stays
 * there until it is stored: a crash in between repeats the same ids.
 */
import type { AccountRecord, FolderCursor, MessageRecord, UidAgain } from '../store/records.ts'
import { liesAt, type Place } from '../store/rows.ts'

/** An unknown message that arrived this long ago still counts as new: clocks differ, and delivery takes time. */
export const arrivalSlackMs = 10 * 60_000

/** Of the placement that a message has or gets there. One that was thought gone from there is back: its use goes on. */
export function generationAt(
  cursor: FolderCursor | null,
  place: Required<Place>,
  before: MessageRecord | null,
): number {
  const here = [...(before?.placements ?? []), ...(before?.gone ?? [])].find((one) => liesAt(one, place))
  if (here !== undefined) return here.generation ?? 0
  return notedAt(cursor, place.uid)?.generation ?? cursor?.generation ?? 0
}

function notedAt(cursor: FolderCursor | null, uid: number): UidAgain | undefined {
  return cursor?.again?.find((one) => one.uid === uid)
}

/** Another message lay at the noted UID when the folder was first opened, or this one arrived since. */
export function isNewUse(
  { createdAt, remapSince = 0 }: AccountRecord,
  cursor: FolderCursor | null,
  place: Required<Place>,
  receivedAt: number,
  before: MessageRecord | null,
): boolean {
  const noted = notedAt(cursor, place.uid)
  const isBack = before?.gone.some((one) => liesAt(one, place)) === true
  if (noted === undefined || isBack) return false
  return noted.replaces || receivedAt >= Math.max(createdAt, remapSince) - arrivalSlackMs
}

export function withNotes(cursor: FolderCursor, notes: readonly UidAgain[]): FolderCursor {
  const { again = [], ...rest } = cursor
  const noted = new Set(notes.map(({ uid }) => uid))
  return { ...rest, again: [...again.filter(({ uid }) => !noted.has(uid)), ...notes] }
}

/** Without the notes of these UIDs: they are stored, or gone. */
export function withoutNotes(cursor: FolderCursor, uids: ReadonlySet<number>): FolderCursor {
  const { again = [], ...rest } = cursor
  const left = again.filter(({ uid }) => !uids.has(uid))
  return left.length === 0 ? rest : { ...rest, again: left }
}

/** Noted, or passed over because the server did not give it: to be read, and not in the index yet. */
export function isAwaited(cursor: FolderCursor, uid: number): boolean {
  return notedAt(cursor, uid) !== undefined || cursor.quarantined.includes(uid)
}

/** Noted UIDs whose reading was cut short. What the server did not give waits for its time. */
export function openNotes({ again = [], quarantined }: FolderCursor): number[] {
  return again.map(({ uid }) => uid).filter((uid) => !quarantined.includes(uid))
}
