/** Users, found by age, by their own addresses and by those of their accounts. */
import type { Filter } from 'mongodb'
import type { Page, UserFilter, UserStore } from '../port.ts'
import type { AccountStatus, UserRecord } from '../records.ts'
import { foldCase } from '../rows.ts'
import { accountDoc } from './accounts.ts'
import { orNull, recordIn, toDoc, type MongoContext, type UserDoc } from './documents.ts'
import { removeUser } from './removal.ts'

export const userOrder = { createdAt: 1, _id: 1 } as const

/** Users looked at together when each has to be asked for the status of its accounts. */
const step = 200

export function userDoc(user: UserRecord): UserDoc {
  return { ...toDoc(user), addressKeys: [...new Set(user.emailAddresses.map(foldCase))] }
}

const beside = new Set(['addressKeys'])

export function userRecord(doc: UserDoc): UserRecord {
  return recordIn(doc, beside) as UserRecord
}

/** Who has the address: itself, or by one of its accounts. */
async function userFilter(
  { collections, read }: MongoContext,
  developerId: string,
  { email }: UserFilter,
): Promise<Filter<UserDoc>> {
  if (email === undefined) return { developerId }
  const key = foldCase(email)
  const accounts = collections.accounts.find({ developerId, emailKey: key }, { ...read, projection: { userId: 1 } })
  const owners = (await accounts.toArray()).map(({ userId }) => userId)
  return { developerId, $or: [{ addressKeys: key }, { _id: { $in: owners } }] }
}

/** Of these users, those with at least one account in this status. */
async function withStatus(
  { collections, read }: MongoContext,
  users: readonly UserDoc[],
  status: AccountStatus,
): Promise<UserDoc[]> {
  const ids = users.map((user) => user._id)
  const accounts = collections.accounts.find({ userId: { $in: ids }, status }, { ...read, projection: { userId: 1 } })
  const owners = new Set((await accounts.toArray()).map(({ userId }) => userId))
  return users.filter((user) => owners.has(user._id))
}

async function list(context: MongoContext, developerId: string, filter: UserFilter, page: Page): Promise<UserRecord[]> {
  const where = await userFilter(context, developerId, filter)
  const cursor = context.collections.users.find(where, context.read).sort(userOrder)
  if (filter.status === undefined) {
    return (await cursor.skip(page.offset).limit(page.limit).toArray()).map(userRecord)
  }
  return (await listByStatus(context, cursor.batchSize(step), filter.status, page)).map(userRecord)
}

/** Walks the users in order, a step at a time, until the page is full. */
async function listByStatus(
  context: MongoContext,
  cursor: AsyncIterable<UserDoc> & { close(): Promise<void> },
  status: AccountStatus,
  { limit, offset }: Page,
): Promise<UserDoc[]> {
  const matching: UserDoc[] = []
  let together: UserDoc[] = []
  const look = async (): Promise<void> => {
    matching.push(...(await withStatus(context, together, status)))
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

export function createUsers(context: MongoContext): UserStore {
  const { users, accounts } = context.collections
  return {
    create: async (user) => {
      await users.insertOne(userDoc(user))
    },
    createWithAccount: async (user, account) => {
      // The account first: cut short here, nobody finds it, while a user without its account would be in every list.
      await accounts.insertOne(accountDoc(account))
      try {
        await users.insertOne(userDoc(user))
      } catch (error) {
        // Why the user could not be stored is the answer, whatever comes of the removal.
        await Promise.allSettled([accounts.deleteOne({ _id: account.id })])
        throw error
      }
    },
    get: async (developerId, id) => orNull(await users.findOne({ _id: id, developerId }, context.read), userRecord),
    list: (developerId, filter, page) => list(context, developerId, filter, page),
    edit: async (id, patch) => {
      const { emailAddresses } = patch
      const keys = emailAddresses ? { addressKeys: [...new Set(emailAddresses.map(foldCase))] } : {}
      const set = { ...patch, ...keys }
      if (Object.keys(set).length === 0) return orNull(await users.findOne({ _id: id }, context.read), userRecord)
      return orNull(await users.findOneAndUpdate({ _id: id }, { $set: set }, { returnDocument: 'after' }), userRecord)
    },
    addAddress: async (id, email) => {
      const add = { $addToSet: { emailAddresses: email, addressKeys: foldCase(email) } }
      return orNull(await users.findOneAndUpdate({ _id: id }, add, { returnDocument: 'after' }), userRecord)
    },
    existing: async (ids) => {
      const found = users.find({ _id: { $in: [...ids] } }, { ...context.read, projection: { _id: 1 } })
      return (await found.toArray()).map(({ _id }) => _id)
    },
    remove: (id) => removeUser(context, id),
  }
}
