/**
 * One login, of an account or a trial: waits for its turn at the host, opens the credential, dials the session, and
 * counts the outcome.
 */
import { LRUCache } from 'lru-cache'
import type { Owner, TakeOptions } from '../budget.ts'
import { toAppError, AppError, failureClasses } from '../errors.ts'
import type { FairQueue } from '../fair-queue.ts'
import { resolveGuarded } from '../net/address.ts'
import type { Tokens } from '../oauth/tokens.ts'
import { workAs } from '../observe/loop.ts'
import type { ConnectionKind } from '../observe/wire.ts'
import { keepRotated, openCredential, type Sealer } from '../secrets/seal.ts'
import type { AccountRecord } from '../store/records.ts'
import { withinTime } from '../waits.ts'
import { connectionFailure } from './failures.ts'
import type { Login, LoginLimiter } from './login-limiter.ts'
import type { SessionOptions } from './session-types.ts'
import type { openSession, Session } from './session/index.ts'
import type { SyncDeps } from './state.ts'
import type { Credential, MailboxSettings, ProbeFailure, ProbeResult, ProbeStep } from './types.ts'

export interface LoginDeps extends Pick<SessionOptions, 'names'> {
  readonly sync: SyncDeps
  readonly sealer: Sealer
  readonly tokens: Pick<Tokens, 'get' | 'forget'>
  readonly openSession: typeof openSession
  readonly limiter: LoginLimiter
  readonly hostLogins: HostLogins
  /** Called when a connection is opened; returns the listener of its protocol lines. See observe/wire.ts. */
  readonly lines?: (kind: ConnectionKind) => (line: string) => void
  /** Bounds the accounts that log in, or list their folders after it, at once; developers and hosts take turns. */
  readonly dialing: FairQueue
}

export type LoginStage = (stage: 'queued' | 'dialing') => void

