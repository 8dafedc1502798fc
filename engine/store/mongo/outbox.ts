/** The outbox: callbacks to send, and the log of their deliveries. */
import type { Filter } from 'mongodb'
import { outboxBasics, type KeyedCollections } from '../aggregates.ts'
import type { DeliveryCount, OutboxKey, OutboxResult, OutboxStore, RequeueQuery } from '../port.ts'
import { definitions } from '../keyed.ts'
import type { OutboxRecord, OutboxState } from '../records.ts'
import { allSlots, slotCount, slotOf, slotOfRow, type Lease } from '../slots.ts'
import { allStates, deliveryWhere, finishedStates, nextKey, recorded, setBack } from '../rows.ts'
import { pageOf, shapes } from './documents.ts'
import type { MongoContext, OutboxDoc } from './documents.ts'
import { unavailable } from './errors.ts'
import { filterOf } from './keyed.ts'

const { record: outboxRecord, only } = shapes.outbox

const stepRows = 1000
const tries = 20

const sendingOrder = { lane: 1, createdAt: 1, seq: 1, _id: 1 } as const
const newestFirst = { createdAt: -1, _id: -1 } as const
const oldestFirst = { createdAt: 1, _id: 1 } as const

function pendingFilter(channelId: string, exceptAccounts: readonly string[] = []): Filter<OutboxDoc> {
  // '' stands for rows without an account.
  const except = exceptAccounts.map((account) => (account === '' ? null : account))
  const open = except.length === 0 ? {} : { accountId: { $nin: except } }
  return { state: 'pending', channelId, ...open }
}

/** Rows of the query in the states `of`, behind a position in the order of `oldestFirst`. */
function deliveryFilter(query: RequeueQuery, of: readonly OutboxState[], behind: OutboxKey | null): Filter<OutboxDoc> {
  const where = { ...deliveryWhere(query), state: of.filter((state) => query.states?.includes(state) ?? true) }
  // The condition of the partial indexes of notices: every kind but `message` has a URL.
  const notices = query.kind === undefined || query.kind === 'message' ? {} : { url: { $gte: '' } }
  const after = behind === null ? undefined : { by: ['createdAt', 'id'] as const, behind }
  return { ...filterOf(definitions.outbox, where, after), ...notices }
}

function update(doc: OutboxDoc, row: OutboxRecord) {
  const { state, dueAt, countsAt, finishedAt, reason, attempts, attemptCount } = row
  const counts = countsAt === undefined ? {} : { countsAt }
  const set = shapes.outbox.set({ state, dueAt, ...counts, finishedAt, reason, attempts, attemptCount })
  return { updateOne: { filter: { _id: doc._id, v: doc.v }, update: { $set: set, $inc: { v: 1 } } } }
}

/** Whether the row has this result already, from an earlier try whose answer was lost. */
function stands(doc: OutboxDoc, { attempt, state }: OutboxResult): boolean {
  if (attempt === null) return doc.state === state
  return doc.attempts.some(({ at, durationMs }) => at === attempt.at && durationMs === attempt.durationMs)
}

/** Whether another node owns the callback by now, and records its attempts. */
function isTaken(lease: Lease | null, doc: OutboxDoc): boolean {
  if (lease === null) return false
  const epoch = lease.epochOf(slotOfRow(doc))
  return epoch === undefined || epoch < (doc.fence ?? 0)
}

/** Rows that this process sends. Hundreds of slots make a filter slow: the filter names the fewer ones. */
function sentFilter({ lease }: MongoContext, userId: string | null): Filter<OutboxDoc> {
  if (lease === null || lease.isWhole) return {}
  const sent = (userId === null ? allSlots : [slotOf(userId)]).filter((slot) => lease.sends(slot))
  return sent.length <= slotCount / 2
    ? { slot: { $in: sent } }
    : { slot: { $nin: allSlots.filter((slot) => !lease.sends(slot)) } }
}

