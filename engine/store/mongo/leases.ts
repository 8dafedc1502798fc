/** Fencing: who may write for an account. */
import { AppError } from '../../errors.ts'
import type { MongoContext } from './documents.ts'

export function leaseLost(accountId: string, epoch: number): AppError {
  return new AppError('lease_lost', 'another owner has taken the account over', { details: { accountId, epoch } })
}

/** A writer whose epoch is not the account's has lost its lease, and so has one whose account is gone. */
export async function checkEpoch({ collections }: MongoContext, accountId: string, epoch: number): Promise<void> {
  const account = await collections.accounts.findOne({ _id: accountId }, { projection: { epoch: 1 } })
  if (account?.epoch !== epoch) throw leaseLost(accountId, epoch)
}
