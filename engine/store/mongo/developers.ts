/** Developers: few, found by API key on every call. */
import type { DeveloperStore } from '../port.ts'
import type { DeveloperRecord } from '../records.ts'
import { orNull, toDoc, toRecord, type MongoContext } from './documents.ts'

export function createDevelopers({ collections, read }: MongoContext): DeveloperStore {
  const { developers } = collections
  return {
    create: async (developer) => {
      await developers.insertOne(toDoc(developer))
    },
    get: async (id) => orNull(await developers.findOne({ _id: id }, read), toRecord<DeveloperRecord>),
    byKey: async (apiKey) => orNull(await developers.findOne({ apiKey }, read), toRecord<DeveloperRecord>),
    count: () => developers.countDocuments({}, read),
    first: async () => orNull(await developers.findOne({}, { ...read, sort: { _id: 1 } }), toRecord<DeveloperRecord>),
    setStatusCallbackUrl: async (id, statusCallbackUrl) => {
      await developers.updateOne({ _id: id }, { $set: { statusCallbackUrl } })
    },
    setSecret: async (id, sealedSecret) => {
      await developers.updateOne({ _id: id }, { $set: { sealedSecret } })
    },
  }
}
