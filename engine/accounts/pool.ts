/** The supervisor pool of account actors, each with the runtime that does its work. */
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createActor } from 'xstate'
import type { AccountSnapshot } from '../../machines/account.machine.ts'
import type { AccountInput, AccountSettings } from '../../machines/account.rules.ts'
import type { AccountEvent, Failure } from '../../machines/events.ts'
import { activeStates, describeAccount } from '../../machines/view.ts'
import type { Config } from '../config.ts'
import { takeHeld } from '../observe/loop.ts'
import { ActorRegistry } from '../observe/registry.ts'
import { createWireRing, type WireRing } from '../observe/wire.ts'
import { pagesOf } from '../store/keyed.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord } from '../store/records.ts'
import { accountLogic, createReports, createRuntime, type Runtime, type RuntimeDeps } from './actors.ts'
import { createCommandLogins } from './live.ts'
import { createNames } from './session/mailboxes.ts'
import type { SyncDeps } from './state.ts'
import type { ActorStep } from './types.ts'

export type AccountRegistry = ActorRegistry<AccountInput, AccountEvent, AccountSnapshot>

export type Pool = ReturnType<typeof createPool>

export type PoolDeps = Omit<RuntimeDeps, 'commandLogins' | 'onLine' | 'names'>

export type AccountNews = { readonly step: ActorStep } | { readonly line: string }

interface Kept {
  readonly runtime: Runtime
  readonly wire: WireRing
}

export function createPool(deps: PoolDeps) {
  const { config, now } = deps.sync
  const kept = new Map<string, Kept>()
  const news = new EventEmitter<Record<string, [AccountNews]>>().setMaxListeners(0)
  const runtimeOf = (id: string): Runtime => {
    const known = kept.get(id)
    if (known !== undefined) return known.runtime
    const wire = createWireRing()
    const onLine = (line: string): void => void news.emit(id, { line: wire.add(line) })
    const commandLogins = createCommandLogins(registry, deps.sync, id)
    const runtime = createRuntime({ ...deps, commandLogins, onLine, names: createNames() }, id)
    kept.set(id, { runtime, wire })
    return runtime
  }
  const runtime = (id: string): Runtime | null => kept.get(id)?.runtime ?? null
  const report = createReports(deps.sync, (id) => runtime(id)?.epoch() ?? null)
  const registry = createAccountRegistry(
    deps.sync,
    accountLogic({ sync: deps.sync, runtimeOf, report }),
    (id, failure) => kept.get(id)?.wire.freeze(failure.at, failure.class),
    (id, step) => void news.emit(id, { step }),
  )
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
      registry.start(account.id, { ...inputOf(config, account, now()), aside })
    },
    async stop(accountId: string): Promise<void> {
      await registry.stop(accountId)
      await runtime(accountId)?.close()
      kept.delete(accountId)
    },
    async stopAll(): Promise<void> {
      await registry.stopAll()
      await Promise.allSettled(Array.from(kept.values(), (one) => one.runtime.close()))
    },
  }
}

