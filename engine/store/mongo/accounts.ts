/**
 * Email accounts, users, and the MongoDB part of removals (../removal.ts).
 *
 * A writer may write rows of an account during its removal, and after it. The removal deletes rows again after the
 * account's own, and `tidy` deletes later ones: `removals` holds the removals of the last hour.
 */
import type { Collection, Document, Filter } from 'mongodb'
import { conditions } from '../../../machines/events.ts'
import { accountBasics, byAge, userBasics, type KeyedCollections } from '../aggregates.ts'
import type { AccountStore, Page, UserFilter, UserStore } from '../port.ts'
import type { AccountRecord, AccountStatus, UserRecord } from '../records.ts'
import { createRemoval, type Removal } from '../removal.ts'
import { conditionOf, foldCase, leaseLost } from '../rows.ts'
import { slotLost } from '../slots.ts'
import { containing, deleteInSteps, pageOf, shapes } from './documents.ts'
import type { AccountDoc, CollectionName, KeyDoc, MongoContext, UserDoc } from './documents.ts'
import { isDuplicate } from './errors.ts'
import { deadlineOf, insertOnce } from './keyed.ts'

/** Throws `lease_lost` unless the account is there with this epoch. */
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

/**
 * Marks the account as not completely read. Runs before the write that makes a folder incomplete: after a crash between
 * the two, the next folder list marks the account complete again.
 */
export async function markIncomplete({ collections }: MongoContext, _id: string, epoch: number): Promise<void> {
  await collections.accounts.updateOne({ _id, epoch }, { $set: { completeAt: null } })
}

/** Marks the account as completely read if each of its folders is. Returns whether they are. */
export async function completeIfWhole(
  { collections, now }: MongoContext,
  accountId: string,
  epoch: number,
): Promise<boolean> {
  const unread = { accountId, selectable: true, completeAt: null }
  if ((await collections.folders.findOne(unread, { projection: { _id: 1 } })) !== null) return false
  await collections.accounts.updateOne({ _id: accountId, epoch }, { $set: { completeAt: now() } })
  return true
}

/**
 * Raises the epoch of the account, then that of its folders, which only ever rises. null = no such account. Throws
 * `lease_lost` when a node with a later epoch of the slot has claimed the account.
 */
async function claim(context: MongoContext, id: string, fence: number | null): Promise<AccountRecord | null> {
  const { accounts, folders } = context.collections
  const [unfenced, set] = fence === null ? [{}, {}] : [{ fence: { $not: { $gt: fence } } }, { $set: { fence } }]
  const update = { $inc: { epoch: 1 }, ...set }
  const account = await accounts.findOneAndUpdate({ _id: id, ...unfenced }, update, { returnDocument: 'after' })
  if (!account) {
    const other = await accounts.findOne({ _id: id }, { projection: { slot: 1 } })
    if (other !== null) throw slotLost(other.slot)
    return null
  }
  const { epoch } = account
  await folders.updateMany({ accountId: id, epoch: { $lt: epoch } }, { $set: { epoch } })
  return shapes.accounts.record(account)
}

/** Epoch of the account's slot in this process; null = no other process works. Throws `lease_lost` without the slot. */
async function fenceOf({ collections, lease }: MongoContext, id: string): Promise<number | null> {
  if (lease === null || lease.commonEpoch !== null) return lease?.commonEpoch ?? null
  const account = await collections.accounts.findOne({ _id: id }, { projection: { slot: 1 } })
  if (account === null) return null
  const epoch = lease.epochOf(account.slot)
  if (epoch === undefined) throw slotLost(account.slot)
  return epoch
}

/** A place has few bytes. */
const placesAtOnce = 10_000

const placeOnly = { server: 1, developerId: 1, createdAt: 1, 'resume.condition': 1 } as const

const places =
  ({ collections, read }: MongoContext): AccountStore['places'] =>
  async ({ text, condition, sinceUntil, ...equal }, most = 0) => {
    const given = Object.fromEntries(Object.entries(equal).filter(([, value]) => value !== undefined))
    const matching =
      text === undefined ? {} : { $or: [{ emailKey: containing(foldCase(text)) }, { _id: text }, { label: text }] }
    const asked = condition !== undefined || sinceUntil !== undefined
    // The index accounts_by_condition begins with this field.
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
    ...accountBasics(keyed),
    places: places(context),
    claim: async (id) => claim(context, id, await fenceOf(context, id)),
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
        // Only a duplicate proves that the user was not stored. A failed removal does not replace the error.
        if (isDuplicate(error)) await Promise.allSettled([accounts.deleteOne({ _id: account.id })])
        throw error
      }
    },
    undoCreate: async (id, accountId) => {
      await users.deleteOne({ _id: id })
      await removal.removeAccount(accountId)
    },
    list: (developerId, filter, page) => findUsers(context, keyed, developerId, filter, page),
    search: async (words, limit) => {
      const parts = words.map((word) => {
        const name = { ...containing(word), $options: 'i' }
        return { $or: [{ firstName: name }, { lastName: name }, { addressKeys: containing(foldCase(word)) }] }
      })
      const page = { ...context.read, projection: shapes.users.only, sort: { _id: 1 as const }, limit }
      return (await pageOf(users, { $and: parts }, page)).map(shapes.users.record)
    },
    remove: removal.removeUser,
  }
}

