/**
 * The work of one account's actor: logging in, reading, watching. The chart (machines/account.machine.ts) decides when;
 * the runtime does the work. Each actor has one runtime, the only owner of its sessions. The chart's child actors send
 * the chart's events, with failures as plain JSON.
 */
import { type ActorRefFrom, type EventObject, fromCallback, fromPromise } from 'xstate'
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
import type { AccountRecord } from '../store/records.ts'
import { catchUpFirst, createTraffic, type Traffic } from './background.ts'
import { createFolderPoll } from './folders.ts'
import { tryAgain } from './parking.ts'
import type { Hosts } from './hosts.ts'
import { createLink, type Link, renewed } from './link.ts'
import { login, type LoginDeps, type LoginStage } from './login.ts'
import { type SyncDeps, type AccountState, createAccountState } from './state.ts'
import { watchAll } from './watch.ts'
import type { SyncContext } from './write.ts'
import type { Session } from './session/index.ts'

interface ActorDeps {
  readonly sync: SyncDeps
  readonly runtimeOf: (accountId: string) => Runtime
  /** Stores what the chart says of the account: status transition with its callback, or the resume record alone. */
  readonly report: (report: AccountReport) => Promise<void>
}

type Send = (event: AccountEvent) => void

/** One logic for all accounts: each `provide` costs 50 KiB. */
export function accountLogic({ sync, runtimeOf, report }: ActorDeps) {
  const { now } = sync
  /** A chart that has left the state hears no failure: an error after the abort is no bug. */
  const attempt = (work: (runtime: Runtime, signal: AbortSignal, send: Send) => Promise<void>) =>
    fromPromise<DoneAt, MailboxInput>(async ({ input, signal, system }) => {
      // The chart is the root of its system.
      const chart = system.get('root') as ActorRefFrom<typeof accountMachine> | undefined
      try {
        await work(runtimeOf(input.accountId), signal, (event) => chart?.send(event))
      } catch (error) {
        throw signal.aborted ? error : new AttemptFailed(failureFrom(sync, error), error)
      }
      return { at: now() }
    })
  return accountMachine.provide({
    actors: {
      connect: attempt((runtime, signal, send) =>
        runtime.connect(signal, (stage) => send({ type: `connect.${stage}`, at: now() })),
      ),
      sync: attempt((runtime, signal, send) => runtime.sync(signal, () => send({ type: 'sync.progress', at: now() }))),
      watch: fromCallback<EventObject, MailboxInput>(({ input, sendBack }) =>
        watchActor(sync, runtimeOf(input.accountId), sendBack),
      ),
      relogin: attempt((runtime) => runtime.relogin()),
      report: fromPromise<unknown, AccountReport>(({ input }) => report(input)),
    },
  })
}

