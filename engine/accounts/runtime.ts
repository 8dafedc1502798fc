/**
 * What one account's actor does: logs in, reads, watches, and keeps the sockets. The chart
 * (machines/account.machine.ts) says when; this says how. There is one runtime per actor, and nothing else holds its
 * sessions.
 */
import { AppError } from '../errors.ts'
import type { Loans } from '../loans.ts'
import { login, type LoginDeps, type LoginStage } from './login.ts'
import type { PushRecords } from './idle-trust.ts'
import type { AccountRecord } from '../store/records.ts'
import type { CommandLogins } from './live.ts'
import { createLink, type Link } from './link.ts'
import type { Session } from './session-types.ts'
import { type AccountState, createAccountState, type SyncDeps } from './state.ts'
import { backfillFirst, createBackground } from './background.ts'
import { createFolderPoll } from './folders.ts'
import { catchUp } from './sync.ts'
import { watchInbox } from './watch.ts'

export interface RuntimeDeps extends LoginDeps {
  readonly commandLogins: CommandLogins
  /** Bounds how many accounts back-fill at the same time, in turns by developer and account. */
  readonly backfilling: Loans
  readonly pushes: PushRecords
}

export type Runtime = ReturnType<typeof createRuntime>

export function createRuntime(deps: RuntimeDeps, accountId: string) {
  const { sync } = deps
  let open: Connection | null = null
  let epoch: number | null = null

  /** Closes this attempt's connections, and no other's: an old attempt may end after a new one has begun. */
  async function release(mine: Connection | null): Promise<void> {
    if (open === mine) open = null
    if (mine !== null) await closeConnection(mine)
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
      const account = await sync.store.accounts.claim(accountId)
      if (account === null) throw new AppError('not_found', 'the account was removed')
      epoch = account.epoch
      const fresh = await openConnection(deps, account, signal, stage)
      if (signal.aborted) await closeConnection(fresh)
      signal.throwIfAborted()
      open = fresh
    },
    /** Folder list, INBOX caught up and its first page read: usable from then on. */
    sync: (signal: AbortSignal, progress: () => void): Promise<void> =>
      owning(signal, (mine) => firstRead(sync, mine, signal, progress)),
    /** Resolves when stopped or when the session has to be renewed; rejects with what ended it. */
    watch: (signal: AbortSignal, news: WatchNews): Promise<'stopped' | 'rotate'> =>
      owning(signal, (mine) => watchAccount(deps, mine, news, signal)),
    /** Opens the command connection, when it is not open, in the bounded time of a command. */
    relogin: async (): Promise<void> => connection().link.run('api', () => Promise.resolve()),
    /** Of the last claim; null before the first one and while one is under way. */
    epoch: (): number | null => epoch,
    live: (): Connection | null => open,
    close: (): Promise<void> => release(open),
  }
}

interface Connection {
  readonly session: Session
  readonly state: AccountState
  readonly link: Link
  readonly tokenExpiresAt: number | null
}

async function openConnection(
  deps: RuntimeDeps,
  account: AccountRecord,
  signal: AbortSignal,
  stage: LoginStage,
): Promise<Connection> {
  const folders = await deps.sync.store.folders.list(account.id)
  const { session, expiresAt } = await login(deps, account, 'live', signal, stage)
  const state = createAccountState(deps.sync, account, folders)
  return { session, state, link: commandLink(deps, account), tokenExpiresAt: expiresAt }
}

async function closeConnection(connection: Connection): Promise<void> {
  await Promise.allSettled([connection.session.close(), connection.link.close()])
}

/** Opened later, if ever: by then the credential may be another one. */
function commandLink(deps: RuntimeDeps, account: AccountRecord): Link {
  const { config, store } = deps.sync
  const { commandLogins } = deps
  return createLink({
    login: async (priority, signal) => {
      commandLogins.enter()
      const newest = (await store.accounts.get(account.id)) ?? account
      const { session } = await login(deps, newest, priority, signal).catch(async (error: unknown) => {
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

async function firstRead(
  deps: SyncDeps,
  { session, state }: Connection,
  signal: AbortSignal,
  progress: () => void,
): Promise<void> {
  const context = { deps, state, session }
  state.onWrite(progress)
  await createFolderPoll(context).list()
  progress()
  await catchUp(context, 'INBOX')
  progress()
  const inbox = state.folderByPath('INBOX')
  if (inbox !== null && !signal.aborted) await backfillFirst(context, inbox.id)
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
  { sync, backfilling, pushes }: RuntimeDeps,
  { session, state, link, tokenExpiresAt }: Connection,
  { alive, completed }: WatchNews,
  signal: AbortSignal,
): Promise<'stopped' | 'rotate'> {
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  state.onWrite(alive)
  const onComplete = (): Promise<void> => tellCompleted(sync, state.account.id, completed)
  const background = createBackground({ sync, state, link, backfilling, onComplete })
  background.moved(unopened(state))
  const renewMs = idleMs(state.account.server) ?? sync.config.MAILROOM_IDLE_RENEW
  const options = { renewMs, pushes, tokenExpiresAt, moved: background.moved, alive }
  try {
    const side = background.run(both).then(() => 'stopped' as const)
    return await Promise.race([watchInbox({ deps: sync, state, session }, options, both), side])
  } finally {
    stop.abort()
  }
}

function idleMs(server: string): number | null {
  return shortIdleHosts.find(([host]) => host.test(server))?.[1] ?? null
}

/** Once in the life of an account. */
async function tellCompleted({ store, listener }: SyncDeps, accountId: string, completed: () => void): Promise<void> {
  const account = await store.accounts.get(accountId)
  if (account === null || account.resume.initialSyncAt !== null) return
  completed()
  await listener.initialSyncDone(account)
}

function unopened(state: AccountState): string[] {
  return [...state.folders.values()]
    .filter((folder) => folder.selectable && folder.cursor === null && folder.path !== 'INBOX')
    .map((folder) => folder.path)
}
