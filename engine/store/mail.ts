/** The records of folders and messages. */

/** UIDs >= uidNext are unseen and live mail; UIDs < backfillBelow are to be back-filled (0 or 1 = none left). */
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
  /** UIDs the server failed to give; retried later. */
  readonly quarantined: readonly number[]
  /** What the server said of these, by UID. A UID of which it said nothing is missing here. */
  readonly refusals?: Readonly<Record<number, string>>
  /** When these were last asked for again. */
  readonly retriedAt?: number
  /** When this cursor was last written by a catch-up. */
  readonly syncedAt?: number
  /** While a folder is read anew (UIDVALIDITY changed): unknown messages received since then are arrivals. */
  readonly remapSince?: number
  /**
   * UIDs below were there when the folder was first opened (or renumbered): history, also when one is only read later.
   */
  readonly liveFrom?: number
  /** The folder appeared then, after the initial sync: mail known from elsewhere or arrived since is reported. */
  readonly appearedAt?: number
  /** Times of the last UIDVALIDITY changes (the guard against loops). */
  readonly resets?: readonly number[]
  /** The generation (see Placement) of UIDs that come for the first time under this cursor. Absent = 0. */
  readonly generation?: number
  /**
   * UIDs below uidNext that the index lacks, noted before they are read: a crash in between loses and repeats nothing.
   */
  readonly again?: readonly UidAgain[]
}

export interface UidAgain {
  readonly uid: number
  readonly generation: number
  /** The index had another message there. */
  readonly replaces: boolean
}

export type SpecialUse =
  '\\Inbox' | '\\All' | '\\Archive' | '\\Drafts' | '\\Flagged' | '\\Junk' | '\\Sent' | '\\Trash' | '\\Important'

export interface FolderRecord {
  /** folderId(accountId, path) */
  readonly id: string
  readonly accountId: string
  /** Full path in UTF-8 with the server's own delimiter. INBOX in capitals. */
  readonly path: string
  /** Server's hierarchy delimiter; '' when the server has none. */
  readonly delimiter: string
  /** As listed by the server: \HasChildren, \Noselect … */
  readonly attributes: readonly string[]
  readonly specialUse: SpecialUse | null
  readonly selectable: boolean
  /** As the server reported them last; kept only until the folder is complete. */
  readonly messages: number
  readonly unseen: number
  /** Placements in the index, written with them. */
  readonly counts: FolderCounts
  /** null until the folder was opened once. */
  readonly cursor: FolderCursor | null
  /** Since when it has been read to its end; null = it is not. Written with the cursor. */
  readonly completeAt: number | null
  /** Equals the account's epoch of the last claim. */
  readonly epoch: number
  /** Failed opens in a row; parked after 3. */
  readonly failures: number
  readonly parkedUntil: number | null
}

export interface FolderCounts {
  readonly messages: number
  /** Those without \\Seen. */
  readonly unseen: number
}

export interface Address {
  /** '' when absent. */
  readonly name: string
  /** As written, domain lower-cased; '' when absent. */
  readonly email: string
}

export interface MessageAddresses {
  readonly from: readonly Address[]
  readonly sender: readonly Address[]
  readonly replyTo: readonly Address[]
  readonly to: readonly Address[]
  readonly cc: readonly Address[]
  readonly bcc: readonly Address[]
  readonly returnPath: readonly Address[]
}

/** A text part that can be shown as a body. */
export interface BodyPartRecord {
  /** IMAP section, '1', '1.2'. */
  readonly section: string
  /** MIME type in lower case. */
  readonly type: string
  readonly charset: string | null
  /** Content-Transfer-Encoding in lower case. */
  readonly encoding: string
  /** Bytes as transferred. */
  readonly size: number
  /** format=flowed, and delsp=yes. */
  readonly flowed: boolean
  readonly delSp: boolean
}

export interface AttachmentRecord {
  /** Index in the message's list, from 0. */
  readonly index: number
  readonly section: string
  readonly type: string
  readonly encoding: string
  /** Bytes as transferred (encoded). */
  readonly size: number
  /** Decoded UTF-8 name, '' when the part has none. */
  readonly fileName: string
  /** 'attachment' or 'inline' or '' when the part says nothing. */
  readonly disposition: string
  /** Without angle brackets. */
  readonly contentId: string | null
  /** Referenced from within a multipart/related: shown inside the body. */
  readonly embedded: boolean
}

/** Where a message lies: one folder, one UID. */
export interface Placement {
  readonly folderId: string
  readonly path: string
  readonly uidValidity: string
  readonly uid: number
  /** System flags and keywords as the server gives them: \Seen, $Forwarded … without \Recent. Sorted. */
  readonly flags: readonly string[]
  /** Decimal string; '0' when the server has no CONDSTORE. */
  readonly modseq: string
  /** Counts this placement's flag changes; part of a flag change's id. */
  readonly rev: number
  /**
   * Tells uses of one UID under one UIDVALIDITY apart, which servers without a memory give again; part of the ids of
   * its changes. When the use was noticed, in ms since 1970. Absent = 0, the first.
   */
  readonly generation?: number
}

/** Names a placement. */
export type Place = Pick<Placement, 'folderId' | 'uidValidity' | 'uid'>

/** A placement that has vanished, and whose disappearance was not reported yet. */
export interface GonePlacement extends Place, Pick<Placement, 'path' | 'generation'> {
  /** It was flagged \Draft there. */
  readonly draft?: true
  readonly at: number
}

/** What mail says of itself; never changes once stored. */
export interface MessageFacts {
  /** RFC 5322 Message-ID without angle brackets; null when absent. */
  readonly emailMessageId: string | null
  /** Hosted provider's own ids. */
  readonly hostedMessageId: string | null
  readonly hostedThreadId: string | null
  /** Hex: hash of the account and the first reference (or hosted thread, or own Message-ID). */
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

/** In however many folders. A row without placements is a tombstone: its identity is remembered. */
export interface MessageRecord extends MessageFacts {
  /** messageId(accountId, identity) */
  readonly id: string
  readonly accountId: string
  /** 'gm:…', 'eid:…', 'mid:…' or 'hdr:…' (weak); see accounts/identity.ts. */
  readonly identity: string
  /** It names the first event, also when a batch is repeated. null = found by back-fill. */
  readonly firstChangeId: string | null
  readonly indexedAt: number
  readonly placements: readonly Placement[]
  readonly gone: readonly GonePlacement[]
}
