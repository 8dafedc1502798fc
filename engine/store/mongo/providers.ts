/** OAuth providers that a developer has registered. */
import type { ProviderStore } from '../port.ts'
import type { OAuthProviderRecord } from '../records.ts'
import { orNull, recordIn, type MongoContext, type ProviderDoc } from './documents.ts'

export const providerOrder = { createdAt: 1, consumerKey: 1 } as const

function providerId(developerId: string, consumerKey: string): string {
  return `${developerId}:${consumerKey}`
}

export function providerDoc(provider: OAuthProviderRecord): ProviderDoc {
  return { _id: providerId(provider.developerId, provider.consumerKey), ...provider }
}

const beside: ReadonlySet<string> = new Set()

export function providerRecord(doc: ProviderDoc): OAuthProviderRecord {
  return recordIn(doc, beside, '') as OAuthProviderRecord
}

export function createProviders({ collections, read }: MongoContext): ProviderStore {
  const { providers } = collections
  return {
    put: async (provider) => {
      const { _id, ...fields } = providerDoc(provider)
      await providers.updateOne({ _id }, { $set: fields }, { upsert: true })
    },
    get: async (developerId, consumerKey) =>
      orNull(await providers.findOne({ _id: providerId(developerId, consumerKey) }, read), providerRecord),
    list: async (developerId) =>
      (await providers.find({ developerId }, read).sort(providerOrder).toArray()).map(providerRecord),
    remove: async (developerId, consumerKey) =>
      (await providers.deleteOne({ _id: providerId(developerId, consumerKey) })).deletedCount === 1,
  }
}
