/**
 * The methods of the port that are the same in both stores, as they need only keyed collections (keyed.ts): whole
 * aggregates, and parts (…Basics, …Reads) of aggregates that each store completes.
 */
import { isDeepStrictEqual } from 'node:util'
import { yieldToLoop } from '../scheduling.ts'
import { folderId } from './ids.ts'
import type { Keyed, Kinds } from './keyed.ts'
import type { AccountPatch, CallLogQuery, MessageQuery, Page } from './port-types.ts'
import type { StatusTransition, TokenFilter, WebhookLimits } from './port-types.ts'
import type { FolderRecord, MessageRecord } from './mail.ts'
import type { AccountRecord, AccountStatus, AuditRecord, CallLogRecord, ConnectTokenRecord } from './records.ts'
import type { DeveloperRecord, HistoricalScan, OAuthProviderRecord, OperatorRecord, OutboxRecord } from './records.ts'
import type { SettingRecord, TokenClaim, UserRecord, WebhookHealth, WebhookRecord } from './records.ts'
import { isUsable, leaseLost, readAnew } from './rows.ts'

export type KeyedCollections = { readonly [K in keyof Kinds]: Keyed<Kinds[K]> }

/** Oldest first. */
export const byAge = { by: ['createdAt', 'id'] } as const

export function createAggregates(keyed: KeyedCollections, removeWebhook: (id: string) => Promise<void>) {
  return {
    developers: createDevelopers(keyed),
    operators: createOperators(keyed),
    settings: createSettings(keyed),
    sealed: createSealed(keyed),
    providers: createProviders(keyed),
    calls: createCalls(keyed),
    audit: createAudit(keyed),
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
    /** The oldest; null in a new store. */
    first: async () => (await developers.list({}, { by: ['id'], limit: 1 }))[0] ?? null,
    /** Oldest first. */
    list: (page: Page) => developers.list({}, { by: ['id'], ...page }),
    /** Keyset page by id. */
    page: (afterId: string | null, limit: number) =>
      developers.list({}, { by: ['id'], behind: { id: afterId ?? '' }, limit }),
    /** The known ones of `ids`, by id. */
    several: (ids: readonly string[]) => developers.list({ id: ids }, { by: ['id'] }),
    edit: (id: string, patch: Partial<Omit<DeveloperRecord, 'id' | 'apiKey'>>) => developers.edit({ id }, patch),
  }
}

/** The console's password and sessions, and the tokens of the admin API. */
function createOperators({ operators }: KeyedCollections) {
  return {
    put: (operator: OperatorRecord) => operators.put(operator),
    /** false = the id exists. */
    add: async (operator: OperatorRecord) => (await operators.insertMissing([operator])).length === 1,
    get: (id: string) => operators.find({ id }),
    /** Oldest first. */
    list: () => operators.list({}, byAge),
    edit: (id: string, patch: Pick<OperatorRecord, 'revokedAt'>) => operators.edit({ id }, patch),
    remove: (ids: readonly string[]) => operators.remove({ id: ids }),
  }
}

function createSettings({ settings }: KeyedCollections) {
  return {
    put: (setting: SettingRecord) => settings.put(setting),
    /** By id. */
    list: () => settings.list({}, { by: ['id'] }),
    /** false = no such setting. */
    remove: async (id: string) => (await settings.remove({ id })) === 1,
  }
}

/** Replaces a sealed value; false = the value has changed, or its record is gone. */
function createSealed({ developers, accounts, webhooks, providers }: KeyedCollections) {
  const isThere = async (edited: Promise<unknown>): Promise<boolean> => (await edited) !== null
  return {
    developer: (id: string, from: string, to: string) =>
      isThere(developers.edit({ id }, { sealedSecret: to }, { sealedSecret: from })),
    account: (id: string, from: string, to: string) =>
      isThere(accounts.edit({ id }, { sealedCredential: to }, { sealedCredential: from })),
    webhook: (id: string, from: string, to: string) =>
      isThere(webhooks.edit({ id }, { sealedSecrets: to }, { sealedSecrets: from })),
    provider: (developerId: string, consumerKey: string, from: string, to: string) =>
      isThere(providers.edit({ developerId, consumerKey }, { sealedSecret: to }, { sealedSecret: from })),
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
    append: (rows: readonly CallLogRecord[]): Promise<unknown> => calls.insertMissing(rows),
    /** Newest first. */
    list: ({ from, until, statusFrom, statusTo, before, ...fields }: CallLogQuery, page: Page) => {
      const where = { ...fields, at: { from, until }, status: { from: statusFrom, until: statusTo } }
      return calls.list(where, { by: ['at', 'id'], descending: true, behind: before, ...page })
    },
    expire: (before: number, limit: number) => calls.expire('at', before, limit),
  }
}

