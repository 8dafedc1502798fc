/**
 * What one account's actor does: logs in, reads, watches, and keeps the sockets. The chart
 * (machines/account.machine.ts) says when; the runtime says how: there is one per actor, and nothing else holds its
 * sessions. The chart's actors are promises and callbacks over it that speak in the chart's events, failures as plain
 * JSON.
 */
import { type ActorRefFrom, type AnyActorRef, type EventObject, fromCallback, fromPromise } from 'xstate'
import { accountMachine } from '../../machines/account.machine.ts'
import {
  type AccountEvent,
  type AccountReport,
  AttemptFailed,
  type DoneAt,
  type Failure,
  type FailureClass,
  failureClasses,
  type MailboxInput,
} from '../../machines/events.ts'
import { AppError, isAppError, notFound, toAppError } from '../errors.ts'
import type { FairQueue } from '../fair-queue.ts'
import type { OutboxRecord, AccountRecord } from '../store/records.ts'
import { catchUpFirst } from './background.ts'
import { createFolderPoll } from './folders.ts'
import { tryAgain } from './parking.ts'
import type { Hosts } from './hosts.ts'
import { createLink, type Link, renewed } from './link.ts'
import { login, type LoginDeps, type LoginStage } from './login.ts'
import { type SyncDeps, type AccountState, createAccountState } from './state.ts'
import { watchAll } from './watch.ts'
import type { Session } from './session/index.ts'

interface ActorDeps {
  readonly sync: SyncDeps
  readonly runtimeOf: (accountId: string) => Runtime
  /** Stores what the chart says of the account: status transition with its callback, or the resume record alone. */
  readonly report: (report: AccountReport) => Promise<void>
}

/** One logic for all accounts: `provide` costs 50 KiB each time. */
export function accountLogic({ sync, runtimeOf, report }: ActorDeps) {
  const { now } = sync
  return accountMachine.provide({
    actors: {
      connect: fromPromise<DoneAt, MailboxInput>(async ({ input, signal, system }) => {
        await attempt(sync, signal, () =>
          runtimeOf(input.accountId).connect(signal, (stage) => send(system, { type: `connect.${stage}`, at: now() })),
        )
        return { at: now() }
      }),
      sync: fromPromise<DoneAt, MailboxInput>(async ({ input, signal, system }) => {
        await attempt(sync, signal, () =>
          runtimeOf(input.accountId).sync(signal, () => send(system, { type: 'sync.progress', at: now() })),
        )
        return { at: now() }
      }),
      watch: fromCallback<EventObject, MailboxInput>(({ input, sendBack }) =>
        watchActor(sync, runtimeOf(input.accountId), sendBack),
      ),
      relogin: fromPromise<DoneAt, MailboxInput>(async ({ input, signal }) => {
        await attempt(sync, signal, () => runtimeOf(input.accountId).relogin())
        return { at: now() }
      }),
      report: fromPromise<unknown, AccountReport>(({ input }) => report(input)),
    },
  })
}

function watchActor(sync: SyncDeps, runtime: Runtime, sendBack: (event: AccountEvent) => void): () => void {
  const stop = new AbortController()
  const send = (event: AccountEvent): void => {
    if (!stop.signal.aborted) sendBack(event)
  }
  runtime
    .watch(stop.signal, {
      alive: () => send({ type: 'watch.alive', at: sync.now() }),
      completed: () => send({ type: 'sync.completed', at: sync.now() }),
    })
    .then(
      (end) => {
        if (end === 'rotate') send({ type: 'watch.rotate', at: sync.now() })
      },
      (error: unknown) => {
        if (!stop.signal.aborted) sendBack({ type: 'watch.failed', failure: failureFrom(sync, error) })
      },
    )
  return () => stop.abort()
}

/** The chart is the root of its system. */
function send(system: AnyActorRef['system'], event: AccountEvent): void {
  const chart = system.get('root') as ActorRefFrom<typeof accountMachine> | undefined
  chart?.send(event)
}

