/**
 * Queues many finished callbacks again, oldest first, in batches. A call returns after a moment, the rest follows. Only
 * callbacks for messages are sent again: a failure must not be announced twice.
 *
 * Redelivery, for a developer: the callbacks of one webhook and time range. Its progress is in the store, so that it
 * continues after a restart. Rows that were made or finished after the call are excluded, so that a repeated batch
 * sends nothing a third time.
 *
 * Resending, for an operator: failed callbacks of all webhooks that match a filter, one filter at a time. Its progress
 * is in the memory of one process, which the others ask (api/forward.ts); after a restart the operator repeats the
 * call. Callbacks of paused webhooks, and callbacks that fail again meanwhile, are excluded.
 */
import { AppError, notFound, toAppError } from '../errors.ts'
import type { RequeueQuery } from '../store/port.ts'
import type { Redelivery } from '../store/records.ts'
import { pause, withinTime } from '../scheduling.ts'
import type { WebhookParts } from './parts.ts'

/** A batch keeps the embedded store for some 10 ms. */
const batchRows = 200
/** A call waits this long for the end of its work. */
const answerMs = { redelivery: 2000, resending: 1000 } as const
const retryMs = 1000

type Work<T extends { readonly done: boolean }> = ReturnType<typeof startWork<T>>

/**
 * Runs the steps once `begun` resolves, and repeats a step that the store rejects. `begun` rejects when the work could
 * not begin, `ended` never; `stop` resolves after the step under way.
 */
function startWork<T extends { readonly done: boolean }>(
  first: T,
  begun: Promise<void>,
  step: (current: T) => Promise<T>,
  held: (error: AppError) => void,
) {
  const stopped = new AbortController()
  const run = async (): Promise<void> => {
    while (!stopped.signal.aborted && !work.current.done) {
      try {
        work.current = await step(work.current)
      } catch (error) {
        held(toAppError(error))
        await pause(retryMs, stopped.signal)
      }
    }
  }
  const ended = begun.then(run).catch(() => undefined)
  const stop = (): Promise<void> => {
    stopped.abort()
    return ended
  }
  const work = { current: first, begun, ended, stop }
  return work
}

/** `failedOnly`: only callbacks that failed for good. Absent bounds are open. */
export type RedeliveryTime = Partial<Pick<Redelivery, 'from' | 'until' | 'failedOnly'>>

export type Redeliveries = ReturnType<typeof createRedeliveries>

export function createRedeliveries(deps: WebhookParts) {
  const { targets, store, log, now } = deps
  const works = new Map<string, Work<Redelivery>>()

  function begin(webhookId: string, order: Redelivery, taken?: Promise<void>): Work<Redelivery> {
    const step = async (current: Redelivery): Promise<Redelivery> => {
      const next = await redeliver(deps, webhookId, current)
      const isThere = (await store.webhooks.edit(webhookId, { redelivery: next })) !== null
      return isThere ? next : { ...next, done: true }
    }
    const held = (err: AppError): void => log.warn({ webhookId, err }, 'redelivery held up')
    const work = startWork(order, taken ?? Promise.resolve(), step, held)
    works.set(webhookId, work)
    void work.ended.then(() => works.delete(webhookId))
    return work
  }

  /** Stores the order. Rejects when the store does not take it. */
  async function take(webhookId: string, redelivery: Redelivery): Promise<void> {
    if ((await store.webhooks.edit(webhookId, { redelivery })) === null) throw notFound('webhook', webhookId)
  }

  return {
    /** Continues redeliveries that a restart interrupted. */
    startAll(): void {
      for (const { webhook } of targets.all()) {
        if (!store.nodes.owns(webhook.userId ?? webhook.developerId) || works.has(webhook.id)) continue
        if (webhook.redelivery?.done === false) begin(webhook.id, webhook.redelivery)
      }
    },
    /**
     * Returns the number of queued callbacks when all are queued, or after a moment. The same call again joins the work
     * under way; another call throws `conflict`.
     */
    async start(webhookId: string, wanted: RedeliveryTime): Promise<number> {
      const { from = null, until = null, failedOnly = false } = wanted
      const there = works.get(webhookId)
      const asked = there?.current
      if (asked && (asked.from !== from || asked.until !== until || asked.failedOnly !== failedOnly)) {
        const progress = `a redelivery of webhook ${webhookId} is under way, ${asked.count} callbacks so far`
        throw new AppError('conflict', `${progress}: ask again when it is done`)
      }
      const blank = { startedAt: now(), after: null, count: 0, done: false, reason: null }
      const order = { from, until, failedOnly, ...blank }
      const work = there ?? begin(webhookId, order, take(webhookId, order))
      await work.begun
      await withinTime(answerMs.redelivery, work.ended)
      return work.current.count
    },
    /** Ends the work on one webhook, or on all. Resolves after the batch under way. */
    async stop(webhookId?: string): Promise<void> {
      const wanted = [...works].filter(([id]) => webhookId === undefined || id === webhookId)
      await Promise.all(wanted.map(([, work]) => work.stop()))
    },
  }
}

