/**
 * Storing what the chart says of an account. A change between OK and DISABLED goes with its callback in one step, exactly once:
 * the transition's version names it, so a report that is repeated, or made by another process too, changes nothing.
 */
import type { AccountReport } from '../../machines/events.ts'
import { notFound } from '../errors.ts'
import type { SyncDeps } from './state.ts'

export async function storeReport({ store, listener }: SyncDeps, report: AccountReport): Promise<void> {
  const account = await store.accounts.get(report.accountId)
  if (account === null) throw notFound('email account', report.accountId)
  const { status, message, resume } = report
  if (account.status === status) {
    await store.accounts.edit(account.id, { statusMessage: message, resume })
    return
  }
  const outbox = await listener.planStatus(account, { status, message, version: account.statusVersion + 1 })
  const transition = {
    accountId: account.id,
    epoch: account.epoch,
    fromVersion: account.statusVersion,
    status,
    statusMessage: message,
    resume,
    outbox,
  }
  const written = await store.accounts.transition(transition)
  if (written !== null && outbox.length > 0) listener.stored(account.id, outbox, [])
}
