/**
 * One login of an account: takes over the session of its trial login (trial.ts), or waits for its turn at the host,
 * opens the credential, dials the session, and counts the outcome.
 */
import { LRUCache } from 'lru-cache'
import type { Owner, TakeOptions } from '../budget.ts'
import { toAppError } from '../errors.ts'
import type { FairQueue } from '../fair-queue.ts'
import type { Tokens } from '../oauth/tokens.ts'
import { type Owner as Worker, workAs } from '../observe/loop.ts'
import type { ConnectionKind } from '../observe/wire.ts'
import { keepRotated, openCredential, type Sealer } from '../secrets/seal.ts'
import { digest } from '../store/ids.ts'
import type { AccountRecord } from '../store/records.ts'
import type { Hosts } from './hosts.ts'
import type { Login, LoginLimiter } from './login-limiter.ts'
import type { SessionOptions } from './session-types.ts'
import type { openSession, Session } from './session/index.ts'
import type { Names } from './session/names.ts'
import type { SyncDeps } from './state.ts'
import type { Credential, MailboxSettings } from './types.ts'

/** What a login needs, of an account or a trial. */
export interface DialDeps {
  readonly sync: Pick<SyncDeps, 'config' | 'budget'>
  readonly tokens: Pick<Tokens, 'get' | 'forget'>
  readonly openSession: typeof openSession
  readonly limiter: LoginLimiter
  readonly hosts: Pick<Hosts, 'countLogin'>
}

export interface LoginDeps extends DialDeps {
  readonly sync: SyncDeps
  readonly sealer: Sealer
  readonly tried: TriedSessions
  /** Folder names that all connections of the account know. */
  readonly names: Names
  /** Called when a connection is opened; returns the listener of its protocol lines. See observe/wire.ts. */
  readonly lines?: (kind: ConnectionKind) => (line: string) => void
  /** Bounds the accounts that log in, or list their folders after it, at once; developers and hosts take turns. */
  readonly dialing: FairQueue
}

export type LoginStage = (stage: 'queued' | 'dialing') => void

export interface LoggedIn {
  readonly session: Session
  /** When the session has to be renewed with another access token, in ms since 1970; Infinity = a password. */
  readonly tokenRenewAt: number
}

interface LoginOptions {
  readonly signal: AbortSignal
  /** Aborts when an API call waits for the login; absent = a call waits from the beginning. */
  readonly hurried?: AbortSignal
  /** Present for the connection that watches the mailbox. */
  readonly stage?: LoginStage
}

/** Logins of one developer take turns by server. */
export function loginTurn({ developerId, server, port }: AccountRecord) {
  return { developerId, key: `${server.toLowerCase()}:${port}` }
}

/** A login that an API call waits for is urgent. Rejects with an AppError of a failure class or the signal's reason. */
export async function login(
  deps: LoginDeps,
  account: AccountRecord,
  { signal, hurried, stage }: LoginOptions,
): Promise<LoggedIn> {
  stage?.('queued')
  const { id, developerId } = account
  const { sync, sealer, limiter, tried } = deps
  const credential = openCredential(sealer, account)
  const entered = loginOf(developerId, account, credential)
  const bearer = (): Bearer => ({
    owner: { developerId, part: id },
    names: deps.names,
    onLine: deps.lines?.(stage === undefined ? 'commands' : 'mailbox'),
    onCommand: (kind, seconds) => sync.metrics.imapCommands.observe({ kind }, seconds),
  })
  const counted = (outcome: string): void => sync.metrics.imapLogins.inc({ outcome })
  const open = tried.take(account, entered, bearer)
  if (open !== null) {
    counted('ok')
    return open
  }
  let begun = false
  const dial = async (either: AbortSignal): Promise<LoggedIn> => {
    const { tokenRenewAt, ...auth } = await authOf(deps, developerId, credential, (newest) =>
      keepRotated({ sealer, store: sync.store }, account, newest),
    )
    const opening: Opening = { mailbox: account, bearer: bearer(), entered, ...auth, outcome: counted }
    return { session: await openCounted(deps, opening, either), tokenRenewAt }
  }
  const inTurn = async (urgent: boolean, waiting: AbortSignal): Promise<LoggedIn> => {
    await limiter.enter(entered, { urgent, signal: waiting })
    const asked = { ...loginTurn(account), urgent }
    const begin = (late: AbortSignal): Promise<LoggedIn> => {
      begun = true
      stage?.('dialing')
      // The connection's work is charged to this account, whoever asked for the login.
      return workAs({ kind: 'account', id }, () => dial(AbortSignal.any([signal, late])))
    }
    return deps.dialing.run(asked, begin, waiting)
  }
  if (hurried === undefined || hurried.aborted) return inTurn(true, signal)
  const again = new AbortController()
  const hurry = (): void => {
    if (!begun) again.abort()
  }
  hurried.addEventListener('abort', hurry)
  try {
    return await inTurn(false, AbortSignal.any([signal, again.signal]))
  } catch (error) {
    if (error !== again.signal.reason) throw error
    return await inTurn(true, signal)
  } finally {
    // The signal outlives the login, and its listener holds the credential.
    hurried.removeEventListener('abort', hurry)
  }
}

/** The holder of a session: a trial, then its account. */
export interface Bearer {
  /** The session draws from this owner's share of the memory budget. */
  owner: Owner
  names: Names
  onLine: SessionOptions['onLine'] | undefined
  onCommand?: NonNullable<SessionOptions['onCommand']>
}

