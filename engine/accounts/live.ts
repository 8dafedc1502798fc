/** The live connection of an account for a command, or the reason why there is none and when the next try is. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AccountSnapshot } from '../../machines/account.machine.ts'
import { describeAccount } from '../../machines/view.ts'
import { AppError } from '../errors.ts'
import type { LiveAccount } from './commands/index.ts'
import type { Pool } from './pool.ts'

/** An API call waits this long for an account that is just connecting. */
const settleMs = 10_000
const settleStepMs = 25

/** Rejects with `account_disabled` or `account_unavailable`. */
export async function liveAccount(
  { registry, runtimes }: Pool,
  accountId: string,
  now: () => number,
): Promise<LiveAccount> {
  const until = now() + settleMs
  for (;;) {
    const snapshot = registry.snapshot(accountId)
    const live = runtimes.get(accountId)?.live() ?? null
    if (snapshot !== null && live !== null && (snapshot.hasTag('watching') || snapshot.hasTag('syncing'))) return live
    const settling = snapshot !== null && (snapshot.hasTag('connecting') || snapshot.hasTag('syncing'))
    if (!settling || now() >= until) throw unavailable(snapshot, now(), accountId)
    await sleep(settleStepMs)
  }
}

function unavailable(snapshot: AccountSnapshot | null, now: number, accountId: string): AppError {
  if (snapshot === null)
    return new AppError('account_unavailable', `email account ${accountId} is not started yet`, { retryAfterMs: 5000 })
  const { next, state, lastError } = describeAccount(snapshot)
  const details = { state, next, lastError }
  const wait = next === null ? {} : { retryAfterMs: Math.max(1000, next.at - now) }
  const why = lastError?.message ?? `the email account is ${state}`
  if (snapshot.hasTag('disabled'))
    return new AppError('account_disabled', `the email account is DISABLED: ${why}`, { details, ...wait })
  return new AppError('account_unavailable', `the mail server cannot be used now: ${why}`, { details, ...wait })
}
