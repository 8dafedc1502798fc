/** The port's small aggregates, the same over both stores: methods of keyed collections (keyed.ts). */
import type { Keyed, Kinds } from './keyed.ts'
import { folderId } from './ids.ts'
import type { AccountStore, ChangeStore, ContactStore, FolderStore, MessageStore } from './port.ts'
import type { Store, TokenStore, UserStore, WebhookStore } from './port.ts'
import { leaseLost, noWebhookLimits, plainContact, tokensListed, usedToken } from './rows.ts'

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

/** What of users needs nothing but their own rows. */
export function userBasics({ users }: KeyedCollections): Pick<UserStore, 'create' | 'get' | 'edit' | 'existing'> {
  return {
    create: (user) => users.insert(user),
    get: (developerId, id) => users.find({ id, developerId }),
    edit: (id, patch) => users.edit({ id }, patch),
    existing: async (ids) => (await users.list({ id: ids }, { by: ['id'] })).map(({ id }) => id),
  }
}

/** What of accounts needs nothing but their own rows. */
export function accountBasics({ accounts }: KeyedCollections): Omit<AccountStore, 'claim' | 'transition' | 'remove'> {
  return {
    create: (account) => accounts.insert(account),
    get: (id) => accounts.find({ id }),
    byLabel: (userId, label) => accounts.find({ userId, label }),
    listByUser: (userId, { status } = {}) => accounts.list({ userId, status }, byAge),
    listByUsers: (userIds) => accounts.list({ userId: userIds }, byAge),
    page: (afterId, limit) => accounts.list({}, { by: ['id'], behind: { id: afterId ?? '' }, limit }),
    edit: async (id, patch, epoch) => {
      const edited = await accounts.edit({ id }, patch, epoch === undefined ? {} : { epoch })
      if (edited === null && epoch !== undefined && (await accounts.find({ id }))) throw leaseLost(id, epoch)
      return edited
    },
  }
}

export function changeReads({ changes }: KeyedCollections): Pick<ChangeStore, 'get' | 'since' | 'ofMessage'> {
  const by = ['seq'] as const
  return {
    get: (accountId, id) => changes.find({ id, accountId }),
    since: (accountId, after, limit) => changes.list({ accountId }, { by, behind: { seq: after }, limit }),
    ofMessage: (accountId, messageId) => changes.list({ accountId, messageId }, { by }),
  }
}

export function folderBasics({ folders }: KeyedCollections): Pick<FolderStore, 'byPath' | 'setCounts' | 'setParked'> {
  return {
    byPath: (accountId, path) => folders.find({ id: folderId(accountId, path), accountId }),
    setCounts: async (id, { messages, unseen }) => {
      await folders.edit({ id }, { messages, unseen })
    },
    setParked: async (id, failures, parkedUntil) => {
      await folders.edit({ id }, { failures, parkedUntil })
    },
  }
}

const contactFields = {
  total_count: 'totalCount',
  direct_count: 'directCount',
  indirect_count: 'indirectCount',
} as const

export function contactReads({ contacts }: KeyedCollections): Pick<ContactStore, 'get' | 'list'> {
  return {
    get: async (userId, id) => {
      const contact = await contacts.find({ id, userId })
      return contact && plainContact(contact)
    },
    list: async (userId, sortBy, order, page) => {
      const by = [contactFields[sortBy], 'id'] as const
      return (await contacts.list({ userId }, { by, descending: order === 'desc', ...page })).map(plainContact)
    },
  }
}

/** Messages read at once while attachments are looked for. */
const attachmentStep = 100

/** Attachments in the order of their messages. */
export function attachmentReads(list: MessageStore['list']): Pick<MessageStore, 'attachments'> {
  return {
    attachments: async (accountId, query, { limit, offset }) => {
      const found: Awaited<ReturnType<MessageStore['attachments']>> = []
      const wanted = { ...query, hasAttachments: true }
      for (let from = 0, skip = offset; ; from += attachmentStep) {
        const messages = await list(accountId, wanted, { limit: attachmentStep, offset: from })
        for (const message of messages) {
          found.push(...message.attachments.slice(skip).map((attachment) => ({ message, attachment })))
          skip = Math.max(0, skip - message.attachments.length)
        }
        if (found.length >= limit || messages.length < attachmentStep) return found.slice(0, limit)
      }
    },
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
