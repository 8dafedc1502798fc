/**
 * Historical scans (receive_historical): messages that were there before, newest to oldest, in lane 1 behind all live mail. At
 * application level for accounts added after the webhook was made, at user level for the user's accounts; each starts when the
 * account's first sync is complete. One page of one scan at a time, with a pause, and only while little waits in the outbox.
 * Where a scan stands is in the store, so a restart goes on there.
 *
 * A message that was told live already (its first change has a row) is not told again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { toAppError } from '../errors.ts'
import type { Logger } from '../observe/log.ts'
import { outboxId } from '../store/ids.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord, HistoricalScan, MessageRecord, OutboxRecord, WebhookRecord } from '../store/records.ts'
import { eventFacts } from './events.ts'
import { arrivals, sentFolders } from './explain.ts'
import { type Target, type Targets, blankRow, knownThreads } from './targets.ts'

export interface HistoryDeps {
  readonly store: Pick<Store, 'accounts' | 'messages' | 'folders' | 'webhooks' | 'outbox'>
  readonly targets: Targets
  readonly config: Pick<Config, 'MAILROOM_HISTORICAL_PAUSE' | 'MAILROOM_WEBHOOK_BATCH'>
  readonly log: Logger
  readonly now: () => number
  /** Rows were stored for this channel. */
  readonly reread: (channelId: string) => void
}

export interface History {
  /** Every scan that is not done. */
  startAll(): Promise<void>
  /** The webhook was made, edited or activated. */
  startFor(webhook: WebhookRecord): Promise<void>
  /** The account's first sync is complete. */
  accountReady(account: AccountRecord): void
  stop(): Promise<void>
}

interface State {
  readonly deps: HistoryDeps
  /** `<webhook> <account>` → the pair; turns are taken in this order. */
  readonly queue: Map<string, { readonly webhookId: string; readonly accountId: string }>
  readonly stopped: AbortController
  loop: Promise<void> | null
  /** Time of the last page's rows: they sort by it. */
  lastAt: number
}

const accountsAtOnce = 500
const pageSize = 100

export function createHistory(deps: HistoryDeps): History {
  const state: State = { deps, queue: new Map(), stopped: new AbortController(), loop: null, lastAt: 0 }
  return {
    async startAll() {
      const scanning = deps.targets.all().filter((target) => target.webhook.receiveHistorical)
      for (const { webhook } of scanning) await addWebhook(state, webhook)
    },
    startFor: (webhook) => addWebhook(state, webhook),
    accountReady(account) {
      for (const { webhook } of deps.targets.of(account)) add(state, webhook, account)
    },
    async stop() {
      state.stopped.abort()
      await state.loop
    },
  }
}

async function addWebhook(state: State, webhook: WebhookRecord): Promise<void> {
  if (!webhook.receiveHistorical || !webhook.active) return
  const { accounts } = state.deps.store
  if (webhook.userId !== null) {
    for (const account of await accounts.listByUser(webhook.userId)) addReady(state, webhook, account)
    return
  }
  for (let after: string | null = null; ;) {
    const page: AccountRecord[] = await accounts.page(after, accountsAtOnce)
    for (const account of page) addReady(state, webhook, account)
    after = page.at(-1)?.id ?? null
    if (page.length < accountsAtOnce) return
  }
}

function addReady(state: State, webhook: WebhookRecord, account: AccountRecord): void {
  if (account.resume.initialSyncAt !== null) add(state, webhook, account)
}

function add(state: State, webhook: WebhookRecord, account: AccountRecord): void {
  if (!webhook.receiveHistorical || !webhook.active || account.developerId !== webhook.developerId) return
  if (webhook.userId === null && account.createdAt < webhook.createdAt) return
  state.queue.set(`${webhook.id} ${account.id}`, { webhookId: webhook.id, accountId: account.id })
  state.loop ??= run(state).finally(() => {
    state.loop = null
  })
}

async function run(state: State): Promise<void> {
  const { deps, queue, stopped } = state
  const ended = () => stopped.signal.aborted
  while (!ended() && queue.size > 0) {
    for (const [key, pair] of [...queue]) {
      const answer = await step(state, pair.webhookId, pair.accountId).catch((error: unknown) => {
        deps.log.warn({ ...pair, err: toAppError(error) }, 'historical scan held up')
        return 'wait' as const
      })
      if (answer === 'done') queue.delete(key)
      const restMs =
        answer === 'wait'
          ? Math.max(deps.config.MAILROOM_HISTORICAL_PAUSE, 1000)
          : deps.config.MAILROOM_HISTORICAL_PAUSE
      await pause(restMs, undefined, { signal: stopped.signal }).catch(() => undefined)
      if (ended()) return
    }
  }
}

async function step(state: State, webhookId: string, accountId: string): Promise<'more' | 'wait' | 'done'> {
  const { store, targets, config } = state.deps
  const target = targets.get(webhookId)
  if (target === null || !target.webhook.active || !target.webhook.receiveHistorical) return 'done'
  const account = await store.accounts.get(accountId)
  const scan = await store.webhooks.scan(webhookId, accountId)
  if (account === null || scan?.done === true) return 'done'
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
  const sent = await sentFolders(deps, account.id)
  const rows: OutboxRecord[] = []
  for (const message of messages) {
    if (await toldLive(deps, target.webhook.id, message)) continue
    const row = rowOf(target, account, message, sent, state.lastAt, rows.length)
    if (row !== null) rows.push(row)
  }
  return rows
}

async function toldLive(deps: HistoryDeps, webhookId: string, message: MessageRecord): Promise<boolean> {
  if (message.firstChangeId === null) return false
  return (await deps.store.outbox.get(outboxId(webhookId, message.firstChangeId))) !== null
}

function rowOf(
  target: Target,
  account: AccountRecord,
  message: MessageRecord,
  sent: ReadonlySet<string>,
  at: number,
  seq: number,
): OutboxRecord | null {
  const folders = message.placements.map((one) => one.path)
  for (const event of arrivals(message, sent)) {
    const { outcome } = target.matcher.judge(event, message, knownThreads(target, account.id))
    if (outcome === 'no') continue
    return {
      ...blankRow(target.webhook, account, message),
      id: outboxId(target.webhook.id, `historical:${message.id}`),
      lane: 1,
      seq,
      changeId: null,
      event: event.kind,
      data: { ...eventFacts({ ...event, folders }), ...(outcome === 'undecided' ? { undecided: true } : {}) },
      createdAt: at,
      dueAt: at,
    }
  }
  return null
}
