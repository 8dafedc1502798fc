/**
 * Slots: users by the hash of their id. Who owns a slot owns all email accounts and webhooks of its users. What belongs
 * to a developer alone is in the slot of the developer's id.
 */
import { hash } from 'node:crypto'
import { hostname } from 'node:os'
import { AppError } from '../errors.ts'
import { newId } from './ids.ts'

/** Fixed when a database is made. */
export const slotCount = 4096

/** Of a user's id, or of a developer's. */
export function slotOf(id: string): number {
  return Number.parseInt(hash('sha256', id, 'hex').slice(0, 3), 16)
}

/** Of webhooks of the application: every node has them. */
export const sharedSlot = -1

/** The slot that owns a row. */
export function slotOfRow({ userId, developerId }: { readonly userId: string | null; readonly developerId: string }) {
  return slotOf(userId ?? developerId)
}

/** The slots that this process owns, each with the epoch of its claim. */
export class Lease {
  readonly #epochs = new Map<number, number>()
  readonly #closing = new Set<number>()
  #common: number | null = null

  /** As they are in the database. Answers those that are new. */
  set(owned: readonly { readonly slot: number; readonly epoch: number }[]): number[] {
    const gained = owned.flatMap(({ slot }) => (this.#epochs.has(slot) ? [] : [slot]))
    const kept = new Set(owned.map(({ slot }) => slot))
    for (const slot of this.#epochs.keys()) if (!kept.has(slot)) this.drop([slot])
    for (const { slot, epoch } of owned) this.#epochs.set(slot, epoch)
    const epochs = new Set(this.#epochs.values())
    const [first = null] = epochs
    this.#common = epochs.size === 1 ? first : null
    return gained
  }

  /** They are being handed over: nothing new is begun in them, what is under way may still be written. */
  close(slots: readonly number[]): void {
    for (const slot of slots) this.#closing.add(slot)
  }

  drop(slots: readonly number[]): void {
    for (const slot of slots) {
      this.#epochs.delete(slot)
      this.#closing.delete(slot)
    }
  }

  clear(): void {
    this.drop([...this.#epochs.keys()])
  }

  /** The slots that are being handed over. */
  closing(): number[] {
    return [...this.#closing]
  }

  /** All that are owned and not being handed over. */
  serving(): number[] {
    return [...this.#epochs.keys()].filter((slot) => !this.#closing.has(slot))
  }

  serves(slot: number): boolean {
    return this.#epochs.has(slot) && !this.#closing.has(slot)
  }

  /** undefined = another process owns it, or nobody. */
  epochOf(slot: number): number | undefined {
    return this.#epochs.get(slot)
  }

  /** Every slot: a query needs no condition. */
  get isWhole(): boolean {
    return this.#epochs.size === slotCount && this.#closing.size === 0
  }

  /** The epoch that all slots have; null = not all are owned, or they were claimed one after the other. */
  get commonEpoch(): number | null {
    return this.isWhole ? this.#common : null
  }
}

const turnMs = 10_000

/**
 * The part of a number that one of several nodes has; `place`: its own among them. Where there is less than one for
 * each, they take turns.
 */
export function partOf(most: number, place: number, nodes: number, at: number): number {
  const shift = most < nodes ? Math.floor(at / turnMs) : 0
  return Math.floor(most / nodes) + ((place + shift) % nodes < most % nodes ? 1 : 0)
}

/** News for other nodes: they read the record again. */
export interface News {
  readonly what: 'account' | 'user' | 'webhook' | 'developer' | 'channel' | 'settings'
  readonly id: string
}

/** `_id`: as it is written down for all. */
export interface NumberedNews extends News {
  readonly _id: string
}

/** The engine's work with its slots. Each step resolves when it is done. */
export interface SlotWork {
  gained(slots: readonly number[]): Promise<void>
  /** Ends everything that belongs to them. */
  shed(slots: readonly number[]): Promise<void>
  heard(news: News): Promise<void>
  /** Slots are free for other nodes: they may look at once. */
  announce(): void
  /** News for other nodes. Resolves when they have followed them, or do not answer. */
  announceNews(news: readonly NumberedNews[]): Promise<unknown>
  /** Work that each slot is, for the balance between nodes. */
  weightOf(slot: number): number
}

/** The owner of a user's slot: this process, the node that listens at an address, or nobody at the moment. */
export type Owner = 'here' | { readonly address: string } | null

/** A process at the store, as the process that lists it sees it. */
export interface NodeFacts {
  readonly id: string
  /** Where it listens for the others; null = nowhere. */
  readonly address: string | null
  /** Its machine or container, and its process number there. */
  readonly place: string
  readonly pid: number
  /** Takes slots. */
  readonly works: boolean
  /** joining: it waits for others to end; leaving: it hands its slots over. */
  readonly state: 'joining' | 'joined' | 'leaving'
  readonly slots: number
  /** For how long its beat has not changed. */
  readonly silentMs: number
  /** The process that lists it. */
  readonly here: boolean
}

/** The nodes that share the store. */
export interface Nodes {
  /** Of this process, as the others know it. */
  readonly id: string
  /** Whether the process of this id is there. */
  has(id: string): boolean
  /** All of them, as at the last look. */
  list(): readonly NodeFacts[]
  /** Whether this process owns the slot of this user, or of this developer. */
  owns(id: string): boolean
  ownsSlot(slot: number): boolean
  /** Whether no other process owns anything. */
  ownsAll(): boolean
  ownerOf(id: string): Owner
  /** Whether this process owns anything. */
  ownsAny(): boolean
  /** Where this process listens; null = nowhere. */
  address(): string | null
  /** Where the others listen. */
  others(): string[]
  /** This process's part of what those that own slots may have or do together. */
  part(most: number): number
  /** Takes slots and starts their work. `address`: where this one listens. Resolves when the first ones are started. */
  start(work: SlotWork, address: string | null): Promise<void>
  /** Looks at the database now. */
  look(): Promise<void>
  /** Writes the news down for the others. Resolves when they have followed them, or do not answer. Never rejects. */
  tell(news: News): Promise<void>
  /** Follows the news that another node tells. Never rejects. */
  hear(news: readonly NumberedNews[]): Promise<void>
  /** Resolves when the other nodes have followed all news of this one, or do not answer. Never rejects. */
  told(): Promise<void>
  /** Hands all slots over, to nodes that take them, within this time. */
  leave(withinMs: number): Promise<void>
  /** false: the database has not answered for so long that others may have taken the slots. */
  mayWrite(): boolean
}

export const allSlots: readonly number[] = Array.from({ length: slotCount }, (_, slot) => slot)

/** The embedded store: one process owns everything. */
export function soleNode(): Nodes {
  return {
    id: '',
    has: () => false,
    list() {
      const facts = { place: hostname(), pid: process.pid, works: true, slots: slotCount, silentMs: 0, here: true }
      return [{ id: 'local', address: null, state: 'joined', ...facts }]
    },
    owns: () => true,
    ownsSlot: () => true,
    ownsAll: () => true,
    ownerOf: () => 'here',
    ownsAny: () => true,
    address: () => null,
    others: () => [],
    part: (most) => most,
    start: (work) => work.gained(allSlots),
    look: () => Promise.resolve(),
    tell: () => Promise.resolve(),
    hear: () => Promise.resolve(),
    told: () => Promise.resolve(),
    leave: () => Promise.resolve(),
    mayWrite: () => true,
  }
}

/** An id for a new user, who belongs to this process if it owns anything. */
export function newUserId(nodes: Pick<Nodes, 'owns' | 'ownsAny'>): string {
  let id = newId()
  if (nodes.ownsAny()) while (!nodes.owns(id)) id = newId()
  return id
}

/** Of a write for a slot that another node has taken. */
export function slotLost(slot: number): AppError {
  return new AppError('lease_lost', 'another node owns the account by now', { details: { slot } })
}