/** A chart that has left the state hears no failure: what the end of the attempt throws is no bug. */
async function attempt(sync: SyncDeps, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (signal.aborted) throw error
    throw new AttemptFailed(failureFrom(sync, error), error)
  }
}

const known: ReadonlySet<string> = new Set(failureClasses)
/** Codes that are no failure class of a mailbox, as the failure class that the chart knows. */
const classOf: Partial<Record<AppError['code'], FailureClass>> = {
  private_address: 'permission',
  server_refused: 'protocol',
  internal: 'protocol',
}

export function failureFrom(sync: Pick<SyncDeps, 'log' | 'now'>, thrown: unknown): Failure {
  const error = toAppError(thrown)
  if (error.code === 'internal') sync.log.error({ err: error.cause ?? error }, 'a bug in an account actor')
  const failureClass = known.has(error.code) ? (error.code as FailureClass) : (classOf[error.code] ?? 'network')
  return {
    class: failureClass,
    message: error.message,
    at: sync.now(),
    retryAfterMs: error.retryAfterMs,
    jitter: Math.random(),
  }
}

type ReportDeps = Pick<SyncDeps, 'store' | 'listener' | 'log'>

/** Attempts to connect follow each other at intervals; more than a few within one report are not ours. */
const claimsAtOnce = 3

/** `epochOf`: of our last claim; null while there is none. A report of an account that was taken over is dropped. */
export function createReports(
  deps: ReportDeps,
  epochOf: (accountId: string) => number | null,
): (report: AccountReport) => Promise<void> {
  /** By account: callbacks of transitions whose storing was not answered. The webhooks have not heard of them. */
  const unanswered = new Map<string, readonly OutboxRecord[]>()
  return async (report) => {
    const { accountId } = report
    for (let again = claimsAtOnce; ; again -= 1) {
      const claimed = epochOf(accountId)
      try {
        await storeReport(deps, report, claimed, unanswered)
        unanswered.delete(accountId)
        return
      } catch (error) {
        if (isAppError(error, 'not_found')) unanswered.delete(accountId)
        if (!isAppError(error, 'lease_lost')) throw error
        // A claim of our own came in between.
        if (again > 0 && (claimed === null || epochOf(accountId) !== claimed)) continue
        unanswered.delete(accountId)
        deps.log.debug({ accountId }, 'another owner has taken the account over')
        return
      }
    }
  }
}

async function storeReport(
  deps: ReportDeps,
  report: AccountReport,
  claimed: number | null,
  unanswered: Map<string, readonly OutboxRecord[]>,
): Promise<void> {
  const { store, listener } = deps
  const account = await store.accounts.get(report.accountId)
  if (account === null) throw notFound('email account', report.accountId)
  const { status, message, resume } = report
  const epoch = claimed ?? account.epoch
  const before = unanswered.get(account.id) ?? []
  let fresh: readonly OutboxRecord[] = []
  if (account.status === status) {
    await store.accounts.edit(account.id, { statusMessage: message, resume }, epoch)
  } else {
    const outbox = await listener.planStatus(account, { status, message, version: account.statusVersion + 1 })
    unanswered.set(account.id, [...before, ...outbox])
    const changed = { status, statusMessage: message, resume, outbox }
    const written = await store.accounts.transition({
      ...changed,
      accountId: account.id,
      epoch,
      fromVersion: account.statusVersion,
    })
    // Else the transition had been recorded before.
    if (written !== null) fresh = outbox
  }
  const rows = [...(await stillPending(deps, unanswered.get(account.id) ?? [], fresh)), ...fresh]
  if (rows.length > 0) listener.stored(account.id, rows, [])
}

async function stillPending(
  { store }: ReportDeps,
  rows: readonly OutboxRecord[],
  fresh: readonly OutboxRecord[],
): Promise<OutboxRecord[]> {
  const reported = new Set(fresh.map(({ id }) => id))
  const earlier = rows.filter(({ id }) => !reported.has(id))
  const stored = await Promise.all(earlier.map(({ id }) => store.outbox.get(id)))
  return stored.flatMap((row) => (row?.state === 'pending' ? [row] : []))
}