function createAccountRegistry(
  { config, store, log, metrics, now }: SyncDeps,
  logic: ReturnType<typeof accountLogic>,
  failed: (id: string, failure: Failure) => void,
  stepped: (id: string, step: ActorStep) => void,
): AccountRegistry {
  return new ActorRegistry({
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
    stopTimeoutMs: 5000,
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
    connectDeadlineMs:
      config.MAILROOM_OAUTH_TIMEOUT + config.MAILROOM_CONNECT_TIMEOUT + config.MAILROOM_LOGIN_TIMEOUT + 5000,
    syncDeadlineMs: patienceMs,
    watchDeadlineMs: config.MAILROOM_FOLDER_POLL + patienceMs,
    reportDeadlineMs: config.MAILROOM_STORE_TIMEOUT + 5000,
    reportRetryMs: 1000,
  }
}

const deathsAtMost = 2
/** The others may take longer, but not for ever: a host may hold its accounts back. */
const othersMs = 60_000
/** It is woken before, or a call asks for it. */
const latestMs = 600_000
const aloneMs = 10_000
const stepMs = 200

type StartDeps = Pick<SyncDeps, 'store' | 'config' | 'log' | 'now'>

/**
 * Every account's actor at the start of the process. An account at whose work the process ended before is started when
 * the others are under way, alone; one at whose work it ended twice is set aside until a call asks for it. An account
 * without its user is what a creation leaves that was cut short by the end of its process: it is removed.
 * Page by page, with a breath between two. Those that wait for the others go on by themselves.
 */
export async function startAll(deps: StartDeps, pool: Pool, signal: AbortSignal): Promise<void> {
  const { store } = deps
  await countDeath(deps)
  const last: string[] = []
  for await (const page of pagesOf((after, limit) => store.accounts.page(after, limit))) {
    for (const account of await withOwner(store, page, deps.now())) {
      const { deaths = 0 } = account.resume
      if (deaths >= deathsAtMost) setAside(deps, pool, account)
      else if (deaths === 0 || account.status === 'DISABLED') pool.start(account)
      else {
        const retryAt = Math.max(account.resume.retryAt ?? 0, deps.now() + latestMs)
        pool.start({ ...account, resume: { ...account.resume, retryAt } })
        last.push(account.id)
      }
    }
    await sleep(0)
  }
  startLast(deps, pool, last, signal).catch((error: unknown) => {
    if (!signal.aborted) deps.log.error({ err: error }, 'accounts that were to start last are still waiting')
  })
}

/** Before anything is started: a start that ends the process again must find the count. */
async function countDeath({ store, config, log }: StartDeps): Promise<void> {
  await takeHeld(config.MAILROOM_DATA_DIR, async (accountId) => {
    const account = await store.accounts.get(accountId)
    if (account === null) return
    const deaths = (account.resume.deaths ?? 0) + 1
    await store.accounts.edit(accountId, { resume: { ...account.resume, deaths } })
    log.error({ accountId, deaths }, 'the process ended while this account held the event loop')
  })
}

async function startLast(
  { now, log }: StartDeps,
  { registry }: Pool,
  accountIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (accountIds.length === 0) return
  await until(() => !registry.countTags().has('connecting'), othersMs, signal)
  for (const accountId of accountIds) {
    if (registry.snapshot(accountId)?.hasTag('waiting') !== true) continue
    log.warn({ accountId }, 'started alone: the process ended at its work before')
    registry.send(accountId, { type: 'WAKE', now: now(), jitter: Math.random() })
    await sleep(aloneMs, undefined, { signal })
  }
}

async function until(done: () => boolean, ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !done(); left -= stepMs) await sleep(stepMs, undefined, { signal })
}

function setAside({ now, log }: StartDeps, pool: Pool, account: AccountRecord): void {
  // Once it is asked for, it may start once more.
  const resume = { ...account.resume, deaths: deathsAtMost - 1 }
  log.error({ accountId: account.id }, 'set aside: the process ended at its work again')
  pool.start({ ...account, resume }, aside('the service ended twice while it read this mailbox', now()))
}

/** The message says what to do about it. */
export function aside(reason: string, at: number): Failure {
  return {
    class: 'set_aside',
    message: `set aside: ${reason}. Edit the account, or ask for a status check, to try it again`,
    at,
    retryAfterMs: null,
    jitter: Math.random(),
    decides: true,
  }
}

/** An account whose user is still missing after this is left over; a younger one may wait for its user. */
const orphanMs = 3_600_000
const pageSize = 500

/** Without those whose user is not there; what is left over of them is removed. */
async function withOwner(store: Store, page: readonly AccountRecord[], now: number): Promise<AccountRecord[]> {
  const users = new Set(await store.users.existing([...new Set(page.map((account) => account.userId))]))
  for (const { id, userId, createdAt } of page) {
    if (!users.has(userId) && createdAt < now - orphanMs) await store.accounts.remove(id)
  }
  return page.filter((account) => users.has(account.userId))
}

/** One page of all accounts: how many were removed, and where the next page starts; null = from the start. */
export async function removeOrphans(
  store: Store,
  after: string | null,
  now: number,
): Promise<{ readonly orphans: number; readonly next: string | null }> {
  const page = await store.accounts.page(after, pageSize)
  const owned = await withOwner(store, page, now)
  const next = page.length < pageSize ? null : (page.at(-1)?.id ?? null)
  return { orphans: page.length - owned.length, next }
}
