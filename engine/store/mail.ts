/** Records of folders and messages. */

/** UIDs >= uidNext are new mail; UIDs < backfillBelow are not back-filled yet (0 or 1 = none left). */
export interface FolderCursor {
  readonly uidValidity: string
  readonly uidNext: number
  readonly backfillBelow: number
  /** Decimal string; '0' = unknown. */
  readonly highestModseq: string
  /** Number of messages on the server when this cursor was written. */
  readonly exists: number
  /** Last full comparison of flags and UIDs. */
  readonly comparedAt: number
  /** UIDs below uidNext that are to be read: the server failed to give them, or gave them again. */
  readonly quarantined: readonly number[]
  /** The server's error text for quarantined UIDs, where it sent one. */
  readonly refusals?: Readonly<Record<number, string>>
  /** When the quarantined UIDs were last retried. */
  readonly retriedAt?: number
  /** When a catch-up last wrote this cursor. */
  readonly syncedAt?: number
  /** While a folder is read again after a new UIDVALIDITY: unknown messages received since then are new mail. */
  readonly remapSince?: number
  /** Lower UIDs existed when the folder was first opened (or renumbered): they are history, whenever they are read. */
  readonly liveFrom?: number
  /** When the folder appeared, after the initial sync: known mail in it, and mail received since then, is reported. */
  readonly appearedAt?: number
  /** Times of the last UIDVALIDITY changes, as a guard against loops. */
  readonly resets?: readonly number[]
  /** The generation (see Placement) of UIDs that are new under this cursor. Absent = 0. */
  readonly generation?: number
}

export type SpecialUse =
  '\\Inbox' | '\\All' | '\\Archive' | '\\Drafts' | '\\Flagged' | '\\Junk' | '\\Sent' | '\\Trash' | '\\Important'

export interface FolderRecord {
  /** folderId(accountId, path) */
  readonly id: string
  readonly accountId: string
  /** Full path in UTF-8 with the server's delimiter. INBOX in capitals. */
  readonly path: string
  /** The server's hierarchy delimiter; '' = none. */
  readonly delimiter: string
  /** From LIST: \HasChildren, \Noselect … */
  readonly attributes: readonly string[]
  readonly specialUse: SpecialUse | null
  readonly selectable: boolean
  /** The server's last numbers, here and below; not updated once the folder is complete. */
  readonly messages: number
  readonly unseen: number
  /** Numbers of placements in the index, stored with the placements. */
  readonly counts: FolderCounts
  /** null = the folder was never opened. */
  readonly cursor: FolderCursor | null
  /** Since when the folder is complete; null = it is not. Stored with the cursor. */
  readonly completeAt: number | null
  /** The account's epoch. */
  readonly epoch: number
  /** Consecutive failed opens; the folder is parked after 3. */
  readonly failures: number
  readonly parkedUntil: number | null
}

export interface FolderCounts {
  readonly messages: number
  /** Without the flag \Seen. */
  readonly unseen: number
}

export interface Address {
  /** '' = absent. */
  readonly name: string
  /** As in the header, with the domain in lower case; '' = absent. */
  readonly email: string
}

type AddressField = 'from' | 'sender' | 'replyTo' | 'to' | 'cc' | 'bcc' | 'returnPath'

export type MessageAddresses = Readonly<Record<AddressField, readonly Address[]>>

/** A text part of the message's body. */
export interface BodyPartRecord {
  /** IMAP section, '1', '1.2'. */
  readonly section: string
  /** MIME type in lower case. */
  readonly type: string
  readonly charset: string | null
  /** Content-Transfer-Encoding in lower case. */
  readonly encoding: string
  /** Bytes, encoded. */
  readonly size: number
  /** format=flowed, and delsp=yes. */
  readonly flowed: boolean
  readonly delSp: boolean
}

export interface AttachmentRecord {
  /** Index in `attachments`, from 0. */
  readonly index: number
  readonly section: string
  readonly type: string
  readonly encoding: string
  /** Bytes, encoded. */
  readonly size: number
  /** Decoded; '' = none. */
  readonly fileName: string
  /** 'attachment', 'inline' or '' (none). */
  readonly disposition: string
  /** Without angle brackets. */
  readonly contentId: string | null
  /** In a multipart/related, and shown inside the body. */
  readonly embedded: boolean
}

/** A message in a folder. */
export interface Placement {
  readonly folderId: string
  readonly path: string
  readonly uidValidity: string
  readonly uid: number
  /** Flags and keywords in the server's spelling: \Seen, $Forwarded …, sorted, without \Recent. */
  readonly flags: readonly string[]
  /** Decimal string; '0' = the server has no CONDSTORE. */
  readonly modseq: string
  /** The number of this placement's flag changes; part of a flag change's id. */
  readonly rev: number
  /**
   * Distinguishes uses of one UID under one UIDVALIDITY, as some servers give a UID again: when a use was noticed,
   * in ms since 1970. Part of the ids of its changes. Absent = 0, the first use.
   */
  readonly generation?: number
}

/** The key of a placement. */
export type Place = Pick<Placement, 'folderId' | 'uidValidity' | 'uid'>

/** A departure: a vanished placement that is not reported yet. */
export interface GonePlacement extends Place, Pick<Placement, 'path' | 'generation'> {
  /** The placement had the flag \Draft. */
  readonly draft?: true
  readonly at: number
}

/** The immutable facts of a message. */
export interface MessageFacts {
  /** RFC 5322 Message-ID without angle brackets; null = absent. */
  readonly emailMessageId: string | null
  /** Ids of the hosted provider. */
  readonly hostedMessageId: string | null
  readonly hostedThreadId: string | null
  /** threadId(accountId, root): the root is the hosted thread, the first reference, or the Message-ID. */
  readonly threadId: string
  /** Date header; INTERNALDATE when absent or unreadable. */
  readonly sentAt: number
  /** INTERNALDATE. */
  readonly receivedAt: number
  readonly size: number
  readonly subject: string
  readonly addresses: MessageAddresses
  readonly inReplyTo: string | null
  readonly references: readonly string[]
  /** Lower-cased header name → value. */
  readonly listHeaders: Readonly<Record<string, string>>
  /** Values of Received, newest first, unfolded. */
  readonly receivedHeaders: readonly string[]
  readonly bodies: readonly BodyPartRecord[]
  readonly attachments: readonly AttachmentRecord[]
}

/** A message in any number of folders. A record without placements is a tombstone that keeps the identity. */
export interface MessageRecord extends MessageFacts {
  /** messageId(accountId, identity) */
  readonly id: string
  readonly accountId: string
  /** 'gm:…', 'eid:…', 'mid:…' or 'hdr:…' (weak); see accounts/identity.ts. */
  readonly identity: string
  /** The change that reported the message first; null = found by back-fill. */
  readonly firstChangeId: string | null
  readonly indexedAt: number
  readonly placements: readonly Placement[]
  readonly gone: readonly GonePlacement[]
}
