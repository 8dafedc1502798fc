/**
 * Contacts, counted by each email account. A message counts once per kind, also in a repeated batch: its row holds the
 * counted kinds (`counted`). The contact is written before the row, so until then the contact holds the delta's key
 * (`applied`), and drops it later. An account has one writer, but an earlier write whose answer was lost may come late:
 * each write compares the contact's version.
 */
import { randomInt } from 'node:crypto'
import { contactId } from '../ids.ts'
import type { KeyedCollections } from '../aggregates.ts'
import { contactReads, withDelta, type ContactParts, type ContactQuery } from '../contacts.ts'
import type { ContactStore } from '../port.ts'
import type { ContactDelta, ContactRecord, StoredContact } from '../records.ts'
import { foldCase } from '../rows.ts'
import { containing, insertMissing, orNull, shapes } from './documents.ts'
import type { ContactDoc, MongoContext } from './documents.ts'
import { unavailable } from './errors.ts'

/** From this number of keys on, a contact drops the keys that message rows hold, but never the newest ones. */
const askedFrom = 192
const alwaysKept = 64
/** More conflicts in a row are a fault, since an account has one writer. */
const tries = 20

const versions = 2 ** 30

export function contactDoc(contact: StoredContact, applied: readonly string[]): ContactDoc {
  return { ...shapes.contacts.doc(contact), searchKey: searchKey(contact), v: randomInt(versions), applied }
}

function searchKey(contact: ContactRecord): string {
  return foldCase(`${contact.name}\n${contact.email}`)
}

/** Message and kind of a delta's key. */
function partsOfKey(key: string): { readonly messageId: string; readonly kind: string } {
  const colon = key.lastIndexOf(':')
  return { messageId: key.slice(0, colon), kind: key.slice(colon + 1) }
}

export function kindsByMessage(deltas: readonly Pick<ContactDelta, 'key'>[]): Map<string, Set<string>> {
  const kinds = new Map<string, Set<string>>()
  for (const { key } of deltas) {
    const { messageId, kind } = partsOfKey(key)
    kinds.set(messageId, (kinds.get(messageId) ?? new Set()).add(kind))
  }
  return kinds
}

/** Groups by the id of the contact's document. */
function byContact(accountId: string, deltas: readonly ContactDelta[]): Map<string, ContactDelta[]> {
  return Map.groupBy(deltas, ({ userId, email }) => `${accountId}:${contactId(userId, email)}`)
}

export interface Tally {
  readonly contacts: readonly ContactDoc[]
  /** By message: the counted kinds in its row. */
  readonly counted: ReadonlyMap<string, readonly string[]>
}

/** Reads the contacts before the rows, as they are written. */
export async function readTally(
  context: MongoContext,
  accountId: string,
  deltas: readonly ContactDelta[],
): Promise<Tally> {
  if (deltas.length === 0) return { contacts: [], counted: new Map() }
  const ids = [...byContact(accountId, deltas).keys()]
  const contacts = await context.collections.contacts.find({ _id: { $in: ids } }).toArray()
  return { contacts, counted: await countedKinds(context, accountId, [...kindsByMessage(deltas).keys()]) }
}

async function countedKinds(
  { collections: { messages } }: MongoContext,
  accountId: string,
  ids: readonly string[],
): Promise<Map<string, readonly string[]>> {
  if (ids.length === 0) return new Map()
  const rows = messages.find({ accountId, _id: { $in: [...ids] }, counted: { $exists: true } })
  const found = await rows.project<{ _id: string; counted: string[] }>({ counted: 1 }).toArray()
  return new Map(found.map(({ _id, counted }) => [_id, counted]))
}

/** The applied keys to keep: the newest ones, and those that no message row holds. */
async function keptKeys(
  context: MongoContext,
  accountId: string,
  applied: readonly string[],
): Promise<readonly string[]> {
  if (applied.length < askedFrom) return applied
  const parts = new Map(applied.slice(0, -alwaysKept).map((key) => [key, partsOfKey(key)]))
  const ids = new Set([...parts.values()].map(({ messageId }) => messageId))
  const counted = await countedKinds(context, accountId, [...ids])
  return applied.filter((key) => {
    const part = parts.get(key)
    return part === undefined || counted.get(part.messageId)?.includes(part.kind) !== true
  })
}

