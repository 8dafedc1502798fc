/**
 * What the rest of the engine and the API ask of email accounts. Each command is answered in bounded time
 * (MAILROOM_COMMAND_TIMEOUT without progress) or rejects with an AppError: `account_disabled` and `account_unavailable`
 * (with the reason and when the next try is), `timeout`, `server_refused` (the server's own NO), `not_found`,
 * `throttled`, `network` … Streams reject or are destroyed with the same errors.
 */
import type { Readable } from 'node:stream'
import type { ActorFacts } from '../../machines/view.ts'
import type { FailureClass } from '../errors.ts'
import type {
  AccountRecord,
  FolderRecord,
  MessageRecord,
  OutboxRecord,
  Placement,
  SpecialUse,
} from '../store/records.ts'
import type { ChangeDraft, OutboxDraft } from '../store/port.ts'

/** How to reach a mailbox, before there is an account. */
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

export type ProbeFailure =
  Exclude<FailureClass, 'set_aside'> | 'timeout' | 'private_address' | 'connection_refused' | 'host_not_found'

/** The trial login of a new account. `log` holds protocol lines with secrets masked. */
export type ProbeResult =
  | { readonly ok: true; readonly log: string; readonly capabilities: readonly string[] }
  | {
      readonly ok: false
      readonly failure: ProbeFailure
      readonly message: string
      readonly log: string
      /**
       * Our own limit on logins (MAILROOM_LOGINS_PER_MINUTE) stood in the way: the server was not asked. ms to wait.
       */
      readonly retryAfterMs?: number
    }

/** A login that was asked for by hand: the account since, and why it failed. */
export interface CheckResult {
  readonly account: AccountRecord
  readonly failure: Extract<ProbeResult, { readonly ok: false }> | null
}

/** One live actor as operators see it. */
export interface ActorView extends ActorFacts {
  readonly id: string
  /** The last 100 steps, oldest first, without secrets. */
  readonly steps: readonly { readonly at: number; readonly event: string; readonly state: string }[]
}

/** By section. */
export interface PartsRead extends ReadonlyMap<string, Buffer> {
  /** Sections of which the mail server gives less than it said, also in the whole message. Absent = none. */
  readonly short?: ReadonlySet<string>
}

export type PartStream = Readable & {
  /** The mail server gives less of the part than it said, also in the whole message. */
  readonly short?: boolean
}

export interface AccountCommands {
  /** Tries to log in and lists the folders; within MAILROOM_CREATE_TIMEOUT, also when the host hangs. Never rejects. */
  probe(developerId: string, settings: MailboxSettings, credential: Credential): Promise<ProbeResult>

  /** Folders as the store has them are enough for most; this asks the server anew and reconciles. */
  refreshFolders(accountId: string): Promise<FolderRecord[]>
  createFolder(accountId: string, path: string): Promise<FolderRecord>
  deleteFolder(accountId: string, path: string): Promise<void>
  expungeFolder(accountId: string, path: string): Promise<void>
  /** Reads what is new in the folder now, and answers when the index says the same. */
  syncFolder(accountId: string, path: string): Promise<void>