/** Asked before a login of the command connection, and told how it went. */
export interface CommandLogins {
  /** Throws while the chart holds the next login back. */
  enter(): void
  connected(): void
  /** Resolves with the error for the caller who wanted the login. */
  failed(thrown: unknown): Promise<AppError>
}

export interface RuntimeDeps extends LoginDeps {
  readonly commandLogins: CommandLogins
  /** Bounds how many accounts back-fill at the same time, in turns by developer and account. */
  readonly backfilling: FairQueue
  readonly hosts: Hosts
  /** Accounts that wait after a failed attempt are to try now. */
  readonly wake: (accountIds: readonly string[]) => void
}

export type Runtime = ReturnType<typeof createRuntime>

/** Logs in. An account that reaches its host again after a network failure wakes those that could not. */
async function reach(deps: RuntimeDeps, account: AccountRecord, options: Parameters<typeof login>[2]) {
  const { unreached } = deps.hosts.of(account.server)
  const opened = await login(deps, account, options).catch((error: unknown) => {
    unreached[isAppError(error, 'network') ? 'add' : 'delete'](account.id)
    throw error
  })
  unreached.delete(account.id)
  if (account.resume.lastError?.class === 'network') {
    deps.wake([...unreached])
    unreached.clear()
  }
  return opened
}

export function createRuntime(deps: RuntimeDeps, accountId: string) {
  const { sync } = deps
  let open: Connection | null = null
  let epoch: number | null = null
  let hurried = new AbortController()
  let closing = Promise.resolve()

  /**
   * Closes this attempt's connections, and no other's: an old attempt may end after a new one has begun. Resolves when
   * nothing more is written over any that was closed.
   */
  function release(mine: Connection | null): Promise<void> {
    if (open === mine) open = null
    closing = Promise.all([closing, mine && closeConnection(mine)]).then(() => undefined)
    return closing
  }

  function connection(): Connection {
    if (open === null) throw new AppError('network', 'the connection is closed')
    return open
  }

  /** Work over the open connection, which does not outlive a failure or the signal. */
  async function owning<T>(signal: AbortSignal, work: (mine: Connection) => Promise<T>): Promise<T> {
    const mine = connection()
    const drop = (): void => void release(mine)
    signal.addEventListener('abort', drop, { once: true })
    try {
      return await work(mine)
    } catch (error) {
      await release(mine)
      throw error
    } finally {
      signal.removeEventListener('abort', drop)
    }
  }

  return {
    /** Claims the account and logs in. Every earlier owner's writes are refused from here on. */
    async connect(signal: AbortSignal, stage: LoginStage): Promise<void> {
      await release(open)
      epoch = null
      hurried = new AbortController()
      const options = { signal, hurried: hurried.signal, stage }
      const account = await sync.store.accounts.claim(accountId)
      if (account === null) throw new AppError('not_found', 'the account was removed')
      epoch = account.epoch
      const folders = await sync.store.folders.list(accountId)
      const { session, tokenRenewAt } = await reach(deps, account, options)
      const state = createAccountState(sync, account, folders)
      const fresh = { session, state, link: commandLink(deps, account), tokenRenewAt }
      if (signal.aborted) await closeConnection(fresh)
      signal.throwIfAborted()
      open = fresh
    },
    /** Folder list, INBOX caught up and its first page read: usable from then on. */
    sync: (signal: AbortSignal, progress: () => void): Promise<void> =>
      owning(signal, (mine) => firstRead(sync, mine, progress)),
    /** Resolves when stopped or when the session has to be renewed; rejects with what ended it. */
    watch: (signal: AbortSignal, news: WatchNews): Promise<'stopped' | 'rotate'> =>
      owning(signal, (mine) => watchAccount(deps, mine, news, signal)),
    /** Opens the command connection, when it is not open, in the bounded time of a command. */
    relogin: async (): Promise<void> => connection().link.run(() => Promise.resolve()),
    /** Of the last claim; null before the first one and while one is under way. */
    epoch: (): number | null => epoch,
    live: (): Connection | null => open,
    /** An API call waits for the login. */
    hurry: (): void => hurried.abort(),
    close: () => release(open),
  }
}

