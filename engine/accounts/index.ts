/** The accounts wing: the supervisor pool of account actors, and the commands that the API sends to them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createActor } from 'xstate'
import type { AccountInput, AccountSettings } from '../../machines/account.rules.ts'
import type { AccountSnapshot } from '../../machines/account.machine.ts'
import type { AccountEvent } from '../../machines/events.ts'
import { describeAccount } from '../../machines/view.ts'
import type { Config } from '../config.ts'
import { AppError, notFound } from '../errors.ts'
import { createRegistry, type ActorRegistry } from '../observe/registry.ts'
import { openCredential } from '../secrets/credentials.ts'
import type { AccountRecord } from '../store/records.ts'
import { accountLogic, failureFrom } from './actors.ts'
import { createCommands, type LiveAccount } from './commands.ts'
import { createFolderPoll } from './folders.ts'
import { createLane, createLoginLimiter } from './lanes.ts'
import { createProbe } from './probe.ts'
import { storeReport } from './report.ts'
import { createRuntime, type Runtime, type RuntimeDeps } from './runtime.ts'
import { openSession } from './session/index.ts'
import type { SyncDeps } from './state.ts'
import type { Accounts } from './types.ts'

export interface AccountsDeps extends Omit<SyncDeps, 'now'>, Pick<RuntimeDeps, 'sealer' | 'tokens'> {
  readonly now?: () => number
}

type Registry = ActorRegistry<AccountInput, AccountEvent, AccountSnapshot>

const startPage = 500
/** An API call waits this long for an account that is just connecting. */
const settleMs = 10_000
const settleStepMs = 25

export function createAccounts({ sealer, tokens, now = Date.now, ...rest }: AccountsDeps): Accounts {
  const sync: SyncDeps = { ...rest, now }
  const { config, store } = sync
  const backfill = createLane(config.MAILROOM_BACKFILL_CONCURRENCY)
  const limiter = createLoginLimiter({ perMinute: config.MAILROOM_LOGINS_PER_MINUTE })
  const dialing = createLane(config.MAILROOM_START_CONCURRENCY)
  const slot: RuntimeDeps['slot'] = (work, signal) => backfill.run('backfill', work, signal)
  const runtimeDeps: RuntimeDeps = { sync, sealer, tokens, openSession, limiter, dialing, slot }
  const runtimes = new Map<string, Runtime>()
  const registry = createPool(sync, runtimeDeps, runtimes)
  const probe = createProbe({
    config,
    openSession,
    logins: limiter,
    accessToken: async (developerId, credential) => (await tokens.get(developerId, credential)).accessToken,
  })
  const commands = createCommands({
    sync,
    live: (accountId) => liveAccount(sync, registry, runtimes, accountId),
    relist: async ({ state }, session) => void (await createFolderPoll({ deps: sync, state, session }).list()),
  })
  const start = (account: AccountRecord): void => registry.start(account.id, inputOf(config, account, now()))

  return {
    ...commands,
    probe,
    start,
    async startAll() {
      let after: string | null = null
      for (;;) {
        const page: AccountRecord[] = await store.accounts.page(after, startPage)
        for (const account of page) start(account)
        after = page.at(-1)?.id ?? null
        if (page.length < startPage) return
        await sleep(0)
      }
    },
    async stop(accountId) {
      await registry.stop(accountId)
      await runtimes.get(accountId)?.close()
      runtimes.delete(accountId)
    },
    pause: (accountId) => void registry.send(accountId, { type: 'PAUSE' }),
    resume: (accountId) => void registry.send(accountId, { type: 'RESUME', now: now(), jitter: Math.random() }),
    wake: (accountId) =>
      void registry.send(accountId, { type: 'WAKE', reconnect: true, now: now(), jitter: Math.random() }),
    checkNow: (accountId) => checkNow({ sync, sealer, probe, registry }, accountId),
    view: (accountId) => registry.view(accountId),
    views: () => registry.views(),
    countTags: () => registry.countTags(),
    async stopAll() {
      await registry.stopAll()
      await Promise.allSettled([...runtimes.values()].map((runtime) => runtime.close()))
    },
  }
}

