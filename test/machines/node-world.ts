/**
 * A database and nodes in virtual time, for the machine of machines/node.machine.ts. Each node runs as
 * engine/store/mongo/nodes.ts does: it beats, looks, and does what the machine says, step by step, and between any two
 * steps it may crash, pause, be cut off from the database, or be slow. The database refuses what its compares refuse.
 */
import { createNode, stepNode } from '../../machines/node.machine.ts'
import type { NodeCommands, NodeState, NodeView, SlotView } from '../../machines/node.machine.ts'
import { randomOf } from '../support/random.ts'

export const silentMs = 15_000
const beatMs = 1000

interface Slot {
  owner: string
  epoch: number
}

export interface SimNode {
  readonly id: string
  state: NodeState
  /** Slots that it believes to own, with their epochs. */
  readonly held: Map<number, number>
  alive: boolean
  pausedUntil: number
  cutUntil: number
  /** Its clock runs at this pace. */
  readonly drift: number
  busyUntil: number
  /** What it knew when it read the slots. */
  readAt: string
}

export class World {
  now = 0
  readonly nodes = new Map<string, SimNode>()
  readonly records = new Map<string, { beat: number; leaving: boolean }>()
  readonly slots: Slot[]
  readonly weights: readonly number[]
  term = 0
  /** By slot: epoch of the last write that was taken, and who wrote it. */
  readonly written: { epoch: number; by: string }[]
  moves = 0
  refused = 0
  /** Commands to the database, as engine/store/mongo/nodes.ts sends them. */
  operations = 0
  /** Of slots that were read. */
  slotReads = 0
  random: () => number
  #names = 0
  /** As every node reads them, until a slot changes. */
  #views: readonly SlotView[] | null = null
  #version = 0

  constructor(seed: number, slots: number, weightOf?: (random: () => number) => number) {
    this.random = randomOf(seed)
    this.slots = Array.from({ length: slots }, () => ({ owner: '', epoch: 0 }))
    this.weights = this.slots.map(() => weightOf?.(this.random) ?? 1 + Math.floor(this.random() * 20))
    this.written = this.slots.map(() => ({ epoch: 0, by: '' }))
  }

  join(): SimNode {
    const id = `n${(this.#names += 1)}`
    const node: SimNode = {
      id,
      state: createNode(id, silentMs, 2 * beatMs),
      held: new Map(),
      alive: true,
      pausedUntil: 0,
      cutUntil: 0,
      drift: 0.8 + this.random() * 0.4,
      busyUntil: 0,
      readAt: '',
    }
    this.nodes.set(id, node)
    this.records.set(id, { beat: 0, leaving: false })
    return node
  }

  /** The nodes that run now. */
  running(): SimNode[] {
    return [...this.nodes.values()].filter((node) => node.alive && node.pausedUntil <= this.now)
  }

  /** A beat of time: each running node writes to the slots that it holds, and looks. */
  tick(): void {
    this.now += beatMs
    for (const node of this.running().toSorted(() => this.random() - 0.5)) {
      this.#write(node)
      if (node.busyUntil <= this.now) this.#look(node)
    }
  }

  /** A write for each slot that the node holds, with the epoch that it knows; the database compares. */
  #write(node: SimNode): void {
    if (node.cutUntil > this.now) return
    for (const [slot, epoch] of node.held) {
      const last = this.written[slot]
      if (last === undefined) continue
      if (epoch < last.epoch) this.refused += 1
      else if (epoch === last.epoch && last.by !== node.id)
        throw new Error(`two writers of slot ${slot}: ${last.by}, ${node.id}`)
      else this.written[slot] = { epoch, by: node.id }
    }
  }

  #look(node: SimNode): void {
    if (node.cutUntil > this.now) {
      node.state = stepNode(node.state, { type: 'failed' }).state
      return
    }
    const record = this.records.get(node.id)
    if (record !== undefined) {
      record.beat += 1
      record.leaving = node.state.phase === 'leaving'
    }
    const look = {
      type: 'looked',
      at: this.now * node.drift,
      nodes: [...this.records].map(([id, { beat, leaving }]): NodeView => {
        return { id, beat, leaving, works: true, capacity: 1, ended: false }
      }),
      slots: this.#read(node),
    } as const
    const { state, commands } = stepNode(node.state, look)
    node.state = state
    if (state.phase === 'lost') {
      // It ends, and starts anew as another node.
      node.alive = false
      this.join()
      return
    }
    // The answers of a slow database come when others have looked, or not at all.
    if (this.random() < 0.1) node.busyUntil = this.now + Math.floor(this.random() * 5) * beatMs
    this.#do(node, commands)
  }

  /** Two commands a beat, and one more when slots or nodes have changed. */
  #read(node: SimNode): readonly SlotView[] {
    this.operations += 2
    const now = `${this.#version} ${this.records.size}`
    if (node.readAt !== now) {
      this.operations += 1
      this.slotReads += 1
    }
    node.readAt = now
    this.#views ??= this.slots.map((one, slot) => ({ slot, ...one, weight: this.weights[slot] ?? 1 }))
    return this.#views
  }

  #change(slot: number, to: Slot): void {
    this.slots[slot] = to
    this.#views = null
  }

  /** Each command may be lost or come twice; a crash or pause may come in between. */
  #do(node: SimNode, { bury, claim, shed }: NodeCommands): void {
    for (const { id, beat } of bury) {
      this.operations += 1
      if (this.#comes() && this.records.get(id)?.beat === beat) {
        this.records.delete(id)
        this.operations += 1
      }
    }
    if (claim.length > 0) {
      const term = (this.term += 1)
      // The term, the slots by their owner, those that are owned, callbacks by 64 slots, the version.
      const owners = new Set(claim.map(({ owner }) => owner))
      const unreleased = claim.filter(({ owner }) => owner !== '').length
      this.operations += 3 + owners.size + Math.ceil(unreleased / 64)
      this.#version += 1
      for (const { slot, owner } of claim)
        for (let times = this.#times(); times > 0; times -= 1) this.#claim(node, slot, owner, term)
      this.#readOwn(node)
    }
    if (shed.length > 0) {
      // A beat, and for 64 slots their release and the version.
      this.operations += 1 + 2 * Math.ceil(shed.length / 64)
      this.#version += 1
    }
    for (const slot of shed) {
      if (this.random() < 0.02) return
      node.held.delete(slot)
      const there = this.slots[slot]
      if (there?.owner === node.id && this.#comes()) this.#change(slot, { ...there, owner: '' })
    }
  }

  #claim(node: SimNode, slot: number, owner: string, term: number): void {
    const there = this.slots[slot]
    if (there === undefined || there.owner !== owner || there.epoch >= term) return
    this.#change(slot, { owner: node.id, epoch: term })
    this.moves += 1
  }

  #readOwn(node: SimNode): void {
    for (const [slot, { owner, epoch }] of this.slots.entries()) {
      if (owner !== node.id) continue
      node.held.set(slot, epoch)
      // The new owner fences what it takes over before it works.
      const last = this.written[slot]
      if (last !== undefined && last.epoch < epoch) this.written[slot] = { epoch, by: node.id }
    }
  }

  #comes(): boolean {
    return this.random() > 0.05
  }

  #times(): number {
    const dice = this.random()
    return dice < 0.05 ? 0 : dice < 0.1 ? 2 : 1
  }

  load(id: string): number {
    return this.slots.reduce((sum, { owner }, slot) => sum + (owner === id ? (this.weights[slot] ?? 0) : 0), 0)
  }
}
