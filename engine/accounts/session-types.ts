/** Arguments and results of a session (session/index.ts). */
import type { Release, TakeOptions } from '../budget.ts'
import type { AppError } from '../errors.ts'
import type { Names } from './session/names.ts'
import type { SpecialUse } from '../store/records.ts'

/** BODYSTRUCTURE as a tree; `part` is the IMAP section ('1.2'), absent on the root multipart. */
export interface BodyNode {
  readonly part?: string
  /** 'text/plain', 'multipart/mixed', lower case; '' at the root when the server gives the size alone. */
  readonly type: string
  readonly parameters: Readonly<Record<string, string>>
  readonly id?: string
  readonly encoding?: string
  readonly size?: number
  readonly disposition?: string
  readonly dispositionParameters: Readonly<Record<string, string>>
  /** message/rfc822: subject of the envelope within, for a file name. */
  readonly subject?: string
  readonly children: readonly BodyNode[]
}

/** The header fields that the index keeps; asked for with BODY.PEEK[HEADER.FIELDS (…)]. */
export const indexedHeaders = [
  'Message-ID',
  'Date',
  'Subject',
  'From',
  'Sender',
  'Reply-To',
  'To',
  'Cc',
  'Bcc',
  'Return-Path',
  'In-Reply-To',
  'References',
  'Received',
  'List-Id',
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
  'List-Subscribe',
  'List-Post',
  'List-Help',
  'List-Archive',
  'List-Owner',
  'Content-Type',
  'Content-Disposition',
  'Content-Transfer-Encoding',
  'Precedence',
  'Auto-Submitted',
] as const

export interface FetchedMessage {
  readonly uid: number
  /** null when the server left them out. */
  readonly flags: readonly string[] | null
  readonly modseq: string | null
  /** ms since 1970; null when left out or unreadable. */
  readonly internalDate: number | null
  readonly size: number
  /** null when the server's BODYSTRUCTURE could not be read. */
  readonly body: BodyNode | null
  /** The raw header block of `indexedHeaders`, CRLF kept. */
  readonly headers: Buffer
  /** X-GM-MSGID or EMAILID, X-GM-THRID or THREADID. */
  readonly emailId: string | null
  readonly threadId: string | null
}

export interface ListedMailbox {
  readonly path: string
  readonly delimiter: string
  readonly attributes: readonly string[]
  readonly specialUse: SpecialUse | null
  readonly selectable: boolean
  /** From LIST-STATUS when offered and asked for; else null. */
  readonly status: MailboxStatus | null
  /** The list of all lacks it: INBOX, which was asked for by its name. */
  readonly byName: boolean
}

/** null = the server did not say, or said 0 where 0 is not allowed. */
export interface MailboxStatus {
  readonly messages: number | null
  readonly unseen: number | null
  readonly uidNext: number | null
  readonly uidValidity: string | null
  readonly highestModseq: string | null
}

export interface SelectedMailbox {
  readonly path: string
  readonly exists: number
  readonly uidNext: number | null
  readonly uidValidity: string | null
  readonly highestModseq: string | null
  readonly readOnly: boolean
}

export interface SessionCapabilities {
  readonly idle: boolean
  readonly condstore: boolean
  readonly listStatus: boolean
  /** 'gmail' (X-GM-EXT-1), 'objectid' (RFC 8474) or null. */
  readonly identity: 'gmail' | 'objectid' | null
}

/** The new UID when the server gives it (UIDPLUS). null newUid = unknown. */
export interface Placed {
  readonly newUid: number | null
  readonly uidValidity: string | null
}

export interface Chunk {
  readonly bytes: Buffer
  /** Nothing follows. */
  readonly last: boolean
}

/** Sections that we have cut out of the whole message, undecoded; what is not in it is absent. */
export interface FromWhole {
  readonly parts: ReadonlyMap<string, Buffer>
  readonly size: number
}

/** Flags of one message as the server gives them; modseq null = it gave none. */
export interface FlagsOf {
  readonly uid: number
  readonly flags: readonly string[]
  readonly modseq: string | null
}

/** The same with X-GM-MSGID. */
export interface IdentifiedFlags extends FlagsOf {
  readonly emailId: string | null
}

export interface FlagChange {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

/** Responses that a watching session hears about its selected mailbox, and by NOTIFY about others. */
export type SessionEvent =
  | { readonly type: 'exists' | 'expunge' | 'flags' }
  | { readonly type: 'status'; readonly path: string; readonly status: MailboxStatus }
  /** Folders have come or gone, or have other names. */
  | { readonly type: 'folders' }
  | { readonly type: 'closed'; readonly error: AppError | null }

export interface SessionOptions {
  readonly server: string
  readonly port: number
  readonly useSsl: boolean
  readonly username: string
  readonly auth: { readonly password: string } | { readonly accessToken: string }
  /** Whether the host may have a private address (MAILROOM_ALLOW_PRIVATE). */
  readonly allowPrivate: boolean
  /** Whether a login may go in clear text without STARTTLS (MAILROOM_PLAINTEXT); else it fails with `tls`. */
  readonly plaintext: 'never' | 'private' | 'always'
  /** isPrivateAddress, for tests. */
  readonly isPrivate?: (address: string) => boolean
  readonly connectTimeoutMs: number
  readonly loginTimeoutMs: number
  readonly commandTimeoutMs: number
  /** Folder names that all connections of the account know; absent = it has no others. */
  readonly names?: Names
  /** Protocol lines with secrets masked ('C: …' / 'S: …'), for a connection log; absent = none are kept. */
  readonly onLine?: (line: string) => void
  /** Hears how long each command took, whatever its outcome; `kind` is its name. */
  readonly onCommand?: (kind: string, seconds: number) => void
  /** A share of the budget for what the server sends; see Budget. Absent = it is not counted. */
  readonly take?: (bytes: number, options: TakeOptions) => Promise<Release | null>
}
