/**
 * The part of the port that is the same over both stores: methods of keyed collections (keyed.ts). The store has whole
 * developers, webhooks, tokens, providers and calls of here, and of the others what needs nothing but their own rows.
 */
import { folderId } from './ids.ts'
import type { Keyed, Kinds } from './keyed.ts'
import type { AccountPatch, CallLogQuery, ContactSort, MessageQuery, Page } from './port.ts'
import type { TokenFilter, WebhookLimits } from './port.ts'
import type {
  AccountRecord,
  AccountStatus,
  AttachmentRecord,
  CallLogRecord,
  ConnectTokenRecord,
  DeveloperRecord,
  HistoricalScan,
  MessageRecord,
  OAuthProviderRecord,
  OperatorRecord,
  OutboxRecord,
  UserRecord,
  WebhookHealth,
  WebhookRecord,
} from './records.ts'
import { leaseLost, noWebhookLimits, plainContact, tokensListed, usedToken } from './rows.ts'

export type KeyedCollections = { readonly [K in keyof Kinds]: Keyed<Kinds[K]> }

const byAge = { by: ['createdAt', 'id'] } as const

export function createAggregates(keyed: KeyedCollections, removeWebhook: (id: string) => Promise<void>) {
  return {
    developers: createDevelopers(keyed),
    operators: createOperators(keyed),
    sealed: createSealed(keyed),
    providers: createProviders(keyed),
    calls: createCalls(keyed),
    tokens: createTokens(keyed),
    webhooks: createWebhooks(keyed, removeWebhook),
  }
}

function createDevelopers({ developers }: KeyedCollections) {
  return {
    /** `conflict` when the API key exists. */
    create: (developer: DeveloperRecord) => developers.insert(developer),
    get: (id: string) => developers.find({ id }),
    byKey: (apiKey: string) => developers.find({ apiKey }),
    count: () => developers.count({}),
    /** The one with the least id, which is the oldest; null in a new store. */
    first: async () => (await developers.list({}, { by: ['id'], limit: 1 }))[0] ?? null,
    /** Oldest first. */
    list: (page: Page) => developers.list({}, { by: ['id'], ...page }),
    edit: (
      id: string,
      patch: Partial<Pick<DeveloperRecord, 'name' | 'sealedSecret' | 'statusCallbackUrl' | 'revokedAt'>>,
    ) => developers.edit({ id }, patch),
  }
}

/** The console's password and the tokens of the admin API. */
function createOperators({ operators }: KeyedCollections) {
  return {
    put: (operator: OperatorRecord) => operators.put(operator),
    get: (id: string) => operators.find({ id }),
    /** Oldest first, the oldest thousand. */
    list: () => operators.list({}, { by: ['createdAt', 'id'], limit: 1000 }),
    edit: (id: string, patch: Pick<OperatorRecord, 'revokedAt'>) => operators.edit({ id }, patch),
  }
}

/** A sealed value takes the place of another; false = it has changed meanwhile, or its record is gone. */
function createSealed({ developers, accounts, webhooks, providers }: KeyedCollections) {
  return {
    developer: async (id: string, from: string, to: string): Promise<boolean> =>
      (await developers.edit({ id }, { sealedSecret: to }, { sealedSecret: from })) !== null,
    account: async (id: string, from: string, to: string): Promise<boolean> =>
      (await accounts.edit({ id }, { sealedCredential: to }, { sealedCredential: from })) !== null,
    webhook: async (id: string, from: string, to: string): Promise<boolean> =>
      (await webhooks.edit({ id }, { sealedSecrets: to }, { sealedSecrets: from })) !== null,
    provider: async (developerId: string, consumerKey: string, from: string, to: string): Promise<boolean> =>
      (await providers.edit({ developerId, consumerKey }, { sealedSecret: to }, { sealedSecret: from })) !== null,
  }
}

function createProviders({ providers }: KeyedCollections) {
  return {
    put: (provider: OAuthProviderRecord) => providers.put(provider),
    get: (developerId: string, consumerKey: string) => providers.find({ developerId, consumerKey }),
    list: (developerId: string) => providers.list({ developerId }, { by: ['createdAt', 'consumerKey'] }),
    remove: async (developerId: string, consumerKey: string) =>
      (await providers.remove({ developerId, consumerKey })) === 1,
  }
}

