/** OAuth nonces, remembered until they expire; the TTL index takes them away some time after. */
import { createHash } from 'node:crypto'
import type { NonceStore } from '../port.ts'
import type { MongoContext, NonceDoc } from './documents.ts'
import { isDuplicate } from './errors.ts'

/** The caller chooses key and nonce: a digest keeps the id short and the parts apart. */
function nonceId(apiKey: string, nonce: string, timestamp: number): string {
  return createHash('sha256')
    .update(JSON.stringify([apiKey, nonce, timestamp]))
    .digest('base64url')
}

export function nonceDoc(apiKey: string, nonce: string, timestamp: number, expiresAt: number): NonceDoc {
  return { _id: nonceId(apiKey, nonce, timestamp), apiKey, nonce, timestamp, expiresAt: new Date(expiresAt) }
}

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
      // one that has expired and is still there counts as new again, once
      const expired = { _id: doc._id, expiresAt: { $lte: new Date(now()) } }
      const { matchedCount } = await nonces.updateOne(expired, { $set: { expiresAt: doc.expiresAt } })
      return matchedCount === 1
    },
  }
}
