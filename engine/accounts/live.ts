/**
 * Gives commands, checks and second logins the live connection of an account's actor, or the reason why there is none,
 * with the time of the next try.
 */
import { waitFor, type ActorRefFrom } from 'xstate'
import type { accountMachine, AccountSnapshot } from '../../machines/account.machine.ts'
import type { AccountInput } from '../../machines/account.rules.ts'
import type { AccountEvent } from '../../machines/events.ts'
import { describeAccount } from '../../machines/view.ts'
import { AppError, failureClasses, notFound, toAppError } from '../errors.ts'
import type { ActorRegistry } from '../observe/registry.ts'
import { keepRotated, openCredential, type Sealer } from '../secrets/seal.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord } from '../store/records.ts'
import { failureFrom, type CommandLogins, type Runtime } from './actors.ts'
import type { LiveAccount } from './commands/message-location.ts'
import type { Probe } from './trial.ts'
import type { SyncDeps } from './state.ts'
import type { CheckResult, Credential, ProbeFailure } from './types.ts'

/** An API call waits this long for an account that is just connecting. */
const settleMs = 10_000
/** The answer to a check, or after new settings, waits so long for the chart to store the outcome. */
const recordMs = 10_000
/** The answer after a failed login for a command waits so long for the record. */
const loginRecordMs = 2000

export type AccountRegistry = ActorRegistry<AccountInput, AccountEvent, AccountSnapshot>

interface Actors {
  readonly registry: AccountRegistry
  readonly runtime: (accountId: string) => Runtime | null
}

/** Waits for the actor's next step, `ms` at most. false = there was none. */
async function hasStepped(
  registry: AccountRegistry,
  accountId: string,
  before: AccountSnapshot,
  ms: number,
): Promise<boolean> {
  const actor = registry.actor(accountId) as ActorRefFrom<typeof accountMachine> | null
  if (actor === null) return false
  // Rejects when the time is over, and when the actor ends: another one may have taken its place.
  await waitFor(actor, (now) => now !== before, { timeout: Math.max(0, ms) }).catch(() => undefined)
  return registry.snapshot(accountId) !== before
}

/** Rejects with `account_disabled` or `account_unavailable`; `not_found` when the account has been removed. */
export async function liveAccount(
  { registry, runtime }: Actors,
  accountId: string,
  store: Pick<Store, 'accounts'>,
  now: () => number,
): Promise<LiveAccount> {
  const until = now() + settleMs
  for (;;) {
    const snapshot = registry.snapshot(accountId)
    if (snapshot === null) throw await noActor(store, accountId)
    const live = runtime(accountId)?.live() ?? null
    if (live !== null && (snapshot.hasTag('watching') || snapshot.hasTag('syncing'))) {
      live.state.stir()
      return live
    }
    // The chart is about to hear of a session that has just ended.
    const settling = (['connecting', 'syncing', 'watching'] as const).some((tag) => snapshot.hasTag(tag))
    if (settling) runtime(accountId)?.hurry()
    if (!settling || !(await hasStepped(registry, accountId, snapshot, until - now())))
      throw unavailable(snapshot, now())
  }
}

/** The account's record is gone, or about to go, or has just been created. */
async function noActor({ accounts }: Pick<Store, 'accounts'>, accountId: string): Promise<AppError> {
  if ((await accounts.get(accountId)) === null) return notFound('email account', accountId)
  return new AppError('account_unavailable', 'the email account is just being started or removed', {
    retryAfterMs: 2000,
  })
}

function unavailable(snapshot: AccountSnapshot, now: number, cause?: unknown): AppError {
  const { next, state, lastError } = describeAccount(snapshot)
  const details = { state, next, lastError }
  const options = { details, cause, ...(next === null ? {} : { retryAfterMs: Math.max(1000, next.at - now) }) }
  const why = lastError?.message ?? `the email account is ${state}`
  if (snapshot.hasTag('disabled'))
    return new AppError('account_disabled', `the email account is DISABLED: ${why}`, options)
  return new AppError('account_unavailable', `the mail server cannot be used now: ${why}`, options)
}

