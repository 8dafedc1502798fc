/**
 * Email accounts; users, found by age, by their own addresses and by those of their accounts. And what removals
 * (../removal.ts) take in this store's own way.
 *
 * What a writer under way leaves is taken by the later of the two: the removal looks once more when the row is gone,
 * and a writer that finds it gone clears up behind itself (sync.ts). What neither sees, because its process died,
 * `tidy` takes: removals of the last hour are noted for it.
 */
import type { Collection, Document, Filter, FindCursor, WithId } from 'mongodb'
import { conditions } from '../../../machines/events.ts'
import { accountBasics, userBasics, type KeyedCollections } from '../aggregates.ts'
import type { AccountFilter, AccountPlace, AccountStore, Page, UserFilter, UserStore } from '../port.ts'
import type { AccountRecord, AccountStatus } from '../records.ts'
import { createRemoval, type Removal } from '../removal.ts'
import { conditionOf, foldCase, leaseLost } from '../rows.ts'
import { slotLost } from '../slots.ts'
import { containing, deleteInSteps, rowsOf, shapes } from './documents.ts'
import type { CollectionName, KeyDoc, MongoContext, UserDoc } from './documents.ts'
import { isDuplicate } from './errors.ts'
import { deadlineOf, insertOnce, pageOfSlots } from './keyed.ts'

/** A writer whose epoch is not the account's has lost its lease, and so has one whose account is gone. */
export async function checkEpoch(
  { collections }: MongoContext,
  accountId: string,
  epoch: number,
): Promise<Pick<AccountRecord, 'completeAt'>> {
  const projection = { epoch: 1, completeAt: 1 }
  const account = await collections.accounts.findOne({ _id: accountId }, { projection })
  if (account?.epoch !== epoch) throw leaseLost(accountId, epoch)
  return account
}

/** Before a folder is complete no more: a crash in between leaves the account too careful, until its next list. */
export async function beginReading({ collections }: MongoContext, _id: string, epoch: number): Promise<void> {
  await collections.accounts.updateOne({ _id, epoch }, { $set: { completeAt: null } })
}

/** After a folder has become complete. */
export async function settle({ collections, now }: MongoContext, accountId: string, epoch: number): Promise<boolean> {
  const unread = { accountId, selectable: true, completeAt: null }
  if ((await collections.folders.findOne(unread, { projection: { _id: 1 } })) !== null) return false
  await collections.accounts.updateOne({ _id: accountId, epoch }, { $set: { completeAt: now() } })
  return true
}

/**
 * The account's epoch first: who claims later has the higher one, and folders only ever go up. `lease_lost` when a node
 * with a later epoch of the slot has claimed it.
 */
async function claim(context: MongoContext, id: string, fence: number | null): Promise<AccountRecord | null> {
  const { accounts, folders } = context.collections
  const unfenced = fence === null ? {} : { fence: { $not: { $gt: fence } } }
  const update = { $inc: { epoch: 1 }, ...(fence === null ? {} : { $set: { fence } }) }
  const account = await accounts.findOneAndUpdate({ _id: id, ...unfenced }, update, { returnDocument: 'after' })
  if (!account) {
    const other = fence === null ? null : await accounts.findOne({ _id: id }, { projection: { slot: 1 } })
    if (other !== null) throw slotLost(other.slot)
    return null
  }
  const { epoch } = account
  await folders.updateMany({ accountId: id, epoch: { $lt: epoch } }, { $set: { epoch } })
  return shapes.accounts.record(account)
}

/** Epoch of the slot that this process claims the account with; null = it is the only one. `lease_lost` without it. */
async function fenceOf({ collections, lease }: MongoContext, id: string): Promise<number | null> {
  if (lease === null || lease.commonEpoch !== null) return lease?.commonEpoch ?? null
  const account = await collections.accounts.findOne({ _id: id }, { projection: { slot: 1 } })
  if (account === null) return null
  const epoch = lease.epochOf(account.slot)
  if (epoch === undefined) throw slotLost(account.slot)
  return epoch
}

/** Few bytes each. */
const placesAtOnce = 10_000

const placeOnly = { server: 1, developerId: 1, createdAt: 1, 'resume.condition': 1 } as const

async function places(
  { collections, read }: MongoContext,
  { text, condition, sinceUntil, ...equal }: AccountFilter,
  most = 0,
): Promise<AccountPlace[]> {
  const given = Object.fromEntries(Object.entries(equal).filter(([, value]) => value !== undefined))
  const matching =
    text === undefined ? {} : { $or: [{ emailKey: containing(foldCase(text)) }, { _id: text }, { label: text }] }
  const asked = condition !== undefined || sinceUntil !== undefined
  // The index begins with it.
  const is = asked ? { 'resume.condition.is': condition ?? { $in: [...conditions] } } : {}
  const long = sinceUntil === undefined ? {} : { 'resume.condition.since': { $lte: sinceUntil } }
  const found = collections.accounts
    .find({ ...given, ...is, ...long, ...matching }, { ...read, projection: placeOnly })
    .batchSize(placesAtOnce)
    .limit(most)
  const all = (await found.toArray()).map((account) => {
    const { _id, server, developerId } = account
    const { is, since } = conditionOf(account)
    return { id: _id, server, developerId, condition: { is, since } }
  })
  return all.sort((one, other) => one.condition.since - other.condition.since || (one.id < other.id ? -1 : 1))
}