function createAudit({ audit }: KeyedCollections) {
  return {
    append: (record: AuditRecord) => audit.insert(record),
    /** Newest first. `target`: only records with one of these targets. */
    list: (target: readonly string[] | undefined, page: Page) =>
      audit.list({ target }, { by: ['at', 'id'], descending: true, ...page }),
    expire: (before: number, limit: number) => audit.expire('at', before, limit),
  }
}

/** Expired tokens are removed after 30 days or more. */
function createTokens({ tokens }: KeyedCollections) {
  type Patch = Partial<ConnectTokenRecord>
  const editUsable = async (token: string, at: number, patch: Patch, expected: Patch) => {
    const stored = await tokens.find({ token })
    return stored && isUsable(stored, at) ? tokens.edit({ token }, patch, expected) : null
  }
  return {
    /** `not_found` when the token's user does not exist. */
    create: (token: ConnectTokenRecord) => tokens.insert(token),
    get: (developerId: string, token: string) => tokens.find({ token, developerId }),
    /** For the public wizard, which does not know the developer. */
    find: (token: string) => tokens.find({ token }),
    /** Newest first. `behind`: the last token of the page before. */
    list: (developerId: string, filter: TokenFilter, limit: number, behind?: ConnectTokenRecord) =>
      tokens.list({ developerId, ...filter }, { by: ['createdAt', 'token'], descending: true, limit, behind }),
    count: (developerId: string) => tokens.count({ developerId }),
    /** Counts a try; null = there were `most` tries, or no such token. Tries of one token are counted one by one. */
    tried: async (token: string, most: number) => {
      const { tries = 0 } = (await tokens.find({ token })) ?? { tries: most }
      return tries < most ? tokens.edit({ token }, { tries: tries + 1 }) : null
    },
    /** Claims the token before a user or an account is created; null = claimed, used, expired or gone. */
    claim: (token: string, claim: TokenClaim) => editUsable(token, claim.at, { claim }, { usedAt: null, claim: null }),
    /** Ends a claim that has created nothing. */
    release: async (token: string): Promise<void> => {
      await tokens.edit({ token }, { claim: null }, { usedAt: null })
    },
    /** Marks the token as used, once; null = used, expired or gone. */
    use: (token: string, usedAt: number, userId: string, accountId: string) =>
      editUsable(token, usedAt, { usedAt, userId, accountId }, { usedAt: null }),
    remove: async (developerId: string, token: string) => (await tokens.remove({ token, developerId })) === 1,
  }
}

function createWebhooks({ webhooks, scans }: KeyedCollections, removeWebhook: (id: string) => Promise<void>) {
  return {
    /**
     * `not_found` when the webhook's user does not exist. `too_many` at a limit, whose name is in `details.limit`:
     * concurrent creations never exceed it; with MongoDB, one that would fit may be refused.
     */
    create: (webhook: WebhookRecord, limits: WebhookLimits = { owner: 0, developer: 0 }) => {
      const { developerId, userId } = webhook
      return webhooks.insert(webhook, [
        { name: 'owner', where: { developerId, userId }, most: limits.owner },
        { name: 'developer', where: { developerId }, most: limits.developer },
      ])
    },
    get: (id: string) => webhooks.find({ id }),
    several: (ids: readonly string[]) => webhooks.list({ id: ids }, { by: ['id'] }),
    /** User level, oldest first. */
    listByUser: (userId: string) => webhooks.list({ userId }, byAge),
    /** Application level, oldest first. */
    listByDeveloper: (developerId: string) => webhooks.list({ developerId, userId: null }, byAge),
    /** Keyset page by id, of all slots or of `slots`: for the start of the engine. */
    page: (afterId: string | null, limit: number, slots?: readonly number[]) =>
      webhooks.list({}, { by: ['id'], behind: { id: afterId ?? '' }, limit, slots }),
    edit: (id: string, patch: Partial<Omit<WebhookRecord, 'id' | 'developerId' | 'userId' | 'createdAt'>>) =>
      webhooks.edit({ id }, patch),
    /** Queues the rows before the health is stored. `from`: the expected health; false = the stored health differs. */
    recordHealth: async (id: string, health: WebhookHealth, outbox: readonly OutboxRecord[], from?: WebhookHealth) =>
      (await webhooks.edit({ id }, { health }, from === undefined ? {} : { health: from }, outbox)) !== null,
    remove: removeWebhook,
    scan: (webhookId: string, accountId: string) => scans.find({ webhookId, accountId }),
    saveScan: (scan: HistoricalScan, outbox: readonly OutboxRecord[]) => scans.put(scan, outbox),
  }
}

