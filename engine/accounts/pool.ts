/** The supervisor pool of account actors, each with the runtime that does its work. */
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createActor } from 'xstate'
import type { AccountInput, AccountSettings } from '../../machines/account.rules.ts'
import type { Failure } from '../../machines/events.ts'
import { activeStates, describeAccount } from '../../machines/view.ts'
import type { Config } from '../config.ts'
import { ActorRegistry } from '../observe/registry.ts'
import type { ActorStep } from '../observe/steps.ts'
import { createWireRing, type WireLine, type WireRing } from '../observe/wire.ts'
import { pagesOf } from '../store/keyed.ts'
import type { Store } from '../store/port.ts'
import type { AccountRecord } from '../store/records.ts'
import { slotCount, slotOf } from '../store/slots.ts'
import { accountLogic, createReports, createRuntime, type Runtime, type RuntimeDeps } from './actors.ts'
import { createCommandLogins, type AccountRegistry } from './live.ts'
import { createNames } from './session/names.ts'
import type { SyncDeps } from './state.ts'
import { checkFactor } from './watch.ts'

export type Pool = ReturnType<typeof createPool>

export type PoolDeps = Omit<RuntimeDeps, 'commandLogins' | 'wake' | 'lines' | 'names'>

export type AccountNews = { readonly step: ActorStep } | { readonly line: WireLine }

interface Kept {
  readonly runtime: Runtime
  readonly wire: WireRing
  /** Announced; the step that it is of comes next. */
  failure: Failure | null
}

export function createPool(deps: PoolDeps) {
  const { config, now } = deps.sync
  const kept = new Map<string, Kept>()
  const placed = createPlaces()
  const news = new EventEmitter<Record<string, [AccountNews]>>().setMaxListeners(0)
  const runtimeOf = (id: string): Runtime => {
    const known = kept.get(id)
    if (known !== undefined) return known.runtime
    const wire = createWireRing()
    const lines: RuntimeDeps['lines'] = (kind) => {
      const add = wire.open(now(), kind)
      return (line) => void news.emit(id, { line: add(now(), line) })
    }
    const commandLogins = createCommandLogins(registry, deps.sync, id)
    const runtime = createRuntime({ ...deps, commandLogins, wake, lines, names: createNames() }, id)
    kept.set(id, { runtime, wire, failure: null })
    return runtime
  }
  const wake = (ids: readonly string[]): void => {
    for (const id of ids) registry.send(id, { type: 'HOST_BACK', now: now(), jitter: Math.random() })
  }
  const runtime = (id: string): Runtime | null => kept.get(id)?.runtime ?? null
  const report = createReports(deps.sync, (id) => runtime(id)?.epoch() ?? null)
  const registry = createAccountRegistry(
    deps.sync,
    accountLogic({ sync: deps.sync, runtimeOf, report }),
    (id, failure) => void Object.assign(kept.get(id) ?? {}, { failure }),
    (id, step) => {
      const one = kept.get(id)
      if (one !== undefined) keepStep(one, step)
      news.emit(id, { step })
    },
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
    placed,
    /** Starts (or restarts) one. */
    start(account: AccountRecord): void {
      placed.add(account)
      registry.start(account.id, inputOf(config, account, now()))
    },
    async stop(accountId: string): Promise<void> {
      placed.remove(accountId)
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

/** The accounts that have an actor, by slot. */
function createPlaces() {
  const slots = new Map<number, Set<string>>()
  const slotsOf = new Map<string, number>()
  return {
    add({ id, userId }: AccountRecord): void {
      const slot = slotOf(userId)
      slotsOf.set(id, slot)
      slots.set(slot, (slots.get(slot) ?? new Set()).add(id))
    },
    remove(id: string): void {
      slots.get(slotsOf.get(id) ?? -1)?.delete(id)
      slotsOf.delete(id)
    },
    in: (slot: number): readonly string[] => [...(slots.get(slot) ?? [])],
    count: (slot: number): number => slots.get(slot)?.size ?? 0,
  }
}

function keepStep(kept: Kept, { at, event, state }: ActorStep): void {
  const { wire, failure } = kept
  wire.step(at, event, state)
  if (failure === null) return
  kept.failure = null
  const ofCommands = /^(?:command\.failed|relogin failed)/.test(event)
  wire.freeze(failure.at, failure.class, event.startsWith('CHECK_FAILED') ? null : ofCommands ? 'commands' : 'mailbox')
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
    watchDeadlineMs: checkFactor * config.MAILROOM_FOLDER_POLL + patienceMs,
    reportDeadlineMs: config.MAILROOM_STORE_TIMEOUT + 5000,
    reportRetryMs: 1000,
  }
}

type StartDeps = Pick<SyncDeps, 'store' | 'now'>

/**
 * The actor of every account in these slots, page by page, with a breath between two. An account without its
 * user is what a creation leaves that was cut short by the end of its process: it is removed.
 */
export async function startAll({ store, now }: StartDeps, pool: Pool, slots: readonly number[]): Promise<void> {
  if (slots.length === 0) return
  const some = slots.length === slotCount ? undefined : slots
  for await (const page of pagesOf((after, limit) => store.accounts.page(after, limit, some))) {
    for (const account of await withOwner(store, page, now())) if (store.nodes.owns(account.userId)) pool.start(account)
    await sleep(0)
  }
}

/** An account whose user is still missing after this is left over; a younger one may wait for its user. */
const orphanMs = 3_600_000
const pageSize = 500

/** Without those whose user is not there; what is left over of them is removed. */
async function withOwner(store: Store, page: readonly AccountRecord[], now: number): Promise<AccountRecord[]> {
  const found = await store.users.several([...new Set(page.map((account) => account.userId))])
  const users = new Set(found.map(({ id }) => id))
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
