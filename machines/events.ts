/**
 * The charts' vocabulary: events as unions, failures as plain JSON, what the engine's actors take and give.
 * Commands are in capitals (PAUSE); an actor's news has its name before the dot (watch.failed).
 * `at` and `now` are milliseconds since 1970: the charts read no clock, each event brings its time.
 * `jitter` is a random number in [0, 1), drawn by the sender.
 */

/** Why an attempt on a mailbox may fail. Each is an error code too (engine/errors.ts). */
export const failureClasses = [
  'auth_rejected',
  'auth_unavailable',
  'consent_lost',
  'permission',
  'throttled',
  'connection_limit',
  'network',
  'tls',
  'protocol',
] as const

export type FailureClass = (typeof failureClasses)[number]

export interface Failure {
  readonly class: FailureClass
  /** In words a person can act on; becomes status_message. No secrets. */
  readonly message: string
  readonly at: number
  /** The server's own hint; null = none. */
  readonly retryAfterMs: number | null
  readonly jitter: number
  /** A person asked whether the login works, and this is the answer: a rejection needs no repetition to be believed. */
  readonly decides?: boolean
}

/**
 * What `connect`, `sync` and `relogin` reject with. Anything else that they throw counts as `protocol` with a general
 * message.
 */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly failure: Failure

  constructor(failure: Failure, cause?: unknown) {
    super(failure.message, { cause })
    this.failure = failure
  }
}

/**
 * How an account is, over tries and restarts. `up`: its mailbox was caught up and no session has failed since; `down`:
 * since the first failure after that, or since it was made; `disabled`: DISABLED; `paused`: by an operator.
 */
export const conditions = ['up', 'down', 'disabled', 'paused'] as const

export interface Condition {
  readonly is: (typeof conditions)[number]
  readonly since: number
}

/** An account's actor starts from this record after a restart: the durable truth about its failures. */
export interface AccountResume {
  /** Failed attempts in a row, 0 after a success. */
  readonly attempt: number
  /** Of those, failures in a row that count toward DISABLED. */
  readonly strikes: number
  /** No reconnect before this time; null = at once. */
  readonly retryAt: number | null
  readonly lastError: { readonly class: FailureClass; readonly message: string; readonly at: number } | null
  readonly lastConnectedAt: number | null
  /** When the initial sync of all folders was complete; null = not yet. */
  readonly initialSyncAt: number | null
  /** `before`: what a pause has interrupted, unless it was up. Absent = not known yet. */
  readonly condition?: Condition & { readonly before?: Condition }
}

export type AccountStatus = 'OK' | 'DISABLED'

/** `now` and a fresh random number, for everything that may end in a new attempt. */
export interface Moment {
  readonly now: number
  readonly jitter: number
}

export type AccountEvent =
  | { readonly type: 'PAUSE'; readonly at: number }
  | ({ readonly type: 'RESUME' } & Moment)
  /**
   * Forget the back-off and connect now. `reconnect`: credentials or settings changed, so give up an open session too.
   */
  | ({ readonly type: 'WAKE'; readonly reconnect?: boolean } & Moment)
  /** Another account of the host has reached it again: try now, with what is known of earlier failures. */
  | ({ readonly type: 'HOST_BACK' } & Moment)
  | { readonly type: 'STOP' }
  /** A login outside the chart (force_status_check on a second connection) went well, or failed. */
  | { readonly type: 'CHECK_PASSED'; readonly at: number }
  | { readonly type: 'CHECK_FAILED'; readonly failure: Failure }
  /** The command connection, beside the session that watches, has logged in, or its login failed. */
  | { readonly type: 'command.connected'; readonly at: number }
  | { readonly type: 'command.failed'; readonly failure: Failure }
  /** connect waits for its turn (login limiter): the deadline rests. */
  | { readonly type: 'connect.queued'; readonly at: number }
  /** connect has its turn: the deadline counts from here. */
  | { readonly type: 'connect.dialing'; readonly at: number }
  /** sync got something from the server. The first one proves the login. */
  | { readonly type: 'sync.progress'; readonly at: number }
  | { readonly type: 'sync.completed'; readonly at: number }
  /** watch heard from the server (an IDLE cycle ended, a poll was answered). */
  | { readonly type: 'watch.alive'; readonly at: number }
  | { readonly type: 'watch.failed'; readonly failure: Failure }
  /** A planned hand-over to a new session (an access token runs out); no failure. */
  | { readonly type: 'watch.rotate'; readonly at: number }

