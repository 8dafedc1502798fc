/** The live connection of an account for a command, or the reason why there is none and when the next try is. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AccountSnapshot } from '../../machines/account.machine.ts'
import { describeAccount } from '../../machines/view.ts'
import { AppError, notFound } from '../errors.ts'
import type { Store } from '../store/port.ts'
import type { LiveAccount } from './commands/index.ts'
import type { Pool } from './pool.ts'

/** An API call waits this long for an account that is just connecting. */
const settleMs = 10_000
const settleStepMs = 25

/** Rejects with `account_disabled` or `account_unavailable`; `not_found` when it has been removed. */
export async function liveAccount(
  { registry, runtimes }: Pool,
  accountId: string,
  store: Pick<Store, 'accounts'>,
  now: () => number,
): Promise<LiveAccount> {
  const until = now() + settleMs
  for (;;) {
    const snapshot = registry.snapshot(accountId)
    const live = runtimes.get(accountId)?.live() ?? null
    if (snapshot !== null && live !== null && (snapshot.hasTag('watching') || snapshot.hasTag('syncing'))) return live
    const settling = snapshot !== null && (snapshot.hasTag('connecting') || snapshot.hasTag('syncing'))
    if (snapshot === null) throw await absent(store, accountId)
    if (!settling || now() >= until) throw unavailable(snapshot, now())
    await sleep(settleStepMs)
  }
}

/** No actor: its record has gone, or is about to go, or has just come. */
async function absent({ accounts }: Pick<Store, 'accounts'>, accountId: string): Promise<AppError> {
  if ((await accounts.get(accountId)) === null) return notFound('email account', accountId)
  return new AppError('account_unavailable', 'the email account is just being started or removed', {
    retryAfterMs: 2000,
  })
}

/** Why the mail server cannot be used, and when the next try is. */
export function unavailable(snapshot: AccountSnapshot, now: number, cause?: unknown): AppError {
  const { next, state, lastError } = describeAccount(snapshot)
  const details = { state, next, lastError }
  const options = { details, cause, ...(next === null ? {} : { retryAfterMs: Math.max(1000, next.at - now) }) }
  const why = lastError?.message ?? `the email account is ${state}`
  if (snapshot.hasTag('disabled'))
    return new AppError('account_disabled', `the email account is DISABLED: ${why}`, options)
  return new AppError('account_unavailable', `the mail server cannot be used now: ${why}`, options)
}
