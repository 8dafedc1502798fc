/**
 * The health of an application's webhook, which every node sends for its own accounts. The record in the store is the
 * truth. A node replaces it by compare-and-set; a node that loses the race adopts the winner's health. Other nodes read
 * the record after any change but a success. While the receiver fails, the node that first postpones the next try makes
 * that try.
 */
import { isDeepStrictEqual } from 'node:util'
import type { WebhookHealth } from '../../machines/events.ts'
import type { OutboxRecord, WebhookRecord } from '../store/records.ts'
import { createExclusiveByKey } from '../scheduling.ts'
import type { WebhookParts } from './parts.ts'

type Deps = Pick<WebhookParts, 'store' | 'targets' | 'config' | 'now' | 'changed'>

function isSame(one: WebhookHealth, other: WebhookHealth, but: 'lastSuccessAt' | 'retryAt'): boolean {
  return isDeepStrictEqual({ ...one, [but]: null }, { ...other, [but]: null })
}

export class SharedHealth {
  readonly #deps: Deps
  readonly #adopt: (webhookId: string, health: WebhookHealth) => void
  /** The stored health that the charts of this node know. */
  readonly #known = new Map<string, WebhookHealth>()
  readonly #inOrder = createExclusiveByKey()
  /** Webhooks whose end after a 410 is being stored: news of them are from before. */
  readonly ending = new Set<string>()
  /** The webhook whose chart adopts another node's health: events that it emits meanwhile are not logged again. */
  adopting: string | null = null

  constructor(deps: Deps, adopt: (webhookId: string, health: WebhookHealth) => void) {
    this.#deps = deps
    this.#adopt = adopt
  }

  /** true = other nodes may send callbacks of this webhook too. */
  isShared(webhookId: string): boolean {
    const { store, targets } = this.#deps
    return store.kind === 'mongodb' && targets.get(webhookId)?.webhook.userId === null
  }

  /** The chart starts with this health. */
  begin(webhookId: string, health: WebhookHealth): void {
    if (this.isShared(webhookId)) this.#known.set(webhookId, health)
  }

  /** Adopts the record's health if it is new. The store is read again: this node may have written meanwhile. */
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

  /** Stores the chart's health with the notices, or passes another node's newer health to the chart. */
  write(id: string, health: WebhookHealth, notices: readonly OutboxRecord[]): Promise<void> {
    return this.#inOrder(id, async () => {
      if (!this.isShared(id)) {
        await this.#deps.store.webhooks.recordHealth(id, health, notices)
        this.#deps.targets.touch(id, { health })
        return
      }
      const before = this.#known.get(id)
      // Each node has its own waiting callbacks and retryAt.
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
    // Other nodes store successes without telling this node.
    if (known === undefined || !isSame(stored, known, 'lastSuccessAt')) {
      this.#tell(id, stored)
      return false
    }
    // Another node was faster: its health is compared.
    if (!(await store.webhooks.recordHealth(id, health, notices, stored))) return this.#replace(id, health, notices)
    this.#known.set(id, health)
    targets.touch(id, { health })
    return true
  }

  /** Call before a try of a failing webhook. true = no other node tries it meanwhile. */
  takeTurn(id: string): Promise<boolean> {
    if (!this.isShared(id) || this.#deps.store.nodes.ownsAll()) return Promise.resolve(true)
    return this.#inOrder(id, async () => {
      const { now, config } = this.#deps
      const known = this.#known.get(id)
      if (known === undefined) return false
      // A new callback does not change the time of the next try.
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
    this.ending.add(id)
    try {
      const webhook = this.isShared(id) ? await store.webhooks.get(id) : null
      if (webhook !== null) {
        await store.webhooks.edit(id, { health: { ...webhook.health, retryAt: now() + config.MAILROOM_WEBHOOK_PROBE } })
        changed(id)
      }
      await work()
    } finally {
      this.ending.delete(id)
    }
  }

  forget(id: string): void {
    this.#known.delete(id)
  }

  /** How many callbacks of the webhook this node may have under way. */
  places(id: string): number {
    const { store, config } = this.#deps
    const most = config.MAILROOM_WEBHOOK_CONCURRENCY
    return this.isShared(id) ? store.nodes.part(most) : most
  }
}
