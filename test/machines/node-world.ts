/**
 * A database and nodes in virtual time, for the machine of machines/node.machine.ts. Each node runs as
 * engine/store/mongo/nodes.ts does: it beats, looks, and does what the machine says, command by command. A command
 * takes effect some time after it was sent, between the looks of others, even when its sender has crashed, paused, or
 * been cut off from the database meanwhile. The database refuses a write whose compare fails.
 */
import { createNode, stepNode } from '../../machines/node.machine.ts'
import type { NodeCommands, NodeState, NodeView, SlotView } from '../../machines/node.machine.ts'
import { randomOf } from '../support/random.ts'

export const silentMs = 15_000
const beatMs = 1000
const shedAtOnce = 64
/** Pace of the slowest and the fastest clock. */
const [slowest, fastest] = [0.8, 1.2]

interface Slot {
  owner: string
  epoch: number
}

interface NodeRecord {
  beat: number
  beatAt: number
  leaving: boolean
  readonly capacity: number
}

/** Commands to the database, one after the other. Each `yield` returns whether the sender got an answer. */
type Steps = Generator<() => void, void, boolean>

export interface SimNode {
  readonly id: string
  readonly capacity: number
  state: NodeState
  /** Slots that it writes to, with their epochs. */
  readonly held: Map<number, number>
  /** Slots that it hands over. */
  readonly closing: Set<number>
  alive: boolean
  pausedUntil: number
  cutUntil: number
  /** Its clock runs at this pace. */
  readonly drift: number
  isLooking: boolean
  /** Claims and releases are under way. */
  isDoing: boolean
  /** What it knew when it read the slots. */
  readAt: string
}

interface Network {
  /** Parts of the commands that are lost, come twice, or get no answer. */
  readonly lost: number
  readonly twice: number
  readonly unanswered: number
  /** Longest time from sending a command to its effect. Most commands take a fraction of it. */
  readonly slowestMs: number
}

interface Entry {
  readonly at: number
  readonly run: () => void
}

export class World {
  now = 0
  readonly nodes = new Map<string, SimNode>()
  readonly records = new Map<string, NodeRecord>()
  readonly slots: Slot[]
  readonly weights: readonly number[]
  term = 0
  /** By slot: epoch of the last write that was taken, and who wrote it. */
  readonly written: { epoch: number; by: string }[]
  moves = 0
  /**
   * Moves that the schedule asks for: the first claim of each slot, the slots of each node that leaves or is buried,
   * and the share of each node that joins.
   */
  due: number
  refused = 0
  /** Commands to the database, as engine/store/mongo/nodes.ts sends them. */
  operations = 0
  /** Of slots that were read. */
  slotReads = 0
  random: () => number
  network: Network = { lost: 0.05, twice: 0.05, unanswered: 0.02, slowestMs: 5000 }
  #names = 0
  /** Events to come, the latest first. */
  readonly #agenda: Entry[] = []
  /** As every node reads them, until a slot changes. */
  #views: readonly SlotView[] | null = null
  #version = 0

  constructor(seed: number, slots: number, weightOf?: (random: () => number) => number) {
    this.random = randomOf(seed)
    this.slots = Array.from({ length: slots }, () => ({ owner: '', epoch: 0 }))
    this.due = slots
    this.weights = this.slots.map(() => weightOf?.(this.random) ?? 1 + Math.floor(this.random() * 20))
    this.written = this.slots.map(() => ({ epoch: 0, by: '' }))
  }

  join(capacity = 1): SimNode {
    const id = `n${(this.#names += 1)}`
    const node: SimNode = {
      id,
      capacity,
      state: createNode(id, silentMs, 2 * beatMs),
      held: new Map(),
      closing: new Set(),
      alive: true,
      pausedUntil: 0,
      cutUntil: 0,
      drift: slowest + this.random() * (fastest - slowest),
      isLooking: false,
      isDoing: false,
      readAt: '',
    }
    this.nodes.set(id, node)
    this.records.set(id, { beat: 0, beatAt: this.now, leaving: false, capacity })
    const all = this.records.values().reduce((sum, one) => sum + (one.leaving ? 0 : one.capacity), 0)
    if (this.term > 0) this.due += Math.ceil((this.slots.length * capacity) / all)
    return node
  }

  leave(node: SimNode): void {
    if (node.state.phase === 'joined') this.due += this.#owned(node.id)
    node.state = stepNode(node.state, { type: 'leave' }).state
  }

  /** The nodes that run now. */
  running(): SimNode[] {
    return [...this.nodes.values()].filter((node) => this.#runs(node))
  }

  #runs(node: SimNode): boolean {
    return node.alive && node.pausedUntil <= this.now
  }