interface Connection {
  readonly session: Session
  readonly state: AccountState
  readonly link: Link
  readonly tokenRenewAt: number
}

async function closeConnection(connection: Connection): Promise<void> {
  const ended = connection.state.end(renewed(true))
  await Promise.allSettled([connection.session.close(), connection.link.close(), ended])
}

/** Opened later, if ever: by then the credential may be another one. */
function commandLink(deps: RuntimeDeps, account: AccountRecord): Link {
  const { config, store } = deps.sync
  const { commandLogins } = deps
  return createLink({
    login: async (signal) => {
      commandLogins.enter()
      const newest = (await store.accounts.get(account.id)) ?? account
      const { session } = await login(deps, newest, { signal }).catch(async (error: unknown) => {
        // Of a link that has been closed: the chart has gone on to something else.
        throw signal.aborted ? error : await commandLogins.failed(error)
      })
      commandLogins.connected()
      return session
    },
    idleCloseMs: config.MAILROOM_COMMAND_IDLE_CLOSE,
    waitMs: config.MAILROOM_COMMAND_TIMEOUT,
  })
}

async function firstRead(deps: SyncDeps, { session, state }: Connection, progress: () => void): Promise<void> {
  const context = { deps, state, session }
  state.onProgress(progress)
  const begunAt = deps.now()
  const moved = await createFolderPoll(context).list()
  // The list says of every folder whether the index has it as it is: no poll need follow at once.
  if (session.capabilities.listStatus && session.capabilities.condstore)
    state.moved.found(
      moved.filter((path) => path !== 'INBOX'),
      begunAt,
    )
  progress()
  await catchUpFirst(context, 'INBOX')
}

/** Hosts that drop IDLE early, and how long it lasts there at most. */
const shortIdleHosts: readonly (readonly [RegExp, number])[] = [
  [/(^|\.)(yahoo|aol|verizon|aim)\./i, 3 * 60_000],
  [/(^|\.)(163|126|yeah|rambler|naver)\./i, 55_000],
]

interface WatchNews {
  /** The server has answered, or a batch was written. */
  readonly alive: () => void
  /** Every folder has been read to its end for the first time. */
  readonly completed: () => void
}

async function watchAccount(
  { sync, backfilling, hosts }: RuntimeDeps,
  { session, state, tokenRenewAt }: Connection,
  { alive, completed }: WatchNews,
  signal: AbortSignal,
): Promise<'stopped' | 'rotate'> {
  state.onProgress(alive)
  const onComplete = (): Promise<void> => reportCompleted(sync, state.account.id, completed)
  const host = hosts.of(state.account.server)
  const unopened = [...state.folders.values()].filter(({ selectable, cursor }) => selectable && cursor === null)
  await tryAgain(sync, state, unopened)
  state.moved.found(unopened.map(({ path }) => path))
  const shortMs = shortIdleHosts.find(([host]) => host.test(state.account.server))?.[1]
  const renewMs = shortMs ?? sync.config.MAILROOM_IDLE_RENEW
  const options = { renewMs, host, backfilling, onComplete, tokenRenewAt, alive }
  return watchAll({ deps: sync, state, session }, options, signal)
}

/** Told first, and noted then: what cannot be told now, or is cut short, is told again. */
async function reportCompleted({ store, listener }: SyncDeps, accountId: string, completed: () => void): Promise<void> {
  const account = await store.accounts.get(accountId)
  if (account === null || account.resume.initialSyncAt !== null) return
  await listener.initialSyncDone(account)
  completed()
}
