/** Email accounts: their settings, status and epoch. */
import { accountBasics, type KeyedCollections } from '../aggregates.ts'
import type { AccountFilter, AccountPatch, AccountPlace, AccountStore, StatusTransition } from '../port.ts'
import type { AccountRecord } from '../records.ts'
import { foldCase, leaseLost, leftBehind, readAnew, transitioned } from '../rows.ts'
import { containing, insertMissing, shapes, type MongoContext } from './documents.ts'
import { changeMessages } from './message-rows.ts'
import { outboxDoc } from './outbox.ts'
import { drainAccount, removeAccount } from './removal.ts'

const { record: accountRecord, set: accountSet } = shapes.accounts

/** A writer whose epoch is not the account's has lost its lease, and so has one whose account is gone. */
export async function checkEpoch({ collections }: MongoContext, accountId: string, epoch: number): Promise<void> {
  const account = await collections.accounts.findOne({ _id: accountId }, { projection: { epoch: 1 } })
  if (account?.epoch !== epoch) throw leaseLost(accountId, epoch)
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

/**
 * Outbox first, then the account by compare-and-set: repeated after a crash, the row is there and the account follows.
 */
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

const stepMessages = 500
/** Few bytes each. */
const placesAtOnce = 10_000

/** A new epoch: a writer that is still at work for the former mailbox loses its lease. */
async function begin({ collections }: MongoContext, id: string, since: number): Promise<AccountRecord | null> {
  const { accounts, folders } = collections
  const stored = await accounts.findOne({ _id: id })
  if (!stored) return null
  const account = readAnew(accountRecord(stored), since)
  const { epoch, resume, remapSince } = account
  const { matchedCount } = await accounts.updateOne(
    { _id: id, epoch: stored.epoch },
    { $set: { epoch, resume, ...(remapSince === undefined ? {} : { remapSince }) } },
  )
  if (matchedCount === 0) throw leaseLost(id, stored.epoch)
  await folders.deleteMany({ accountId: id })
  return account
}

/** What was read of the former mailbox goes in bounded steps, the new settings come last. */
export async function replaceMailbox(
  context: MongoContext,
  id: string,
  patch: AccountPatch,
  since: number,
): Promise<AccountRecord | null> {
  const { accounts, messages } = context.collections
  const begun = await begin(context, id, since)
  if (!begun) return null
  for (;;) {
    await checkEpoch(context, id, begun.epoch)
    const docs = await messages.find({ accountId: id, live: true }, context.read).limit(stepMessages).toArray()
    if (docs.length === 0) break
    await changeMessages(context, id, docs, leftBehind)
  }
  const where = { _id: id, epoch: begun.epoch }
  const edited = await accounts.findOneAndUpdate(where, { $set: accountSet(patch) }, { returnDocument: 'after' })
  if (!edited) throw leaseLost(id, begun.epoch)
  return accountRecord(edited)
}

async function places({ collections, read }: MongoContext, { text, ...equal }: AccountFilter): Promise<AccountPlace[]> {
  const given = Object.fromEntries(Object.entries(equal).filter(([, value]) => value !== undefined))
  const matching =
    text === undefined ? {} : { $or: [{ emailKey: containing(foldCase(text)) }, { _id: text }, { label: text }] }
  const found = collections.accounts
    .find({ ...given, ...matching }, { ...read, projection: { server: 1, developerId: 1 } })
    .batchSize(placesAtOnce)
  return (await found.toArray()).map(({ _id, server, developerId }) => ({ id: _id, server, developerId }))
}

export function createAccounts(context: MongoContext, keyed: KeyedCollections): AccountStore {
  return {
    ...accountBasics(keyed),
    places: (filter) => places(context, filter),
    claim: (id) => claim(context, id),
    transition: (step) => transition(context, step),
    remove: (id) => removeAccount(context, id),
  }
}