/** Waits until the chart's state is stored, and for the end of an attempt under way, which ignores a check. */
async function recorded(registry: AccountRegistry, accountId: string, until: number, now: () => number): Promise<void> {
  for (;;) {
    const snapshot = registry.snapshot(accountId)
    if (snapshot === null || now() >= until) return
    const { revision, recorded: stored, message } = snapshot.context
    const proving = snapshot.hasTag('syncing') && message !== null
    if (revision === stored && !proving && !snapshot.hasTag('connecting')) return
    if (!(await hasStepped(registry, accountId, snapshot, until - now()))) return
  }
}

interface CheckDeps {
  readonly sync: SyncDeps
  readonly sealer: Sealer
  readonly probe: Probe
  readonly registry: AccountRegistry
}

/**
 * force_status_check=1: a second login beside the actor's, whose outcome the chart hears. A rejected login makes the
 * account DISABLED at once; a server that is away says nothing against it, so the outcome is answered too.
 */
export async function checkNow({ sync, sealer, probe, registry }: CheckDeps, accountId: string): Promise<CheckResult> {
  const account = await sync.store.accounts.get(accountId)
  if (account === null) throw notFound('email account', accountId)
  const onRotated = (newest: Credential) => keepRotated({ sealer, store: sync.store }, account, newest)
  const result = await probe(account.developerId, account, openCredential(sealer, account), { onRotated })
  // Our own limit on logins is no outcome of the check.
  if (!result.ok && result.retryAfterMs !== undefined)
    throw new AppError('throttled', result.message, { retryAfterMs: result.retryAfterMs })
  const at = sync.now()
  if (result.ok) registry.send(accountId, { type: 'CHECK_PASSED', at })
  else {
    const failure = { ...failureFrom(sync, failureError(result)), decides: true }
    registry.send(accountId, { type: 'CHECK_FAILED', failure })
  }
  await recorded(registry, accountId, at + recordMs, sync.now)
  return { account: (await sync.store.accounts.get(accountId)) ?? account, failure: result.ok ? null : result }
}

function failureError({ failure, message }: { readonly failure: ProbeFailure; readonly message: string }): AppError {
  const unreachable = failure === 'connection_refused' || failure === 'host_not_found'
  return new AppError(unreachable ? 'network' : failure, message)
}

/** After WAKE, or new settings: the record of an account that was in trouble, after its attempt has ended. */
export async function settled(
  { sync, registry }: Pick<CheckDeps, 'sync' | 'registry'>,
  account: AccountRecord,
): Promise<AccountRecord> {
  if (account.status === 'OK' && account.statusMessage === null) return account
  await recorded(registry, account.id, sync.now() + recordMs, sync.now)
  return (await sync.store.accounts.get(account.id)) ?? account
}

/**
 * The logins of an account's command connection. Their failures go to the chart. While the chart holds the next login
 * back, `enter` throws the reason and the time.
 */
export function createCommandLogins(
  registry: AccountRegistry,
  sync: Pick<SyncDeps, 'log' | 'now'>,
  accountId: string,
): CommandLogins {
  const { now } = sync
  return {
    enter(): void {
      const snapshot = registry.snapshot(accountId)
      if (snapshot?.hasTag('held') === true) throw unavailable(snapshot, now())
    },
    connected: (): void => void registry.send(accountId, { type: 'command.connected', at: now() }),
    async failed(thrown: unknown): Promise<AppError> {
      const error = toAppError(thrown)
      if (!isOfTheServer(error)) return error
      registry.send(accountId, { type: 'command.failed', failure: failureFrom(sync, error) })
      const snapshot = registry.snapshot(accountId)
      await recorded(registry, accountId, now() + loginRecordMs, now)
      return snapshot === null ? error : unavailable(snapshot, now(), error)
    },
  }
}

/** false of a failure of the store, and of the end of the link. */
function isOfTheServer(error: AppError): boolean {
  return error.code === 'timeout' || failureClasses.some((name) => name === error.code)
}