export type AccountEmitted =
  | ({ readonly type: 'status.changed'; readonly at: number } & Omit<AccountReport, 'resume'>)
  | { readonly type: 'attempt.failed'; readonly accountId: string; readonly failure: Failure }

/** Output of `connect`, `sync` and `relogin`: when it was done. The session itself stays with the engine. */
export interface DoneAt {
  readonly at: number
}

export interface MailboxInput {
  readonly accountId: string
}

/** Input of the account's `report`: the whole truth to store, later calls replace earlier ones. */
export interface AccountReport {
  readonly accountId: string
  readonly status: AccountStatus
  /** status_message; null while all is well. */
  readonly message: string | null
  readonly resume: AccountResume
}

export interface DeliveryFailure {
  readonly message: string
  readonly at: number
  /**
   * When the attempt began. Attempts that were under way at a counted failure are one round with it; absent = count it.
   */
  readonly startedAt?: number
  /** Retry-After; null = none. */
  readonly retryAfterMs: number | null
  readonly jitter: number
  /** 'gone': 410, the receiver wants no more. 'redirect': 3xx, a mistake in the configuration. */
  readonly permanent?: 'gone' | 'redirect'
}

/** Kept in the webhook's record, as the chart reports it. */
export interface WebhookHealth {
  /** true from the third failed attempt in a row until the next delivered callback or an edit with active=1. */
  readonly failure: boolean
  readonly consecutiveFailures: number
  readonly retryAt: number | null
  readonly lastError: string | null
  readonly lastSuccessAt: number | null
  /** Since when every attempt has failed; null while healthy. */
  readonly failingSince: number | null
  /** It has failed for abandonMs: since when no more than a probe is sent; null otherwise. */
  readonly abandonedAt: number | null
  /** Counts the failures announced; names each failure notification. */
  readonly failureVersion: number
}

export interface Activation extends Moment {
  readonly scheduleMs?: readonly number[]
}

/** Another node has stored this health: what this one has counted and not stored is void. */
export interface Adoption {
  readonly health: WebhookHealth
  readonly at: number
}

export type WebhookEvent =
  /** active=1: clear `failure` and try at once, from now on along `scheduleMs` (absent = as before). */
  | ({ readonly type: 'ACTIVATE' } & Activation)
  | { readonly type: 'DEACTIVATE' }
  | ({ readonly type: 'ADOPT' } & Adoption)
  | { readonly type: 'WAKE' }
  | { readonly type: 'STOP' }
  | { readonly type: 'delivered'; readonly at: number }
  /** The receiver as a whole fails (unreachable, timeout, 429, 502 …): nothing more is sent until a probe went well. */
  | { readonly type: 'delivery.failed'; readonly failure: DeliveryFailure }
  /** One row failed and waits by itself; the others go on. */
  | { readonly type: 'row.failed'; readonly failure: DeliveryFailure }
  /** There may be due rows, and there is room for them. */
  | { readonly type: 'room' }
  /** Nothing is due. */
  | { readonly type: 'idle'; readonly at: number }

export interface DrainEvent {
  readonly type: 'WAKE'
}

export interface WebhookInput {
  readonly webhookId: string
}

export type ProbeOutput =
  | { readonly delivered: true; readonly at: number }
  | { readonly delivered: false; readonly failure: DeliveryFailure }
  /** There was no row to send. `next`: when the first of those that were put off is due. */
  | { readonly delivered: null; readonly at: number; readonly next?: number }

/** A failing period began; went on for abandonMs; or the receiver answered 410, which sets the webhook inactive. */
export type FailureNews = 'failing' | 'abandoned' | 'gone'

/** A notice for failure_notif_url, sent once. */
export interface FailureAnnouncement {
  /** The health's failureVersion: names the notification row. */
  readonly version: number
  readonly news: FailureNews
  readonly message: string
  readonly at: number
}

/** For those who watch a webhook from outside; each once when it happens, in this order if at the same time. */
export interface WebhookEmitted {
  readonly type: FailureNews | 'recovered'
  readonly webhookId: string
  /** The receiver's last error; null for recovered. */
  readonly message: string | null
  readonly at: number
}

/**
 * Input of the webhook's `report`. Repeated until it succeeds, so rows and edits made from it need deterministic ids.
 */
export interface WebhookReport {
  readonly webhookId: string
  readonly health: WebhookHealth
  /** Notification rows to write in the same step. */
  readonly announcements: readonly FailureAnnouncement[]
  /** When the receiver answered 410: store active = false. null: leave `active` alone, it is the developer's. */
  readonly goneAt: number | null
}
