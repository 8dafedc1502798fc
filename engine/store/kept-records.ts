/**
 * Keeps users, their email accounts, the folders of accounts and totals of mail in memory by id: most API calls begin
 * with them. Every write of this process passes here and forgets the records that the write may change, both before and
 * after: a read in between may have seen the former record. Records of a user whose slot another node owns are not
 * kept, since that node writes them.
 */
import { LRUCache } from 'lru-cache'
import type { MailTotals, Store, SyncBatch } from './port.ts'
import type { AccountRecord, FolderRecord, UserRecord } from './records.ts'

/** The most records of each kind in memory. */
const most = { users: 10_000, accounts: 20_000, folders: 50_000, totals: 20_000 }

/** Answers by key. Past `mostRecords` the least recently used are dropped. A pending read counts as one record. */
class Kept<T> extends LRUCache<string, Promise<T>> {
  readonly #sizeOf: (value: T) => number

  constructor(mostRecords: number, sizeOf: (value: T) => number) {
    super({ maxSize: mostRecords })
    this.#sizeOf = sizeOf
  }

  answer(key: string, read: () => Promise<T>): Promise<T> {
    const known = this.get(key)
    if (known !== undefined) return known
    const answer = read()
    this.set(key, answer, { size: 1 })
    const isKept = (): boolean => this.peek(key) === answer
    answer.then(
      (value) => {
        if (!isKept()) return
        // the cache takes the size of a value only when it adds the value
        this.delete(key)
        this.set(key, answer, { size: Math.max(1, this.#sizeOf(value)) })
      },
      () => {
        if (isKept()) this.delete(key)
      },
    )
    return answer
  }
}

/** Index of kept records: id → owner. The records of an owner whose id is dropped could not be found to forget them. */
function createIndex(mostIds: number, dropped: (owner: string) => void): LRUCache<string, string> {
  return new LRUCache({
    maxSize: mostIds,
    sizeCalculation: () => 1,
    dispose: (owner, _, reason) => {
      if (reason === 'evict') dropped(owner)
    },
  })
}

/** The most accounts with a version of their own. */
const mostVersions = 100_000

export type KeptStore = ReturnType<typeof keepRecords>

/** The store, with users, lists of accounts and folders, and totals of accounts answered from memory. */
export function keepRecords(store: Store) {
  const kept = new KeptRecords(store.nodes)
  return {
    ...store,
    /** Called when slots have changed hands, or another node has written records of this node's users. */
    forgetKept: () => kept.forgetAll(),
    users: keptUsers(store, kept),
    accounts: keptAccounts(store, kept),
    folders: keptFolders(store, kept),
    messages: {
      ...store.messages,
      /**
       * Changes with each write to the account's mail; an answer from the store is valid while the version stays the
       * same. NaN during a write: the store may show any state from before to after the write.
       */
      version: (accountId: string) => kept.version(accountId),
      totals: (accountId: string) => kept.ofMail(kept.totals, accountId, () => store.messages.totals(accountId)),
    },
    sync: {
      ...store.sync,
      async apply(batch: SyncBatch) {
        kept.writeMail(batch.accountId, true)
        // a batch whose answer was lost may be written
        let turned = true
        try {
          const applied = await store.sync.apply(batch)
          turned = applied.turned
          return applied
        } finally {
          if (turned) kept.forgetAccount(batch.accountId)
          kept.writeMail(batch.accountId, false)
        }
      },
      ...writes(store.sync, ['replaceMailbox', 'forgetPlacements'], (id, begun) => {
        kept.forgetAccount(id)
        kept.writeMail(id, begun)
      }),
    },
    ...writes(store, ['tidy'], () => kept.forgetAll()),
  }
}

class KeptRecords {
  readonly users = new Kept<UserRecord | null>(most.users, () => 1)
  /** By user id, oldest first. */
  readonly accounts = new Kept<AccountRecord[]>(most.accounts, ({ length }) => length)
  /** By account id. */
  readonly folders = new Kept<FolderRecord[]>(most.folders, ({ length }) => length)
  readonly totals = new Kept<MailTotals>(most.totals, () => 1)
  /** Account id → user id. */
  readonly userOf = createIndex(2 * most.accounts, (userId) => this.accounts.delete(userId))
  /** Folder id → account id. */
  readonly accountOf = createIndex(2 * most.folders, (accountId) => this.forgetMail(accountId))
  readonly #versions = new Map<string, number>()
  /** How many writes to the account's mail are running. */
  readonly #writing = new Map<string, number>()
  #count = 0
  /** The version of accounts that are not in `#versions`. */
  #oldestVersion = 0
  readonly #nodes: Store['nodes']

  constructor(nodes: Store['nodes']) {
    this.#nodes = nodes
  }

  /** Whether this process writes all records of the user. */
  isOwn(userId: string): boolean {
    return this.#nodes.owns(userId)
  }

  /** An account whose user is unknown is this process's only if no other process owns a slot. */
  #isOwnMail(accountId: string): boolean {
    const userId = this.userOf.get(accountId)
    return userId === undefined ? this.#nodes.ownsAll() : this.isOwn(userId)
  }

  version(accountId: string): number {
    return this.#writing.has(accountId) || !this.#isOwnMail(accountId)
      ? Number.NaN
      : (this.#versions.get(accountId) ?? this.#oldestVersion)
  }

  /** Reads the store during a write to the account's mail: the answer may be a state between two steps of the write. */
  ofMail<T>(answers: Kept<T>, accountId: string, read: () => Promise<T>): Promise<T> {
    return this.#writing.has(accountId) || !this.#isOwnMail(accountId) ? read() : answers.answer(accountId, read)
  }

  writeMail(accountId: string, begun: boolean): void {
    const writing = (this.#writing.get(accountId) ?? 0) + (begun ? 1 : -1)
    if (writing > 0) this.#writing.set(accountId, writing)
    else this.#writing.delete(accountId)
    this.forgetMail(accountId)
  }

  forgetUser(id: string): void {
    this.users.delete(id)
    this.accounts.delete(id)
  }

  forgetAccount(id: string): void {
    const userId = this.userOf.get(id)
    if (userId !== undefined) this.accounts.delete(userId)
  }

  forgetMail(accountId: string): void {
    this.folders.delete(accountId)
    this.totals.delete(accountId)
    this.#versions.set(accountId, (this.#count += 1))
    if (this.#versions.size > mostVersions) this.#forgetVersions()
  }

  forgetMailbox(accountId: string): void {
    this.forgetAccount(accountId)
    this.forgetMail(accountId)
  }

  forgetFolder(id: string): void {
    const accountId = this.accountOf.get(id)
    if (accountId !== undefined) this.forgetMail(accountId)
  }

  forgetAll(): void {
    for (const kept of [this.users, this.accounts, this.folders, this.totals]) kept.clear()
    this.#forgetVersions()
  }

  #forgetVersions(): void {
    this.#versions.clear()
    this.#oldestVersion = this.#count += 1
  }
}

function keptUsers({ users }: Store, kept: KeptRecords): Store['users'] {
  return {
    ...users,
    ...writes(users, ['edit', 'editAddresses', 'addAddress', 'remove', 'undoCreate'], (id) => kept.forgetUser(id)),
    ...writes(users, ['create', 'createWithAccount'], ({ id }) => kept.forgetUser(id)),
    async get(developerId, id) {
      if (!kept.isOwn(id)) return users.get(developerId, id)
      const user = await kept.users.answer(id, () => users.get(developerId, id))
      // another developer may ask for the user, and own it
      if (user === null) kept.users.delete(id)
      return user?.developerId === developerId ? user : null
    },
  }
}

function keptAccounts({ accounts }: Store, kept: KeptRecords): Store['accounts'] {
  const listByUser: Store['accounts']['listByUser'] = async (userId, filter) => {
    const read = async (): Promise<AccountRecord[]> => {
      const listed = await accounts.listByUser(userId)
      for (const { id } of listed) kept.userOf.set(id, userId)
      return listed
    }
    const all = await (kept.isOwn(userId) ? kept.accounts.answer(userId, read) : read())
    const status = filter?.status
    return status === undefined ? all : all.filter((account) => account.status === status)
  }
  return {
    ...accounts,
    ...writes(accounts, ['edit'], (id) => kept.forgetAccount(id)),
    ...writes(accounts, ['claim', 'remove'], (id) => kept.forgetMailbox(id)),
    ...writes(accounts, ['transition'], ({ accountId }) => kept.forgetAccount(accountId)),
    ...writes(accounts, ['create'], ({ userId }) => kept.forgetUser(userId)),
    listByUser,
  }
}

function keptFolders({ folders }: Store, kept: KeptRecords): Store['folders'] {
  return {
    ...folders,
    ...writes(folders, ['reconcile'], (accountId, begun) => {
      kept.forgetAccount(accountId)
      kept.writeMail(accountId, begun)
    }),
    ...writes(folders, ['setReported', 'setParked'], (id) => kept.forgetFolder(id)),
    list: (accountId) =>
      kept.ofMail(kept.folders, accountId, async () => {
        const listed = await folders.list(accountId)
        for (const { id } of listed) kept.accountOf.set(id, accountId)
        return listed
      }),
  }
}

/** Wraps methods that write: `forget` gets the first argument before (`begun`) and after the write. */
function writes<T extends object, K extends keyof T>(
  part: T,
  names: readonly K[],
  forget: (first: FirstOf<T[K]>, begun: boolean) => void,
): Pick<T, K> {
  const wrapped = names.map((name) => {
    const method = part[name] as (...args: readonly unknown[]) => Promise<unknown>
    const writing = async (...args: readonly unknown[]): Promise<unknown> => {
      forget(args[0] as FirstOf<T[K]>, true)
      try {
        return await method(...args)
      } finally {
        forget(args[0] as FirstOf<T[K]>, false)
      }
    }
    return [name, writing] as const
  })
  return Object.fromEntries(wrapped) as unknown as Pick<T, K>
}

type FirstOf<M> = M extends (first: infer A, ...rest: never[]) => unknown ? A : never
