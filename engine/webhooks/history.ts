/**
 * Historical scans (receive_historical): messages that were there before, newest to oldest, in lane 1 behind all live
 * mail. At application level for accounts added after the webhook was made, at user level for the user's accounts; each
 * starts when the account's first sync is complete. Where a scan stands is in the store, so a restart goes on there.
 *
 * Webhooks take turns, and so do the accounts of one: a page at a time, each followed by a pause, a few webhooks side
 * by side. A webhook with much waiting in its outbox (its receiver is slow or away) is left out for a while, and holds
 * up no other.
 *
 * A message that already had a live callback (its first change has a row) gets no second one.
 */
import PQueue from 'p-queue'
import { toAppError } from '../errors.ts'
import { createGiveWay } from '../give-way.ts'
import { folderNamer } from '../messages/names.ts'
import { outboxId } from '../store/ids.ts'
import { pagesOf } from '../store/pages.ts'
import type { AccountRecord, HistoricalScan, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { arrivals, sentOf } from './verdicts.ts'
import { pause } from '../waits.ts'
import { knownThreads, messageRow, type Target, type RereadParts } from './targets.ts'

export type History = ReturnType<typeof createHistory>

interface State {
  readonly deps: RereadParts
  readonly scans: ReturnType<typeof createScans>
  readonly stopped: AbortController
  /** Time of the last page's rows: they sort by it. */
  lastAt: number
}

const pageSize = 100
const pagesAtOnce = 4

export function createHistory(deps: RereadParts) {
  const stopped = new AbortController()
  const scans = createScans((webhookId, accountId) => play(state, webhookId, accountId), stopped.signal)
  const state: State = { deps, scans, stopped, lastAt: 0 }
  return {
    async startAll(): Promise<void> {
      const scanning = deps.targets.all().filter((target) => target.webhook.receiveHistorical)
      for (const { webhook } of scanning) await addWebhook(state, webhook)
    },
    /** The webhook was made, edited or activated. */
    startFor: (webhook: WebhookRecord) => addWebhook(state, webhook),
    /** The account's first sync is complete. */
    accountReady(account: AccountRecord): void {
      for (const { webhook } of deps.targets.of(account)) add(state, webhook, account)
    },
    async stop(): Promise<void> {
      stopped.abort()
      await scans.ended()
    },
  }
}

async function addWebhook(state: State, webhook: WebhookRecord): Promise<void> {
  if (!webhook.receiveHistorical || !webhook.active) return
  const { accounts } = state.deps.store
  const { userId } = webhook
  const pages =
    userId === null ? pagesOf((after, limit) => accounts.page(after, limit)) : [await accounts.listByUser(userId)]
  for await (const page of pages) {
    for (const account of page) if (account.resume.initialSyncAt !== null) add(state, webhook, account)
  }
}

function add(state: State, webhook: WebhookRecord, account: AccountRecord): void {
  if (!webhook.receiveHistorical || !webhook.active || account.developerId !== webhook.developerId) return
  if (webhook.userId === null && account.createdAt < webhook.createdAt) return
  state.scans.add(webhook.id, account.id)
}

/** A page, and the pause that belongs to it; live mail has the store to itself meanwhile. Never rejects. */
async function play(state: State, webhookId: string, accountId: string): Promise<PageEnd> {
  const { deps, stopped } = state
  const end = await step(state, webhookId, accountId).catch((error: unknown) => {
    deps.log.warn({ webhookId, accountId, err: toAppError(error) }, 'historical scan held up')
    return 'wait' as const
  })
  if (end === 'more' || end === 'done') await pause(deps.config.MAILROOM_HISTORICAL_PAUSE, stopped.signal)
  return end
}

async function step(state: State, webhookId: string, accountId: string): Promise<PageEnd> {
  const { store, targets, config } = state.deps
  const target = targets.get(webhookId)
  if (target === null || !target.webhook.active || !target.webhook.receiveHistorical) return 'nothing'
  const account = await store.accounts.get(accountId)
  const scan = await store.webhooks.scan(webhookId, accountId)
  if (account === null || scan?.done === true) return 'nothing'
  const { pending } = await store.outbox.backlog(webhookId)
  if (pending >= 2 * config.MAILROOM_WEBHOOK_BATCH) return 'wait'
  const messages = await store.messages.older(accountId, scan?.after ?? null, pageSize)
  const rows = await pageRows(state, target, account, messages)
  const last = messages.at(-1)
  const done = messages.length < pageSize
  const after = last === undefined ? (scan?.after ?? null) : { sentAt: last.sentAt, id: last.id }
  const next: HistoricalScan = { webhookId, accountId, after, done }
  await store.webhooks.saveScan(next, rows)
  if (rows.length > 0) state.deps.reread(webhookId)
  return done ? 'done' : 'more'
}

async function pageRows(
  state: State,
  target: Target,
  account: AccountRecord,
  messages: readonly MessageRecord[],
): Promise<OutboxRecord[]> {
  const { deps } = state
  state.lastAt = Math.max(deps.now(), state.lastAt + 1)
  const folders = await deps.store.folders.list(account.id)
  const place = { sent: sentOf(folders), folderName: folderNamer(folders) }
  const rows: OutboxRecord[] = []
  const giveWay = createGiveWay()
  for (const message of messages) {
    await giveWay()
    if (await toldLive(deps, target.webhook.id, message)) continue
    const row = rowOf(target, account, message, place, state.lastAt, rows.length)
    if (row !== null) rows.push(row)
  }
  return rows
}

async function toldLive(deps: RereadParts, webhookId: string, message: MessageRecord): Promise<boolean> {
  if (message.firstChangeId === null) return false
  return (await deps.store.outbox.get(outboxId(webhookId, message.firstChangeId))) !== null
}

function rowOf(
  target: Target,
  account: AccountRecord,
  message: MessageRecord,
  { sent, folderName }: { readonly sent: ReadonlySet<string>; readonly folderName: (path: string) => string },
  at: number,
  seq: number,
): OutboxRecord | null {
  const folders = message.placements.map((one) => one.path)
  for (const event of arrivals(message, sent)) {
    const { outcome } = target.matcher.judge(event, message, { ...knownThreads(target, account.id), folderName })
    if (outcome === 'no') continue
    return messageRow(target.webhook, account, message, {
      name: `historical:${message.id}`,
      kind: event.kind,
      facts: { ...event, folders },
      undecided: outcome === 'undecided',
      at,
      lane: 1,
      seq,
    })
  }
  return null
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
