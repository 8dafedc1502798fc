/** Contacts of a user, counted as mail arrives. */
import type { UpdateOneModel } from 'mongodb'
import { contactId } from '../ids.ts'
import type { ContactSort, ContactStore, Page } from '../port.ts'
import type { ContactDelta, ContactRecord } from '../records.ts'
import { foldCase, mergeContact } from '../rows.ts'
import { insertMissing } from './bulk.ts'
import { containing } from './conditions.ts'
import { orNull, recordIn, toDoc, type ContactDoc, type MongoContext } from './documents.ts'
import { unavailable } from './errors.ts'

/** Keys of counted deltas that a contact remembers: more than one batch can hold, so that repeating a batch counts nothing. */
const remembered = 512
/** Two accounts of one user may count the same contact at once; each round one of them gets on. */
const tries = 20

type Counted = Omit<ContactDoc, 'applied'> & { readonly applied?: readonly string[] }

export function contactDoc(contact: ContactRecord, applied: readonly string[]): ContactDoc {
  return { ...toDoc(contact), searchKey: searchKey(contact), v: 0, applied }
}

const beside = new Set(['searchKey', 'v', 'applied'])

export function contactRecord(doc: Counted): ContactRecord {
  return recordIn(doc, beside) as ContactRecord
}

function searchKey(contact: ContactRecord): string {
  return foldCase(`${contact.name}\n${contact.email}`)
}

/** Deltas by contact, each key once. */
function byContact(deltas: readonly ContactDelta[]): Map<string, ContactDelta[]> {
  const groups = new Map<string, ContactDelta[]>()
  for (const delta of deltas) {
    const id = contactId(delta.userId, delta.email)
    const group = groups.get(id) ?? []
    groups.set(id, group)
    if (!group.some(({ key }) => key === delta.key)) group.push(delta)
  }
  return groups
}

function merged(stored: ContactRecord | null, deltas: readonly ContactDelta[]): ContactRecord | null {
  return deltas.reduce(mergeContact, stored)
}

function update(
  doc: Counted,
  contact: ContactRecord,
  keys: readonly string[],
): { readonly updateOne: UpdateOneModel<ContactDoc> } {
  const { name, totalCount, directCount, indirectCount, lastReceivedAt } = contact
  const counts = { name, totalCount, directCount, indirectCount, lastReceivedAt, searchKey: searchKey(contact) }
  return {
    updateOne: {
      // the keys too: the first round does not read which were counted
      filter: { _id: doc._id, v: doc.v, applied: { $nin: [...keys] } },
      update: {
        $set: counts,
        $inc: { v: 1 },
        $push: { applied: { $each: [...keys], $slice: -Math.max(remembered, keys.length) } },
      },
    },
  }
}

/** The contacts as they are, without the keys that were counted: what the first round of countContacts starts from. */
export async function readContacts(
  { collections: { contacts } }: MongoContext,
  deltas: readonly ContactDelta[],
): Promise<readonly Counted[]> {
  const ids = [...byContact(deltas).keys()]
  if (ids.length === 0) return []
  return contacts.find({ _id: { $in: ids } }, { projection: { applied: 0 } }).toArray()
}

/**
 * Adds each delta once per contact and key. `read` = readContacts of these deltas, of any age. The first round takes all keys for new, which is true unless a batch is repeated;
 * the compare finds out, and the next round reads what was counted.
 */
export async function countContacts(
  { collections: { contacts } }: MongoContext,
  deltas: readonly ContactDelta[],
  read: readonly Counted[],
): Promise<void> {
  let pending = byContact(deltas)
  for (let attempt = 0; attempt < tries; attempt += 1) {
    if (pending.size === 0) return
    const found = attempt === 0 ? read : await contacts.find({ _id: { $in: [...pending.keys()] } }).toArray()
    const stored = new Map<string, Counted>(found.map((doc) => [doc._id, doc]))
    const left = new Map<string, ContactDelta[]>()
    const fresh: ContactDoc[] = []
    const updates: { readonly updateOne: UpdateOneModel<ContactDoc> }[] = []
    for (const [id, group] of pending) {
      const doc = stored.get(id)
      const uncounted = group.filter(({ key }) => !doc?.applied?.includes(key))
      const contact = merged(doc ? contactRecord(doc) : null, uncounted)
      if (uncounted.length === 0 || contact === null) continue
      left.set(id, uncounted)
      const keys = uncounted.map(({ key }) => key)
      if (doc) updates.push(update(doc, contact, keys))
      else fresh.push(contactDoc(contact, keys))
    }
    const inserted = await insertMissing(contacts, fresh)
    const { matchedCount } =
      updates.length === 0 ? { matchedCount: 0 } : await contacts.bulkWrite(updates, { ordered: false })
    if (inserted.length === fresh.length && matchedCount === updates.length) return
    pending = left
  }
  throw unavailable(new Error('contacts are written by others without end'))
}

const fields = { total_count: 'totalCount', direct_count: 'directCount', indirect_count: 'indirectCount' } as const

export function contactOrder(sortBy: ContactSort, order: 'asc' | 'desc'): Record<string, 1 | -1> {
  const direction = order === 'asc' ? 1 : -1
  return { [fields[sortBy]]: direction, _id: direction }
}

export function createContacts({ collections, read }: MongoContext): ContactStore {
  const { contacts } = collections
  const options = { ...read, projection: { applied: 0, searchKey: 0, v: 0 } }
  const list = async (filter: object, order: Record<string, 1 | -1>, { limit, offset }: Page) =>
    (await contacts.find(filter, options).sort(order).skip(offset).limit(limit).toArray()).map(contactRecord)
  return {
    get: async (userId, id) => orNull(await contacts.findOne({ _id: id, userId }, options), contactRecord),
    list: (userId, sortBy, order, page) => list({ userId }, contactOrder(sortBy, order), page),
    search: (userId, text, page) =>
      list({ userId, searchKey: containing(foldCase(text)) }, contactOrder('total_count', 'desc'), page),
  }
}
