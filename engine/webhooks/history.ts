/**
 * Historical scans (receive_historical): callbacks for mail from before the webhook, newest to oldest, in lane 1 behind
 * all live mail. A scan's progress is in the store, so that it continues after a restart. A user's webhook scans the
 * user's accounts; an application's webhook scans accounts added after it. A scan starts when the account's first sync
 * is complete.
 *
 * Webhooks take turns, and so do the accounts of a webhook: a page at a time, each followed by a pause, a few webhooks
 * side by side. A webhook with a large backlog waits and does not delay others.
 *
 * A message already delivered live is not sent again as historical: a live row says that it arrived, was sent, or came
 * into a folder, or the row is older than the retention.
 *
 * Old mail that is synced after the first sync (a folder was refused or is new) may lie where the scan has passed: the
 * batch that stores it also plans its rows. The scan makes the same row ids.
 */
import PQueue from 'p-queue'
import { toAppError } from '../errors.ts'
import { folderNamer } from '../messages/names.ts'
import { pagesOf } from '../store/keyed.ts'
import type { AccountRecord, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { yieldToLoop, pause } from '../scheduling.ts'
import { messageRow } from './callbacks.ts'
import { arrivals, isAdded, sentOf } from './match.ts'
import { knownThreads, type Target } from './targets.ts'
import type { WebhookParts } from './parts.ts'

const pageSize = 100
const pagesAtOnce = 4

export class History {
  readonly #deps: WebhookParts
  readonly #stopped = new AbortController()
  readonly #scans = createScans((webhookId, accountId) => this.#page(webhookId, accountId), this.#stopped.signal)
  /** Time of the last page's rows, ever increasing: rows sort by it. */
  #lastAt = 0

  constructor(deps: WebhookParts) {
    this.#deps = deps
  }

  /** Never rejects: a read that the store does not answer is repeated. */
  async startAll(slots?: readonly number[]): Promise<void> {
    const { targets, log } = this.#deps
    const started = (webhook: WebhookRecord): Promise<boolean> =>
      this.startFor(webhook, slots).then(
        () => true,
        (error: unknown) => {
          log.warn({ webhookId: webhook.id, err: toAppError(error) }, 'historical scans not started yet')
          return false
        },
      )
    for (const { webhook } of targets.all())
      while (!this.#stopped.signal.aborted && !(await started(webhook)))
        await pause(longestWaitMs, this.#stopped.signal)
  }

  /** The webhook was made, edited or activated, or this node has gained slots: of these alone. */
  async startFor(webhook: WebhookRecord, slots?: readonly number[]): Promise<void> {
    const { accounts, nodes } = this.#deps.store
    if (!isWanted(webhook)) return
    const { userId } = webhook
    const pages =
      userId === null
        ? pagesOf((after, limit) => accounts.page(after, limit, slots))
        : [await accounts.listByUser(userId)]
    for await (const page of pages) {
      for (const account of page)
        if (account.resume.initialSyncAt !== null && nodes.owns(account.userId)) this.#add(webhook, account)
    }
  }

  /** The account's first sync is complete. */
  accountReady(account: AccountRecord): void {
    for (const { webhook } of this.#deps.targets.of(account)) this.#add(webhook, account)
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#scans.ended()
  }

  #add(webhook: WebhookRecord, account: AccountRecord): void {
    if (isScanned(webhook, account)) this.#scans.add(webhook.id, account.id)
  }

  /** Rows for old mail that is new in the index. Without rows where the scan has not begun: it will reach the mail. */
  async rowsOfOld(owner: AccountRecord, messages: readonly MessageRecord[]): Promise<OutboxRecord[]> {
    const { targets, store } = this.#deps
    const wanting = targets.of(owner).filter(({ webhook }) => isScanned(webhook, owner))
    const account = wanting.length === 0 ? null : await store.accounts.get(owner.id)
    if (account === null) return []
    const sorted = messages.toSorted((one, other) => other.sentAt - one.sentAt)
    const rows: OutboxRecord[] = []
    for (const target of wanting)
      if (await this.#hasBegun(target.webhook, account)) rows.push(...(await this.#rowsOf(target, account, sorted)))
    return rows
  }

  /** The scan may begin before `initialSyncAt` is stored, or a crash may come in between. */
  async #hasBegun({ id }: WebhookRecord, account: AccountRecord): Promise<boolean> {
    if (account.resume.initialSyncAt !== null || this.#scans.has(id, account.id)) return true
    return (await this.#deps.store.webhooks.scan(id, account.id)) !== null
  }

  /** Scans a page, then pauses to leave the store to live mail. Never rejects. */
  async #page(webhookId: string, accountId: string): Promise<PageEnd> {
    const { log, config } = this.#deps
    const end = await this.#step(webhookId, accountId).catch((error: unknown) => {
      log.warn({ webhookId, accountId, err: toAppError(error) }, 'historical scan held up')
      return 'wait' as const
    })
    if (end === 'more' || end === 'done') await pause(config.MAILROOM_HISTORICAL_PAUSE, this.#stopped.signal)
    return end
  }

  async #step(webhookId: string, accountId: string): Promise<PageEnd> {
    const { store, targets, config, reread } = this.#deps
    const target = targets.get(webhookId)
    if (target === null || !isWanted(target.webhook)) return 'nothing'
    const account = await store.accounts.get(accountId)
    const scan = await store.webhooks.scan(webhookId, accountId)
    if (account === null || scan?.done === true || !store.nodes.owns(account.userId)) return 'nothing'
    const { pending } = await store.outbox.backlog(webhookId)
    if (pending >= 2 * config.MAILROOM_WEBHOOK_BATCH) return 'wait'
    const messages = await store.messages.older(accountId, scan?.after ?? null, pageSize)
    const rows = await this.#rowsOf(target, account, messages)
    const last = messages.at(-1)
    const done = messages.length < pageSize
    const after = last === undefined ? (scan?.after ?? null) : { sentAt: last.sentAt, id: last.id }
    await store.webhooks.saveScan({ webhookId, accountId, after, done }, rows)
    if (rows.length > 0) reread(webhookId)
    return done ? 'done' : 'more'
  }

  async #rowsOf(target: Target, account: AccountRecord, messages: readonly MessageRecord[]): Promise<OutboxRecord[]> {
    const { store, now } = this.#deps
    this.#lastAt = Math.max(now(), this.#lastAt + 1)
    const folders = await store.folders.list(account.id)
    const sent = sentOf(folders)
    const folderName = folderNamer(folders)
    const rows: OutboxRecord[] = []
    for (const message of messages) {
      await yieldToLoop()
      if (await wasLive(this.#deps, target.webhook, message)) continue
      const known = { ...knownThreads(target, account.id), folderName }
      for (const event of arrivals(message, sent)) {
        const { outcome } = target.matcher.judge(event, message, known)
        if (outcome === 'no') continue
        const facts = { ...event, folders: message.placements.map(({ path }) => path) }
        const occasion = { name: `historical:${message.id}`, kind: event.kind, facts, undecided: outcome !== 'match' }
        const place = { at: this.#lastAt, lane: 1, seq: rows.length } as const
        rows.push(messageRow(target.webhook, account, message, { ...occasion, ...place }))
        break
      }
    }
    return rows
  }
}

const mostRows = 1000

/** The message had, or may have had, a live callback. Back-filled mail has no first change, so it had none. */
async function wasLive(deps: WebhookParts, webhook: WebhookRecord, message: MessageRecord): Promise<boolean> {
  const { id, firstChangeId, indexedAt } = message
  const keptFrom = deps.now() - deps.config.MAILROOM_DELIVERY_RETENTION
  if (firstChangeId === null) return false
  if (indexedAt > webhook.createdAt && indexedAt < keptFrom) return true
  const query = { webhookId: webhook.id, messageId: id, kind: 'message' } as const
  const rows = await deps.store.outbox.list(query, { limit: mostRows, offset: 0 })
  return rows.some(({ lane, event }) => lane === 0 && isAdded(event ?? 'received'))
}

function isScanned(webhook: WebhookRecord, account: AccountRecord): boolean {
  if (!isWanted(webhook) || account.developerId !== webhook.developerId) return false
  return webhook.userId !== null || account.createdAt >= webhook.createdAt
}

function isWanted({ receiveHistorical, active }: WebhookRecord): boolean {
  return receiveHistorical && active
}

/**
 * `more`, `done`: a page was scanned. `nothing`: the account has nothing to scan. `wait`: the webhook has to wait, with
 * all its accounts.
 */
type PageEnd = 'more' | 'done' | 'nothing' | 'wait'

const firstWaitMs = 1_000
const longestWaitMs = 30_000

/** One page of a webhook is under way at a time. A webhook that has to wait pauses for a second, then twice as long. */
export function createScans(
  page: (webhookId: string, accountId: string) => Promise<PageEnd>,
  stopped: AbortSignal,
  { places = pagesAtOnce, wait = pause } = {},
) {
  const pages = new PQueue({ concurrency: places })
  /** Webhook → accounts that are not completely scanned. */
  const scans = new Map<string, Set<string>>()
  const underWay = new Set<Promise<void>>()

  async function run(webhookId: string, accounts: Set<string>): Promise<void> {
    for (let waits = 0; accounts.size > 0 && !stopped.aborted;) {
      const [accountId = ''] = accounts
      const end = await pages.add(() => (stopped.aborted ? 'wait' : page(webhookId, accountId)))
      // The account goes to the end of the set, so that accounts take turns.
      accounts.delete(accountId)
      if (end === 'more' || end === 'wait') accounts.add(accountId)
      waits = end === 'wait' ? waits + 1 : 0
      if (end === 'wait') await wait(Math.min(firstWaitMs * 2 ** (waits - 1), longestWaitMs), stopped)
    }
    scans.delete(webhookId)
  }

  return {
    has: (webhookId: string, accountId: string): boolean => scans.get(webhookId)?.has(accountId) ?? false,
    add(webhookId: string, accountId: string): void {
      const known = scans.get(webhookId)
      const accounts = known ?? new Set<string>()
      accounts.add(accountId)
      if (known !== undefined || stopped.aborted) return
      scans.set(webhookId, accounts)
      const work = run(webhookId, accounts).finally(() => underWay.delete(work))
      underWay.add(work)
    },
    async ended(): Promise<void> {
      await Promise.all(underWay)
    },
  }
}
