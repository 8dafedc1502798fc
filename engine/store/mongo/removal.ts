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

export async function removeUser(context: MongoContext, id: string): Promise<void> {
  const { accounts, webhooks, contacts, tokens, outbox, users } = context.collections
  const projection = { _id: 1 } as const
  for (const account of await accounts.find({ userId: id }, { projection }).toArray()) {
    await removeAccount(context, account._id)
  }
  for (const webhook of await webhooks.find({ userId: id }, { projection }).toArray()) {
    await removeWebhook(context, webhook._id, true)
  }
  await drain(context, contacts, { userId: id })
  await drain(context, tokens, { userId: id })
  await drain(context, outbox, { userId: id, accountId: null })
  await users.deleteOne({ _id: id })
}
