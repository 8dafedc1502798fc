/**
 * Removal of accounts, users and webhooks with all that hangs on them: in bounded steps, and with the row itself last, so that
 * a removal that was cut short is repeated from the start.
 */
import type { Collection, Filter } from 'mongodb'
import type { OutboxState } from '../records.ts'
import type { MongoContext } from './documents.ts'

/** Rows deleted by one request. */
const stepRows = 1000

async function drain<D extends { readonly _id: string }>(
  { read }: MongoContext,
  collection: Collection<D>,
  filter: Filter<D>,
): Promise<void> {
  for (;;) {
    const rows = collection.find<{ readonly _id: string }>(filter, { ...read, projection: { _id: 1 } })
    const ids = (await rows.limit(stepRows).toArray()).map(({ _id }) => _id)
    if (ids.length > 0) await collection.deleteMany({ ...filter, _id: { $in: ids } })
    if (ids.length < stepRows) return
  }
}

export async function removeAccount(context: MongoContext, id: string): Promise<void> {
  const { accounts, folders, messages, changes, outbox, scans, tokens } = context.collections
  // a new epoch first: a writer that is still at work loses its lease instead of leaving rows behind
  const account = await accounts.findOneAndUpdate({ _id: id }, { $inc: { epoch: 1 } }, { returnDocument: 'after' })
  if (!account) return
  const { epoch } = account
  await folders.updateMany({ accountId: id, epoch: { $lt: epoch } }, { $set: { epoch } })
  await drain(context, messages, { accountId: id })
  await drain(context, changes, { accountId: id })
  await drain(context, outbox, { accountId: id })
  await drain(context, scans, { accountId: id })
  await drain(context, tokens, { accountId: id })
  await drain(context, folders, { accountId: id })
  await accounts.deleteOne({ _id: id })
}

/** The webhook with its pending rows and scans; `wholly` also with the record of its deliveries. */
export async function removeWebhook(context: MongoContext, id: string, wholly: boolean): Promise<void> {
  const { outbox, scans, webhooks } = context.collections
  const states: readonly OutboxState[] = wholly ? ['pending', 'delivered', 'failed', 'skipped'] : ['pending']
  await drain(context, outbox, { webhookId: id, state: { $in: states } })
  await drain(context, scans, { webhookId: id })
  await webhooks.deleteOne({ _id: id })
}

/** Once more when the row is gone: see owners.ts. */
export async function removeUser(context: MongoContext, id: string): Promise<string[]> {
  const taken = await removeOwned(context, id)
  await context.collections.users.deleteOne({ _id: id })
  return [...new Set([...taken, ...(await removeOwned(context, id))])]
}

/** Answers the ids of the accounts. */
async function removeOwned(context: MongoContext, userId: string): Promise<string[]> {
  const { accounts, webhooks, contacts, tokens, outbox } = context.collections
  const projection = { _id: 1 } as const
  const ids = (await accounts.find({ userId }, { projection }).toArray()).map(({ _id }) => _id)
  for (const id of ids) await removeAccount(context, id)
  for (const webhook of await webhooks.find({ userId }, { projection }).toArray()) {
    await removeWebhook(context, webhook._id, true)
  }
  await drain(context, contacts, { userId })
  await drain(context, tokens, { userId })
  await drain(context, outbox, { userId, accountId: null })
  return ids
}
