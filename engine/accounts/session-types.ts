/**
 * A session: one IMAP connection with one owner, in the words of the protocol. session.ts implements it over imapflow;
 * nothing else knows the client library. Every method has a deadline on progress (MAILROOM_COMMAND_TIMEOUT) and rejects
 * with an AppError of a failure class, `timeout` or `server_refused` (tagged NO, text in details.response); after any
 * error but `server_refused` the session is closed. A socket error never escapes as an unhandled event.
 */
import type { Release, TakeOptions } from '../budget.ts'
import type { AppError } from '../errors.ts'
import type { SpecialUse } from '../store/records.ts'

/** BODYSTRUCTURE as a tree; `part` is the IMAP section ('1.2'), absent on the root multipart. */
export interface BodyNode {
  readonly part?: string
  /** 'text/plain', 'multipart/mixed', lower case; '' at the root when the server tells the size alone. */
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
  /** X-GM-MSGID or EMAILID, X-GM-THRID or THREADID, X-GM-LABELS. */
  readonly emailId: string | null
  readonly threadId: string | null
  readonly labels: readonly string[] | null
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

/** The new UID when the server tells it (UIDPLUS). null newUid = unknown. */
export interface Placed {
  readonly newUid: number | null
  readonly uidValidity: string | null
}

/** A piece of a section. */
export interface Chunk {
  readonly bytes: Buffer
  /** Nothing follows. */
  readonly last: boolean
}

/** Sections that we have cut out of the whole message, undecoded; what is not in it is absent. */
export interface FromWhole {
  readonly parts: ReadonlyMap<string, Buffer>
  /** How many bytes of the message came. */
  readonly size: number
}

/** Flags of one message as the server tells them; modseq null = it told none. */
export interface FlagsOf {
  readonly uid: number
  readonly flags: readonly string[]
  readonly modseq: string | null
}

export interface FlagChange {
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

/** What a watching session hears of its selected mailbox. */
export type SessionEvent =
  | { readonly type: 'exists'; readonly count: number }
  | { readonly type: 'expunge'; readonly uid: number | null }
  | {
      readonly type: 'flags'
      readonly uid: number | null
      readonly flags: readonly string[]
      readonly modseq: string | null
    }
  | { readonly type: 'closed'; readonly error: AppError | null }

export interface Session {
  readonly capabilities: SessionCapabilities
  /** As the server advertises them after the login, for people. */
  capabilityNames(): readonly string[]
  /** The selected mailbox as last told, or null. */
  readonly selected: SelectedMailbox | null
  readonly closed: boolean
  /** Events of the selected mailbox; one listener. */
  listen(listener: (event: SessionEvent) => void): void
  /** Rejects with `protocol` when there are more than `most` (10,000). */
  list(options: { readonly status: boolean; readonly most?: number }): Promise<ListedMailbox[]>
  /** `not_found`, or `server_refused` when it cannot be opened. Costs nothing when it is open, unless `refresh`. */
  select(path: string, options?: { readonly refresh?: boolean }): Promise<SelectedMailbox>
  status(path: string): Promise<MailboxStatus>
  /**
   * UID FETCH of what the index needs. `range` is a UID set ('5:9,12', '100:*'). `last`: with the mailbox's last
   * message, by which servers answer 100:* when it is below 100 (RFC 3501 §6.4.8). `heard` is called for each message.
   * What the server cannot give (tagged NO, unreadable) is left out: the caller bisects.
   */
  fetchIndex(
    range: string,
    options?: { readonly last?: boolean; readonly heard?: () => void },
  ): Promise<FetchedMessage[]>
  /**
   * UID FETCH (UID FLAGS [MODSEQ]); with `changedSince` only what changed since (CONDSTORE). `onMore` is called when
   * that is more than is held at once: then the answer lacks some, and they have to be asked for by smaller ranges.
   */
  fetchFlags(range: string, changedSince?: string, onMore?: () => void): Promise<FlagsOf[]>
  /** UIDs that exist within the range, by UID SEARCH. */
  searchUids(range: string): Promise<number[]>
  /** UID SEARCH BODY text (UTF-8). */
  searchBody(text: string): Promise<number[]>
  /** BODY.PEEK[section]<0.maxBytes>; '' = whole message, 'HEADER' = header block, '1.2.MIME' … null when absent. */
  fetchSection(uid: number, section: string, maxBytes: number): Promise<Buffer | null>
  /** Sections of several messages at once; what is absent is left out. By UID, then by section. */
  fetchSections(
    uids: readonly number[],
    sections: readonly string[],
    maxBytes: number,
  ): Promise<ReadonlyMap<number, ReadonlyMap<string, Buffer>>>
  /** BODY.PEEK[section]<from.count>, undecoded. null when the message or the part is not there. */
  fetchChunk(uid: number, section: string, from: number, count: number): Promise<Chunk | null>
  /** For sections that the server gives wrongly. null when the message is not there, or is too long to be held. */
  fetchFromWhole(uid: number, sections: readonly string[]): Promise<FromWhole | null>
  store(uid: number, change: FlagChange): Promise<Omit<FlagsOf, 'uid'> | null>
  /** Where the message is now; null when there is no such UID. */
  move(uid: number, toPath: string): Promise<Placed | null>
  copy(uid: number, toPath: string): Promise<Placed | null>
  append(path: string, raw: Buffer, flags: readonly string[], internalDate: number): Promise<Placed>
  /** Expunges only these UIDs where UIDPLUS is offered; null = all that are \Deleted. */
  expunge(uids: readonly number[] | null): Promise<void>
  createMailbox(path: string): Promise<void>
  deleteMailbox(path: string): Promise<void>
  /**
   * IDLE until `signal` aborts, the cycle ends (`renewMs`) or another command of this session needs the line; resolves
   * then. Enters at once. Without IDLE: resolves after `renewMs` or abort.
   */
  idle(renewMs: number, signal: AbortSignal): Promise<void>
  noop(): Promise<void>
  /** LOGOUT with a short deadline, then the socket is destroyed. Never rejects. */
  close(): Promise<void>
}

export interface SessionOptions {
  readonly server: string
  readonly port: number
  readonly useSsl: boolean
  readonly username: string
  readonly auth: { readonly password: string } | { readonly accessToken: string }
  /** Addresses already checked by the guard; connect to one of these with `server` as TLS name. */
  readonly allowPrivate: boolean
  /** Whether a login may go in clear text without STARTTLS (MAILROOM_PLAINTEXT); else it fails with `tls`. */
  readonly plaintext: 'never' | 'private' | 'always'
  /** isPrivateAddress, for tests. */
  readonly isPrivate?: (address: string) => boolean
  readonly connectTimeoutMs: number
  readonly loginTimeoutMs: number
  readonly commandTimeoutMs: number
  /** Protocol lines with secrets masked ('C: …' / 'S: …'), for a connection log; absent = none are kept. */
  readonly onLine?: (line: string) => void
  /** A share of the budget for what the server sends; see Budget. Absent = it is not counted. */
  readonly take?: (bytes: number, options: TakeOptions) => Promise<Release | null>
}

/** STARTTLS where it is offered without useSsl; sends ID. Rejects with an AppError of a failure class. */
export type OpenSession = (options: SessionOptions, signal: AbortSignal) => Promise<Session>
