/** An account that becomes another mailbox: what was read of the former one goes in bounded steps, the settings come last. */
import type { AccountPatch } from '../port.ts'
import type { AccountRecord } from '../records.ts'
import { leftBehind, readAnew } from '../rows.ts'
import { accountRecord, accountSet } from './accounts.ts'
import type { MongoContext } from './documents.ts'
import { checkEpoch, leaseLost } from './leases.ts'
import { changeMessages } from './message-rows.ts'

/** Messages that leave between two checks of the epoch. */
const stepMessages = 500

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
    await changeMessages(context, id, docs, () => leftBehind)
  }
  const where = { _id: id, epoch: begun.epoch }
  const edited = await accounts.findOneAndUpdate(where, { $set: accountSet(patch) }, { returnDocument: 'after' })
  if (!edited) throw leaseLost(id, begun.epoch)
  return accountRecord(edited)
}