function watchActor(sync: SyncDeps, runtime: Runtime, sendBack: Send): () => void {
  const stop = new AbortController()
  const send: Send = (event) => {
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

/** The failure classes of other codes; else `network`. */
const classOf: Partial<Record<AppError['code'], FailureClass>> = {
  private_address: 'permission',
  server_refused: 'protocol',
  internal: 'protocol',
}

export function failureFrom(sync: Pick<SyncDeps, 'log' | 'now'>, thrown: unknown): Failure {
  const error = toAppError(thrown)
  const { code, message, retryAfterMs } = error
  if (code === 'internal') sync.log.error({ err: error.cause ?? error }, 'a bug in an account actor')
  const failureClass = failureClasses.find((name) => name === code) ?? classOf[code] ?? 'network'
  return { class: failureClass, message, at: sync.now(), retryAfterMs, jitter: Math.random() }
}

type ReportDeps = Pick<SyncDeps, 'store' | 'listener' | 'log'>

/**
 * `epochOf`: of our last claim; null while there is none. The report of an account that was taken over is dropped; any
 * other that rejects is repeated by the chart.
 */
export function createReports(
  deps: ReportDeps,
  epochOf: (accountId: string) => number | null,
): (report: AccountReport) => Promise<void> {
  /** By account: channels of callbacks that may be stored, also by a write that was not answered. */
  const channels = new Map<string, Set<string>>()
  return async (report) => {
    const { accountId } = report
    const claimed = epochOf(accountId)
    try {
      for (const id of await storeReport(deps, report, claimed, channels)) deps.listener.statusStored(id)
    } catch (error) {
      const isTakenOver = isAppError(error, 'lease_lost') && claimed !== null && epochOf(accountId) === claimed
      if (!isTakenOver && !isAppError(error, 'not_found')) throw error
      deps.log.debug({ accountId }, 'the account is removed, or another owner has taken it over')
    }
    channels.delete(accountId)
  }
}

/** Returns the channels of `channels`. */
async function storeReport(
  { store, listener }: ReportDeps,
  { accountId, status, message, resume }: AccountReport,
  claimed: number | null,
  channels: Map<string, Set<string>>,
): Promise<Iterable<string>> {
  const account = await store.accounts.get(accountId)
  if (account === null) throw notFound('email account', accountId)
  const epoch = claimed ?? account.epoch
  const changed = { statusMessage: message, resume }
  if (account.status === status) {
    await store.accounts.edit(accountId, changed, epoch)
    return channels.get(accountId) ?? []
  }
  const { statusVersion: fromVersion } = account
  const outbox = await listener.planStatus(account, { status, message, version: fromVersion + 1 })
  const ids = channels.getOrInsertComputed(accountId, () => new Set())
  for (const { channelId } of outbox) ids.add(channelId)
  const after = await store.accounts.transition({ ...changed, status, outbox, accountId, epoch, fromVersion })
  if (after === null && (await store.accounts.get(accountId)) === null) throw notFound('email account', accountId)
  return ids
}

/** Hears of the logins of the command connection. */
export interface CommandLogins {
  /** Throws while the chart holds the next login back. */
  enter(): void
  connected(): void
  /** Resolves with the error for the caller who wanted the login. */
  failed(thrown: unknown): Promise<AppError>
}

export interface RuntimeDeps extends LoginDeps {
  readonly commandLogins: CommandLogins
  /** Bounds how many accounts backfill at the same time; developers and accounts take turns. */
  readonly backfilling: FairQueue
  readonly hosts: Hosts
  /** Makes accounts that wait after a failed attempt try now. */
  readonly wake: (accountIds: readonly string[]) => void
}

export type Runtime = ReturnType<typeof createRuntime>

/** Logs in. An account that reaches its host after a network failure wakes the others that did not. */
async function reach(deps: RuntimeDeps, account: AccountRecord, options: Parameters<typeof login>[2]) {
  const { unreached } = deps.hosts.of(account.server)
  const opened = await login(deps, account, options).catch((error: unknown) => {
    unreached[isAppError(error, 'network') ? 'add' : 'delete'](account.id)
    throw error
  })
  // A failure of a moment ago may not be stored yet.
  if (unreached.delete(account.id) || account.resume.lastError?.class === 'network') {
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
  const traffic = createTraffic(sync.now)

  /**
   * Closes the connections of this attempt alone: an old attempt may end after a new one has begun. Resolves when no
   * closed connection writes any more.
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

  /** Works over the open connection, and closes it at a failure or when the signal aborts. */
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
    /** Claims the account, so that the store refuses the writes of earlier owners, and logs in. */
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
      const fresh = { session, state, link: commandLink(deps, account), tokenRenewAt, traffic }
      if (signal.aborted) await closeConnection(fresh)
      signal.throwIfAborted()
      open = fresh
    },
    /** Catches up with INBOX and reads its first page. Of a new account the folder list is stored before. */
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
  /** Old mail of the account, over all its connections. */
  readonly traffic: Traffic
}

async function closeConnection(connection: Connection): Promise<void> {
  const ended = connection.state.end(renewed(true))
  await Promise.allSettled([connection.session.close(), connection.link.close(), ended])
}

/** The link logs in later, if ever, with the credential of that time. */
function commandLink(deps: RuntimeDeps, account: AccountRecord): Link {
  const { config, store } = deps.sync
  const { commandLogins } = deps
  return createLink({
    login: async (signal) => {
      commandLogins.enter()
      const newest = (await store.accounts.get(account.id)) ?? account
      const { session } = await login(deps, newest, { signal }).catch(async (error: unknown) => {
        // The chart of a closed link is in another state.
        throw signal.aborted ? error : await commandLogins.failed(error)
      })
      commandLogins.connected()
      return session
    },
    idleCloseMs: config.MAILROOM_COMMAND_IDLE_CLOSE,
    waitMs: config.MAILROOM_COMMAND_TIMEOUT,
  })
}

/** The chart hears of progress once a second at most, since its deadlines are half a minute and more. */
function seldom(now: () => number, hear: () => void): () => void {
  let heardAt = Number.NEGATIVE_INFINITY
  return () => {
    if (Math.abs(now() - heardAt) < 1000) return
    heardAt = now()
    hear()
  }
}

async function listFirst(context: SyncContext): Promise<void> {
  const { deps, state, session } = context
  const begunAt = deps.now()
  const moved = await createFolderPoll(context).list()
  // This list compares every folder with the index: the first poll is not due at once.
  if (session.capabilities.listStatus && session.capabilities.condstore)
    state.moved.found(
      moved.filter((path) => path !== 'INBOX'),
      begunAt,
    )
  state.heard()
}

async function firstRead(deps: SyncDeps, { session, state }: Connection, progress: () => void): Promise<void> {
  const context = { deps, state, session }
  state.onProgress(seldom(deps.now, progress))
  // Of an account that was read before, INBOX comes first: the watching lists the folders when it has its turn.
  if (state.account.resume.initialSyncAt === null || !state.folderByPath('INBOX')?.cursor) await listFirst(context)
  await catchUpFirst(context, 'INBOX')
}

/** Hosts that drop IDLE early, and its longest duration there in ms. */
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
  { sync, backfilling, dialing, hosts }: RuntimeDeps,
  { session, state, link, tokenRenewAt, traffic }: Connection,
  { alive, completed }: WatchNews,
  signal: AbortSignal,
): Promise<'stopped' | 'rotate'> {
  state.onProgress(seldom(sync.now, alive))
  const onComplete = (): Promise<void> => reportCompleted(sync, state.account.id, completed)
  const host = hosts.of(state.account.server)
  const unopened = [...state.folders.values()].filter(({ selectable, cursor }) => selectable && cursor === null)
  await tryAgain(sync, state, unopened)
  state.moved.found(unopened.map(({ path }) => path))
  const shortMs = shortIdleHosts.find(([host]) => host.test(state.account.server))?.[1]
  const renewMs = shortMs ?? sync.config.MAILROOM_IDLE_RENEW
  const isCalling = (): boolean => link.depth().running > 0
  const options = { renewMs, host, backfilling, dialing, onComplete, traffic, tokenRenewAt, alive, isCalling }
  return watchAll({ deps: sync, state, session }, options, signal)
}

/** The callback goes first, the record follows: a callback that fails or is cut short is sent again. */
async function reportCompleted(
  { store, listener, log }: SyncDeps,
  accountId: string,
  completed: () => void,
): Promise<void> {
  const account = await store.accounts.get(accountId)
  if (account === null || account.resume.initialSyncAt !== null) return
  await listener.initialSyncDone(account)
  log.info({ accountId }, 'all old mail is read')
  completed()
}
