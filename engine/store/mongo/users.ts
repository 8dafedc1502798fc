/** Users, found by age, by their own addresses and by those of their accounts. */
import type { Filter, FindCursor, WithId } from 'mongodb'
import { userBasics, type KeyedCollections } from '../aggregates.ts'
import type { Page, UserFilter, UserStore } from '../port.ts'
import type { AccountStatus } from '../records.ts'
import { foldCase } from '../rows.ts'
import { orNull, rowsOf, shapes, type MongoContext, type UserDoc } from './documents.ts'
import { isDuplicate } from './errors.ts'
import { deadlineOf, insertOnce } from './keyed.ts'
import { removeAccount, removeUser } from './removal.ts'

export function createUsers(context: MongoContext, keyed: KeyedCollections): UserStore {
  const { users, accounts } = context.collections
  return {
    ...userBasics(keyed),
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
    list: async (developerId, filter, page) =>
      (await findUsers(context, developerId, filter, page)).map(shapes.users.record),
    addAddress: async (id, email) => {
      const add = { $addToSet: { emailAddresses: email, addressKeys: foldCase(email) } }
      return orNull(await users.findOneAndUpdate({ _id: id }, add, { returnDocument: 'after' }), shapes.users.record)
    },
    remove: (id) => removeUser(context, id),
  }
}

/*
 * Lists of users. What only their accounts know (an address, a status) is asked of the accounts first, by an index: the
 * users that they name are few, and the server puts them in order.
 */

const userOrder = { createdAt: 1, _id: 1 } as const

/** Users looked at together. */
const step = 200
/** Accounts in a status, up to which they are few: past it the users are walked in order, and a page is full soon. */
const few = 1000

async function findUsers(
  context: MongoContext,
  developerId: string,
  { email, status }: UserFilter,
  page: Page,
): Promise<UserDoc[]> {
  const { collections, read } = context
  const users = (where: Filter<UserDoc>) => collections.users.find({ developerId, ...where }, read).sort(userOrder)
  const pageOf = (ids: readonly string[]) => rowsOf(users({ _id: { $in: [...ids] } }), page.limit, page.offset)
  if (email !== undefined) {
    const found = await withAddress(context, developerId, foldCase(email))
    return pageOf(status === undefined ? found : await ownersOf(context, { developerId, status, userId: found }))
  }
  if (status === undefined) return rowsOf(users({}), page.limit, page.offset)
  const owners = await ownersOf(context, { developerId, status }, few + 1)
  return owners.length > few ? walk(context, users({}), { developerId, status }, page) : pageOf(owners)
}

interface AccountFilter {
  readonly developerId: string
  readonly emailKey?: string
  readonly status?: AccountStatus
  readonly userId?: readonly string[]
}

/** The users of accounts like these, each as often as there are such accounts. */
async function ownersOf(
  { collections, read }: MongoContext,
  { userId, ...where }: AccountFilter,
  limit = 0,
): Promise<string[]> {
  const filter = { ...where, ...(userId === undefined ? {} : { userId: { $in: [...userId] } }) }
  const found = collections.accounts.find(filter, { ...read, projection: { _id: 0, userId: 1 } }).limit(limit)
  return (await found.toArray()).map((account) => account.userId)
}

/** Users who have the address themselves or by one of their accounts. */
async function withAddress(context: MongoContext, developerId: string, emailKey: string): Promise<string[]> {
  const options = { ...context.read, projection: { _id: 1 } }
  const [own, owners] = await Promise.all([
    context.collections.users.find({ developerId, addressKeys: emailKey }, options).toArray(),
    ownersOf(context, { developerId, emailKey }),
  ])
  return [...owners, ...own.map(({ _id }) => _id)]
}

/** The users in order, a step at a time, until the page is full. */
async function walk(
  context: MongoContext,
  users: FindCursor<WithId<UserDoc>>,
  where: AccountFilter,
  { limit, offset }: Page,
): Promise<UserDoc[]> {
  const cursor = users.batchSize(step)
  const matching: UserDoc[] = []
  while (matching.length < offset + limit && (await cursor.hasNext())) {
    const some = cursor.readBufferedDocuments()
    const owners = new Set(await ownersOf(context, { ...where, userId: some.map(({ _id }) => _id) }))
    matching.push(...some.filter(({ _id }) => owners.has(_id)))
  }
  await cursor.close()
  return matching.slice(offset, offset + limit)
}
