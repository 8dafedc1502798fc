import type { Address } from '../../../engine/store/records.ts'

export interface ExpectedBody {
  readonly section: string
  readonly type: string
  /** What decodeBody gives: UTF-8 text, LF line ends. Absent = not compared. */
  readonly text?: string
  /** Bytes as transferred, line ends CRLF. Absent = not compared. */
  readonly size?: number
}

export interface ExpectedAttachment {
  readonly section: string
  readonly type: string
  readonly fileName: string
  /** Absent = not compared. */
  readonly embedded?: boolean
  readonly contentId?: string | null
  /** The decoded bytes. Absent = not compared. */
  readonly content?: Buffer
}

/** What must be found in a message; absent keys are not compared. */
export interface ExpectedFacts {
  readonly subject?: string
  readonly emailMessageId?: string | null
  readonly from?: readonly Address[]
  readonly to?: readonly Address[]
  readonly cc?: readonly Address[]
  /** Length of `to`, where it is too long to be written down. */
  readonly toCount?: number
  /** ms since 1970; null = the Date header is unreadable and INTERNALDATE counts. */
  readonly sentAt?: number | null
  readonly inReplyTo?: string | null
  readonly references?: readonly string[]
  readonly listHeaders?: Readonly<Record<string, string>>
  readonly receivedCount?: number
  readonly bodies?: readonly ExpectedBody[]
  readonly attachments?: readonly ExpectedAttachment[]
}

export interface CorpusMessage {
  readonly name: string
  /** As it is sent or appended. */
  readonly raw: Buffer
  /** false: an IMAP literal cannot hold it (NUL), only parsers can be given it. */
  readonly appendable: boolean
  readonly expected: ExpectedFacts
}