export function createAccounts(context: MongoContext, keyed: KeyedCollections, removal: Removal): AccountStore {
  return {
    ...accountBasics(keyed, (accountId) => clearUpBehind(context, accountId)),
    places: (filter, most) => places(context, filter, most),
    claim: async (id) => claim(context, id, await fenceOf(context, id)),
    page: (after, limit, slots) => pageOfSlots(context, 'accounts', after, limit, slots),
    remove: removal.removeAccount,
  }
}

export function createUsers(context: MongoContext, keyed: KeyedCollections, removal: Removal): UserStore {
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
      await removal.removeAccount(accountId)
    },
    list: async (developerId, filter, page) =>
      (await findUsers(context, developerId, filter, page)).map(shapes.users.record),
    search: async (words, limit) => {
      const parts = words.map((word) => {
        const name = { ...containing(word), $options: 'i' }
        return { $or: [{ firstName: name }, { lastName: name }, { addressKeys: containing(foldCase(word)) }] }
      })
      const found = users.find({ $and: parts }, { ...context.read, projection: shapes.users.only }).sort({ _id: 1 })
      return (await rowsOf(found, limit)).map(shapes.users.record)
    },
    remove: removal.removeUser,
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

interface OwnerFilter {
  readonly developerId: string
  readonly emailKey?: string
  readonly status?: AccountStatus
  readonly userId?: readonly string[]
}

/** The users of accounts like these, each as often as there are such accounts. */
async function ownersOf(
  { collections, read }: MongoContext,
  { userId, ...where }: OwnerFilter,
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
  where: OwnerFilter,
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

/* Removals. */

/**
 * A removal that is not through by then is taken for one that was cut short; it does no harm to one that is at work.
 */
const cutShortMs = 60_000
/** No writer is under way for longer. */
const notedMs = 3_600_000

async function drain(
  { collections, read }: MongoContext,
  names: readonly CollectionName[],
  where: Filter<Document>,
): Promise<number> {
  let rows = 0
  for (const name of names) {
    const collection = collections[name] as unknown as Collection<KeyDoc>
    rows += await deleteInSteps(collection, where as Filter<KeyDoc>, read)
  }
  return rows
}

const ofAccount = ['messages', 'changes', 'outbox', 'scans', 'tokens', 'folders'] as const

/** All that hangs on an account. Ids of contacts begin with its own. */
async function drainAccount(context: MongoContext, accountId: string): Promise<number> {
  const counted = { _id: { $gte: `${accountId}:`, $lt: `${accountId};` } } as unknown as Filter<Document>
  return (await drain(context, ofAccount, { accountId })) + (await drain(context, ['contacts'], counted))
}

/** What a writer wrote for an account that is gone by now. Answers whether it is. */
export async function clearUpBehind(context: MongoContext, accountId: string): Promise<boolean> {
  if (await isThere(context, 'account', accountId)) return false
  await drainAccount(context, accountId)
  return true
}

async function removeAccount(context: MongoContext, keyed: KeyedCollections, id: string): Promise<void> {
  // a new epoch first: a writer that is still at work loses its lease
  if (!(await claim(context, id, null))) return
  await drainAccount(context, id)
  await keyed.accounts.remove({ id })
  await drainAccount(context, id)
}

async function drainUser(context: MongoContext, userId: string): Promise<number> {
  const rows = await drain(context, ['contacts', 'tokens'], { userId })
  return rows + (await drain(context, ['outbox'], { userId, accountId: null }))
}

/** Notes the removal before its first step and its end, for `tidy`. */
async function noted<T>(
  { collections: { removals }, now }: MongoContext,
  what: 'account' | 'user',
  id: string,
  work: () => Promise<T>,
): Promise<T> {
  const _id = `${what} ${id}`
  await removals.updateOne({ _id }, { $set: { what, of: id, at: now(), done: false } }, { upsert: true })
  const answer = await work()
  await removals.updateOne({ _id }, { $set: { at: now(), done: true } })
  return answer
}

async function isThere({ collections }: MongoContext, what: 'account' | 'user', _id: string): Promise<boolean> {
  const collection = collections[`${what}s`] as unknown as Collection<KeyDoc>
  return (await collection.findOne({ _id }, { projection: { _id: 1 } })) !== null
}

/** What was written for them between the removal's steps is taken once more when the row is gone: see keyed.ts. */
export function createMongoRemoval(context: MongoContext, keyed: KeyedCollections, channels: () => Promise<string[]>) {
  const { removals } = context.collections
  const removal = createRemoval(keyed, {
    noted: (what, id, work) => noted(context, what, id, work),
    removeAccount: (id) => removeAccount(context, keyed, id),
    drainUser: (id) => drainUser(context, id),
    removeUserRow: async (id) => {
      await keyed.users.remove({ id })
      return true
    },
    channels,
  })
  return {
    ...removal,
    /** Goes on with what was cut short, and takes what is left of things that are gone. Answers how many rows went. */
    tidy: async (): Promise<number> => {
      let rows = 0
      for (const { _id, what, of, at, done } of await removals.find({}, context.read).toArray()) {
        const age = context.now() - at
        if (!done && age > cutShortMs) await (what === 'account' ? removal.removeAccount(of) : removal.removeUser(of))
        if (!(await isThere(context, what, of)))
          rows += await (what === 'account' ? drainAccount(context, of) : drainUser(context, of))
        if (done && age > notedMs) await removals.deleteOne({ _id, at })
      }
      return rows + (await removal.tidyWebhooks())
    },
  }
}