interface LoggedIn {
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
  const { id, developerId, server, username } = account
  const { sync, sealer, limiter, lines, names } = deps
  const credential = openCredential(sealer, account)
  const entered: Login = { host: server, developerId, username, secret: secretOf(credential) }
  let begun = false
  const dial = async (either: AbortSignal): Promise<LoggedIn> => {
    const onLine = lines?.(stage === undefined ? 'commands' : 'mailbox')
    const { tokenRenewAt, ...auth } = await authOf(deps, developerId, credential, (newest) =>
      keepRotated({ sealer, store: sync.store }, account, newest),
    )
    const opening: Opening = {
      ...{ mailbox: account, owner: { developerId, part: id }, entered, ...auth },
      onCommand: (kind, seconds) => sync.metrics.imapCommands.observe({ kind }, seconds),
      ...(onLine && { onLine }),
      ...(names && { names }),
      outcome: (outcome) => sync.metrics.imapLogins.inc({ outcome }),
    }
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

interface Opening extends Omit<Auth, 'tokenRenewAt'>, Pick<SessionOptions, 'onLine' | 'onCommand' | 'names'> {
  readonly mailbox: MailboxSettings
  /** The session draws from this owner's share of the memory budget. */
  readonly owner: Owner
  readonly entered: Login
  /** 'ok', or the class of the failure. */
  readonly outcome?: (outcome: string) => void
}

/** Opens the session of an account or a trial, and counts the outcome. */
async function openCounted(
  { sync: { config, budget }, openSession, hostLogins, limiter }: ProbeDeps,
  { mailbox, owner, entered, refused, outcome, ...options }: Opening,
  signal: AbortSignal,
): Promise<Session> {
  const { server, port, useSsl, username } = mailbox
  const count = (word: string): void => {
    outcome?.(word)
    hostLogins.count(server, word)
  }
  const settings = {
    ...{ server, port, useSsl, username },
    plaintext: config.MAILROOM_PLAINTEXT,
    allowPrivate: config.MAILROOM_ALLOW_PRIVATE,
    connectTimeoutMs: config.MAILROOM_CONNECT_TIMEOUT,
    loginTimeoutMs: config.MAILROOM_LOGIN_TIMEOUT,
    commandTimeoutMs: config.MAILROOM_COMMAND_TIMEOUT,
    take: (bytes: number, how: TakeOptions) => budget.take('literal', owner, bytes, how),
  }
  try {
    const session = await openSession({ ...settings, ...options }, signal)
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

/** The text by which the limiter tells credentials apart. */
function secretOf(credential: Credential): string {
  return credential.kind === 'password' ? credential.password : credential.refreshToken
}

interface Auth extends Pick<SessionOptions, 'auth'> {
  readonly tokenRenewAt: number
  /** The mail server rejected the login. */
  readonly refused: () => void
}

async function authOf(
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

const minuteMs = 60_000
/** Callers choose the names of hosts: the hosts that were used longest ago are forgotten. */
const mostHosts = 10_000
/** Only the latest logins of a host without a limit count. */
const mostLogins = 1000

interface Outcome {
  readonly at: number
  /** 'ok', or the class of the failure. */
  readonly outcome: string
}

type HostLogins = ReturnType<typeof createHostLogins>

/** Outcomes of the logins of the last minute at each host, for operators. */
export function createHostLogins(now: () => number) {
  const hosts = new LRUCache<string, Outcome[]>({ maxSize: mostHosts, sizeCalculation: () => 1 })
  return {
    count(host: string, outcome: string): void {
      const key = host.toLowerCase()
      const outcomes = hosts.get(key) ?? []
      outcomes.push({ at: now(), outcome })
      if (outcomes.length > mostLogins) outcomes.shift()
      hosts.set(key, outcomes)
    },
    /** By outcome. */
    of(host: string): Record<string, number> {
      const counts: Record<string, number> = {}
      const since = now() - minuteMs
      for (const { at, outcome } of hosts.get(host.toLowerCase()) ?? [])
        if (at > since) counts[outcome] = (counts[outcome] ?? 0) + 1
      return counts
    },
  }
}

export interface ProbeDeps extends Pick<LoginDeps, 'openSession' | 'limiter' | 'hostLogins' | 'tokens'> {
  readonly sync: Pick<SyncDeps, 'config' | 'budget'>
}

export type Probe = (
  developerId: string,
  settings: MailboxSettings,
  credential: Credential,
  onStep?: (step: ProbeStep) => void,
  /** Stores the credential of an account before the login: the provider has ended the former refresh token. */
  onRotated?: (rotated: Credential) => Promise<void>,
) => Promise<ProbeResult>

/** Bounds of the log in the answer. */
const mostLines = 200
const longestLine = 500

function createLog() {
  const lines: string[] = []
  return {
    add(line: string): void {
      if (lines.length < mostLines) lines.push(line.length > longestLine ? `${line.slice(0, longestLine)}…` : line)
    },
    text: (): string => lines.join('\n'),
  }
}

const unknownHostCodes = new Set(['ENOTFOUND', 'ENODATA', 'EAI_NONAME', 'EAI_NODATA'])

function failureOf(error: AppError): ProbeFailure {
  const { errno } = error.details
  if (errno === 'ECONNREFUSED') return 'connection_refused'
  if (typeof errno === 'string' && unknownHostCodes.has(errno)) return 'host_not_found'
  if (error.code === 'private_address' || error.code === 'timeout') return error.code
  return failureClasses.find((name) => name === error.code) ?? 'protocol'
}

/** Aborts the work's signal and rejects with `timeout` after `ms`. */
function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController()
  return withinTime(ms, work(over.signal), () => {
    const error = new AppError('timeout', 'the mail server did not answer in time')
    over.abort(error)
    throw error
  })
}

interface Attempt {
  readonly developerId: string
  readonly settings: MailboxSettings
  readonly credential: Credential
  readonly log: ReturnType<typeof createLog>
  readonly onStep: (step: ProbeStep) => void
  readonly onRotated: (rotated: Credential) => unknown
}

/** Our own limit on logins; no connection was made. `rejections` 0 = the pace of the host. */
class TurnMissed extends AppError {
  constructor(waitMs: number, rejections: number) {
    const seconds = Math.max(1, Math.ceil(waitMs / 1000))
    const why =
      rejections === 0
        ? 'too many logins to this host at the moment (MAILROOM_LOGINS_PER_MINUTE)'
        : `the mail server rejected ${rejections} logins of this username within 10 minutes, so it is asked less often`
    super('throttled', `${why}; try again in ${seconds} s`, { retryAfterMs: seconds * 1000 })
  }
}

/** Waits for the turn at the host, half of MAILROOM_CREATE_TIMEOUT at most: the login needs the other half. */
async function takeTurn({ sync, limiter }: ProbeDeps, given: Attempt, signal: AbortSignal): Promise<void> {
  const login = loginOf(given)
  const patienceMs = sync.config.MAILROOM_CREATE_TIMEOUT / 2
  const missedBy = (): TurnMissed => new TurnMissed(limiter.delay(login), limiter.rejections(login))
  if (limiter.delay(login) > patienceMs) throw missedBy()
  const missed = AbortSignal.timeout(patienceMs)
  try {
    await limiter.enter(login, { urgent: true, signal: AbortSignal.any([signal, missed]) })
  } catch (error) {
    // This login has left the queue, and does not delay itself.
    throw missed.aborted && !signal.aborted ? missedBy() : error
  }
}

function loginOf({ developerId, settings: { server, username }, credential }: Attempt): Login {
  return { host: server, developerId, username, secret: secretOf(credential), check: true }
}

/** The server's capabilities, after a login and a LIST. */
async function attempt(deps: ProbeDeps, given: Attempt, signal: AbortSignal): Promise<readonly string[]> {
  const { config } = deps.sync
  const { developerId, settings, credential, log, onStep } = given
  onStep('finding')
  const addresses = await resolveGuarded(settings.server, { allowPrivate: config.MAILROOM_ALLOW_PRIVATE, signal })
  log.add(`# ${settings.server} is ${addresses.map(({ address }) => address).join(', ')}`)
  const { auth, refused } = await authOf(deps, developerId, credential, given.onRotated)
  await takeTurn(deps, given, signal)
  onStep('login')
  const owner = { developerId, part: 'trials' }
  const opening = { mailbox: settings, owner, auth, onLine: log.add, entered: loginOf(given), refused }
  const session = await openCounted(deps, opening, signal)
  const close = (): void => void session.close()
  signal.addEventListener('abort', close, { once: true })
  try {
    onStep('folders')
    await session.list({ status: false, most: config.MAILROOM_FOLDERS_MAX })
    return session.capabilityNames()
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}

/**
 * The trial login of a new account: address guard, connection, login, LIST, all within MAILROOM_CREATE_TIMEOUT. Only
 * `onRotated` stores anything. Rejects only with failures of this service, such as a store that is away.
 */
export function createProbe(deps: ProbeDeps): Probe {
  return async (developerId, settings, credential, onStep = () => undefined, keep = () => Promise.resolve()) => {
    const log = createLog()
    let tried: { readonly rotated?: Credential } = {}
    const onRotated = (rotated: Credential): Promise<void> => {
      tried = { rotated }
      return keep(rotated)
    }
    const given = { developerId, settings, credential, log, onStep, onRotated }
    try {
      const capabilities = await within(deps.sync.config.MAILROOM_CREATE_TIMEOUT, (signal) =>
        attempt(deps, given, signal),
      )
      return { ok: true, log: log.text(), capabilities, ...tried }
    } catch (error) {
      const known = connectionFailure(error)
      if (known.fault === 'us') throw known
      log.add(`# ${known.message}`)
      const ours =
        known instanceof TurnMissed && known.retryAfterMs !== null ? { retryAfterMs: known.retryAfterMs } : {}
      return { ok: false, failure: failureOf(known), message: known.message, log: log.text(), ...ours, ...tried }
    }
  }
}
