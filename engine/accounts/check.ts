/**
 * force_status_check=1: a second login beside the actor's. The chart hears of its outcome, and the record says the same when this
 * answers: a login that is rejected makes the account DISABLED at once, a server that is away says nothing against it. So what came
 * of the login itself is answered too.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, notFound } from '../errors.ts'
import { openCredential } from '../secrets/credentials.ts'
import type { Sealer } from '../secrets/seal.ts'
import type { AccountRecord } from '../store/records.ts'
import { failureFrom } from './actors.ts'
import type { AccountRegistry } from './pool.ts'
import type { Probe } from './probe.ts'
import type { SyncDeps } from './state.ts'
import type { CheckResult, ProbeFailure } from './types.ts'

/** How long the chart may take to have its word stored; after a login that took all its time, no longer than the second. */
const recordMs = 10_000
const recordLeastMs = 1000
const recordStepMs = 25

export interface CheckDeps {
  readonly sync: SyncDeps
  readonly sealer: Sealer
  readonly probe: Probe
  readonly registry: AccountRegistry
}

export async function checkNow({ sync, sealer, probe, registry }: CheckDeps, accountId: string): Promise<CheckResult> {
  const until = sync.now() + sync.config.MAILROOM_CREATE_TIMEOUT
  const account = await sync.store.accounts.get(accountId)
  if (account === null) throw notFound('email account', accountId)
  const result = await probe(account.developerId, account, openCredential(sealer, account))
  if (!result.ok && result.retryAfterMs !== undefined) {
    // Says nothing about the account.
    throw new AppError('throttled', result.message, { retryAfterMs: result.retryAfterMs })
  }
  const at = sync.now()
  if (result.ok) registry.send(accountId, { type: 'CHECK_PASSED', at })
  else {
    const failure = { ...failureFrom(sync, failureError(result)), decides: true }
    registry.send(accountId, { type: 'CHECK_FAILED', failure })
  }
  await recorded(registry, accountId, Math.min(at + recordMs, Math.max(until, at + recordLeastMs)), sync.now)
  return { account: (await sync.store.accounts.get(accountId)) ?? account, failure: result.ok ? null : result }
}

/** After WAKE, or new settings: an attempt is under way. */
export async function settled(
  { sync, registry }: Pick<CheckDeps, 'sync' | 'registry'>,
  account: AccountRecord,
): Promise<AccountRecord> {
  if (account.status === 'OK' && account.statusMessage === null) return account
  await recorded(registry, account.id, sync.now() + recordMs, sync.now)
  return (await sync.store.accounts.get(account.id)) ?? account
}

function failureError({ failure, message }: { readonly failure: ProbeFailure; readonly message: string }): AppError {
  const unreachable = failure === 'connection_refused' || failure === 'host_not_found'
  return new AppError(unreachable ? 'network' : failure, message)
}

/** Waits until what the chart knows is stored. An attempt that is under way hears nothing of a check: its own outcome is waited for. */
export async function recorded(
  registry: AccountRegistry,
  accountId: string,
  until: number,
  now: () => number,
): Promise<void> {
  while (now() < until) {
    const snapshot = registry.snapshot(accountId)
    if (snapshot === null) return
    const { revision, recorded: stored, message } = snapshot.context
    const proving = snapshot.hasTag('syncing') && message !== null
    if (revision === stored && !proving && !snapshot.hasTag('connecting')) return
    await sleep(recordStepMs)
  }
}