/*
 * Lists of users. A filter by address or status is first looked up in the accounts, by an index; their few users are
 * then sorted by the server.
 */

/** Users whose accounts are looked up together. */
const step = 200
/** With more accounts of a status, the users are walked in order instead: a page is then full soon. */
const few = 1000

async function findUsers(
  context: MongoContext,
  { users }: KeyedCollections,
  developerId: string,
  { email, status }: UserFilter,
  page: Page,
): Promise<UserRecord[]> {
  const among = (id?: readonly string[]) => users.list({ developerId, id }, { ...byAge, ...page })
  if (email !== undefined) {
    const found = await withAddress(context, developerId, foldCase(email))
    return among(
      status === undefined ? found : await ownersOf(context, { developerId, status, userId: { $in: found } }),
    )
  }
  if (status === undefined) return among()
  const owners = await ownersOf(context, { developerId, status }, few + 1)
  return owners.length > few ? walk(context, developerId, status, page) : among(owners)
}

/** The user id of each matching account, with repeats. */
async function ownersOf({ collections, read }: MongoContext, filter: Filter<AccountDoc>, limit = 0): Promise<string[]> {
  const found = collections.accounts.find(filter, { ...read, projection: { _id: 0, userId: 1 } }).limit(limit)
  return (await found.toArray()).map((account) => account.userId)
}

/** Ids of users that have the address themselves or through an account. */
async function withAddress(context: MongoContext, developerId: string, emailKey: string): Promise<string[]> {
  const options = { ...context.read, projection: { _id: 1 } }
  const [own, owners] = await Promise.all([
    context.collections.users.find({ developerId, addressKeys: emailKey }, options).toArray(),
    ownersOf(context, { developerId, emailKey }),
  ])
  return [...owners, ...own.map(({ _id }) => _id)]
}

/** Reads the users in order, until the page is full of users with a matching account. */
async function walk(
  context: MongoContext,
  developerId: string,
  status: AccountStatus,
  { limit, offset }: Page,
): Promise<UserRecord[]> {
  const order = { createdAt: 1, _id: 1 } as const
  const cursor = context.collections.users.find({ developerId }, context.read).sort(order).batchSize(step)
  const matching: UserDoc[] = []
  while (matching.length < offset + limit && (await cursor.hasNext())) {
    const some = cursor.readBufferedDocuments()
    const userId = { $in: some.map(({ _id }) => _id) }
    const owners = new Set(await ownersOf(context, { developerId, status, userId }))
    matching.push(...some.filter(({ _id }) => owners.has(_id)))
  }
  await cursor.close()
  return matching.slice(offset, offset + limit).map(shapes.users.record)
}

/* Removals. */

/** After this time an unfinished removal is repeated, which does no harm to one that still runs. */
const cutShortMs = 60_000
/** No write takes longer. */
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

/** Folders first: a batch ends with its folder, so a batch that ends later fails. */
const ofAccount = ['folders', 'messages', 'changes', 'outbox', 'scans', 'tokens'] as const

/** Deletes all rows of an account. Ids of contacts begin with the account's id. */
async function drainAccount(context: MongoContext, accountId: string): Promise<number> {
  const counted = { _id: { $gte: `${accountId}:`, $lt: `${accountId};` } } as unknown as Filter<Document>
  return (await drain(context, ofAccount, { accountId })) + (await drain(context, ['contacts'], counted))
}

async function removeAccount(context: MongoContext, keyed: KeyedCollections, id: string): Promise<void> {
  // The new epoch takes the lease from a writer that still runs.
  if (!(await claim(context, id, null))) return
  await drainAccount(context, id)
  await keyed.accounts.remove({ id })
  await drainAccount(context, id)
}

async function drainUser(context: MongoContext, userId: string): Promise<number> {
  const rows = await drain(context, ['contacts', 'tokens'], { userId })
  return rows + (await drain(context, ['outbox'], { userId, accountId: null }))
}

/** Notes the begin and the end of the removal for `tidy`. */
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

export function createMongoRemoval(context: MongoContext, keyed: KeyedCollections) {
  // Of every slot: one node tidies for all.
  const channels = (): Promise<string[]> =>
    context.collections.outbox.distinct('channelId', { state: 'pending' }, context.read)
  const { removals } = context.collections
  const removal = createRemoval(keyed, {
    noted: (what, id, work) => noted(context, what, id, work),
    removeAccount: (id) => removeAccount(context, keyed, id),
    drainUser: (id) => drainUser(context, id),
    removeUserRow: (id) => keyed.users.remove({ id }),
    channels,
  })
  return {
    ...removal,
    /** Repeats removals that were cut short, and deletes rows of late writers. Returns the number of deleted rows. */
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
