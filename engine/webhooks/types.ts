/** What the rest of the engine and the API ask of the webhooks. */
import type { ActorView, ChangeListener, PoolFacts } from '../accounts/types.ts'
import type {
  AccountRecord,
  ChangeRecord,
  MessageRecord,
  OutboxRecord,
  WebhookFilters,
  WebhookRecord,
} from '../store/records.ts'
import type { Asking } from './verdicts.ts'

export type { Asking }

/** What `explain` says besides the filters: how things were when the event came. */
export type Circumstance = 'event' | 'created' | 'active' | 'edited' | 'delivery'

/** The filters: name in the record → parameter on the wire, which errors, verdicts and reasons speak of. */
export const filterParameters = {
  to: 'filter_to',
  from: 'filter_from',
  cc: 'filter_cc',
  subject: 'filter_subject',
  thread: 'filter_thread',
  fileName: 'filter_file_name',
  folderAdded: 'filter_folder_added',
  folderRemoved: 'filter_folder_removed',
  toDomain: 'filter_to_domain',
  fromDomain: 'filter_from_domain',
  bodySearch: 'body_search',
} as const satisfies Record<keyof WebhookFilters, string>

export type FilterParameter = (typeof filterParameters)[keyof WebhookFilters]

/** What one filter says of one message. */
export interface FilterVerdict {
  readonly filter: FilterParameter | 'receive_drafts' | 'receive_all_changes' | Circumstance
  readonly matched: boolean
  readonly why: string
}

export interface DryRunRow {
  readonly account: AccountRecord
  readonly message: MessageRecord
  readonly matched: boolean
  readonly verdicts: readonly FilterVerdict[]
}

/**
 * What a create or an edit names; undefined = not named, null or '' = remove. Bad patterns: `bad_request` naming the
 * parameter and the place.
 */
export interface WebhookInput {
  readonly callbackUrl?: string
  readonly failureNotifUrl?: string | null
  /**
   * Waits between attempts as the configuration writes them, at most 20, each 1s to 7d. A running actor learns of it
   * with `active`.
   */
  readonly retrySchedule?: string | null
  readonly active?: boolean
  readonly filters?: { readonly [K in keyof WebhookFilters]?: string | null }
  readonly includeBody?: boolean
  readonly bodyType?: string | null
  readonly includeHeader?: '1' | 'raw' | null
  readonly receiveAllChanges?: boolean
  readonly receiveDrafts?: boolean
  readonly receiveHistorical?: boolean
}

export interface Explanation {
  /** What was seen of the message. */
  readonly changes: readonly ChangeRecord[]
  /** A callback of it was due to go out. */
  readonly matched: boolean
  readonly verdicts: readonly FilterVerdict[]
  readonly deliveries: readonly OutboxRecord[]
}

export interface Webhooks extends ChangeListener {
  startAll(): Promise<void>
  stopAll(): Promise<void>
  /** Checks URL (SSRF guard) and patterns, stores, starts the actor. */
  create(
    owner: { readonly developerId: string; readonly userId: string | null; readonly version: 'lite' | '2.0' },
    input: WebhookInput,
  ): Promise<WebhookRecord>
  /** active=1 also clears `failure` and tries at once; active=0 drops the backlog. */
  edit(webhook: WebhookRecord, input: WebhookInput): Promise<WebhookRecord>
  remove(webhook: WebhookRecord): Promise<void>
  /** A new secret; the old one signs along for MAILROOM_SECRET_OVERLAP. Answers the new secret (`whsec_…`). */
  rotateSecret(webhook: WebhookRecord): Promise<string>
  /** The current secret (`whsec_…`). */
  secret(webhook: WebhookRecord): string
  /** Sends a sample now, whatever the filters; answers the row with its attempt. */
  test(webhook: WebhookRecord): Promise<OutboxRecord>
  /**
   * Sets callbacks back into the queue and answers how many. A time may hold more than a moment can take: then the
   * answer is how many are queued so far, the rest follows, also over a restart, and `redelivery` of the webhook's
   * record says how far it is. `conflict` when the webhook is paused or another time is under way; the same time again
   * joins the work.
   */
  redeliver(
    webhook: WebhookRecord,
    which: {
      readonly ids?: readonly string[]
      readonly from?: number
      readonly until?: number
      readonly failedOnly?: boolean
    },
  ): Promise<number>
  /**
   * One callback of any kind again, to where it goes: a finished one goes back into the queue, one that waits is sent
   * at once. Its schedule begins anew. Answers 1, or 0 when it is on its way already.
   */
  resend(row: OutboxRecord): Promise<number>
  /** The last `limit` stored messages of the account, each with the verdict of every filter. */
  dryRun(webhook: WebhookRecord, account: AccountRecord, limit: number, asking: Asking): Promise<DryRunRow[]>
  /**
   * The same over all email accounts that the webhook covers, or those of one user: the last `limit` messages of all
   * together.
   */
  dryRunAll(webhook: WebhookRecord, userId: string | null, limit: number, asking: Asking): Promise<DryRunRow[]>
  /** The messages of this name (a Message-ID or a hosted id) in the email accounts that the webhook covers. */
  findMessages(webhook: WebhookRecord, reference: string): Promise<MessageRecord[]>
  /** Why this message was or was not sent, from what was recorded when it came. */
  explain(webhook: WebhookRecord, account: AccountRecord, message: MessageRecord, asking: Asking): Promise<Explanation>
  /** A user or account was added, edited or removed: caches of targets are dropped. */
  forget(userId: string): void
  /** Live changes as they are stored, for the event stream. Answers the way to stop listening. */
  subscribe(accountIds: readonly string[], listener: (accountId: string) => void): () => void
  view(webhookId: string): ActorView | null
  /** Every webhook of every developer, as it is in force. */
  all(): readonly WebhookRecord[]
  /** All channels, also those of bare URLs (their ids start with u), without their steps. */
  facts(): PoolFacts[]
  countTags(): ReadonlyMap<string, number>
}
