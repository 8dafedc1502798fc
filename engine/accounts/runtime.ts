/**
 * What one account's actor does: logs in, reads, watches, and keeps the sockets. The chart (machines/account.machine.ts) says
 * when; this says how. One runtime per actor, and nobody else holds its sessions.
 */
import type { Config } from '../config.ts'
import { AppError, toAppError } from '../errors.ts'
import { openCredential, sealCredential } from '../secrets/credentials.ts'
import type { Sealer } from '../secrets/seal.ts'
import type { AccountRecord } from '../store/records.ts'
import type { Tokens } from '../oauth/tokens.ts'
import { backfillPage, remainingUids } from './backfill.ts'
import { createBackground, type BackgroundDeps } from './background.ts'
import { createFolderPoll } from './folders.ts'
import { createLane, type Lane, type LoginLimiter, type Priority } from './lanes.ts'
import { createLink, type Link } from './link.ts'
import type { OpenSession, Session, SessionOptions } from './session-types.ts'
import { createAccountState, type AccountState, type SyncDeps } from './state.ts'
import { catchUp } from './sync.ts'
import { watchInbox } from './watch.ts'
import { cursorOf } from './write.ts'

export interface RuntimeDeps {
  readonly sync: SyncDeps
  readonly sealer: Sealer
  readonly tokens: Tokens
  readonly openSession: OpenSession
  readonly limiter: LoginLimiter
  /** Bounds how many accounts log in at the same time. */
  readonly dialing: Lane
  readonly slot: BackgroundDeps['slot']
}

/** Where connect stands: waiting for its turn at the host, or under way. */
export type ConnectStage = (stage: 'queued' | 'dialing') => void

export interface Runtime {
  /** Claims the account and logs in. Every earlier owner's writes are refused from here on. */
  connect(signal: AbortSignal, stage: ConnectStage): Promise<void>
  /** Folder list, INBOX caught up and its first page read: usable from then on. */
  sync(signal: AbortSignal, progress: () => void): Promise<void>
  /** Resolves when stopped or when the session has to be renewed; rejects with what ended it. */
  watch(signal: AbortSignal, alive: () => void, completed: () => void): Promise<'stopped' | 'rotate'>
  /** For commands: what is live now, or null. */
  live(): { readonly state: AccountState; readonly link: Link } | null
  /** Closes every socket. */
  close(): Promise<void>
}

interface Auth {
  readonly auth: SessionOptions['auth']
  readonly expiresAt: number | null
}

interface LoggedIn {
  readonly session: Session
  readonly expiresAt: number | null
}

interface Open {
  readonly session: Session
  readonly state: AccountState
  readonly link: Link
  readonly tokenExpiresAt: number | null
}

/** Hosts that drop IDLE early (imap-servers.md, figures). */
const shortIdleHosts: readonly (readonly [RegExp, number])[] = [
  [/(^|\.)(yahoo|aol|verizon|aim)\./i, 3 * 60_000],
  [/(^|\.)(163|126|yeah|rambler|naver)\./i, 55_000],
]

