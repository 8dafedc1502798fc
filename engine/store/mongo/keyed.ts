/**
 * Keyed collections (../keyed.ts) in MongoDB. An insert checks its user and its limits before and after the write, and
 * a removal deletes before and after (accounts.ts): at least one sees the other. Of concurrent inserts none stays that
 * exceeds a limit.
 *
 * A request whose answer is lost is repeated until the server answers or the caller's deadline passes. When a repeated
 * insert finds its id, the row is its own, because each insert has a new id.
 */
import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Collection, Filter, OptionalUnlessRequiredId, Sort } from 'mongodb'
import { isAppError, notFound } from '../../errors.ts'
import type { KeyedCollections } from '../aggregates.ts'
import { definitions, isRange, type Definition, type Keyed, type Kind, type Kinds } from '../keyed.ts'
import type { ListOptions, Room, Where } from '../keyed.ts'
import type { NonceStore } from '../port.ts'
import { checkRoom } from '../rows.ts'
import { beginning, between, deleteInSteps, insertMissing, orNull, pageOf, shapes } from './documents.ts'
import type { KeyDoc, MongoContext, NonceDoc, Shape } from './documents.ts'
import { isDuplicate, isRolledBack, storeError, unavailable } from './errors.ts'

const firstWaitMs = 50
const longestWaitMs = 1000

/** Deadline of a step that begins now, in the time of performance.now(). */
export function deadlineOf({ read }: MongoContext): number {
  return performance.now() + read.maxTimeMS
}

/** Runs `request` until the server answers; `again` is false the first time. No try begins after the deadline. */
async function insist<T>(deadline: number, request: (again: boolean) => Promise<T>): Promise<T> {
  for (let waitMs = firstWaitMs, again = false; ; waitMs = Math.min(waitMs * 2, longestWaitMs), again = true) {
    if (performance.now() > deadline) throw unavailable(new Error('the caller waits no longer'))
    try {
      return await request(again)
    } catch (error) {
      const passes = isRolledBack(error) || isAppError(storeError(error), 'store_unavailable')
      if (!passes || performance.now() + waitMs > deadline) throw error
    }
    await sleep(waitMs)
  }
}

/** Inserts a document with a new id. Throws the driver's error of a duplicate key. */
export async function insertOnce<D extends { readonly _id: string }>(
  collection: Collection<D>,
  doc: D,
  deadline: number,
): Promise<void> {
  await insist(deadline, async (again) => {
    try {
      await collection.insertOne(doc as OptionalUnlessRequiredId<D>)
    } catch (error) {
      // The document violates perhaps several indexes with itself; the server names any of them.
      if (!again || !isDuplicate(error)) throw error
      const there = await collection.findOne({ _id: doc._id } as Filter<D>, { projection: { _id: 1 } })
      if (there === null) throw error
    }
  })
}

function nameOf(key: readonly string[], field: string): string {
  return key.length === 1 && key[0] === field ? '_id' : field
}

/** `where` may also name extra fields of the document. */
export function filterOf<R>(
  { key }: Pick<Definition<R>, 'key'>,
  where: Where<R>,
  behind?: ListOptions<R>,
): Filter<KeyDoc> {
  const name = (field: string) => nameOf(key, field)
  const filter: Record<string, unknown> = {}
  const { length } = key
  const whole = length > 1 && key.every((field) => typeof where[field] === 'string')
  if (whole) filter['_id'] = key.map((field) => String(where[field])).join(':')
  for (const [field, value] of Object.entries(where)) {
    if (value === undefined || (whole && (key as readonly string[]).includes(field))) continue
    const condition = Array.isArray(value) ? { $in: [...(value as unknown[])] } : value
    const range = isRange(value) ? between(value.from, value.until) : condition
    if (range !== null || value === null) filter[name(field)] = range
  }
  return behind === undefined ? filter : { ...filter, ...behindOf(filter, behind, name) }
}

/** Rows behind a position, in the order of one field, or of a time and a second field. */
function behindOf<R>(filter: object, options: ListOptions<R>, name: (field: string) => string): Filter<KeyDoc> {
  const { by, behind, descending = false } = options
  const than = descending ? '$lt' : '$gt'
  const [first, second] = by.map((field) => ({ field: name(field), value: behind?.[field] }))
  if (first === undefined) return {}
  const past = { [first.field]: { [than]: first.value } }
  if (second === undefined) return past
  const had = (filter as Record<string, { readonly $gte?: number; readonly $lte?: number } | undefined>)[first.field]
  const edge = Number(first.value)
  const bound = descending ? { $lte: Math.min(edge, had?.$lte ?? edge) } : { $gte: Math.max(edge, had?.$gte ?? edge) }
  return {
    [first.field]: { ...had, ...bound },
    $or: [past, { [second.field]: { [than]: second.value } }],
  }
}

async function checkUser({ collections, read }: MongoContext, id: string | null): Promise<void> {
  if (id === null) return
  const user = await collections.users.findOne({ _id: id }, { ...read, projection: { _id: 1 } })
  if (user === null) throw notFound('user', id)
}