/** Each write compares the version: a row written meanwhile (by a pause, a requeue) is read again. */
const record =
  ({ collections: { outbox }, lease }: MongoContext): OutboxStore['record'] =>
  async (results) => {
    let pending = results
    for (let attempt = 0; attempt < tries; attempt += 1) {
      const docs = await outbox.find({ _id: { $in: [...new Set(pending.map(({ id }) => id))] } }).toArray()
      const byId = new Map(docs.map((doc) => [doc._id, doc]))
      const left = pending.filter((result) => {
        const doc = byId.get(result.id)
        if (doc === undefined || isTaken(lease, doc)) return false
        return !((attempt > 0 || result.attempt !== null) && stands(doc, result))
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

/** The write repeats the filter, so a row that was requeued or sent meanwhile stays as it is. */
const requeue =
  ({ collections: { outbox }, read }: MongoContext): OutboxStore['requeue'] =>
  async (query, now, limit, after = null) => {
    const where = deliveryFilter(query, query.ids === undefined ? finishedStates : allStates, after)
    const page = { ...read, projection: only, sort: oldestFirst, limit }
    const rows = (await pageOf(outbox, where, page)).map(outboxRecord)
    const these = { ...where, _id: { $in: rows.map(({ id }) => id) } }
    await outbox.updateMany({ ...these, countsAt: { $exists: true } }, { $set: { countsAt: now } })
    const { matchedCount } = await outbox.updateMany(these, { $set: setBack(now), $inc: { v: 1 } })
    return { count: matchedCount, next: nextKey(rows, limit) }
  }

/** Ends the pending messages of a channel, in steps. A failed step leaves the rows of earlier steps skipped. */
const skipPending =
  ({ collections: { outbox }, read }: MongoContext): OutboxStore['skipPending'] =>
  async (channelId, reason, now, state = 'skipped') => {
    const where = { ...pendingFilter(channelId), kind: 'message' } as const
    const skip = { $set: { state, finishedAt: now, reason }, $inc: { v: 1 } } as const
    for (let total = 0; ;) {
      const rows = outbox.find(where, { ...read, projection: { _id: 1 } }).limit(stepRows)
      const ids = (await rows.toArray()).map(({ _id }) => _id)
      if (ids.length > 0) total += (await outbox.updateMany({ ...where, _id: { $in: ids } }, skip)).matchedCount
      if (ids.length < stepRows) return total
    }
  }

const counts = { pending: { $sum: 1 }, oldestAt: { $min: '$createdAt' } } as const

const backlog =
  ({ collections: { outbox }, read }: MongoContext): OutboxStore['backlog'] =>
  async (channelId) => {
    const rows = outbox.aggregate<{ pending: number; oldestAt: number }>(
      [
        { $match: channelId === null ? { state: 'pending' } : pendingFilter(channelId) },
        { $group: { _id: null, ...counts } },
      ],
      read,
    )
    const [found] = await rows.toArray()
    return { pending: found?.pending ?? 0, oldestAt: found?.oldestAt ?? null }
  }

const late =
  ({ collections: { outbox }, read }: MongoContext): OutboxStore['late'] =>
  async (developerId, limit) => {
    const rows = outbox.aggregate<{ _id: string; pending: number; oldestAt: number }>(
      [
        { $match: { state: 'pending', developerId } },
        { $group: { _id: '$channelId', ...counts } },
        { $sort: { oldestAt: 1, _id: 1 } },
        { $limit: limit },
      ],
      // Not the index by developer: most rows of a developer are finished.
      { ...read, hint: 'outbox_pending' },
    )
    return (await rows.toArray()).map(({ _id: channelId, pending, oldestAt }) => ({ channelId, pending, oldestAt }))
  }

export function createOutbox(context: MongoContext, keyed: KeyedCollections): OutboxStore {
  const { collections, read } = context
  const { outbox } = collections
  const options = { ...read, projection: only }
  const inOrder = async (where: Filter<OutboxDoc>, limit: number): Promise<OutboxRecord[]> =>
    (await pageOf(outbox, where, { ...options, sort: sendingOrder, limit })).map(outboxRecord)
  return {
    ...outboxBasics(keyed),
    channels: () => outbox.distinct('channelId', { state: 'pending', ...sentFilter(context, null) }, read),
    pending: (channelId, exceptAccounts, limit, userId = null) =>
      inOrder({ ...pendingFilter(channelId, exceptAccounts), ...sentFilter(context, userId) }, limit),
    waiting: (channelId, limit) => inOrder(pendingFilter(channelId), limit),
    backlog: backlog(context),
    late: late(context),
    record: record(context),
    list: async (query, { limit, offset }, order = 'DESC') => {
      const page = { ...options, sort: order === 'ASC' ? oldestFirst : newestFirst, limit, skip: offset }
      return (await pageOf(outbox, deliveryFilter(query, allStates, null), page)).map(outboxRecord)
    },
    counts: async (query, stepMs) => {
      const at = { $subtract: ['$createdAt', { $mod: ['$createdAt', stepMs] }] }
      const steps = [
        { $match: deliveryFilter(query, allStates, null) },
        { $group: { _id: { at, state: '$state' }, count: { $sum: 1 } } },
      ]
      const rows = outbox.aggregate<{ _id: Omit<DeliveryCount, 'count'>; count: number }>(steps, read)
      return (await rows.toArray()).map(({ _id, count }) => ({ ..._id, count }))
    },
    requeue: requeue(context),
    skipPending: skipPending(context),
  }
}
