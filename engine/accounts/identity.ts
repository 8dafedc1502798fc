/**
 * The identity of a message over folders: what makes the copy in one folder the same message as the one in another, and
 * the same after a move or a change of UIDVALIDITY. messageId(accountId, identity) of store/ids.ts is made of it.
 *
 *   gm:<X-GM-MSGID>     Gmail's own id
 *   eid:<EMAILID>       RFC 8474
 *   mid:<hash>          Message-ID, size, INTERNALDATE to the second, and hash of From, Date, Subject: Message-IDs are
 *                       repeated by broken senders and by re-sent mail, so the id alone is not believed
 *   hdr:<hash>          hash of the indexed header block, size and INTERNALDATE, for mail without a Message-ID; weak:
 *                       two drafts saved in the same second may be one
 *
 * Two deliveries of one mail that agree in all of that (same folder, same second) are one message with two places.
 *
 * And the uses of one UID under one UIDVALIDITY, kept apart (Placement.generation). Servers without a memory, and
 * mailboxes restored from a backup, give a UID again; the change ids of its new use must not be those of the former
 * one. A UID below uidNext that the index lacks is noted in the cursor with a new generation before it is read, and
 * stays there until it is stored: a crash in between repeats the same ids.
 */
import { ownMessageId, readHeaders } from '../messages/headers.ts'
import type { MessageFacts, AccountRecord, FolderCursor, MessageRecord, Place, UidAgain } from '../store/records.ts'
import { digest } from '../store/ids.ts'
import { liesAt } from '../store/rows.ts'
import type { FetchedMessage, SessionCapabilities } from './session-types.ts'

const hashOf = (...parts: readonly (string | number)[]): string => digest(40, ...parts)

/** INTERNALDATE has seconds on the wire; 0 when the server left it out. */
function second(internalDate: number | null): number {
  return Math.floor((internalDate ?? 0) / 1000)
}

/**
 * `kind` = the server's own ids, which are taken when the message has one. The same bytes always give the same
 * identity.
 */
export function identityOf(
  fetched: FetchedMessage,
  kind: SessionCapabilities['identity'],
  { fields } = readHeaders(fetched.headers),
): string {
  if (fetched.emailId !== null && kind !== null) return `${kind === 'gmail' ? 'gm' : 'eid'}:${fetched.emailId}`
  const values = (name: string): string[] => fields.filter((field) => field.name === name).map(({ raw }) => raw)
  const messageId = ownMessageId(values('message-id'))
  const arrival = second(fetched.internalDate)
  if (messageId === null) {
    return `hdr:${hashOf(fetched.headers.toString('latin1'), fetched.size, arrival)}`
  }
  const said = hashOf(...['from', 'date', 'subject'].flatMap((name) => values(name).slice(0, 1)))
  return `mid:${hashOf(messageId, fetched.size, arrival, said)}`
}

/**
 * Whether what a UID holds may still be the mail that the index has there: when in doubt it is. Times of arrival are
 * not compared, as some servers change them; nor is a size alone, as some estimate it.
 */
export function isLikeMail(one: Compared, other: Compared): boolean {
  if (one.emailMessageId !== null && other.emailMessageId !== null) return one.emailMessageId === other.emailMessageId
  return one.sentAt === other.sentAt || (one.subject === other.subject && one.size === other.size)
}

type Compared = Pick<MessageFacts, 'emailMessageId' | 'size' | 'sentAt' | 'receivedAt' | 'subject' | 'addresses'>

/**
 * The second try, without INTERNALDATE, which a move by APPEND, a migration or a backup changes: a stored record with
 * the same Message-ID is compared. Without a Date header sentAt is INTERNALDATE again, and does not count.
 */
export function isSameMail(one: Compared, other: Compared): boolean {
  const undated = one.sentAt === one.receivedAt && other.sentAt === other.receivedAt
  return (
    one.emailMessageId !== null &&
    one.emailMessageId === other.emailMessageId &&
    one.size === other.size &&
    (undated || one.sentAt === other.sentAt) &&
    one.subject === other.subject &&
    one.addresses.from[0]?.email === other.addresses.from[0]?.email
  )
}

/** An unknown message that arrived this long ago still counts as new: clocks differ, and delivery takes time. */
export const arrivalSlackMs = 10 * 60_000

/** Of the placement that a message has or gets there. One that was thought gone from there is back: its use goes on. */
export function generationAt(cursor: FolderCursor | null, place: Place, before: MessageRecord | null): number {
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
  place: Place,
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
