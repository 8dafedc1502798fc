/** The port's small aggregates, the same over both stores: methods of keyed collections (keyed.ts). */
import type { Keyed, Kinds } from './keyed.ts'
import type { AccountStore, Store, TokenStore, WebhookStore } from './port.ts'
import { noWebhookLimits, tokensListed, usedToken } from './rows.ts'

export type KeyedCollections = { readonly [K in keyof Kinds]: Keyed<Kinds[K]> }

export interface AggregateParts {
  readonly keyed: KeyedCollections
  readonly removeWebhook: (id: string) => Promise<void>
}

export type Aggregates = Pick<Store, 'developers' | 'webhooks' | 'tokens' | 'providers' | 'calls'>

const byAge = { by: ['createdAt', 'id'] } as const

export function createAggregates(parts: AggregateParts): Aggregates {
  const { developers, providers, calls, tokens } = parts.keyed
  return {
    developers: {
      create: (developer) => developers.insert(developer),
      get: (id) => developers.find({ id }),
      byKey: (apiKey) => developers.find({ apiKey }),
      count: () => developers.count({}),
      first: async () => (await developers.list({}, { by: ['id'], limit: 1 }))[0] ?? null,
      setStatusCallbackUrl: async (id, statusCallbackUrl) => {
        await developers.edit({ id }, { statusCallbackUrl })
      },
      setSecret: async (id, sealedSecret) => {
        await developers.edit({ id }, { sealedSecret })
      },
    },
    providers: {
      put: (provider) => providers.put(provider),
      get: (developerId, consumerKey) => providers.find({ developerId, consumerKey }),
      list: (developerId) => providers.list({ developerId }, { by: ['createdAt', 'consumerKey'] }),
      remove: async (developerId, consumerKey) => (await providers.remove({ developerId, consumerKey })) === 1,
    },
    calls: {
      append: (rows) => calls.insertMissing(rows),
      list: ({ from, until, statusFrom, statusTo, before, ...fields }, page) => {
        const where = { ...fields, at: { from, until }, status: { from: statusFrom, until: statusTo } }
        return calls.list(where, { by: ['at', 'id'], descending: true, behind: before, ...page })
      },
      expire: (before, limit) => calls.expire('at', before, limit),
    },
    tokens: createTokens(tokens),
    webhooks: createWebhooks(parts),
  }
}

export function accountReads(
  accounts: KeyedCollections['accounts'],
): Pick<AccountStore, 'get' | 'byLabel' | 'listByUser' | 'listByUsers' | 'page'> {
  return {
    get: (id) => accounts.find({ id }),
    byLabel: (userId, label) => accounts.find({ userId, label }),
    listByUser: (userId, { status } = {}) => accounts.list({ userId, status }, byAge),
    listByUsers: (userIds) => accounts.list({ userId: userIds }, byAge),
    page: (afterId, limit) => accounts.list({}, { by: ['id'], behind: { id: afterId ?? '' }, limit }),
  }
}

function createTokens(tokens: KeyedCollections['tokens']): TokenStore {
  return {
    create: (token) => tokens.insert(token),
    get: (developerId, token) => tokens.find({ token, developerId }),
    find: (token) => tokens.find({ token }),
    list: (developerId, filter) =>
      tokens.list({ developerId, ...filter }, { by: ['createdAt', 'token'], descending: true, limit: tokensListed }),
    use: async (token, usedAt, userId, accountId) => {
      const stored = await tokens.find({ token })
      const used = stored && usedToken(stored, usedAt, userId, accountId)
      // a second use at the same time finds it used
      return used ? tokens.edit({ token }, { usedAt, userId, accountId }, { usedAt: null }) : null
    },
    remove: async (developerId, token) => (await tokens.remove({ token, developerId })) === 1,
  }
}

/** Of a webhook that was removed meanwhile nothing is left: these rows would never be sent. */
function createWebhooks({ keyed: { webhooks, scans }, removeWebhook }: AggregateParts): WebhookStore {
  return {
    create: (webhook, limits = noWebhookLimits) => {
      const { developerId, userId } = webhook
      return webhooks.insert(webhook, [
        { name: 'owner', where: { developerId, userId }, most: limits.owner },
        { name: 'developer', where: { developerId }, most: limits.developer },
      ])
    },
    get: (id) => webhooks.find({ id }),
    listByUser: (userId) => webhooks.list({ userId }, byAge),
    listByDeveloper: (developerId) => webhooks.list({ developerId, userId: null }, byAge),
    page: (afterId, limit) => webhooks.list({}, { by: ['id'], behind: { id: afterId ?? '' }, limit }),
    edit: (id, patch) => webhooks.edit({ id }, patch),
    recordHealth: async (id, health, outbox) => {
      if ((await webhooks.edit({ id }, { health }, {}, outbox)) === null) await removeWebhook(id)
    },
    remove: removeWebhook,
    scan: (webhookId, accountId) => scans.find({ webhookId, accountId }),
    saveScan: async (scan, outbox) => {
      await scans.put(scan, outbox)
      if ((await webhooks.find({ id: scan.webhookId })) === null) await removeWebhook(scan.webhookId)
    },
  }
}
