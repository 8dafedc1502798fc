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
 * one. Before a UID below uidNext that the index lacks is read, the folder's generation goes up.
 */
import { ownMessageId, readHeaders } from '../messages/headers.ts'
import type { MessageFacts, FolderCursor, MessageRecord, Place } from '../store/records.ts'
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
  if (fetched.emailId !== null && kind !== null) return serverIdentity(fetched.emailId, kind)
  const values = (name: string): string[] => fields.filter((field) => field.name === name).map(({ raw }) => raw)
  const messageId = ownMessageId(values('message-id'))
  const arrival = second(fetched.internalDate)
  if (messageId === null) {
    return `hdr:${hashOf(fetched.headers.toString('latin1'), fetched.size, arrival)}`
  }
  const said = hashOf(...['from', 'date', 'subject'].flatMap((name) => values(name).slice(0, 1)))
  return `mid:${hashOf(messageId, fetched.size, arrival, said)}`
}

export function serverIdentity(emailId: string, kind: 'gmail' | 'objectid'): string {
  return `${kind === 'gmail' ? 'gm' : 'eid'}:${emailId}`
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
  return cursor?.generation ?? 0
}