function createCalls({ calls }: KeyedCollections) {
  return {
    append: (rows: readonly CallLogRecord[]) => calls.insertMissing(rows),
    /** Newest first. */
    list: ({ from, until, statusFrom, statusTo, before, ...fields }: CallLogQuery, page: Page) => {
      const where = { ...fields, at: { from, until }, status: { from: statusFrom, until: statusTo } }
      return calls.list(where, { by: ['at', 'id'], descending: true, behind: before, ...page })
    },
    expire: (before: number, limit: number) => calls.expire('at', before, limit),
  }
}

/** A token goes by itself 30 days after it has expired, or some time later. */
function createTokens({ tokens }: KeyedCollections) {
  return {
    /** `not_found` when it is for a user that is not there. */
    create: (token: ConnectTokenRecord) => tokens.insert(token),
    get: (developerId: string, token: string) => tokens.find({ token, developerId }),
    /** For the public wizard: by token alone. */
    find: (token: string) => tokens.find({ token }),
    /** Newest first, the newest thousand. */
    list: (developerId: string, filter: TokenFilter) =>
      tokens.list({ developerId, ...filter }, { by: ['createdAt', 'token'], descending: true, limit: tokensListed }),
    /** Marks used, once: answers null when it was used or expired already. */
    use: async (token: string, usedAt: number, userId: string, accountId: string) => {
      const stored = await tokens.find({ token })
      const used = stored && usedToken(stored, usedAt, userId, accountId)
      // a second use at the same time finds it used
      return used ? tokens.edit({ token }, { usedAt, userId, accountId }, { usedAt: null }) : null
    },
    remove: async (developerId: string, token: string) => (await tokens.remove({ token, developerId })) === 1,
  }
}

function createWebhooks({ webhooks, scans }: KeyedCollections, removeWebhook: (id: string) => Promise<void>) {
  return {
    /**
     * User level: `not_found` when the user is not there. `too_many`, with the limit's name in `details.limit`, when
     * there are as many as there may be. Of creations at the same time no more succeed than there is room for; MongoDB
     * may refuse one that had room.
     */
    create: (webhook: WebhookRecord, limits: WebhookLimits = noWebhookLimits) => {
      const { developerId, userId } = webhook
      return webhooks.insert(webhook, [
        { name: 'owner', where: { developerId, userId }, most: limits.owner },
        { name: 'developer', where: { developerId }, most: limits.developer },
      ])
    },
    get: (id: string) => webhooks.find({ id }),
    /** User level, oldest first. */
    listByUser: (userId: string) => webhooks.list({ userId }, byAge),
    /** Application level, oldest first. */
    listByDeveloper: (developerId: string) => webhooks.list({ developerId, userId: null }, byAge),
    /** Keyset page over all webhooks by id, for the start of the engine. */
    page: (afterId: string | null, limit: number) =>
      webhooks.list({}, { by: ['id'], behind: { id: afterId ?? '' }, limit }),
    edit: (id: string, patch: Partial<Omit<WebhookRecord, 'id' | 'developerId' | 'userId' | 'createdAt'>>) =>
      webhooks.edit({ id }, patch),
    /** The rows first. Here and below: of a webhook that went meanwhile nothing is left, as it is never sent. */
    recordHealth: async (id: string, health: WebhookHealth, outbox: readonly OutboxRecord[]) => {
      if ((await webhooks.edit({ id }, { health }, {}, outbox)) === null) await removeWebhook(id)
    },
    remove: removeWebhook,
    scan: (webhookId: string, accountId: string) => scans.find({ webhookId, accountId }),
    /** Enqueues the rows, then moves the scan on. */
    saveScan: async (scan: HistoricalScan, outbox: readonly OutboxRecord[]) => {
      await scans.put(scan, outbox)
      if ((await webhooks.find({ id: scan.webhookId })) === null) await removeWebhook(scan.webhookId)
    },
  }
}