function update(doc: ContactDoc, contact: StoredContact, applied: readonly string[]) {
  const { name, totalCount, directCount, indirectCount, lastReceivedAt } = contact
  const counts = { totalCount, directCount, indirectCount, lastReceivedAt }
  const $set = { name, ...counts, searchKey: searchKey(contact), applied }
  return { updateOne: { filter: { _id: doc._id, v: doc.v }, update: { $set, $inc: { v: 1 } } } }
}

async function planRound(
  context: MongoContext,
  accountId: string,
  pending: readonly ContactDelta[],
  { contacts, counted }: Tally,
) {
  const stored = new Map(contacts.map((doc) => [doc._id, doc]))
  const round = { left: [] as ContactDelta[], fresh: [] as ContactDoc[], updates: [] as ReturnType<typeof update>[] }
  for (const [id, group] of byContact(accountId, pending)) {
    const doc = stored.get(id)
    const applied = new Set(doc?.applied)
    const uncounted = group.filter(({ key }) => {
      const { messageId, kind } = partsOfKey(key)
      if (applied.has(key) || counted.get(messageId)?.includes(kind)) return false
      applied.add(key)
      return true
    })
    const before = orNull(doc ?? null, shapes.contacts.record)
    const merge = (stored: StoredContact | null, delta: ContactDelta) => withDelta(accountId, stored, delta)
    const contact = uncounted.reduce<StoredContact | null>(merge, before)
    if (uncounted.length === 0 || contact === null) continue
    round.left.push(...uncounted)
    const keys = uncounted.map(({ key }) => key)
    if (doc) round.updates.push(update(doc, contact, [...(await keptKeys(context, accountId, doc.applied)), ...keys]))
    else round.fresh.push(contactDoc(contact, keys))
  }
  return round
}

/** Adds each delta once. `read`: readTally of these deltas; it may be old, because each write compares. */
export async function countContacts(
  context: MongoContext,
  accountId: string,
  deltas: readonly ContactDelta[],
  read: Tally,
): Promise<void> {
  const { contacts } = context.collections
  let pending = deltas
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const tally = attempt === 0 ? read : await readTally(context, accountId, pending)
    const { left, fresh, updates } = await planRound(context, accountId, pending, tally)
    if (left.length === 0) return
    const inserted = await insertMissing(contacts, fresh)
    const matched = updates.length === 0 ? 0 : (await contacts.bulkWrite(updates, { ordered: false })).matchedCount
    if (inserted.length === fresh.length && matched === updates.length) return
    pending = left
  }
  throw unavailable(new Error('contacts are written by others without end'))
}

/** Adds the counted kinds to existing rows, after countContacts. `inserted`: new rows, which have them already. */
export async function markCounted(
  { collections: { messages } }: MongoContext,
  accountId: string,
  deltas: readonly ContactDelta[],
  read: Tally,
  inserted: ReadonlySet<string>,
): Promise<void> {
  const unmarked = deltas
    .map(({ key }) => partsOfKey(key))
    .filter(({ messageId, kind }) => !inserted.has(messageId) && !read.counted.get(messageId)?.includes(kind))
  for (const [kind, parts] of Map.groupBy(unmarked, (part) => part.kind)) {
    const ids = new Set(parts.map(({ messageId }) => messageId))
    await messages.updateMany({ accountId, _id: { $in: [...ids] } }, { $addToSet: { counted: kind } })
  }
}

/** A page of contacts summed over several accounts. */
async function pageOf({ collections: { contacts }, read }: MongoContext, query: ContactQuery): Promise<ContactParts[]> {
  const { userId, field, descending, text, limit, offset } = query
  if (limit <= 0) return []
  const named = text === null ? null : await contacts.distinct('id', { userId, searchKey: containing(text) }, read)
  const direction = descending ? -1 : 1
  const steps = [
    { $match: { userId, ...(named && { id: { $in: named } }) } },
    { $project: shapes.contacts.only },
    { $group: { _id: '$id', total: { $sum: `$${field}` }, parts: { $push: '$$ROOT' } } },
    { $sort: { total: direction, _id: direction } },
    { $skip: offset },
    { $limit: limit },
  ]
  const found = await contacts
    .aggregate<{ readonly parts: readonly [ContactDoc, ...ContactDoc[]] }>(steps, read)
    .toArray()
  return found.map(({ parts: [first, ...others] }) => {
    const { record } = shapes.contacts
    return [record(first), ...others.map(record)]
  })
}

export function createContacts(context: MongoContext, keyed: KeyedCollections): ContactStore {
  return contactReads(keyed, (query) => pageOf(context, query))
}