  /** A beat of time: each running node writes to the slots that it holds, and looks. */
  tick(): void {
    const until = this.now + beatMs
    for (const node of this.running())
      this.#at(this.now + this.random() * beatMs, () => {
        if (!this.#runs(node)) return
        this.#write(node)
        if (!node.isLooking) this.#run(node, 'isLooking', this.#look(node))
      })
    for (let next = this.#agenda.at(-1); next !== undefined && next.at <= until; next = this.#agenda.at(-1)) {
      this.#agenda.pop()
      this.now = Math.max(this.now, next.at)
      next.run()
    }
    this.now = until
  }

  #at(at: number, run: () => void): void {
    const index = this.#agenda.findLastIndex((one) => one.at > at)
    this.#agenda.splice(index + 1, 0, { at, run })
  }

  #run(node: SimNode, flag: 'isLooking' | 'isDoing', steps: Steps): void {
    node[flag] = true
    const go = (isAnswered: boolean): void => {
      const { done, value } = steps.next(isAnswered)
      if (done) node[flag] = false
      else this.#send(node, value, go)
    }
    go(true)
  }

  /** A command may be lost, its answer may be lost, and it may come once more, later. */
  #send(node: SimNode, command: () => void, heard: (isAnswered: boolean) => void): void {
    const { lost, twice, unanswered, slowestMs } = this.network
    const arrives = (): number => this.now + this.random() ** 8 * slowestMs
    const isSent = node.cutUntil <= this.now && this.random() > lost
    const at = isSent ? arrives() : this.now + beatMs
    if (isSent && this.random() < twice) this.#at(arrives(), command)
    const isLost = this.random() < unanswered
    const answer = (): void => {
      if (!node.alive) return
      if (!this.#runs(node)) this.#at(this.now + beatMs, answer)
      else heard(isSent && !isLost && node.cutUntil <= this.now)
    }
    this.#at(at, () => {
      if (isSent) command()
      answer()
    })
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

  *#look(node: SimNode): Steps {
    if (node.cutUntil > this.now) {
      node.state = stepNode(node.state, { type: 'failed' }).state
      return
    }
    const record = this.records.get(node.id)
    if (record !== undefined) {
      record.beat += 1
      record.beatAt = this.now
      record.leaving = node.state.phase === 'leaving'
    }
    const slots = this.#read(node)
    const look = {
      type: 'looked',
      at: this.now * node.drift,
      nodes: [...this.records].map(([id, { beat, leaving, capacity }]): NodeView => {
        return { id, beat, leaving, works: true, capacity, ended: false }
      }),
      slots,
    } as const
    const { state, commands } = stepNode(node.state, look)
    node.state = state
    if (state.phase === 'lost') {
      // It ends, and starts anew as another node.
      node.alive = false
      this.join(node.capacity)
      return
    }
    for (const dead of commands.bury)
      if (!(yield () => this.#bury(dead))) {
        node.state = stepNode(node.state, { type: 'failed' }).state
        return
      }
    if (commands.bury.length > 0) {
      yield* this.#look(node)
      return
    }
    const unanswered = slots.filter(
      ({ slot, owner }) => owner === node.id && !node.held.has(slot) && !node.closing.has(slot),
    )
    const claim = [...commands.claim, ...(state.phase === 'joined' ? unanswered : [])]
    const shed = [...new Set([...node.closing, ...commands.shed])]
    if (!node.isDoing && claim.length + shed.length > 0) this.#run(node, 'isDoing', this.#do(node, claim, shed))
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

  #bury({ id, beat }: NodeCommands['bury'][number]): void {
    this.operations += 1
    const record = this.records.get(id)
    if (record?.beat !== beat) return
    const quietMs = this.now - record.beatAt
    if (quietMs < silentMs / fastest) throw new Error(`${id} was buried ${quietMs} ms after its beat`)
    this.records.delete(id)
    this.operations += 1
    if (!record.leaving) this.due += this.#owned(id)
  }

  *#do(node: SimNode, claim: readonly SlotView[], shed: readonly number[]): Steps {
    if (claim.length > 0) {
      const term = (this.term += 1)
      // The term, those that are owned, the version; callbacks by 64 slots.
      const unreleased = claim.filter(({ owner }) => owner !== '').length
      this.operations += 3 + Math.ceil(unreleased / 64)
      for (const [owner, own] of Map.groupBy(claim, (one) => one.owner))
        if (!(yield () => this.#claim(node, owner, own, term))) return
      if (!(yield () => undefined)) return
      this.#readOwn(node)
    }
    for (let at = 0; at < shed.length; at += shedAtOnce) {
      const some = shed.slice(at, at + shedAtOnce)
      for (const slot of some) node.closing.add(slot)
      // Work that was under way writes until it ends.
      yield () => undefined
      for (const slot of some) node.held.delete(slot)
      if (!(yield () => this.#release(node, some))) return
      for (const slot of some) node.closing.delete(slot)
    }
  }

  #claim(node: SimNode, owner: string, slots: readonly SlotView[], term: number): void {
    this.operations += 1
    this.#version += 1
    for (const { slot } of slots) {
      const there = this.slots[slot]
      if (there === undefined || there.owner !== owner || there.epoch >= term) continue
      if (owner !== node.id && this.records.has(there.owner))
        throw new Error(`slot ${slot} was taken from ${there.owner}, who is at work`)
      this.#change(slot, { owner: node.id, epoch: term })
      if (owner !== node.id) this.moves += 1
    }
  }

  /** A beat, the release and the version. */
  #release(node: SimNode, slots: readonly number[]): void {
    this.operations += 3
    this.#version += 1
    for (const slot of slots) {
      const there = this.slots[slot]
      if (there?.owner === node.id) this.#change(slot, { ...there, owner: '' })
    }
  }

  /** Drops the slots that the node does not own any more. */
  #readOwn(node: SimNode): void {
    for (const [slot, { owner, epoch }] of this.slots.entries()) {
      if (owner !== node.id) {
        node.held.delete(slot)
        continue
      }
      node.held.set(slot, epoch)
      // The new owner fences what it takes over before it works.
      const last = this.written[slot]
      if (last !== undefined && last.epoch < epoch) this.written[slot] = { epoch, by: node.id }
    }
  }

  #owned(id: string): number {
    return this.slots.reduce((count, { owner }) => count + (owner === id ? 1 : 0), 0)
  }

  load(id: string): number {
    return this.slots.reduce((sum, { owner }, slot) => sum + (owner === id ? (this.weights[slot] ?? 0) : 0), 0)
  }
}
