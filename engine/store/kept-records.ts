/**
 * Users, their email accounts and the folders of accounts, kept in memory by id: most API calls begin with them. Every
 * write of this process passes here and takes away what it may change, when it begins and again when it has ended: a
 * read that began in between may have seen the record as it was. Of a user whose slot another node owns nothing is
 * kept: that node writes it.
 */
import type { MailTotals, Store } from './port.ts'
import type { AccountRecord, FolderRecord, UserRecord } from './records.ts'

/** Records of each kind that are kept at most; the oldest entries go first. */
const most = { users: 10_000, accounts: 20_000, folders: 50_000, totals: 20_000 }

/** Answers by key, no more than `most` records in all. An answer that is under way is kept too, and forgotten alike. */
class Kept<T> {
  readonly #most: number
  readonly #sizeOf: (value: T) => number
  readonly #entries = new Map<string, { readonly answer: Promise<T>; size: number }>()
  #size = 0

  constructor(mostRecords: number, sizeOf: (value: T) => number) {
    this.#most = mostRecords
    this.#sizeOf = sizeOf
  }

  get(key: string, read: () => Promise<T>): Promise<T> {
    const known = this.#entries.get(key)
    if (known !== undefined) return known.answer
    const entry = { answer: read(), size: 1 }
    this.#entries.set(key, entry)
    this.#size += 1
    entry.answer.then(
      (value) => {
        if (this.#entries.get(key) !== entry) return
        const size = this.#sizeOf(value)
        this.#size += size - entry.size
        entry.size = size
        this.#makeRoom()
      },
      () => {
        if (this.#entries.get(key) === entry) this.forget(key)
      },
    )
    return entry.answer
  }

  forget(key: string): void {
    this.#size -= this.#entries.get(key)?.size ?? 0
    this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
    this.#size = 0
  }

  #makeRoom(): void {
    for (const key of this.#entries.keys()) {
      if (this.#size <= this.#most) return
      this.forget(key)
    }
  }
}

/** Accounts written since the start of the process whose version is known by name. */
const mostVersions = 100_000

export interface KeptStore extends Store {
  /** Slots have changed hands, or another node has written for this one. */
  readonly forgetKept: () => void
  readonly messages: Store['messages'] & {
    /**
     * Another number after each write to the account's mail: an answer made before it is good while it is the same. Not
     * a number while mail is being written: the store may show the mail before, between, and after.
     */
    version(accountId: string): number
  }
}

/** The same store, whose users, lists of accounts and of folders, and totals of accounts are answered from memory. */
export function keepRecords(store: Store): KeptStore {
  const kept = new KeptRecords(store.nodes)
  return {
    ...store,
    forgetKept: () => kept.forgetAll(),
    users: keptUsers(store, kept),
    accounts: keptAccounts(store, kept),
    folders: keptFolders(store, kept),
    messages: {
      ...store.messages,
      version: (accountId) => kept.version(accountId),
      totals: (accountId) => kept.ofMail(kept.totals, accountId, () => store.messages.totals(accountId)),
    },
    sync: {
      ...store.sync,
      async apply(batch) {
        kept.writeMail(batch.accountId, true)
        try {
          const applied = await store.sync.apply(batch)
          if (applied.turned) kept.forgetAccount(batch.accountId)
          return applied
        } catch (error) {
          // Its answer may be lost, and it written.
          kept.forgetAccount(batch.accountId)
          throw error
        } finally {
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
  /** Of a user, oldest first. */
  readonly accounts = new Kept<AccountRecord[]>(most.accounts, ({ length }) => length)
  readonly folders = new Kept<FolderRecord[]>(most.folders, ({ length }) => length)
  readonly totals = new Kept<MailTotals>(most.totals, () => 1)
  /** Of what is kept: account id → user id, folder id → account id. */
  readonly userOf = createIndex(most.accounts, (userId) => this.accounts.forget(userId))
  readonly accountOf = createIndex(most.folders, (accountId) => this.forgetMail(accountId))
  readonly #versions = new Map<string, number>()
  /** Writes under way to the mail of an account. */
  readonly #writing = new Map<string, number>()
  #count = 0
  /** Of every account without a version of its own. */
  #oldestVersion = 0
  readonly #nodes: Store['nodes']

  constructor(nodes: Store['nodes']) {
    this.#nodes = nodes
  }

  /** Whether this process writes all of the user. */
  isOwn(userId: string): boolean {
    return this.#nodes.owns(userId)
  }

  /** Of an account whose user is not known nothing is kept where others may write it. */
  #isOwnMail(accountId: string): boolean {
    const userId = this.userOf.get(accountId)
    return userId === undefined ? this.#nodes.ownsAll() : this.isOwn(userId)
  }

  version(accountId: string): number {
    return this.#writing.has(accountId) || !this.#isOwnMail(accountId)
      ? Number.NaN
      : (this.#versions.get(accountId) ?? this.#oldestVersion)
  }

  /** While mail is being written, the store is asked: a read may see what is there between two steps of the write. */
  ofMail<T>(answers: Kept<T>, accountId: string, read: () => Promise<T>): Promise<T> {
    return this.#writing.has(accountId) || !this.#isOwnMail(accountId) ? read() : answers.get(accountId, read)
  }

  writeMail(accountId: string, begun: boolean): void {
    const writing = (this.#writing.get(accountId) ?? 0) + (begun ? 1 : -1)
    if (writing > 0) this.#writing.set(accountId, writing)
    else this.#writing.delete(accountId)
    this.forgetMail(accountId)
  }

  forgetUser(id: string): void {
    this.users.forget(id)
    this.accounts.forget(id)
  }

  forgetAccount(id: string): void {
    const userId = this.userOf.get(id)
    if (userId !== undefined) this.accounts.forget(userId)
  }

  forgetMail(accountId: string): void {
    this.folders.forget(accountId)
    this.totals.forget(accountId)
    this.#versions.delete(accountId)
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
      const user = await kept.users.get(id, () => users.get(developerId, id))
      // Nothing was found for this developer: that says nothing to another one.
      if (user === null) kept.users.forget(id)
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
    const all = await (kept.isOwn(userId) ? kept.accounts.get(userId, read) : read())
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
    byLabel: async (userId, label) => (await listByUser(userId)).find((account) => account.label === label) ?? null,
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

/** Methods that write; `forget` takes what the write may change, by its first argument, before and after it. */
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

/** A name that is let go takes along what is kept of its owner: nobody could find that again to forget it. */
function createIndex(mostRecords: number, letGo: (owner: string) => void) {
  const owners = new Map<string, string>()
  return {
    get: (id: string): string | undefined => owners.get(id),
    set(id: string, owner: string): void {
      owners.delete(id)
      owners.set(id, owner)
      if (owners.size <= 2 * mostRecords) return
      const [oldest] = owners
      if (oldest === undefined) return
      owners.delete(oldest[0])
      letGo(oldest[1])
    },
  }
}
