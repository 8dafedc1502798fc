/** The log of API calls. */
import type { Filter } from 'mongodb'
import type { CallLogQuery, CallLogStore } from '../port.ts'
import type { CallLogRecord } from '../records.ts'
import { insertMissing } from './bulk.ts'
import { between } from './conditions.ts'
import { rowsOf, toDoc, toRecord, type Doc, type MongoContext } from './documents.ts'

export const callOrder = { at: -1, _id: -1 } as const

const stepRows = 1000

export function callFilter(query: CallLogQuery): Filter<Doc<CallLogRecord>> {
  const { developerId, userId, method, path, before } = query
  // behind a row: no younger, and of the same moment those that follow it in the list
  const until = before === undefined ? query.until : Math.min(query.until ?? before.at, before.at)
  const at = between(query.from, until)
  const status = between(query.statusFrom, query.statusTo)
  return {
    developerId,
    ...(userId === undefined ? {} : { userId }),
    ...(at ? { at } : {}),
    ...(status ? { status } : {}),
    ...(method === undefined ? {} : { method }),
    ...(path === undefined ? {} : { path }),
    ...(before === undefined ? {} : { $or: [{ at: { $lt: before.at } }, { _id: { $lt: before.id } }] }),
  }
}

export function createCalls({ collections, read }: MongoContext): CallLogStore {
  const { calls } = collections
  return {
    append: async (rows) => {
      await insertMissing(calls, rows.map(toDoc))
    },
    list: async (query, { limit, offset }) => {
      const rows = calls.find(callFilter(query), read).sort(callOrder)
      return (await rowsOf(rows, limit, offset)).map(toRecord<CallLogRecord>)
    },
    expire: async (before, limit) => {
      let removed = 0
      while (removed < limit) {
        const rows = calls.find({ at: { $lt: before } }, { ...read, projection: { _id: 1 } }).sort({ at: 1, _id: 1 })
        const ids = (await rows.limit(Math.min(stepRows, limit - removed)).toArray()).map(({ _id }) => _id)
        if (ids.length === 0) break
        removed += (await calls.deleteMany({ _id: { $in: ids } })).deletedCount
      }
      return removed
    },
  }
}
