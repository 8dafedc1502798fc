/** Users, found by age, by their own addresses and by those of their accounts. */
import type { KeyedCollections } from '../aggregates.ts'
import type { Page, UserFilter, UserStore } from '../port.ts'
import type { AccountStatus } from '../records.ts'
import { foldCase } from '../rows.ts'
import { orNull, shapes, type MongoContext, type UserDoc } from './documents.ts'
import { isDuplicate } from './errors.ts'
import { deadlineOf, insertOnce } from './keyed.ts'
import { removeAccount, removeUser } from './removal.ts'

export function createUsers(context: MongoContext, keyed: KeyedCollections): UserStore {
  const { users, accounts } = context.collections
  return {
    create: (user) => keyed.users.insert(user),
    createWithAccount: async (user, account) => {
      const deadline = deadlineOf(context)
      // The account first: without its user no list shows it, while a user without its account would be in every list.
      await insertOnce(accounts, shapes.accounts.doc(account), deadline)
      try {
        await insertOnce(users, shapes.users.doc(user), deadline)
      } catch (error) {
        // Why the user could not be stored is the answer, whatever the outcome of the removal. When the user may be
        // there, its account stays.
        if (isDuplicate(error)) await Promise.allSettled([accounts.deleteOne({ _id: account.id })])
        throw error
      }
    },
    undoCreate: async (id, accountId) => {
      await users.deleteOne({ _id: id })
      await removeAccount(context, accountId)
    },
    get: (developerId, id) => keyed.users.find({ id, developerId }),
    list: async (developerId, filter, page) =>
      (await findUsers(context, developerId, filter, page)).map(shapes.users.record),
    edit: (id, patch) => keyed.users.edit({ id }, patch),
    addAddress: async (id, email) => {
      const add = { $addToSet: { emailAddresses: email, addressKeys: foldCase(email) } }
      return orNull(await users.findOneAndUpdate({ _id: id }, add, { returnDocument: 'after' }), shapes.users.record)
    },
    existing: async (ids) => {
      const found = users.find({ _id: { $in: [...ids] } }, { ...context.read, projection: { _id: 1 } })
      return (await found.toArray()).map(({ _id }) => _id)
    },
    remove: (id) => removeUser(context, id),
  }
}

/*
 * Lists of users. What only their accounts know (an address, a status) is asked of the accounts first, by an index; the
 * users they name are put in order here, by keys alone, so that the server sorts nothing.
 */

const userOrder = { createdAt: 1, _id: 1 } as const

/** Ids in one request, and users looked at together. */
const step = 200
/** Accounts in a status, up to which they are few: past it the users are walked in order, and a page is full soon. */
const few = 1000

/** What the order is made of. */
type Key = Pick<UserDoc, '_id' | 'createdAt'>

async function findUsers(
  context: MongoContext,
  developerId: string,
  { email, status }: UserFilter,
  page: Page,
): Promise<UserDoc[]> {
  const { limit, offset } = page
  if (limit <= 0) return []
  if (email !== undefined) {
    const found = await withAddress(context, developerId, foldCase(email))
    const keys = status === undefined ? found : await withStatus(context, developerId, found, status)
    return docsOf(context, keys.slice(offset, offset + limit))
  }
  if (status === undefined) {
    const { users } = context.collections
    return users.find({ developerId }, context.read).sort(userOrder).skip(offset).limit(limit).toArray()
  }
  const owners = await ownersOf(context, { developerId, status }, few + 1)
  if (owners.length > few) return docsOf(context, await walk(context, developerId, status, page))
  const keys = await keysOf(context, developerId, owners)
  return docsOf(context, keys.slice(offset, offset + limit))
}

/** The users of accounts like these, each as often as there are such accounts. */
async function ownersOf(
  { collections, read }: MongoContext,
  accounts: { developerId: string } & ({ emailKey: string } | { status: AccountStatus }),
  limit = 0,
): Promise<string[]> {
  const options = { ...read, projection: { _id: 0, userId: 1 } }
  const found = await collections.accounts.find(accounts, options).limit(limit).toArray()
  return found.map(({ userId }) => userId)
}

/** Users who have the address themselves or by one of their accounts, in order: as many as share one address. */
async function withAddress(context: MongoContext, developerId: string, key: string): Promise<Key[]> {
  const { users } = context.collections
  const options = { ...context.read, projection: { createdAt: 1 } }
  const [own, owners] = await Promise.all([
    users.find({ developerId, addressKeys: key }, options).toArray(),
    ownersOf(context, { developerId, emailKey: key }),
  ])
  const named = await keysOf(context, developerId, owners)
  return inOrder([...new Map([...own, ...named].map((user) => [user._id, user])).values()])
}

async function keysOf(context: MongoContext, developerId: string, ids: readonly string[]): Promise<Key[]> {
  const options = { ...context.read, projection: { createdAt: 1 } }
  const keys: Key[] = []
  for (const some of chunks([...new Set(ids)])) {
    keys.push(...(await context.collections.users.find({ _id: { $in: some }, developerId }, options).toArray()))
  }
  return inOrder(keys)
}

function inOrder(keys: readonly Key[]): Key[] {
  return keys.toSorted((a, b) => a.createdAt - b.createdAt || (a._id < b._id ? -1 : 1))
}

/** Of these users, those with at least one account in this status. */
async function withStatus(
  { collections, read }: MongoContext,
  developerId: string,
  users: readonly Key[],
  status: AccountStatus,
): Promise<Key[]> {
  const owners = new Set<string>()
  for (const some of chunks(users.map(({ _id }) => _id))) {
    const where = { developerId, status, userId: { $in: some } }
    const accounts = collections.accounts.find(where, { ...read, projection: { _id: 0, userId: 1 } })
    for (const { userId } of await accounts.toArray()) owners.add(userId)
  }
  return users.filter(({ _id }) => owners.has(_id))
}

/** The users in order, a step at a time, until the page is full. */
async function walk(
  context: MongoContext,
  developerId: string,
  status: AccountStatus,
  { limit, offset }: Page,
): Promise<Key[]> {
  const { users } = context.collections
  const options = { ...context.read, projection: { createdAt: 1 } }
  const cursor = users.find<Key>({ developerId }, options).sort(userOrder).batchSize(step)
  const matching: Key[] = []
  let together: Key[] = []
  const look = async (): Promise<void> => {
    matching.push(...(await withStatus(context, developerId, together, status)))
    together = []
  }
  for await (const user of cursor) {
    together.push(user)
    if (together.length === step) await look()
    if (matching.length >= offset + limit) break
  }
  if (matching.length < offset + limit) await look()
  await cursor.close()
  return matching.slice(offset, offset + limit)
}

async function docsOf({ collections, read }: MongoContext, keys: readonly Key[]): Promise<UserDoc[]> {
  const docs = new Map<string, UserDoc>()
  for (const some of chunks(keys.map(({ _id }) => _id))) {
    for (const doc of await collections.users.find({ _id: { $in: some } }, read).toArray()) docs.set(doc._id, doc)
  }
  return keys.flatMap(({ _id }) => docs.get(_id) ?? [])
}

function chunks(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / step) }, (_, index) => ids.slice(index * step, (index + 1) * step))
}
