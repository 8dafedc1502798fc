/** The records of slots: who owns which. Claims and releases are compare-and-set with the owner. */
import type { Collection } from 'mongodb'
import type { SlotView } from '../../../machines/node.machine.ts'
import { AppError } from '../../errors.ts'
import { allSlots, slotCount } from '../slots.ts'
import { insertMissing, type MongoContext } from './documents.ts'
import { openFacts } from './schema.ts'

export interface SlotDoc {
  readonly _id: string
  readonly slot: number
  /** Id of a node; '' = released. The slot is free when no node has this id. */
  readonly owner: string
  readonly epoch: number
  /** The slot's weight at its last release. */
  readonly weight: number
}

/** Slots whose pending callbacks are fenced in one command. */
const fencedAtOnce = 64

const slotId = (slot: number): string => slot.toString(16).padStart(3, '0')

export class SlotRows {
  readonly #context: MongoContext
  readonly #rows: Collection<SlotDoc>

  constructor(context: MongoContext) {
    this.#context = context
    this.#rows = context.collections.slots as unknown as Collection<SlotDoc>
  }

  /** Makes the slots of a new database. AppError `bad_request` when a database has another number of them. */
  async prepare(): Promise<void> {
    const facts = openFacts(this.#context.collections)
    const made = await facts.read('slots')
    if (made !== null && made !== String(slotCount))
      throw new AppError('bad_request', `the database has ${made} slots, this Mailroom knows ${slotCount}`)
    if (made === null) await facts.save('slots', String(slotCount))
    if ((await this.#rows.countDocuments({})) === slotCount) return
    const docs = allSlots.map((slot) => ({ _id: slotId(slot), slot, owner: '', epoch: 0, weight: 1 }))
    await insertMissing(this.#rows, docs)
  }

  /** All of them, by slot. */
  read(): Promise<SlotDoc[]> {
    return this.#rows.find({}).sort({ _id: 1 }).toArray()
  }

  /** Claims slots that are still as they were seen, and fences them. Returns all slots of the owner. */
  async claim(slots: readonly SlotView[], by: string, term: number): Promise<SlotDoc[]> {
    for (const [owner, own] of Map.groupBy(slots, (one) => one.owner)) {
      const taken = { _id: { $in: own.map(({ slot }) => slotId(slot)) }, owner, epoch: { $lt: term } }
      await this.#rows.updateMany(taken, { $set: { owner: by, epoch: term } })
    }
    const owned = await this.#rows.find({ owner: by }).toArray()
    await this.#fence(slots, owned, term)
    return owned
  }

  /** Fences pending callbacks in slots that were not released: their former owner may still run. */
  async #fence(claimed: readonly SlotView[], owned: readonly SlotDoc[], term: number): Promise<void> {
    const unreleased = new Set(claimed.flatMap(({ slot, owner }) => (owner === '' ? [] : [slot])))
    const slots = owned.flatMap(({ slot, epoch }) => (epoch === term && unreleased.has(slot) ? [slot] : []))
    const { outbox } = this.#context.collections
    for (let at = 0; at < slots.length; at += fencedAtOnce) {
      const waiting = { state: 'pending', slot: { $in: slots.slice(at, at + fencedAtOnce) } } as const
      await outbox.updateMany(waiting, { $max: { fence: term }, $inc: { v: 1 } })
    }
  }

  /** Releases slots of the owner, each with its weight. */
  async release(slots: readonly Pick<SlotDoc, 'slot' | 'weight'>[], by: string): Promise<void> {
    const releases = slots.map(({ slot, weight }) => ({
      updateOne: { filter: { _id: slotId(slot), owner: by }, update: { $set: { owner: '', weight } } },
    }))
    await this.#rows.bulkWrite(releases, { ordered: false })
  }

  async releaseAll(by: string): Promise<void> {
    await this.#rows.updateMany({ owner: by }, { $set: { owner: '' } })
  }
}
