/** The change log: numbered per account without gaps, by its one owner. */
import { changeReads, type KeyedCollections } from '../aggregates.ts'
import type { ChangeStore } from '../port.ts'
import type { ChangeRecord } from '../records.ts'
import { shapes, type Doc, type MongoContext } from './documents.ts'
import { isDuplicate } from './errors.ts'

const byAge = { at: 1, _id: 1 } as const

type ChangeDoc = Doc<ChangeRecord>

export async function lastSeq({ collections, read }: MongoContext, accountId: string): Promise<number> {
  const newest = await collections.changes.findOne(
    { accountId },
    { ...read, sort: { seq: -1 }, projection: { _id: 0, seq: 1 } },
  )
  return newest?.seq ?? 0
}

export async function knownChanges(
  { collections, read }: MongoContext,
  accountId: string,
  ids: readonly string[],
): Promise<Map<string, ChangeRecord>> {
  const docs = await collections.changes.find({ accountId, _id: { $in: [...ids] } }, read).toArray()
  return new Map(docs.map((doc) => [doc._id, shapes.changes.record(doc)]))
}

/** In order. false: one collided, by id (written before) or seq (another writer); those before it are there. */
export async function appendChanges({ collections }: MongoContext, changes: readonly ChangeRecord[]): Promise<boolean> {
  if (changes.length === 0) return true
  try {
    await collections.changes.insertMany(changes.map(shapes.changes.doc), { ordered: true })
    return true
  } catch (error) {
    if (isDuplicate(error, ['_id_', 'changes_by_seq'])) return false
    throw error
  }
}

const stepRows = 1000
const askedAtOnce = 20

/** Walks the old rows by age; the newest of an account stays, since it carries the number on. */
async function expire(context: MongoContext, before: number, limit: number): Promise<number> {
  const { changes } = context.collections
  let removed = 0
  let after: { readonly at: number; readonly id: string } | null = null
  while (removed < limit) {
    const where = after
      ? { at: { $gte: after.at, $lt: before }, $or: [{ at: { $gt: after.at } }, { _id: { $gt: after.id } }] }
      : { at: { $lt: before } }
    const options = { ...context.read, projection: { accountId: 1, seq: 1, at: 1 } }
    const rows: Pick<ChangeDoc, '_id' | 'accountId' | 'seq' | 'at'>[] = await changes
      .find(where, options)
      .sort(byAge)
      .limit(stepRows)
      .toArray()
    const newest = await newestOf(context, rows)
    const old = rows.filter((row) => newest.get(row.accountId) !== row.seq).slice(0, limit - removed)
    if (old.length > 0) {
      const result = await changes.deleteMany({ _id: { $in: old.map(({ _id }) => _id) } })
      removed += result.deletedCount
    }
    const last = rows.at(-1)
    if (!last || rows.length < stepRows) break
    after = { at: last.at, id: last._id }
  }
  return removed
}

async function newestOf(
  context: MongoContext,
  rows: readonly Pick<ChangeDoc, 'accountId'>[],
): Promise<Map<string, number>> {
  const newest = new Map<string, number>()
  const accounts = [...new Set(rows.map((row) => row.accountId))]
  for (let start = 0; start < accounts.length; start += askedAtOnce) {
    const some = accounts.slice(start, start + askedAtOnce)
    const seqs = await Promise.all(some.map((id) => lastSeq(context, id)))
    for (const [index, id] of some.entries()) newest.set(id, seqs[index] ?? 0)
  }
  return newest
}

export function createChanges(context: MongoContext, keyed: KeyedCollections): ChangeStore {
  return {
    ...changeReads(keyed),
    lastSeq: (accountId) => lastSeq(context, accountId),
    expire: (before, limit) => expire(context, before, limit),
  }
}
