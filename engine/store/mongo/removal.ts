/**
 * Removal of accounts, users and webhooks: in bounded steps, and with the row itself last, so that one that was cut
 * short is repeated from the start. What a writer under way leaves is taken by the later of the two: the removal looks
 * once more when the row is gone, and a writer that finds it gone clears up behind itself (sync.ts). What neither sees,
 * because its process died, `tidy` takes: removals of the last hour are noted for it.
 */
import type { Collection, Document, Filter } from 'mongodb'
import type { OutboxState } from '../records.ts'
import { uncount } from './contacts.ts'
import { deleteInSteps, type CollectionName, type KeyDoc, type MongoContext } from './documents.ts'

const stepRows = 1000
/**
 * A removal that is not through by then is taken for one that was cut short; it does no harm to one that is at work.
 */
const cutShortMs = 60_000
/** No writer is under way for longer. */
const notedMs = 3_600_000

/** Answers how many rows went. */
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

/** All that hangs on an account, and its part of the user's contacts. */
export async function drainAccount(context: MongoContext, accountId: string): Promise<number> {
  return (await drain(context, ofAccount, { accountId })) + (await uncount(context, accountId))
}

/** What a writer wrote for an account that is gone by now. */
export async function clearUpBehind(context: MongoContext, accountId: string): Promise<void> {
  if (!(await isThere(context, 'account', accountId))) await drainAccount(context, accountId)
}

export async function removeAccount(context: MongoContext, id: string): Promise<void> {
  const { accounts, folders } = context.collections
  // a new epoch first: a writer that is still at work loses its lease
  const account = await accounts.findOneAndUpdate({ _id: id }, { $inc: { epoch: 1 } }, { returnDocument: 'after' })
  if (!account) return
  const { epoch } = account
  await noted(context, 'account', id, async () => {
    await folders.updateMany({ accountId: id, epoch: { $lt: epoch } }, { $set: { epoch } })
    await drainAccount(context, id)
    await accounts.deleteOne({ _id: id })
    await drainAccount(context, id)
  })
}

/** The webhook with its pending rows and scans; `wholly` also with the record of its deliveries. */
export async function removeWebhook(context: MongoContext, id: string, wholly: boolean): Promise<void> {
  const { webhooks } = context.collections
  const states: readonly OutboxState[] = wholly ? ['pending', 'delivered', 'failed', 'skipped'] : ['pending']
  await drainWebhook(context, id, states)
  await webhooks.deleteOne({ _id: id })
  // what was queued while the others went
  await drainWebhook(context, id, ['pending'])
}

async function drainWebhook(context: MongoContext, webhookId: string, states: readonly OutboxState[]): Promise<number> {
  const rows = await drain(context, ['outbox'], { webhookId, state: { $in: states } })
  return rows + (await drain(context, ['scans'], { webhookId }))
}

/** Once more when the row is gone: see keyed.ts. */
export async function removeUser(context: MongoContext, id: string): Promise<string[]> {
  return noted(context, 'user', id, async () => {
    const taken = await removeOwned(context, id)
    await context.collections.users.deleteOne({ _id: id })
    return [...new Set([...taken, ...(await removeOwned(context, id))])]
  })
}

async function removeOwned(context: MongoContext, userId: string): Promise<string[]> {
  const { accounts, webhooks } = context.collections
  const projection = { _id: 1 } as const
  const ids = (await accounts.find({ userId }, { projection }).toArray()).map(({ _id }) => _id)
  for (const id of ids) await removeAccount(context, id)
  for (const webhook of await webhooks.find({ userId }, { projection }).toArray()) {
    await removeWebhook(context, webhook._id, true)
  }
  await drainUser(context, userId)
  return ids
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

/** Goes on with what was cut short, and takes what is left of things that are gone. Answers how many rows went. */
export async function tidy(context: MongoContext): Promise<number> {
  const { removals } = context.collections
  let rows = 0
  for (const { _id, what, of, at, done } of await removals.find({}, context.read).toArray()) {
    const age = context.now() - at
    if (!done && age > cutShortMs) await (what === 'account' ? removeAccount(context, of) : removeUser(context, of))
    if (!(await isThere(context, what, of))) {
      rows += await (what === 'account' ? drainAccount(context, of) : drainUser(context, of))
      if (!done && age > cutShortMs) await removals.updateOne({ _id }, { $set: { at: context.now(), done: true } })
    }
    if (done && age > notedMs) await removals.deleteOne({ _id, at })
  }
  return rows + (await tidyWebhooks(context))
}

async function isThere({ collections }: MongoContext, what: 'account' | 'user', _id: string): Promise<boolean> {
  const collection = collections[`${what}s`] as unknown as Collection<KeyDoc>
  return (await collection.findOne({ _id }, { projection: { _id: 1 } })) !== null
}

/** Callbacks that wait for a webhook that is gone. Channels of bare URLs begin with u, and have no record. */
async function tidyWebhooks(context: MongoContext): Promise<number> {
  const { outbox, webhooks } = context.collections
  const channels = await outbox.distinct('channelId', { state: 'pending' }, context.read)
  const ids = channels.filter((id) => !id.startsWith('u'))
  let rows = 0
  for (let start = 0; start < ids.length; start += stepRows) {
    const some = ids.slice(start, start + stepRows)
    const found = await webhooks.find({ _id: { $in: some } }, { ...context.read, projection: { _id: 1 } }).toArray()
    const there = new Set(found.map(({ _id }) => _id))
    for (const id of some) if (!there.has(id)) rows += await drainWebhook(context, id, ['pending'])
  }
  return rows
}