  /** Whole parts in memory, undecoded, at most `maxBytes` each (cut there). For text bodies. */
  fetchParts(
    accountId: string,
    message: MessageRecord,
    sections: readonly string[],
    maxBytes: number,
  ): Promise<PartsRead>
  /**
   * The same of many messages, with few commands: those of one folder that want the same sections ('HEADER' = header
   * block) are asked for together. By message id; messages that the server does not give so are absent, and each is to
   * be asked for alone.
   */
  fetchMany(
    accountId: string,
    wanted: readonly { readonly message: MessageRecord; readonly sections: readonly string[] }[],
    maxBytes: number,
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, Buffer>>>
  /** One part as decoded bytes (base64, quoted-printable undone), streamed. */
  streamPart(accountId: string, message: MessageRecord, section: string, encoding: string): Promise<PartStream>
  /** The whole RFC 5322 message as the server has it, streamed. */
  streamRaw(accountId: string, message: MessageRecord): Promise<Readable>
  /** The header block as bytes, CRLF kept. */
  fetchHeaders(accountId: string, message: MessageRecord): Promise<Buffer>
  /** Asks the server which messages hold the text in their body (case-insensitive). Answers message ids. */
  searchBody(accountId: string, folder: FolderRecord, text: string): Promise<string[]>
  /**
   * Each write is on the server when it answers, in the index, and told like any other change. Answers the flags now.
   */
  setFlags(
    accountId: string,
    message: MessageRecord,
    at: Placement,
    change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  ): Promise<readonly string[]>
  /**
   * MOVE, else COPY + STORE \Deleted + EXPUNGE of that UID alone: every place that the message has in the folder of
   * `at` (null = the first of its folders: INBOX, else one that is no view of all mail). Done already when it lies only
   * there where it shall.
   */
  move(accountId: string, message: MessageRecord, at: Placement | null, to: FolderRecord): Promise<void>
  copy(accountId: string, message: MessageRecord, at: Placement, to: FolderRecord): Promise<void>
  /** 2.0: APPEND into another account. */
  append(
    accountId: string,
    to: FolderRecord,
    raw: Buffer,
    flags: readonly string[],
    internalDate: number,
  ): Promise<void>
  /** 2.0 DELETE message: \Deleted and expunge this UID. */
  remove(accountId: string, message: MessageRecord, at: Placement): Promise<void>
}

/** The pool of account actors, and the commands to them. */
export interface Accounts extends AccountCommands {
  /**
   * Starts an actor for every account in the store, paced. Resolves when all are started, not when all are connected.
   */
  startAll(): Promise<void>
  /** Starts (or restarts) one, after creation or change of credentials or settings. */
  start(account: AccountRecord): void
  /** Ends the actor and its sockets; for removal and shutdown. */
  stop(accountId: string): Promise<void>
  pause(accountId: string): void
  resume(accountId: string): void
  /** status=1 or new credentials: forget the back-off and connect now. */
  wake(accountId: string): void
  /** force_status_check=1: a login now, within MAILROOM_CREATE_TIMEOUT; how it went, and the true status. */
  checkNow(accountId: string): Promise<CheckResult>
  /**
   * After an edit: an account that was in trouble is answered as it is once its attempt to connect is over (10 s at
   * most).
   */
  settled(account: AccountRecord): Promise<AccountRecord>
  view(accountId: string): ActorView | null
  views(): ActorView[]
  /** How many actors have each tag. */
  countTags(): ReadonlyMap<string, number>
  /** DISABLED, with `reason` in its message, until the probe or until a call asks for it. */
  setAside(accountId: string, reason: string): void
  stopAll(): Promise<void>
}

/** What email accounts need of webhooks. */
export interface ChangeListener {
  /**
   * Outbox rows for these changes, from the webhooks in force: runs inside every sync batch, and gives way to others.
   * `folderName`: from the server's path to the name as the API shows it.
   */
  plan(
    account: AccountRecord,
    changes: readonly { readonly change: ChangeDraft; readonly message: MessageRecord }[],
    folderName: (path: string) => string,
  ): Promise<OutboxDraft[]>
  /** A batch was stored: rows to deliver and changes to stream. Must not throw or wait. */
  stored(accountId: string, outbox: readonly OutboxRecord[], changes: readonly { readonly seq: number }[]): void
  /** The row to send for a status transition; [] when no webhook asks for it. */
  planStatus(
    account: AccountRecord,
    transition: { readonly status: 'OK' | 'DISABLED'; readonly message: string | null; readonly version: number },
  ): Promise<OutboxRecord[]>
  /** The initial sync of all folders is complete (2.0 callback_url); told once. */
  initialSyncDone(account: AccountRecord): Promise<void>
}

export type { SpecialUse }