export function createRuntime(deps: RuntimeDeps, accountId: string): Runtime {
  const { store, config } = deps.sync
  let open: Open | null = null

  /** Closes this attempt's connections, and no other's: an old attempt may end after a new one has begun. */
  async function release(mine: Open | null): Promise<void> {
    if (open === mine) open = null
    await Promise.allSettled([mine?.session.close(), mine?.link.close()])
  }

  /** Work over the open connection, which does not outlive a failure or the signal. */
  async function owning<T>(signal: AbortSignal, work: (mine: Open) => Promise<T>): Promise<T> {
    const mine = opened()
    const drop = () => void release(mine)
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

  async function connect(signal: AbortSignal, stage: ConnectStage): Promise<void> {
    await release(open)
    const account = await store.accounts.claim(accountId)
    if (account === null) throw new AppError('not_found', 'the account was removed')
    const [folders, user] = await Promise.all([
      store.folders.list(accountId),
      store.users.get(account.developerId, account.userId),
    ])
    const { session, expiresAt } = await login(deps, account, 'live', signal, stage)
    const state = createAccountState(deps.sync, account, folders, user?.emailAddresses ?? [account.email])
    const link = createLink({
      lane: createLane(),
      open: async (priority, stop) =>
        (await login(deps, await fresh(account), priority, stop, () => undefined)).session,
      idleCloseMs: config.MAILROOM_COMMAND_IDLE_CLOSE,
      waitMs: config.MAILROOM_COMMAND_TIMEOUT,
    })
    if (signal.aborted) {
      await session.close()
      signal.throwIfAborted()
    }
    open = { session, state, link, tokenExpiresAt: expiresAt }
  }

  const fresh = async (account: AccountRecord): Promise<AccountRecord> =>
    (await store.accounts.get(account.id)) ?? account

  function opened(): Open {
    if (open === null) throw new AppError('network', 'the connection is closed')
    return open
  }

  async function read({ session, state }: Open, signal: AbortSignal, progress: () => void): Promise<void> {
    const context = { deps: deps.sync, state, session }
    state.onWrite(progress)
    await createFolderPoll(context).list()
    progress()
    await catchUp(context, 'INBOX')
    progress()
    const inbox = state.folderByPath('INBOX')
    if (inbox === null || signal.aborted) return
    const cursor = cursorOf(state, inbox.id)
    if (cursor.backfillBelow > 1 && cursor.backfillBelow === cursor.uidNext) {
      const uids = await remainingUids(session, cursor)
      await backfillPage(context, inbox.id, uids.slice(0, config.MAILROOM_SYNC_BATCH))
    }
  }

  async function attend(
    { session, state, link, tokenExpiresAt }: Open,
    signal: AbortSignal,
    alive: () => void,
    completed: () => void,
  ): Promise<'stopped' | 'rotate'> {
    const stop = new AbortController()
    const both = AbortSignal.any([signal, stop.signal])
    state.onWrite(alive)
    const onComplete = async (): Promise<void> => {
      const account = await store.accounts.get(accountId)
      if (account === null || account.resume.initialSyncAt !== null) return
      completed()
      await deps.sync.listener.initialSyncDone(account)
    }
    const background = createBackground({ sync: deps.sync, state, link, slot: deps.slot, onComplete })
    background.moved(unopened(state))
    const renewMs = shortIdleHosts.find(([host]) => host.test(state.account.server))?.[1] ?? config.MAILROOM_IDLE_RENEW
    const options = { renewMs, tokenExpiresAt, moved: background.moved, alive }
    try {
      const side = background.run(both).then(() => 'stopped' as const)
      return await Promise.race([watchInbox({ deps: deps.sync, state, session }, options, both), side])
    } finally {
      stop.abort()
    }
  }

  return {
    connect,
    sync: (signal, progress) => owning(signal, (mine) => read(mine, signal, progress)),
    watch: (signal, alive, completed) => owning(signal, (mine) => attend(mine, signal, alive, completed)),
    live: () => open,
    close: () => release(open),
  }
}

/** Folders that were never opened: the background reads them after the start. */
function unopened(state: AccountState): string[] {
  return [...state.folders.values()]
    .filter((folder) => folder.selectable && folder.cursor === null && folder.path !== 'INBOX')
    .map((folder) => folder.path)
}

/** One login, through the host's limiter. */
async function login(
  deps: RuntimeDeps,
  account: AccountRecord,
  priority: Priority,
  signal: AbortSignal,
  stage: ConnectStage,
): Promise<LoggedIn> {
  stage('queued')
  await deps.limiter.enter(account.server, { urgent: priority === 'api', signal })
  return deps.dialing.run(priority, () => dial(deps, account, signal, stage), signal)
}

async function dial(
  deps: RuntimeDeps,
  account: AccountRecord,
  signal: AbortSignal,
  stage: ConnectStage,
): Promise<LoggedIn> {
  const { config, metrics } = deps.sync
  stage('dialing')
  const { auth, expiresAt } = await authOf(deps, account)
  try {
    const session = await deps.openSession({ ...settingsOf(config, account), auth }, signal)
    metrics.imapLogins.inc({ outcome: 'ok' })
    return { session, expiresAt }
  } catch (error) {
    const { code } = toAppError(error)
    metrics.imapLogins.inc({ outcome: code })
    if (code === 'auth_rejected') deps.limiter.failed(account.server)
    throw error
  }
}

function settingsOf(config: Config, account: AccountRecord): Omit<SessionOptions, 'auth'> {
  return {
    server: account.server,
    port: account.port,
    useSsl: account.useSsl,
    username: account.username,
    allowPrivate: config.MAILROOM_ALLOW_PRIVATE,
    connectTimeoutMs: config.MAILROOM_CONNECT_TIMEOUT,
    loginTimeoutMs: config.MAILROOM_LOGIN_TIMEOUT,
    commandTimeoutMs: config.MAILROOM_COMMAND_TIMEOUT,
  }
}

async function authOf(deps: RuntimeDeps, account: AccountRecord): Promise<Auth> {
  const credential = openCredential(deps.sealer, account)
  if (credential.kind === 'password') return { auth: { password: credential.password }, expiresAt: null }
  const token = await deps.tokens.get(account.developerId, credential)
  if (token.rotated !== null) {
    const rotated = { ...credential, refreshToken: token.rotated }
    await deps.sync.store.accounts.edit(account.id, {
      sealedCredential: sealCredential(deps.sealer, account.id, rotated),
    })
  }
  return { auth: { accessToken: token.accessToken }, expiresAt: token.expiresAt }
}