export function userBasics({ users }: KeyedCollections) {
  return {
    create: (user: UserRecord) => users.insert(user),
    get: (developerId: string, id: string) => users.find({ id, developerId }),
    count: (developerId: string) => users.count({ developerId }),
    edit: (
      id: string,
      patch: Partial<Pick<UserRecord, 'firstName' | 'lastName' | 'emailAddresses' | 'statusCallbackUrl'>>,
    ) => users.edit({ id }, patch),
    /** Of these ids, those whose user is there. */
    existing: async (ids: readonly string[]) => (await users.list({ id: ids }, { by: ['id'] })).map(({ id }) => id),
  }
}

export function accountBasics({ accounts }: KeyedCollections) {
  return {
    /** `conflict` when the user has the label already, `not_found` when the user is not there. */
    create: (account: AccountRecord) => accounts.insert(account),
    get: (id: string) => accounts.find({ id }),
    byLabel: (userId: string, label: string) => accounts.find({ userId, label }),
    /** Oldest first: index 0 is label `0`. */
    listByUser: (userId: string, { status }: { readonly status?: AccountStatus } = {}) =>
      accounts.list({ userId, status }, byAge),
    /** Of these ids, those that are there, in order of their ids. */
    several: (ids: readonly string[]) => accounts.list({ id: ids }, { by: ['id'] }),
    /** Accounts of several users at once, oldest first (for lists of users). */
    listByUsers: (userIds: readonly string[]) => accounts.list({ userId: userIds }, byAge),
    /** Keyset page over all accounts by id, for the start of the engine. */
    page: (afterId: string | null, limit: number) =>
      accounts.list({}, { by: ['id'], behind: { id: afterId ?? '' }, limit }),
    /** With an epoch only by the owner that has it: `lease_lost` otherwise. */
    edit: async (id: string, patch: AccountPatch, epoch?: number) => {
      const edited = await accounts.edit({ id }, patch, epoch === undefined ? {} : { epoch })
      if (edited === null && epoch !== undefined && (await accounts.find({ id }))) throw leaseLost(id, epoch)
      return edited
    },
  }
}

export function changeReads({ changes }: KeyedCollections) {
  const by = ['seq'] as const
  return {
    get: (accountId: string, id: string) => changes.find({ id, accountId }),
    /** seq > after, ascending. */
    since: (accountId: string, after: number, limit: number) =>
      changes.list({ accountId }, { by, behind: { seq: after }, limit }),
    /** Changes of one message, oldest first (for explain). */
    ofMessage: (accountId: string, messageId: string) => changes.list({ accountId, messageId }, { by }),
  }
}

export function folderBasics({ folders }: KeyedCollections) {
  return {
    byPath: (accountId: string, path: string) => folders.find({ id: folderId(accountId, path), accountId }),
    setCounts: async (id: string, { messages, unseen }: { readonly messages: number; readonly unseen: number }) => {
      await folders.edit({ id }, { messages, unseen })
    },
    setParked: async (id: string, failures: number, parkedUntil: number | null) => {
      await folders.edit({ id }, { failures, parkedUntil })
    },
  }
}

const contactFields = {
  total_count: 'totalCount',
  direct_count: 'directCount',
  indirect_count: 'indirectCount',
} as const

export function contactReads({ contacts }: KeyedCollections) {
  return {
    get: async (userId: string, id: string) => {
      const contact = await contacts.find({ id, userId })
      return contact && plainContact(contact)
    },
    list: async (userId: string, sortBy: ContactSort, order: 'asc' | 'desc', page: Page) => {
      const by = [contactFields[sortBy], 'id'] as const
      return (await contacts.list({ userId }, { by, descending: order === 'desc', ...page })).map(plainContact)
    },
  }
}

const attachmentStep = 100

type MessageList = (accountId: string, query: MessageQuery, page: Page) => Promise<readonly MessageRecord[]>

export function attachmentReads(list: MessageList) {
  return {
    /** Attachments of live messages, for 2.0 file lists: newest message first. */
    attachments: async (accountId: string, query: MessageQuery, { limit, offset }: Page) => {
      const found: { readonly message: MessageRecord; readonly attachment: AttachmentRecord }[] = []
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
