/** Types that email accounts share with the rest of the engine and the API. */
import type { Readable } from 'node:stream'
import type { FailureClass } from '../errors.ts'
import type { AccountRecord, MessageRecord, OutboxRecord, SourceOptions } from '../store/records.ts'
import type { ChangeDraft } from '../store/port.ts'

/** The way to a mailbox, before there is an account. */
export interface MailboxSettings {
  readonly server: string
  readonly port: number
  readonly useSsl: boolean
  readonly username: string
}

/** In the clear; lives in memory only. */
export type Credential =
  | { readonly kind: 'password'; readonly password: string }
  | { readonly kind: 'oauth2'; readonly refreshToken: string; readonly providerKey: string }

export type ProbeFailure = FailureClass | 'timeout' | 'private_address' | 'connection_refused' | 'host_not_found'

/** The step of a trial login: the host is looked up, the server is asked to let us in, and for its folders. */
export type ProbeStep = 'finding' | 'login' | 'folders'

/** `rotated`: the credential with the refresh token that the provider has put in the place of the given one. */
interface Tried {
  readonly rotated?: Credential
}

/** The trial login of a new account. `log` holds protocol lines with secrets masked. */
export type ProbeResult = Tried &
  (
    | { readonly ok: true; readonly log: string }
    | {
        readonly ok: false
        readonly failure: ProbeFailure
        readonly message: string
        readonly log: string
        /** Our own limit on logins (MAILROOM_LOGINS_PER_MINUTE): the server was not asked. ms to wait. */
        readonly retryAfterMs?: number
      }
  )

/** A login that was asked for by hand: the account since, and why it failed. */
export interface CheckResult {
  readonly account: AccountRecord
  readonly failure: Extract<ProbeResult, { readonly ok: false }> | null
}

/** The fields of a new account, see mailboxes.ts. */
export interface AccountInput extends MailboxSettings {
  readonly email: string
  readonly credential: Credential
  /** null = none; absent = the user's. */
  readonly statusCallbackUrl?: string | null
  readonly options?: Partial<SourceOptions>
  /** Of a further account; made of the address and the provider when absent. `conflict` when it is taken. */
  readonly label?: string
}

/** null = remove; absent = leave. The user is found by the address; the label stays. */
export type AccountEdit = Partial<Omit<AccountInput, 'label'>> & {
  /** status=1: forget the back-off and the DISABLED state, connect now. */
  readonly reset?: boolean
}

export interface UserInput {
  readonly email?: string
  readonly firstName?: string
  readonly lastName?: string
  /** Of accounts that are added later. */
  readonly statusCallbackUrl?: string | null
  readonly account?: AccountInput
}

export type UserEdit = Pick<UserInput, 'firstName' | 'lastName' | 'statusCallbackUrl'>

/** The mail server said no, which is no error of the call. `log` has protocol lines, secrets masked. */
export type ConnectFailure = Pick<Extract<ProbeResult, { readonly ok: false }>, 'failure' | 'message' | 'log'>

export type Created<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & ConnectFailure)

/** Steps of the connect wizard beside a creation, or an edit of credentials. */
export interface ConnectSteps {
  readonly onStep?: (step: ProbeStep) => void
  /** The login works, and nothing is stored yet. Nothing will be when it rejects. */
  readonly claim?: (ids: { readonly userId: string; readonly accountId: string }) => Promise<void>
  /** A creation whose outcome was not known is taken back. May be called twice. */
  readonly takenBack?: () => Promise<void>
}

/** Looks at all folders, in ms since 1970; not positive or not finite = not known. */
export interface FolderLooks {
  readonly until: number
  readonly nextAt: number
}

export interface PartsRead extends ReadonlyMap<string, Buffer> {
  /** Sections of which the mail server gives less than it said, also in the whole message. Absent = none. */
  readonly short?: ReadonlySet<string>
}

/** Parts of one message, by section; 'HEADER' = the header block. */
export interface WantedParts {
  readonly message: MessageRecord
  readonly sections: readonly string[]
}

/** By message id, then by section: only messages of which all came, and came whole. */
export type ManyParts = ReadonlyMap<string, ReadonlyMap<string, Buffer>>

/** Parts of many messages with few commands, cut at `maxBytes` each. What is absent is to be asked for alone. */
export type FetchMany = (wanted: readonly WantedParts[], maxBytes: number) => Promise<ManyParts>

export type PartStream = Readable & {
  /** The mail server gives less of the part than it said, also in the whole message. */
  readonly short?: boolean
}

export interface ChangeListener {
  /**
   * Outbox rows for these changes, from the webhooks in force: runs inside every sync batch, and gives way to others.
   * `folderName`: from the server's path to the name as the API shows it.
   */
  plan(
    account: AccountRecord,
    changes: readonly { readonly change: ChangeDraft; readonly message: MessageRecord }[],
    folderName: (path: string) => string,
  ): Promise<OutboxRecord[]>
  /** The same for old mail that is new to the index and makes no change: a scan that has begun may have passed it. */
  planOld(account: AccountRecord, messages: readonly MessageRecord[]): Promise<OutboxRecord[]>
  /** A batch is stored and will be told: reads by `fetchMany` what callbacks of these rows will ask for. */
  readAhead(outbox: readonly OutboxRecord[], messages: readonly MessageRecord[], fetchMany: FetchMany): Promise<void>
  /** A batch was stored, or perhaps a part of it: rows to deliver and changes to stream. Must not throw or wait. */
  stored(accountId: string, outbox: readonly OutboxRecord[], changes: readonly { readonly seq: number }[]): void
  /** The row to send for a status transition; [] when no webhook asks for it. */
  planStatus(
    account: AccountRecord,
    transition: { readonly status: 'OK' | 'DISABLED'; readonly message: string | null; readonly version: number },
  ): Promise<OutboxRecord[]>
  /** Rows of status transitions may be stored for the channel. Must not throw or wait. */
  statusStored(channelId: string): void
  /** The initial sync of all folders is complete (2.0 callback_url); called again when it rejects, or is cut short. */
  initialSyncDone(account: AccountRecord): Promise<void>
}
