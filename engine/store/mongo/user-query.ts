/**
 * Lists of users. What only their accounts know (an address, a status) is asked of the accounts first, by an index; the users
 * they name are put in order here, by keys alone, so that the server sorts nothing.
 */
import type { Page, UserFilter } from '../port.ts'
import type { AccountStatus } from '../records.ts'
import { foldCase } from '../rows.ts'
import type { MongoContext, UserDoc } from './documents.ts'

export const userOrder = { createdAt: 1, _id: 1 } as const

/** Ids in one request, and users looked at together. */
const step = 200
/** Accounts in a status, up to which they are few: past it the users are walked in order, and a page is full soon. */
const few = 1000

/** What the order is made of. */
type Key = Pick<UserDoc, '_id' | 'createdAt'>

export async function findUsers(
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

/** Who has accounts like these, as often as there are such accounts. */
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
