/** Email accounts: their settings, status and epoch. */
import type { Filter } from 'mongodb'
import type { AccountPatch, AccountStore, StatusTransition } from '../port.ts'
import type { AccountRecord } from '../records.ts'
import { foldCase, transitioned } from '../rows.ts'
import { orNull, recordIn, toDoc, type AccountDoc, type MongoContext } from './documents.ts'
import { leaseLost } from './leases.ts'
import { insertMissing } from './bulk.ts'
import { insertOwned } from './owners.ts'
import { outboxDoc } from './outbox-rows.ts'
import { removeAccount } from './removal.ts'

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
async function transition({ collections }: MongoContext, step: StatusTransition): Promise<AccountRecord | null> {
  const { accounts, outbox } = collections
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
  if (winner && winner.epoch !== epoch) throw leaseLost(accountId, epoch)
  return null
}

async function edit({ collections }: MongoContext, id: string, patch: AccountPatch): Promise<AccountRecord | null> {
  const { accounts } = collections
  const set = patch.email === undefined ? patch : { ...patch, emailKey: foldCase(patch.email) }
  const changed =
    Object.keys(set).length === 0
      ? accounts.findOne({ _id: id })
      : accounts.findOneAndUpdate({ _id: id }, { $set: set }, { returnDocument: 'after' })
  return orNull(await changed, accountRecord)
}

export function createAccounts(context: MongoContext): AccountStore {
  const { collections, read } = context
  const { accounts } = collections
  const list = async (filter: Filter<AccountDoc>): Promise<AccountRecord[]> =>
    (await accounts.find(filter, read).sort(accountOrder).toArray()).map(accountRecord)
  return {
    create: async (account) => {
      const insert = () => accounts.insertOne(accountDoc(account))
      await insertOwned(context, account.userId, insert, () => removeAccount(context, account.id))
    },
    get: async (id) => orNull(await accounts.findOne({ _id: id }, read), accountRecord),
    byLabel: async (userId, label) => orNull(await accounts.findOne({ userId, label }, read), accountRecord),
    listByUser: (userId, filter) => list(filter?.status === undefined ? { userId } : { userId, status: filter.status }),
    listByUsers: (userIds) => list({ userId: { $in: [...userIds] } }),
    page: async (afterId, limit) => {
      const page = accounts.find({ _id: { $gt: afterId ?? '' } }, read)
      return (await page.sort({ _id: 1 }).limit(limit).toArray()).map(accountRecord)
    },
    edit: (id, patch) => edit(context, id, patch),
    claim: (id) => claim(context, id),
    transition: (step) => transition(context, step),
    remove: (id) => removeAccount(context, id),
  }
}