interface Opening extends Omit<Auth, 'tokenRenewAt'> {
  readonly mailbox: MailboxSettings
  readonly bearer: Bearer
  readonly entered: Login
  /** 'ok', or the class of the failure. */
  readonly outcome?: (outcome: string) => void
}

/** Opens the session of an account or a trial, and counts the outcome. */
export async function openCounted(
  { sync: { config, budget }, openSession, hosts, limiter }: DialDeps,
  { mailbox, bearer, entered, auth, refused, outcome }: Opening,
  signal: AbortSignal,
): Promise<Session> {
  const { server, port, useSsl, username } = mailbox
  const count = (word: string): void => {
    outcome?.(word)
    hosts.countLogin(server, word)
  }
  const settings: SessionOptions = {
    ...{ server, port, useSsl, username, auth },
    plaintext: config.MAILROOM_PLAINTEXT,
    allowPrivate: config.MAILROOM_ALLOW_PRIVATE,
    connectTimeoutMs: config.MAILROOM_CONNECT_TIMEOUT,
    loginTimeoutMs: config.MAILROOM_LOGIN_TIMEOUT,
    commandTimeoutMs: config.MAILROOM_COMMAND_TIMEOUT,
    take: (bytes: number, how: TakeOptions) => budget.take('literal', bearer.owner, bytes, how),
    names: { toWire: (path) => bearer.names.toWire(path), fromWire: (wire) => bearer.names.fromWire(wire) },
    onCommand: (kind, seconds) => bearer.onCommand?.(kind, seconds),
    ...(bearer.onLine && { onLine: (line: string) => bearer.onLine?.(line) }),
  }
  try {
    const session = await openSession(settings, signal)
    count('ok')
    return session
  } catch (error) {
    const { code } = toAppError(error)
    count(code)
    if (code === 'auth_rejected') {
      limiter.failed(entered)
      refused()
    }
    throw error
  }
}

export function loginOf(developerId: string, { server, username }: MailboxSettings, credential: Credential): Login {
  const secret = credential.kind === 'password' ? credential.password : credential.refreshToken
  return { host: server, developerId, username, secret }
}

interface Auth extends Pick<SessionOptions, 'auth'> {
  readonly tokenRenewAt: number
  /** The mail server rejected the login. */
  readonly refused: () => void
}

export async function authOf(
  { tokens }: Pick<LoginDeps, 'tokens'>,
  developerId: string,
  credential: Credential,
  onRotated: (newest: Credential) => unknown,
): Promise<Auth> {
  if (credential.kind === 'password')
    return { auth: { password: credential.password }, tokenRenewAt: Infinity, refused: () => undefined }
  const { accessToken, renewAt, rotated } = await tokens.get(developerId, credential)
  if (rotated !== null) await onRotated({ ...credential, refreshToken: rotated })
  // The provider may end an access token early: the next login requests another one.
  return { auth: { accessToken }, tokenRenewAt: renewAt, refused: () => tokens.forget(developerId, credential) }
}

/** The session of a trial waits this long for its account, which is stored right after it. */
const triedMs = 10_000
const mostTried = 1000

interface Tried extends LoggedIn {
  readonly bearer: Bearer
  /** The protocol lines of the login. */
  readonly lines: readonly string[]
  /** The connection's work is charged to this owner. */
  readonly worker: Partial<Worker>
}

export type TriedSessions = ReturnType<typeof createTriedSessions>

/** Sessions of trial logins, for the accounts that are stored after them: a new mailbox is logged in to once. */
export function createTriedSessions(ttl = triedMs) {
  const sessions = new LRUCache<string, Tried>({
    ...{ maxSize: mostTried, sizeCalculation: () => 1, ttl, ttlAutopurge: true },
    dispose({ session }, _key, reason) {
      if (reason !== 'delete') void session.close()
    },
  })
  let isClosed = false
  const keyOf = ({ port, useSsl }: MailboxSettings, { host, developerId, username, secret = '' }: Login): string =>
    digest(40, developerId, host, port, String(useSsl), username, secret)
  const remove = (mailbox: MailboxSettings, entered: Login): Tried | undefined => {
    const key = keyOf(mailbox, entered)
    const tried = sessions.get(key)
    sessions.delete(key)
    return tried
  }
  return {
    /** Closes the session when no account has taken it in time. false = the service ends: it is not kept. */
    add(mailbox: MailboxSettings, entered: Login, tried: Tried): boolean {
      if (!isClosed) sessions.set(keyOf(mailbox, entered), tried)
      return !isClosed
    },
    /** Closes the session now. */
    drop: async (mailbox: MailboxSettings, entered: Login): Promise<void> => remove(mailbox, entered)?.session.close(),
    /** null = no session waits for the account. */
    take(account: MailboxSettings & { readonly id: string }, entered: Login, bearer: () => Bearer): LoggedIn | null {
      const tried = remove(account, entered)
      if (tried === undefined || tried.session.closed) return null
      Object.assign(tried.worker, { kind: 'account', id: account.id })
      const { onLine } = Object.assign(tried.bearer, bearer())
      for (const line of tried.lines) onLine?.(line)
      return tried
    },
    close(): void {
      isClosed = true
      for (const { session } of sessions.values()) void session.close()
      sessions.clear()
    },
  }
}
