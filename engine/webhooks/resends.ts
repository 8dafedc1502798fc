/**
 * Failed callbacks that match a filter, over all webhooks, sent again at an operator's wish: oldest first, in batches,
 * one filter at a time. How far it is, is known in one process alone, which all others ask (api/forward.ts): after its
 * restart the same wish goes on with those that are left. Callbacks of webhooks that are paused stay as they are, and
 * so do those that fail once more meanwhile.
 */
import { AppError, toAppError } from '../errors.ts'
import type { RequeueQuery } from '../store/port.ts'
import { withinTime } from '../waits.ts'
import type { WebhookParts } from './index.ts'

export interface Resending {
  readonly startedAt: number
  /** Failed ones that matched when it began. */
  readonly total: number
  /** Of them those that are queued again. */
  readonly queued: number
  readonly done: boolean
  /** Why it ended before its end. */
  readonly reason: string | null
}

/** A batch keeps the embedded store for some 10 ms. */
const batchRows = 200
/** At one wish. */
const mostResent = 10_000
/** A call waits this long for the end of its work. */
const answerMs = 1000
const stepMs = 86_400_000

type Parts = Pick<WebhookParts, 'store' | 'targets' | 'log' | 'now' | 'rereadAll'>

export class Resends {
  readonly #parts: Parts
  readonly #stopped = new AbortController()
  #current: Resending | null = null
  #work: Promise<void> = Promise.resolve()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The last one; null = there was none since the start. */
  get current(): Resending | null {
    return this.#current
  }

  /** Answers when all are queued, or after a moment. `conflict` while another one is under way. */
  async start(filter: RequeueQuery): Promise<Resending> {
    const { store, now } = this.#parts
    if (this.#current?.done === false) {
      const { queued, total } = this.#current
      throw new AppError(
        'conflict',
        `callbacks are being sent again, ${queued} of ${total} so far: ask when it is done`,
      )
    }
    const startedAt = now()
    const query = { ...filter, kind: 'message', states: ['failed'], finishedUntil: startedAt } as const
    let current: Resending = { startedAt, total: 0, queued: 0, done: false, reason: null }
    this.#current = current
    const work = async (): Promise<void> => {
      try {
        const counts = await store.outbox.counts(query, stepMs)
        current = { ...current, total: counts.reduce((sum, { count }) => sum + count, 0) }
        for await (const count of this.#batches(query)) {
          current = { ...current, queued: current.queued + count }
          this.#current = current
        }
        this.#current = { ...current, done: true, reason: this.#ended(current) }
      } catch (error) {
        this.#parts.log.warn({ err: toAppError(error) }, 'callbacks were not all sent again')
        this.#current = { ...current, done: true, reason: toAppError(error).message }
      }
    }
    this.#work = work()
    await withinTime(answerMs, this.#work)
    return this.#current
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#work
  }

  #ended({ queued, total }: Resending): string | null {
    if (this.#stopped.signal.aborted) return 'the service was stopped'
    if (queued >= mostResent && total > queued) return `${mostResent} at a time`
    return queued < total ? 'the others are of webhooks that are paused or gone, or were sent by others' : null
  }

  async *#batches(query: RequeueQuery): AsyncGenerator<number> {
    const { store, targets, now, rereadAll } = this.#parts
    for (let queued = 0, left = 0; Math.max(queued, left) < mostResent && !this.#stopped.signal.aborted;) {
      const rows = await store.outbox.list(query, { limit: batchRows, offset: left }, 'ASC')
      const webhooks = await targets.several(rows.flatMap(({ webhookId }) => webhookId ?? []))
      const active = rows.filter(({ webhookId }) => webhooks.get(webhookId ?? '')?.active === true)
      const ids = active.slice(0, mostResent - queued).map(({ id }) => id)
      const { count } = await store.outbox.requeue({ ...query, ids }, now(), batchRows)
      for (const channelId of new Set(active.map((row) => row.channelId))) rereadAll(channelId)
      left += rows.length - active.length
      queued += count
      yield count
      if (rows.length < batchRows || (count === 0 && ids.length > 0)) return
    }
  }
}