type Addresses = readonly string[]

export function userBasics({ users }: KeyedCollections) {
  /** Compare and set: repeats the change when another writer was faster. */
  const editAddresses = async (id: string, change: (list: Addresses) => Addresses): Promise<UserRecord | null> => {
    for (;;) {
      const stored = await users.find({ id })
      if (stored === null) return null
      const emailAddresses = change(stored.emailAddresses)
      if (isDeepStrictEqual(emailAddresses, stored.emailAddresses)) return stored
      const edited = await users.edit({ id }, { emailAddresses }, { emailAddresses: stored.emailAddresses })
      if (edited !== null) return edited
    }
  }
  return {
    /** `change` is called again after a concurrent change. null = no such user. */
    editAddresses,
    /** Appends the address if it is missing. */
    addAddress: (id: string, email: string) =>
      editAddresses(id, (list) => (list.includes(email) ? list : [...list, email])),
    create: (user: UserRecord) => users.insert(user),
    get: (developerId: string, id: string) => users.find({ id, developerId }),
    count: (developerId: string) => users.count({ developerId }),
    edit: (
      id: string,
      patch: Partial<Pick<UserRecord, 'firstName' | 'lastName' | 'emailAddresses' | 'statusCallbackUrl'>>,
    ) => users.edit({ id }, patch),
    /** The known ones of `ids`, by id. */
    several: (ids: readonly string[]) => users.list({ id: ids }, { by: ['id'] }),
  }
}

export function accountBasics({ accounts }: KeyedCollections) {
  return {
    /** `conflict` when the user has the label, `not_found` when the user does not exist. */
    create: (account: AccountRecord) => accounts.insert(account),
    get: (id: string) => accounts.find({ id }),
    /** Oldest first: index 0 is label `0`. */
    listByUser: (userId: string, { status }: { readonly status?: AccountStatus } = {}) =>
      accounts.list({ userId, status }, byAge),
    /** The known ones of `ids`, by id. */
    several: (ids: readonly string[]) => accounts.list({ id: ids }, { by: ['id'] }),
    listByUsers: (userIds: readonly string[]) => accounts.list({ userId: userIds }, byAge),
    /** Keyset page by id, of all slots or of `slots`: for the start of the engine. */
    page: (afterId: string | null, limit: number, slots?: readonly number[]) =>
      accounts.list({}, { by: ['id'], behind: { id: afterId ?? '' }, limit, slots }),
    /** `lease_lost` when the account has another epoch than `epoch`. */
    edit: async (id: string, patch: AccountPatch, epoch?: number) => {
      const edited = await accounts.edit({ id }, patch, epoch === undefined ? {} : { epoch })
      if (edited === null && epoch !== undefined && (await accounts.find({ id }))) throw leaseLost(id, epoch)
      return edited
    },
    /** Stores a transition OK↔DISABLED and its callback, once. `lease_lost` when the epoch is stale. */
    transition: async (step: StatusTransition) => {
      const { accountId: id, epoch, fromVersion, status, statusMessage, resume, outbox } = step
      const stored = await accounts.find({ id })
      if (stored === null) return null
      if (stored.epoch !== epoch) throw leaseLost(id, epoch)
      if (stored.statusVersion !== fromVersion) return null
      const patch = { status, statusMessage, statusVersion: fromVersion + 1, resume }
      const after = await accounts.edit({ id }, patch, { epoch, statusVersion: fromVersion }, outbox)
      if (after !== null) return after
      const winner = await accounts.find({ id })
      if (winner !== null && winner.epoch !== epoch) throw leaseLost(id, epoch)
      return null
    },
  }
}

