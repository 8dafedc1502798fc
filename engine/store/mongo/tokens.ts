/** Connect tokens: used once, or not at all; the TTL index takes them away when they have been kept long enough. */
import type { TokenStore } from '../port.ts'
import type { ConnectTokenRecord } from '../records.ts'
import { tokensKeptMs, tokensListed, usedToken } from '../rows.ts'
import { orNull, recordIn, type MongoContext, type TokenDoc } from './documents.ts'
import { insertOwned } from './owners.ts'

export const tokenOrder = { createdAt: -1, _id: -1 } as const

export function tokenDoc({ token, ...rest }: ConnectTokenRecord): TokenDoc {
  return { _id: token, ...rest, goesAt: new Date(rest.expiresAt + tokensKeptMs) }
}

const beside = new Set(['goesAt'])

export function tokenRecord(doc: TokenDoc): ConnectTokenRecord {
  return recordIn(doc, beside, 'token') as ConnectTokenRecord
}

export function tokenFilter(developerId: string, filter: Parameters<TokenStore['list']>[1]) {
  const { userId, accountId, version } = filter
  return {
    developerId,
    ...(accountId === undefined ? {} : { accountId }),
    ...(userId === undefined ? {} : { userId }),
    ...(version === undefined ? {} : { version }),
  }
}

export function createTokens(context: MongoContext): TokenStore {
  const { collections, read } = context
  const { tokens } = collections
  return {
    create: async (token) => {
      await insertOwned(context, token.userId, tokens, tokenDoc(token), () => tokens.deleteOne({ _id: token.token }))
    },
    get: async (developerId, token) => orNull(await tokens.findOne({ _id: token, developerId }, read), tokenRecord),
    find: async (token) => orNull(await tokens.findOne({ _id: token }, read), tokenRecord),
    list: async (developerId, filter) => {
      const rows = tokens.find(tokenFilter(developerId, filter), read)
      return (await rows.sort(tokenOrder).limit(tokensListed).toArray()).map(tokenRecord)
    },
    use: async (token, usedAt, userId, accountId) => {
      const stored = await tokens.findOne({ _id: token })
      const used = stored && usedToken(tokenRecord(stored), usedAt, userId, accountId)
      if (!used) return null
      // the compare makes it once: a second user finds it used
      const set = { $set: { usedAt, userId, accountId } }
      const after = await tokens.findOneAndUpdate({ _id: token, usedAt: null }, set, { returnDocument: 'after' })
      return orNull(after, tokenRecord)
    },
    remove: async (developerId, token) => (await tokens.deleteOne({ _id: token, developerId })).deletedCount === 1,
  }
}
