/** Callbacks to send, and afterwards the record of their delivery. */
import type { KeyedCollections } from '../aggregates.ts'
import type { OutboxKey, OutboxResult, OutboxStore, RequeueQuery } from '../port.ts'
import type { OutboxRecord } from '../records.ts'
import { lastStatus, nextKey, recorded, setBack } from '../rows.ts'
import { beginning, deleteInSteps, insertMissing, rowsOf, shapes } from './documents.ts'
import type { MongoContext, OutboxDoc } from './documents.ts'
import { unavailable } from './errors.ts'
import { deliveryFilter, newestFirst, oldestFirst, pendingFilter, requeueFilter, sendingOrder } from './outbox-query.ts'

const { record: outboxRecord, only } = shapes.outbox

export function outboxDoc(row: OutboxRecord): OutboxDoc {
  return { ...shapes.outbox.doc(row), lastStatus: lastStatus(row), v: 0 }
}

const stepRows = 1000
const tries = 20

export async function enqueue(
  { collections: { outbox } }: MongoContext,
  rows: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  return (await insertMissing(outbox, rows.map(outboxDoc))).map(outboxRecord)
}

function update(doc: OutboxDoc, row: OutboxRecord) {
  const { state, dueAt, countsAt, finishedAt, reason, attempts, attemptCount } = row
  const counts = countsAt === undefined ? {} : { countsAt }
  const set = { state, dueAt, ...counts, finishedAt, reason, attempts, attemptCount, lastStatus: lastStatus(row) }
  return { updateOne: { filter: { _id: doc._id, v: doc.v }, update: { $set: set, $inc: { v: 1 } } } }
}

/** Whether this attempt stands in the row: then a round before this one has written it. */
function stands(doc: OutboxDoc, { attempt, state }: OutboxResult): boolean {
  if (attempt === null) return doc.state === state
  return doc.attempts.some(({ at, durationMs }) => at === attempt.at && durationMs === attempt.durationMs)
}

/** By compare of the version: a row that was written in between (by a pause, a requeue) is read again. */
async function record({ collections: { outbox } }: MongoContext, results: readonly OutboxResult[]): Promise<void> {
  let pending = results
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const docs = await outbox.find({ _id: { $in: [...new Set(pending.map(({ id }) => id))] } }).toArray()
    const byId = new Map(docs.map((doc) => [doc._id, doc]))
    const left = pending.filter((result) => {
      const doc = byId.get(result.id)
      return doc !== undefined && !(attempt > 0 && stands(doc, result))
    })
    if (left.length === 0) return
    const operations = [...byId.values()].flatMap((doc) => {
      const own = left.filter(({ id }) => id === doc._id)
      return own.length === 0 ? [] : [update(doc, own.reduce(recorded, outboxRecord(doc)))]
    })
    const { matchedCount } = await outbox.bulkWrite(operations, { ordered: false })
    if (matchedCount === operations.length) return
    pending = left
  }
  throw unavailable(new Error('outbox rows are written by others without end'))
}

/** The filter is compared once more by the write: what was set back, or taken up again, meanwhile stays as it is. */
async function requeue(
  { collections: { outbox }, read }: MongoContext,
  query: RequeueQuery,
  now: number,
  limit: number,
  after: OutboxKey | null,
): Promise<{ readonly count: number; readonly next: OutboxKey | null }> {
  const where = requeueFilter(query, after)
  const rows = (await rowsOf(outbox.find(where, { ...read, projection: only }).sort(oldestFirst), limit)).map(
    outboxRecord,
  )
  const these = { ...where, _id: { $in: rows.map(({ id }) => id) } }
  await outbox.updateMany({ ...these, countsAt: { $exists: true } }, { $set: { countsAt: now } })
  const { matchedCount } = await outbox.updateMany(these, { $set: setBack(now), $inc: { v: 1 } })
  return { count: matchedCount, next: nextKey(rows, limit) }
}

/** In steps: one that fails leaves what the steps before it have skipped. */
async function skipPending(
  { collections: { outbox }, read }: MongoContext,
  channelId: string,
  reason: string,
  now: number,
): Promise<number> {
  const where = { ...pendingFilter(channelId), kind: 'message' } as const
  const skip = { $set: { state: 'skipped', finishedAt: now, reason }, $inc: { v: 1 } } as const
  for (let total = 0; ;) {
    const rows = outbox.find(where, { ...read, projection: { _id: 1 } }).limit(stepRows)
    const ids = (await rows.toArray()).map(({ _id }) => _id)
    if (ids.length > 0) total += (await outbox.updateMany({ ...where, _id: { $in: ids } }, skip)).matchedCount
    if (ids.length < stepRows) return total
  }
}

function expire({ collections: { outbox }, read }: MongoContext, before: number, limit: number): Promise<number> {
  const where = { finishedAt: { $gte: beginning, $lt: before } }
  return deleteInSteps(outbox, where, read, { finishedAt: 1, _id: 1 }, limit)
}

async function backlog({ collections: { outbox }, read }: MongoContext, channelId: string) {
  const rows = outbox.aggregate<{ pending: number; oldestAt: number }>(
    [
      { $match: pendingFilter(channelId) },
      { $group: { _id: null, pending: { $sum: 1 }, oldestAt: { $min: '$createdAt' } } },
    ],
    read,
  )
  const [found] = await rows.toArray()
  return { pending: found?.pending ?? 0, oldestAt: found?.oldestAt ?? null }
}

export function createOutbox(context: MongoContext, keyed: KeyedCollections): OutboxStore {
  const { collections, read } = context
  const { outbox } = collections
  const options = { ...read, projection: only }
  return {
    enqueue: (rows) => enqueue(context, rows),
    get: (id) => keyed.outbox.find({ id }),
    channels: () => outbox.distinct('channelId', { state: 'pending' }, read),
    pending: async (channelId, exceptAccounts, limit, exceptHistorical) => {
      const rows = outbox.find(pendingFilter(channelId, exceptAccounts, exceptHistorical), options)
      return (await rowsOf(rows.sort(sendingOrder), limit)).map(outboxRecord)
    },
    backlog: (channelId) => backlog(context, channelId),
    record: (results) => record(context, results),
    list: async (query, { limit, offset }) => {
      const rows = outbox.find(deliveryFilter(query), options)
      return (await rowsOf(rows.sort(newestFirst), limit, offset)).map(outboxRecord)
    },
    requeue: (query, now, limit, after = null) => requeue(context, query, now, limit, after),
    skipPending: (channelId, reason, now) => skipPending(context, channelId, reason, now),
    expire: (before, limit) => expire(context, before, limit),
  }
}