function createPool(sync: SyncDeps, deps: RuntimeDeps, runtimes: Map<string, Runtime>): Registry {
  const { config, store, log, metrics, now } = sync
  const runtimeOf = (id: string): Runtime => {
    const runtime = runtimes.get(id) ?? createRuntime(deps, id)
    runtimes.set(id, runtime)
    return runtime
  }
  const logic = accountLogic({ sync, runtimeOf, report: (report) => storeReport(sync, report) })
  return createRegistry<AccountInput, AccountEvent, AccountSnapshot>({
    kind: 'account',
    create(input, inspect, id) {
      const actor = createActor(logic, { input, inspect, systemId: 'root' })
      actor.on('attempt.failed', ({ failure }) =>
        log.info({ accountId: id, class: failure.class, reason: failure.message }, 'account attempt failed'),
      )
      actor.on('status.changed', ({ status, message }) =>
        log.warn({ accountId: id, status, reason: message }, 'account status changed'),
      )
      return actor
    },
    async load(id) {
      const account = await store.accounts.get(id)
      return account === null ? null : inputOf(config, account, now())
    },
    describe: describeAccount,
    stopEvent: { type: 'STOP' },
    stopTimeoutMs: 5000,
    restartFirstMs: 1000,
    restartMaxMs: 5 * 60_000,
    log,
    metrics,
  })
}

function inputOf(config: Config, account: AccountRecord, now: number): AccountInput {
  return {
    accountId: account.id,
    settings: settingsOf(config),
    now,
    jitter: Math.random(),
    status: account.status,
    statusMessage: account.statusMessage,
    paused: account.paused,
    resume: account.resume,
  }
}

function settingsOf(config: Config): AccountSettings {
  const patienceMs = 2 * config.MAILROOM_COMMAND_TIMEOUT + 30_000
  return {
    backoffFirstMs: config.MAILROOM_BACKOFF_FIRST,
    backoffMaxMs: config.MAILROOM_BACKOFF_MAX,
    authScheduleMs: config.MAILROOM_BACKOFF_AUTH,
    strikes: config.MAILROOM_STRIKES,
    disabledProbeMs: config.MAILROOM_DISABLED_PROBE,
    throttleDefaultMs: 5 * 60_000,
    throttleMaxMs: 24 * 3_600_000,
    connectDeadlineMs: config.MAILROOM_CONNECT_TIMEOUT + config.MAILROOM_LOGIN_TIMEOUT + 5000,
    syncDeadlineMs: patienceMs,
    watchDeadlineMs: config.MAILROOM_FOLDER_POLL + patienceMs,
    reportDeadlineMs: config.MAILROOM_STORE_TIMEOUT + 5000,
    reportRetryMs: 1000,
  }
}

/** The account's live connection; one that is just connecting is waited for. */
async function liveAccount(
  sync: SyncDeps,
  registry: Registry,
  runtimes: ReadonlyMap<string, Runtime>,
  accountId: string,
): Promise<LiveAccount> {
  const until = sync.now() + settleMs
  for (;;) {
    const snapshot = registry.snapshot(accountId)
    const live = runtimes.get(accountId)?.live() ?? null
    if (snapshot !== null && live !== null && (snapshot.hasTag('watching') || snapshot.hasTag('syncing'))) return live
    const settling = snapshot !== null && (snapshot.hasTag('connecting') || snapshot.hasTag('syncing'))
    if (!settling || sync.now() >= until) throw unavailable(snapshot, sync.now(), accountId)
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

interface CheckDeps extends Pick<RuntimeDeps, 'sealer'> {
  readonly sync: SyncDeps
  readonly probe: Accounts['probe']
  readonly registry: Registry
}

/** A second login beside the actor's; the chart hears of its outcome, and the record says the same when this answers. */
async function checkNow({ sync, sealer, probe, registry }: CheckDeps, accountId: string): Promise<AccountRecord> {
  const account = await sync.store.accounts.get(accountId)
  if (account === null) throw notFound('email account', accountId)
  const result = await probe(account.developerId, account, openCredential(sealer, account))
  const at = sync.now()
  if (result.ok) registry.send(accountId, { type: 'CHECK_PASSED', at })
  else registry.send(accountId, { type: 'CHECK_FAILED', failure: failureFrom(sync, checkError(result)) })
  await recorded(registry, accountId, at + settleMs, sync.now)
  return (await sync.store.accounts.get(accountId)) ?? account
}

function checkError(result: { readonly failure: string; readonly message: string }): AppError {
  const code =
    result.failure === 'connection_refused' || result.failure === 'host_not_found' ? 'network' : result.failure
  return new AppError(code as AppError['code'], result.message)
}

/** Waits until what the chart knows is stored. */
async function recorded(registry: Registry, accountId: string, until: number, now: () => number): Promise<void> {
  while (now() < until) {
    const snapshot = registry.snapshot(accountId)
    if (snapshot === null || snapshot.context.revision === snapshot.context.recorded) return
    await sleep(settleStepMs)
  }
}
