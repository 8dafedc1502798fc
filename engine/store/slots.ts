/**
 * Slots: the hash of a user's id gives the user's slot. The node that owns a slot owns the email accounts and webhooks
 * of its users. Rows of a developer without a user are in the slot of the developer's id.
 */
import { hash } from 'node:crypto'
import { hostname } from 'node:os'
import { AppError } from '../errors.ts'
import { newId } from './ids.ts'

/** Fixed when a database is created. */
export const slotCount = 4096

/** The slot of a user's or a developer's id. */
export function slotOf(id: string): number {
  return Number.parseInt(hash('sha256', id, 'hex').slice(0, 3), 16)
}

/** The slot of application-level webhooks, which every node serves. */
export const sharedSlot = -1

/** The slot that owns a row. */
export function slotOfRow({ userId, developerId }: { readonly userId: string | null; readonly developerId: string }) {
  return slotOf(userId ?? developerId)
}

/** The slots that this process owns, each with the epoch of its claim. */
export class Lease {
  readonly #epochs = new Map<number, number>()
  /** Slots in handover. */
  readonly #ending = new Map<number, 'resting' | 'closing'>()
  #common: number | null = null

  /** Takes the slots from the database. Returns the new ones. */
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

  /** Begins the handover: no callback goes out in these slots, other work goes on. A closing slot stays closed. */
  rest(slots: readonly number[]): void {
    for (const slot of slots) this.#ending.getOrInsert(slot, 'resting')
  }

  /** No work starts in these slots, running work may still write. */
  close(slots: readonly number[]): void {
    for (const slot of slots) this.#ending.set(slot, 'closing')
  }

  drop(slots: readonly number[]): void {
    for (const slot of slots) {
      this.#epochs.delete(slot)
      this.#ending.delete(slot)
    }
  }

  clear(): void {
    this.drop([...this.#epochs.keys()])
  }

  /** The slots in handover. */
  ending(): number[] {
    return [...this.#ending.keys()]
  }

  /** The owned slots where work starts. */
  serving(): number[] {
    return [...this.#epochs.keys()].filter((slot) => this.serves(slot))
  }

  serves(slot: number): boolean {
    return this.#epochs.has(slot) && this.#ending.get(slot) !== 'closing'
  }

  /** Whether callbacks of the slot go out. */
  sends(slot: number): boolean {
    return this.#epochs.has(slot) && !this.#ending.has(slot)
  }

  /** undefined = another process owns it, or nobody. */
  epochOf(slot: number): number | undefined {
    return this.#epochs.get(slot)
  }

  /** Whether this process owns every slot and hands none over, so that a query needs no condition. */
  get isWhole(): boolean {
    return this.#epochs.size === slotCount && this.#ending.size === 0
  }

  /** The epoch of all slots; null = not all are owned, or their epochs differ. */
  get commonEpoch(): number | null {
    return this.isWhole ? this.#common : null
  }
}

const turnMs = 10_000

/** This node's part of `most`; `place`: its index among the nodes. When `most` < `nodes`, the nodes take turns. */
export function partOf(most: number, place: number, nodes: number, at: number): number {
  const shift = most < nodes ? Math.floor(at / turnMs) : 0
  return Math.floor(most / nodes) + ((place + shift) % nodes < most % nodes ? 1 : 0)
}

/** News for other nodes: the record has changed, and is to be read again. */
export interface News {
  readonly what: 'account' | 'user' | 'webhook' | 'developer' | 'channel' | 'settings' | 'operator'
  /** Of an operator: the id of a token, or the label of a console session, that has ended. */
  readonly id: string
}

/** `_id`: of the stored news. */
export interface NumberedNews extends News {
  readonly _id: string
}

/** What the engine does for slots. Promises resolve when the work is done. */
export interface SlotWork {
  gained(slots: readonly number[]): Promise<void>
  /** Waits for the callbacks of resting slots that are under way, so long at most. */
  rest(withinMs: number): Promise<void>
  /** Ends the work of these slots. */
  shed(slots: readonly number[]): Promise<void>
  heard(news: News): Promise<void>
  /** Tells other nodes that slots are free. */
  announce(): void
  /** Sends news to other nodes. Resolves when they have followed the news, or do not answer. */
  announceNews(news: readonly NumberedNews[]): Promise<unknown>
  /** The work of a slot, for the balance between nodes. */
  weightOf(slot: number): number
}

/** The owner of a user's slot: this process, the node at an address, or none. */
export type Owner = 'here' | { readonly address: string } | null

/** A process that shares the store, as the listing process sees it. */
export interface NodeFacts {
  readonly id: string
  /** Where the node listens for other nodes; null = nowhere. */
  readonly address: string | null
  /** The machine or container. */
  readonly place: string
  readonly pid: number
  /** Takes slots. */
  readonly works: boolean
  /** joining: waits for other nodes to end; leaving: hands its slots over. */
  readonly state: 'joining' | 'joined' | 'leaving'
  readonly slots: number
  /** Time since the last change of the node's beat. */
  readonly silentMs: number
  /** Whether this is the listing process. */
  readonly here: boolean
}

/** The nodes that share the store. */
export interface Nodes {
  /** The id of this process. */
  readonly id: string
  /** Whether a process with this id shares the store. */
  has(id: string): boolean
  /** All nodes at the last look. */
  list(): readonly NodeFacts[]
  /** Whether this process owns the slot of a user's or developer's id. */
  owns(id: string): boolean
  /** Whether this process sends the callbacks of a user or developer: not while it hands their slot over. */
  sends(id: string): boolean
  ownsSlot(slot: number): boolean
  /** Whether no other process owns a slot. */
  ownsAll(): boolean
  ownerOf(id: string): Owner
  /** Whether this process owns a slot. */
  ownsAny(): boolean
  /** Where this process listens; null = nowhere. */
  address(): string | null
  /** Where the other nodes listen. */
  others(): string[]
  /** This process's part of a limit for all nodes that own slots. */
  part(most: number): number
  /** Takes slots. `address`: where this process listens. Resolves when the work of the first slots has started. */
  start(work: SlotWork, address: string | null): Promise<void>
  /** Looks at the database now. */
  look(): Promise<void>
  /** Stores news for other nodes. Resolves when they have followed the news, or do not answer. Never rejects. */
  tell(news: News): Promise<void>
  /** Follows the news of another node. Never rejects. */
  hear(news: readonly NumberedNews[]): Promise<void>
  /** Resolves when the other nodes have followed all news of this node, or do not answer. Never rejects. */
  told(): Promise<void>
  /** Hands all slots over within this time. */
  leave(withinMs: number): Promise<void>
  /** false = the database was silent for so long that other nodes may have taken the slots. */
  mayWrite(): boolean
}

export const allSlots: readonly number[] = Array.from({ length: slotCount }, (_, slot) => slot)

/** The only node of an embedded store. */
export function soleNode(): Nodes {
  return {
    id: '',
    has: () => false,
    list() {
      const facts = { place: hostname(), pid: process.pid, works: true, slots: slotCount, silentMs: 0, here: true }
      return [{ id: 'local', address: null, state: 'joined', ...facts }]
    },
    owns: () => true,
    sends: () => true,
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

/** An id for a new user, in a slot of this process if it owns any. */
export function newUserId(nodes: Pick<Nodes, 'owns' | 'ownsAny'>): string {
  let id = newId()
  if (nodes.ownsAny()) while (!nodes.owns(id)) id = newId()
  return id
}

/** The error of a write for a slot of another node. */
export function slotLost(slot: number): AppError {
  return new AppError('lease_lost', 'another node owns the account by now', { details: { slot } })
}