/** `leaveSome` removes the placements of some messages of the former mailbox; false = none was left. */
export function mailboxReplacement(
  { accounts, folders }: KeyedCollections,
  leaveSome: (accountId: string, epoch: number) => Promise<boolean>,
) {
  return {
    /**
     * Connects the account to another mailbox (`patch` = its settings), which is read like a new one (initialSyncAt
     * null). Removes folders, cursors and placements without a report. Identities of messages stay, so that no message
     * is reported twice; unknown mail received after `since` is reported. The settings are stored last: after a crash,
     * the account has the former mailbox and a part of its folders. `lease_lost` when another owner claims the account;
     * null = no such account.
     */
    replaceMailbox: async (id: string, patch: AccountPatch, since: number) => {
      const stored = await accounts.find({ id })
      if (stored === null) return null
      // a new epoch: a running writer of the former mailbox loses its lease
      const anew = readAnew(stored, since)
      const { epoch } = anew
      if (!(await accounts.edit({ id }, anew, { epoch: stored.epoch }))) throw leaseLost(id, stored.epoch)
      await folders.remove({ accountId: id })
      while (await leaveSome(id, epoch));
      const edited = await accounts.edit({ id }, patch, { epoch })
      if (edited === null) throw leaseLost(id, epoch)
      return edited
    },
  }
}

export function outboxBasics({ outbox }: KeyedCollections) {
  return {
    /** Inserts rows with new ids. Returns the inserted rows. */
    enqueue: (rows: readonly OutboxRecord[]) => outbox.insertMissing(rows),
    get: (id: string) => outbox.find({ id }),
    /** Removes rows that finished before `before`. Returns their number. */
    expire: (before: number, limit: number) => outbox.expire('finishedAt', before, limit),
  }
}

export function folderBasics({ folders }: KeyedCollections) {
  return {
    byPath: (accountId: string, path: string) => folders.find({ id: folderId(accountId, path), accountId }),
    /** Stores the server's counts of a folder that is not complete. */
    setReported: async (id: string, { messages, unseen }: Pick<FolderRecord, 'messages' | 'unseen'>) => {
      await folders.edit({ id }, { messages, unseen })
    },
    setParked: async (id: string, failures: number, parkedUntil: number | null) => {
      await folders.edit({ id }, { failures, parkedUntil })
    },
  }
}

const pickStep = 100

type MessageList = (accountId: string, query: MessageQuery, page: Page) => Promise<readonly MessageRecord[]>

export function pickedReads(list: MessageList) {
  return {
    /**
     * For reads without an index: a page of the results of `pick`, called for each message in the order of the query.
     * Messages are read in steps (`step` = the messages of one), each from the last sentAt of the step before, so that
     * late steps cost no more than early ones.
     */
    picked: async <T>(
      accountId: string,
      query: MessageQuery,
      { limit, offset }: Page,
      pick: (message: MessageRecord, step: readonly MessageRecord[]) => readonly T[] | Promise<readonly T[]>,
    ): Promise<T[]> => {
      const found: T[] = []
      const end = query.order === 'asc' ? 'sentFrom' : 'sentUntil'
      for (let [rest, from, skip] = [query, 0, offset]; ;) {
        const messages = await list(accountId, rest, { limit: pickStep, offset: from })
        for (const message of messages) {
          await yieldToLoop()
          const picked = await pick(message, messages)
          found.push(...picked.slice(skip))
          skip = Math.max(0, skip - picked.length)
          if (found.length >= limit) return found.slice(0, limit)
        }
        const last = messages.at(-1)
        if (last === undefined || messages.length < pickStep) return found
        const { sentAt } = last
        from = (rest[end] === sentAt ? from : 0) + messages.filter((one) => one.sentAt === sentAt).length
        rest = { ...rest, [end]: sentAt }
      }
    },
  }
}
