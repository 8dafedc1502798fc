/**
 * Historical scans (receive_historical): messages that were there before, newest to oldest, in lane 1 behind all live
 * mail. How far a scan is stands in the store, so that a restart goes on there. At application level for accounts added
 * after the webhook was made, at user level for the user's accounts; each starts when the account's first sync is
 * complete.
 *
 * Webhooks take turns, and so do the accounts of one: a page at a time, each followed by a pause, a few webhooks side
 * by side. A webhook with much waiting in its outbox (its receiver is slow or away) is left out for a while, and holds
 * up no other.
 *
 * A message that already had a live callback (a row says that it came, was sent, or came into a folder) gets no second
 * one, and neither does one that came since the webhook was made and so long ago that its rows are no longer kept.
 *
 * Old mail that is read after the first sync, as of a folder that was refused or appears, may lie where the scan has
 * passed: its rows are written with the batch that reads it. Where the scan comes to it as well, it is the same row.
 */
import PQueue from 'p-queue'
import { toAppError } from '../errors.ts'
import { folderNamer } from '../messages/names.ts'
import { pagesOf } from '../store/keyed.ts'
import type { AccountRecord, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { yieldToLoop, pause } from '../waits.ts'
import { messageRow } from './callbacks.ts'
import { arrivals, isAdded, sentOf } from './match.ts'
import { knownThreads, type Target } from './targets.ts'
import type { WebhookParts } from './parts.ts'

const pageSize = 100
const pagesAtOnce = 4

export class History {
  readonly #deps: WebhookParts
  readonly #stopped = new AbortController()
  readonly #scans = createScans((webhookId, accountId) => this.#play(webhookId, accountId), this.#stopped.signal)
  /** Time of the last page's rows: they sort by it. */
  #lastAt = 0

  constructor(deps: WebhookParts) {
    this.#deps = deps
  }

  async startAll(): Promise<void> {
    for (const { webhook } of this.#deps.targets.all()) await this.startFor(webhook)
  }

  /** The webhook was made, edited or activated. */
  async startFor(webhook: WebhookRecord): Promise<void> {
    const { accounts, nodes } = this.#deps.store
    if (!isWanted(webhook)) return
    const { userId } = webhook
    const pages =
      userId === null ? pagesOf((after, limit) => accounts.page(after, limit)) : [await accounts.listByUser(userId)]
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

  /** For old mail that was not in the index until now. A scan that has yet to begin comes to it. */
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

  /** That the first sync is complete is noted later than the scan begins, or a crash comes in between. */
  async #hasBegun({ id }: WebhookRecord, account: AccountRecord): Promise<boolean> {
    if (account.resume.initialSyncAt !== null || this.#scans.has(id, account.id)) return true
    return (await this.#deps.store.webhooks.scan(id, account.id)) !== null
  }

  /** A page, and the pause that belongs to it; live mail has the store to itself meanwhile. Never rejects. */
  async #play(webhookId: string, accountId: string): Promise<PageEnd> {
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

/** It had a live callback, or may have had one. Not looked for with back-filled mail, which has no first change. */
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
 * `more`, `done`: after a page that was scanned. `nothing`: there was none to scan, and there will be none. `wait`: not
 * now, and not for the other accounts of this webhook either.
 */
type PageEnd = 'more' | 'done' | 'nothing' | 'wait'

interface Scan {
  /** Those that are not scanned through. */
  readonly accounts: Set<string>
  /** Counts what was asked for: what a page under way meanwhile found may be out of date. */
  asked: number
  woken: AbortController
}

const firstWaitMs = 1_000
const longestWaitMs = 30_000

/**
 * Webhooks take turns, and the accounts of a webhook; of one webhook one page is under way at a time. A webhook that
 * has to wait is left out for a second, and twice as long each time after that.
 */
export function createScans(
  page: (webhookId: string, accountId: string) => Promise<PageEnd>,
  stopped: AbortSignal,
  { places = pagesAtOnce, wait = pause } = {},
) {
  const pages = new PQueue({ concurrency: places })
  const scans = new Map<string, Scan>()
  const underWay = new Set<Promise<void>>()

  async function run(webhookId: string, scan: Scan): Promise<void> {
    const { accounts } = scan
    for (let waits = 0; accounts.size > 0 && !stopped.aborted;) {
      const [accountId = ''] = accounts
      const { asked } = scan
      const end = await pages.add(() => (stopped.aborted ? 'wait' : page(webhookId, accountId)))
      // To the end: every account gets its turn.
      accounts.delete(accountId)
      if (scan.asked !== asked || end === 'more' || end === 'wait') accounts.add(accountId)
      waits = end === 'wait' ? waits + 1 : 0
      if (end !== 'wait') continue
      scan.woken = new AbortController()
      const signal = AbortSignal.any([stopped, scan.woken.signal])
      await wait(Math.min(firstWaitMs * 2 ** (waits - 1), longestWaitMs), signal)
    }
    scans.delete(webhookId)
  }

  return {
    has: (webhookId: string, accountId: string): boolean => scans.get(webhookId)?.accounts.has(accountId) ?? false,
    /** The account is to be scanned. A webhook that was left out is asked again. */
    add(webhookId: string, accountId: string): void {
      const known = scans.get(webhookId)
      const scan = known ?? { accounts: new Set<string>(), asked: 0, woken: new AbortController() }
      scan.accounts.add(accountId)
      scan.asked += 1
      scan.woken.abort()
      if (known !== undefined || stopped.aborted) return
      scans.set(webhookId, scan)
      const work = run(webhookId, scan).finally(() => underWay.delete(work))
      underWay.add(work)
    },
    async ended(): Promise<void> {
      await Promise.all(underWay)
    },
  }
}
