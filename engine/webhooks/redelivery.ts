/**
 * Redelivery of a time: the webhook's callbacks of it go back into the queue, oldest first, in batches, however many
 * they are. What was asked for and how far it is stands in the webhook's record: a call answers after a moment, the
 * rest follows, and a restart goes on where the last batch ended. Rows that were made or finished after the call are
 * left alone, so that a batch that is repeated after a crash sends nothing a third time.
 */
import { AppError, isAppError, notFound, toAppError } from '../errors.ts'
import type { RequeueQuery } from '../store/port.ts'
import type { Redelivery, WebhookRecord } from '../store/records.ts'
import { pause, withinTime } from '../waits.ts'
import type { RereadParts } from './targets.ts'

interface Wanted {
  readonly from?: number
  readonly until?: number
  readonly failedOnly?: boolean
}

export type Redeliveries = ReturnType<typeof createRedeliveries>

interface Work {
  current: Redelivery
  readonly stopped: AbortController
  /** Rejects when the store did not take the order: then nothing is done. */
  readonly taken: Promise<void>
  /** Never rejects. */
  ended: Promise<void>
}

interface State {
  readonly deps: RereadParts
  readonly works: Map<string, Work>
}

/** A batch keeps the embedded store for some 10 ms. */
const batchRows = 200
/** A call waits this long for the end of its work. */
const answerMs = 2_000
/** Wait after an error of the store, whose every step has its own deadline. */
const retryMs = 1_000

export function createRedeliveries(deps: RereadParts) {
  const state: State = { deps, works: new Map() }
  return {
    /** Continues those that a restart interrupted. */
    startAll(): void {
      for (const { webhook } of deps.targets.all()) {
        if (webhook.redelivery?.done === false) begin(state, webhook.id, webhook.redelivery, Promise.resolve())
      }
    },
    /**
     * Answers when all is queued, or after a moment how many are; the rest follows. The same call again joins the one
     * that is under way; another one is a `conflict`.
     */
    start: (webhook: WebhookRecord, wanted: Wanted) => start(state, webhook, wanted),
    /** Ends the work on one webhook, or on all, and waits for the batch that is under way. */
    async stop(webhookId?: string): Promise<void> {
      const works = [...state.works].flatMap(([id, work]) =>
        webhookId === undefined || id === webhookId ? [work] : [],
      )
      for (const work of works) work.stopped.abort()
      await Promise.all(works.map((work) => work.ended))
    },
  }
}

async function start(state: State, webhook: WebhookRecord, wanted: Wanted): Promise<number> {
  const { deps, works } = state
  const { from = null, until = null, failedOnly = false } = wanted
  const there = works.get(webhook.id)
  if (there !== undefined && !isSameOrder(there.current, { from, until, failedOnly })) {
    const progress = `a redelivery of webhook ${webhook.id} is under way, ${there.current.count} callbacks so far`
    throw new AppError('conflict', `${progress}: ask again when it is done`)
  }
  const blank = { startedAt: deps.now(), after: null, count: 0, done: false, reason: null }
  const order = { from, until, failedOnly, ...blank }
  const work = there ?? begin(state, webhook.id, order, save(deps, webhook.id, order))
  await work.taken
  await withinTime(answerMs, work.ended)
  return work.current.count
}

function isSameOrder(one: Redelivery, other: Pick<Redelivery, 'from' | 'until' | 'failedOnly'>): boolean {
  return one.from === other.from && one.until === other.until && one.failedOnly === other.failedOnly
}

function begin(state: State, webhookId: string, order: Redelivery, taken: Promise<void>): Work {
  const work: Work = { current: order, stopped: new AbortController(), taken, ended: taken }
  state.works.set(webhookId, work)
  work.ended = taken
    .then(() => run(state.deps, webhookId, work))
    .catch(() => undefined)
    .finally(() => state.works.delete(webhookId))
  return work
}

/** Batch and record by turns: what the store did not take at once is tried again, neither is done twice. */
async function run(deps: RereadParts, webhookId: string, work: Work): Promise<void> {
  const { signal } = work.stopped
  let recorded = true
  while (!signal.aborted && !(recorded && work.current.done)) {
    try {
      if (recorded) work.current = await batch(deps, webhookId, work.current)
      else await save(deps, webhookId, work.current)
      recorded = !recorded
    } catch (error) {
      if (isAppError(error, 'not_found')) return
      deps.log.warn({ webhookId, err: toAppError(error) }, 'redelivery held up')
      await pause(retryMs, signal)
    }
  }
}

async function batch(deps: RereadParts, webhookId: string, order: Redelivery): Promise<Redelivery> {
  const { store, targets, now } = deps
  const active = () => targets.get(webhookId)?.webhook.active === true
  if (!active()) return { ...order, done: true, reason: paused }
  const { count, next } = await store.outbox.requeue(queryOf(webhookId, order), now(), batchRows, order.after)
  // Paused while the batch was written: it keeps no backlog.
  if (!active()) await store.outbox.skipPending(webhookId, paused, now())
  else if (count > 0) deps.reread(webhookId)
  return { ...order, count: order.count + count, after: next ?? order.after, done: next === null }
}

const paused = 'the webhook was paused'

/** Of messages alone: a failure must not be announced again with them. */
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

async function save({ store }: RereadParts, webhookId: string, redelivery: Redelivery): Promise<void> {
  const webhook = await store.webhooks.edit(webhookId, { redelivery })
  if (webhook === null) throw notFound('webhook', webhookId)
}