async function redeliver(deps: WebhookParts, webhookId: string, order: Redelivery): Promise<Redelivery> {
  const { store, targets, now } = deps
  if (targets.get(webhookId)?.webhook.active !== true) return { ...order, done: true, reason: 'the webhook was paused' }
  const { count, next } = await store.outbox.requeue(queryOf(webhookId, order), now(), batchRows, order.after)
  // Also for a count of 0: the repeat of a batch whose answer was lost finds no rows.
  deps.rereadAll(webhookId)
  return { ...order, count: order.count + count, after: next ?? order.after, done: next === null }
}

function queryOf(webhookId: string, { from, until, failedOnly, startedAt }: Redelivery): RequeueQuery {
  return {
    webhookId,
    kind: 'message',
    ...(failedOnly ? { states: ['failed'] } : {}),
    ...(from === null ? {} : { createdFrom: from }),
    createdUntil: Math.min(until ?? startedAt, startedAt),
    finishedUntil: startedAt,
  }
}

export interface Resending {
  readonly startedAt: number
  /** Failed callbacks that matched at the start. */
  readonly total: number
  readonly queued: number
  readonly done: boolean
  /** Why some are not queued. */
  readonly reason: string | null
}

const mostResent = 10_000
const dayMs = 86_400_000

export function createResends(parts: WebhookParts) {
  let last: Work<Resending> | null = null
  return {
    /** The last resending; null = none since the start of the process. */
    current: (): Resending | null => last?.current ?? null,
    /** Returns when all are queued, or after a moment. Throws `conflict` while another resending is under way. */
    async start(filter: RequeueQuery): Promise<Resending> {
      if (last?.current.done === false) {
        const progress = `callbacks are being sent again, ${last.current.queued} of ${last.current.total} so far`
        throw new AppError('conflict', `${progress}: ask when it is done`)
      }
      const startedAt = parts.now()
      const query = { ...filter, kind: 'message', states: ['failed'], finishedUntil: startedAt } as const
      const held = (err: AppError): void => parts.log.warn({ err }, 'callbacks are not all sent again yet')
      const first = { startedAt, total: 0, queued: 0, done: false, reason: null }
      const work = startWork<Resending>(first, Promise.resolve(), resendingOf(parts, query), held)
      last = work
      await withinTime(answerMs.resending, work.ended)
      return work.current
    },
    stop: async (): Promise<void> => last?.stop(),
  }
}

/** The steps of a resending: the first step counts, each of the others queues a batch. */
function resendingOf({ store, targets, now, rereadAll }: WebhookParts, query: RequeueQuery) {
  let counted = false
  /** Rows of webhooks that are paused or gone. */
  let left = 0
  return async (current: Resending): Promise<Resending> => {
    if (!counted) {
      const counts = await store.outbox.counts(query, dayMs)
      counted = true
      return { ...current, total: counts.reduce((sum, { count }) => sum + count, 0) }
    }
    const rows = await store.outbox.list(query, { limit: batchRows, offset: left }, 'ASC')
    const webhooks = await targets.several(rows.flatMap(({ webhookId }) => webhookId ?? []))
    const active = rows.filter(({ webhookId }) => webhooks.get(webhookId ?? '')?.active === true)
    const ids = active.slice(0, mostResent - current.queued).map(({ id }) => id)
    const { count } = await store.outbox.requeue({ ...query, ids }, now(), batchRows)
    for (const channelId of new Set(active.map((row) => row.channelId))) rereadAll(channelId)
    left += rows.length - active.length
    const queued = current.queued + count
    const isLast = rows.length < batchRows || (count === 0 && ids.length > 0) || Math.max(queued, left) >= mostResent
    const next = { ...current, queued, done: isLast }
    return isLast ? { ...next, reason: whyLess(next) } : next
  }
}

function whyLess({ queued, total }: Resending): string | null {
  if (queued >= mostResent && total > queued) return `${mostResent} at a time`
  return queued < total ? 'the others are of webhooks that are paused or gone, or were sent by others' : null
}
