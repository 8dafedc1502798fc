/**
 * The health of a webhook of the application, which every node sends for its own accounts: the record in the store is
 * the one truth. A node replaces it by a compare with what its chart knows; of two at the same time the second one
 * takes over what the first one has stored. Others read the record when it says anything but a success. While the
 * receiver fails, the node that puts off the next try first is the one that tries.
 */
import { isDeepStrictEqual } from 'node:util'
import type { WebhookHealth } from '../../machines/events.ts'
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import { createExclusiveByKey } from '../waits.ts'
import type { WebhookParts } from './parts.ts'

type Deps = Pick<WebhookParts, 'store' | 'targets' | 'config' | 'now' | 'changed'>

function isSame(one: WebhookHealth, other: WebhookHealth, but: 'lastSuccessAt' | 'retryAt'): boolean {
  return isDeepStrictEqual({ ...one, [but]: null }, { ...other, [but]: null })
}

export class SharedHealth {
  readonly #deps: Deps
  readonly #adopt: (webhookId: string, health: WebhookHealth) => void
  /** As the charts of this node know it from the store. */
  readonly #known = new Map<string, WebhookHealth>()
  readonly #inOrder = createExclusiveByKey()
  readonly #ending = new Set<string>()
  /** The webhook whose chart is being told of another node's news: what it says then is no news. */
  adopting: string | null = null

  constructor(deps: Deps, adopt: (webhookId: string, health: WebhookHealth) => void) {
    this.#deps = deps
    this.#adopt = adopt
  }

  /** Whether other nodes may send callbacks of this webhook too. */
  isShared(webhookId: string): boolean {
    const { store, targets } = this.#deps
    return store.kind === 'mongodb' && targets.get(webhookId)?.webhook.userId === null
  }

  /** The chart starts with this health. */
  begin(webhookId: string, health: WebhookHealth): void {
    if (this.isShared(webhookId)) this.#known.set(webhookId, health)
  }

  /** The record was read: its health may be another one. Health that this node has stored since counts. */
  async read({ id, health }: WebhookRecord): Promise<void> {
    const isKnown = (one: WebhookHealth): boolean => isDeepStrictEqual(this.#known.get(id), one)
    if (!this.isShared(id) || isKnown(health)) return
    await this.#inOrder(id, async () => {
      const stored = (await this.#deps.store.webhooks.get(id))?.health
      if (stored !== undefined && !isKnown(stored)) this.#tell(id, stored)
    })
  }

  #tell(id: string, health: WebhookHealth): void {
    this.#known.set(id, health)
    this.#deps.targets.touch(id, { health })
    this.adopting = id
    this.#adopt(id, health)
    this.adopting = null
  }

  /** Stores the chart's health, and the notices with it; or gives the chart what another node has stored meanwhile. */
  write(id: string, health: WebhookHealth, notices: readonly OutboxRecord[]): Promise<void> {
    return this.#inOrder(id, async () => {
      if (!this.isShared(id)) {
        await this.#deps.store.webhooks.recordHealth(id, health, notices)
        this.#deps.targets.touch(id, { health })
        return
      }
      const before = this.#known.get(id)
      // Which callbacks wait, and until when, is another matter on each node.
      if (before !== undefined && isSame(before, health, 'retryAt')) return
      if ((await this.#replace(id, health, notices)) && !(before && isSame(before, health, 'lastSuccessAt')))
        this.#deps.changed(id)
    })
  }

  async #replace(id: string, health: WebhookHealth, notices: readonly OutboxRecord[]): Promise<boolean> {
    const { store, targets } = this.#deps
    const known = this.#known.get(id)
    const stored = (await store.webhooks.get(id))?.health
    if (stored === undefined) return false
    // Successes alone are stored without being told.
    if (known === undefined || !isSame(stored, known, 'lastSuccessAt')) {
      this.#tell(id, stored)
      return false
    }
    if (!(await store.webhooks.recordHealth(id, health, notices, stored))) {
      const newest = (await store.webhooks.get(id))?.health
      if (newest !== undefined) this.#tell(id, newest)
      return false
    }
    this.#known.set(id, health)
    targets.touch(id, { health })
    return true
  }

  /** Before a try of a webhook that fails: true = no other node tries it meanwhile. */
  takeTurn(id: string): Promise<boolean> {
    if (!this.isShared(id) || this.#deps.store.nodes.ownsAll()) return Promise.resolve(true)
    return this.#inOrder(id, async () => {
      const { now, config } = this.#deps
      const known = this.#known.get(id)
      if (known === undefined) return false
      // A callback that has just come does not change when the receiver is tried.
      if ((known.retryAt ?? 0) > now()) {
        this.#tell(id, known)
        return false
      }
      return this.#replace(id, { ...known, retryAt: now() + 2 * config.MAILROOM_WEBHOOK_TIMEOUT }, [])
    })
  }

  /** The receiver wants no more: all nodes wait while `work` stores the webhook's end. */
  async end(id: string, work: () => Promise<void>): Promise<void> {
    const { now, config, changed, store } = this.#deps
    this.#ending.add(id)
    try {
      const webhook = this.isShared(id) ? await store.webhooks.get(id) : null
      if (webhook !== null) {
        await store.webhooks.edit(id, { health: { ...webhook.health, retryAt: now() + config.MAILROOM_WEBHOOK_PROBE } })
        changed(id)
      }
      await work()
    } finally {
      this.#ending.delete(id)
    }
  }

  /** Its end after a 410 is being stored: news of it are from before. */
  isEnding(id: string): boolean {
    return this.#ending.has(id)
  }

  forget(id: string): void {
    this.#known.delete(id)
  }

  /** How many of its callbacks may be on their way from this node. */
  places(id: string): number {
    const { store, config } = this.#deps
    const most = config.MAILROOM_WEBHOOK_CONCURRENCY
    return this.isShared(id) ? store.nodes.part(most) : most
  }
}
