/** The supervisor pool of account actors, each with the runtime that does its work. */
import { EventEmitter } from 'node:events'
import { createActor } from 'xstate'
import type { AccountSnapshot } from '../../machines/account.machine.ts'
import type { AccountInput, AccountSettings } from '../../machines/account.rules.ts'
import type { AccountEvent, Failure } from '../../machines/events.ts'
import { activeStates, describeAccount } from '../../machines/view.ts'
import type { Config } from '../config.ts'
import { workAs } from '../observe/loop.ts'
import { type ActorRegistry, createRegistry } from '../observe/registry.ts'
import { createWireRing, type WireRing } from '../observe/wire.ts'
import type { AccountRecord } from '../store/records.ts'
import { accountLogic, createReports } from './actors.ts'
import { createCommandLogins } from './live.ts'
import { createRuntime, type Runtime, type RuntimeDeps } from './runtime.ts'
import type { SyncDeps } from './state.ts'
import type { ActorStep } from './types.ts'

export type AccountRegistry = ActorRegistry<AccountInput, AccountEvent, AccountSnapshot>

export type Pool = ReturnType<typeof createPool>

export type PoolDeps = Omit<RuntimeDeps, 'commandLogins' | 'onLine'>

/** What has just happened to an account. */
export type AccountNews = { readonly step: ActorStep } | { readonly line: string }

interface Kept {
  readonly runtime: Runtime
  readonly wire: WireRing
}

export function createPool(deps: PoolDeps) {
  const { config, now } = deps.sync
  const kept = new Map<string, Kept>()
  const news = new EventEmitter<Record<string, [AccountNews]>>().setMaxListeners(0)
  /** By account: its mail server. */
  const servers = new Map<string, string>()
  const runtimeOf = (id: string): Runtime => {
    const known = kept.get(id)
    if (known !== undefined) return known.runtime
    const wire = createWireRing()
    const onLine = (line: string): void => void news.emit(id, { line: wire.add(line) })
    const commandLogins = createCommandLogins(registry, deps.sync, id)
    const runtime = createRuntime({ ...deps, commandLogins, onLine }, id)
    kept.set(id, { runtime, wire })
    return runtime
  }
  const runtime = (id: string): Runtime | null => kept.get(id)?.runtime ?? null
  const report = createReports(deps.sync, (id) => runtime(id)?.epoch() ?? null)
  const registry = createAccountRegistry(deps.sync, accountLogic({ sync: deps.sync, runtimeOf, report }), {
    failed: (id, failure) => kept.get(id)?.wire.freeze(failure.at, failure.class),
    stepped: (id, step) => void news.emit(id, { step }),
  })
  return {
    registry,
    runtime,
    wire: (id: string): WireRing | null => kept.get(id)?.wire ?? null,
    /** Answers the way to stop listening. */
    listen(id: string, listener: (news: AccountNews) => void): () => void {
      news.on(id, listener)
      return () => void news.off(id, listener)
    },
    /** Starts (or restarts) one. `aside`: known to the chart, which opens nothing before a call asks for it. */
    start(account: AccountRecord, aside?: Failure): void {
      servers.set(account.id, account.server.toLowerCase())
      workAs({ kind: 'account', id: account.id }, () =>
        registry.start(account.id, { ...inputOf(config, account, now()), aside }),
      )
    },
    /** Accounts by state, by mail server. */
    countHosts(): ReadonlyMap<string, ReadonlyMap<string, number>> {
      const hosts = new Map<string, Map<string, number>>()
      for (const { id, state } of registry.facts()) {
        const host = servers.get(id) ?? ''
        const states = hosts.get(host) ?? new Map<string, number>()
        hosts.set(host, states.set(state, (states.get(state) ?? 0) + 1))
      }
      return hosts
    },
    async stop(accountId: string): Promise<void> {
      await registry.stop(accountId)
      await runtime(accountId)?.close()
      kept.delete(accountId)
      servers.delete(accountId)
    },
    async stopAll(): Promise<void> {
      await registry.stopAll()
      await Promise.allSettled(Array.from(kept.values(), (one) => one.runtime.close()))
    },
  }
}

interface Listeners {
  readonly failed: (id: string, failure: Failure) => void
  readonly stepped: (id: string, step: ActorStep) => void
}

function createAccountRegistry(
  sync: SyncDeps,
  logic: ReturnType<typeof accountLogic>,
  { failed, stepped }: Listeners,
): AccountRegistry {
  const { config, store, log, metrics, now } = sync
  return createRegistry<AccountInput, AccountEvent, AccountSnapshot>({
    kind: 'account',
    create(input, inspect, id) {
      const actor = createActor(logic, { input, inspect, systemId: 'root' })
      actor.on('attempt.failed', ({ failure }) => {
        log.info({ accountId: id, class: failure.class, reason: failure.message }, 'account attempt failed')
        failed(id, failure)
      })
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
    active: ({ value }) => activeStates(value),
    stepped,
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