/** Checks before and after the insert; deletes the row when the second check fails. */
async function insertChecked(
  context: MongoContext,
  collection: Collection<KeyDoc>,
  doc: KeyDoc,
  check: () => Promise<void>,
): Promise<void> {
  const deadline = deadlineOf(context)
  await insist(deadline, check)
  await insertOnce(collection, doc, deadline)
  try {
    await insist(deadline, check)
  } catch (error) {
    await collection.deleteOne({ _id: doc._id })
    throw error
  }
}

function openKeyed<K extends Kind>(context: MongoContext, kind: K): Keyed<Kinds[K]> {
  type R = Kinds[K]
  const { read } = context
  const definition: Definition<R> = definitions[kind]
  const collection = context.collections[kind] as unknown as Collection<KeyDoc>
  const shape = shapes[kind] as unknown as Shape<R, KeyDoc>
  const options = { ...read, projection: shape.only }
  const filter = (where: Where<R>) => filterOf(definition, where)
  const checkRooms = async (id: string, rooms: readonly Room<R>[]): Promise<void> => {
    for (const { name, where, most } of rooms) {
      if (most === 0) continue
      const others = { ...filter(where), _id: { $ne: id } }
      checkRoom(name, most, await collection.countDocuments(others, { ...read, limit: most }))
    }
  }
  return {
    insert: (record, rooms = []) => {
      const owner = definition.owned && 'userId' in record ? record.userId : null
      const doc = shape.doc(record)
      return insertChecked(context, collection, doc, async () => {
        await checkUser(context, owner)
        await checkRooms(doc._id, rooms)
      })
    },
    insertMissing: async (records) => (await insertMissing(collection, records.map(shape.doc))).map(shape.record),
    put: async (record, outbox = []) => {
      await insertMissing(context.collections.outbox, outbox.map(shapes.outbox.doc))
      const { _id, ...fields } = shape.doc(record)
      await collection.updateOne({ _id }, { $set: fields }, { upsert: true })
    },
    find: async (where) => orNull(await collection.findOne(filter(where), options), shape.record),
    list: async (where, wanted) => {
      const { by, descending = false, limit, offset = 0, behind, slots } = wanted
      const owned = slots === undefined ? {} : { slot: { $in: [...slots] } }
      const sort: Sort = Object.fromEntries(by.map((field) => [nameOf(definition.key, field), descending ? -1 : 1]))
      const page = { ...options, sort, skip: offset, ...(limit === undefined ? {} : { limit }) }
      const rows = await pageOf(collection, { ...filterOf(definition, where, behind && wanted), ...owned }, page)
      return rows.map(shape.record)
    },
    count: (where) => collection.countDocuments(filter(where), read),
    edit: async (key, patch, expected = {}, outbox = []) => {
      await insertMissing(context.collections.outbox, outbox.map(shapes.outbox.doc))
      const one = { ...filter(key), ...expected }
      const set = shape.set(patch)
      if (Object.keys(set).length === 0) return orNull(await collection.findOne(one, read), shape.record)
      return orNull(await collection.findOneAndUpdate(one, { $set: set }, { returnDocument: 'after' }), shape.record)
    },
    remove: (where) => deleteInSteps(collection, filter(where), read),
    expire: (field, before, limit) => {
      const old = { [field]: { $gte: beginning, $lt: before } } as Filter<KeyDoc>
      return deleteInSteps(collection, old, read, { [field]: 1, _id: 1 }, limit)
    },
  }
}

export function openKeyedCollections(context: MongoContext): KeyedCollections {
  const kinds = Object.keys(definitions) as Kind[]
  return Object.fromEntries(kinds.map((kind) => [kind, openKeyed(context, kind)])) as unknown as KeyedCollections
}

/** The caller chooses key and nonce: a digest as id is short, and keeps the parts apart. */
export function nonceDoc(apiKey: string, nonce: string, timestamp: number, expiresAt: number): NonceDoc {
  const _id = hash('sha256', JSON.stringify([apiKey, nonce, timestamp]), 'base64url')
  return { _id, apiKey, nonce, timestamp, expiresAt: new Date(expiresAt) }
}

/** OAuth nonces; the TTL index deletes them some time after they expire. */
export function createNonces({ collections, now }: MongoContext): NonceStore {
  const { nonces } = collections
  return {
    remember: async (apiKey, nonce, timestamp, expiresAt) => {
      const doc = nonceDoc(apiKey, nonce, timestamp, expiresAt)
      try {
        await nonces.insertOne(doc)
        return true
      } catch (error) {
        if (!isDuplicate(error)) throw error
      }
      // An expired nonce that is still stored counts as new, once.
      const expired = { _id: doc._id, expiresAt: { $lte: new Date(now()) } }
      const { matchedCount } = await nonces.updateOne(expired, { $set: { expiresAt: doc.expiresAt } })
      return matchedCount === 1
    },
  }
}
