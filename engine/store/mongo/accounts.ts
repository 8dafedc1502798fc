/** Email accounts: their settings, status and epoch. */
import type { Filter } from 'mongodb'
import type { AccountPatch, AccountStore, StatusTransition } from '../port.ts'
import type { AccountRecord } from '../records.ts'
import { foldCase, transitioned } from '../rows.ts'
import { orNull, recordIn, rowsOf, toDoc, type AccountDoc, type MongoContext } from './documents.ts'
import { leaseLost } from './leases.ts'
import { insertMissing } from './bulk.ts'
import { insertOwned } from './owners.ts'
import { outboxDoc } from './outbox-rows.ts'
import { drainAccount, removeAccount } from './removal.ts'

export const accountOrder = { createdAt: 1, _id: 1 } as const

export function accountDoc(account: AccountRecord): AccountDoc {
  return { ...toDoc(account), emailKey: foldCase(account.email) }
}

const beside = new Set(['emailKey'])

export function accountRecord(doc: AccountDoc): AccountRecord {
  return recordIn(doc, beside) as AccountRecord
}

/** The account's epoch first: who claims later has the higher one, and folders only ever go up. */
async function claim({ collections }: MongoContext, id: string): Promise<AccountRecord | null> {
  const { accounts, folders } = collections
  const account = await accounts.findOneAndUpdate({ _id: id }, { $inc: { epoch: 1 } }, { returnDocument: 'after' })
  if (!account) return null
  const { epoch } = account
  await folders.updateMany({ accountId: id, epoch: { $lt: epoch } }, { $set: { epoch } })
  return accountRecord(account)
}

/** Outbox first, then the account by compare-and-set: repeated after a crash, the row is there and the account follows. */
async function transition(context: MongoContext, step: StatusTransition): Promise<AccountRecord | null> {
  const { accounts, outbox } = context.collections
  const { accountId, epoch, fromVersion } = step
  const stored = await accounts.findOne({ _id: accountId })
  if (!stored) return null
  if (stored.epoch !== epoch) throw leaseLost(accountId, epoch)
  if (stored.statusVersion !== fromVersion) return null
  await insertMissing(outbox, step.outbox.map(outboxDoc))
  const { status, statusMessage, statusVersion, resume } = transitioned(accountRecord(stored), step)
  const after = await accounts.findOneAndUpdate(
    { _id: accountId, epoch, statusVersion: fromVersion },
    { $set: { status, statusMessage, statusVersion, resume } },
    { returnDocument: 'after' },
  )
  if (after) return accountRecord(after)
  const winner = await accounts.findOne({ _id: accountId }, { projection: { epoch: 1 } })
  if (!winner) await drainAccount(context, accountId)
  else if (winner.epoch !== epoch) throw leaseLost(accountId, epoch)
  return null
}

/** What an edit writes: the patch, with what follows from it. */
export function accountSet(patch: AccountPatch): AccountPatch & Partial<Pick<AccountDoc, 'emailKey'>> {
  return patch.email === undefined ? patch : { ...patch, emailKey: foldCase(patch.email) }
}

async function edit(
  { collections: { accounts } }: MongoContext,
  id: string,
  patch: AccountPatch,
  epoch?: number,
): Promise<AccountRecord | null> {
  const set = accountSet(patch)
  const where = epoch === undefined ? { _id: id } : { _id: id, epoch }
  const changed =
    Object.keys(set).length === 0
      ? await accounts.findOne(where)
      : await accounts.findOneAndUpdate(where, { $set: set }, { returnDocument: 'after' })
  if (changed) return accountRecord(changed)
  if (epoch !== undefined && (await accounts.findOne({ _id: id }, { projection: { _id: 1 } })))
    throw leaseLost(id, epoch)
  return null
}

export function createAccounts(context: MongoContext): AccountStore {
  const { collections, read } = context
  const { accounts } = collections
  const list = async (filter: Filter<AccountDoc>): Promise<AccountRecord[]> =>
    (await accounts.find(filter, read).sort(accountOrder).toArray()).map(accountRecord)
  return {
    create: async (account) => {
      const undo = () => removeAccount(context, account.id)
      await insertOwned(context, account.userId, accounts, accountDoc(account), undo)
    },
    get: async (id) => orNull(await accounts.findOne({ _id: id }, read), accountRecord),
    byLabel: async (userId, label) => orNull(await accounts.findOne({ userId, label }, read), accountRecord),
    listByUser: (userId, filter) => list(filter?.status === undefined ? { userId } : { userId, status: filter.status }),
    listByUsers: (userIds) => list({ userId: { $in: [...userIds] } }),
    page: async (afterId, limit) => {
      const page = accounts.find({ _id: { $gt: afterId ?? '' } }, read)
      return (await rowsOf(page.sort({ _id: 1 }), limit)).map(accountRecord)
    },
    edit: (id, patch, epoch) => edit(context, id, patch, epoch),
    claim: (id) => claim(context, id),
    transition: (step) => transition(context, step),
    remove: (id) => removeAccount(context, id),
  }
}
