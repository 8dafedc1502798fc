/** One login: its turn at the host, the credential opened, the session dialled, the outcome counted. */
import type { Budget, Owner } from '../budget.ts'
import type { Config } from '../config.ts'
import { toAppError } from '../errors.ts'
import type { Tokens } from '../oauth/tokens.ts'
import { workAs } from '../observe/loop.ts'
import { openCredential, sealCredential } from '../secrets/credentials.ts'
import type { Sealer } from '../secrets/seal.ts'
import type { AccountRecord } from '../store/records.ts'
import type { Loans } from '../loans.ts'
import type { Priority } from './link.ts'
import type { HostLogins } from './host-logins.ts'
import type { Login, LoginLimiter } from './login-limiter.ts'
import type { openSession } from './session/index.ts'
import type { Session, SessionOptions } from './session-types.ts'
import type { SyncDeps } from './state.ts'
import type { Credential, MailboxSettings } from './types.ts'

export interface LoginDeps {
  readonly sync: SyncDeps
  readonly sealer: Sealer
  readonly tokens: Tokens
  readonly openSession: typeof openSession
  readonly limiter: LoginLimiter
  readonly hostLogins: HostLogins
  /** Hears the lines of the connection; see observe/wire.ts. */
  readonly onLine?: (line: string) => void
  /** Bounds how many accounts log in at the same time, in turns by developer and host. */
  readonly dialing: Loans
}

export type LoginStage = (stage: 'queued' | 'dialing') => void

interface LoggedIn {
  readonly session: Session
  /** When the access token ends; null = a password. */
  readonly expiresAt: number | null
}

interface Auth {
  readonly auth: SessionOptions['auth']
  readonly expiresAt: number | null
  readonly refused: () => void
}

/** An API call's login goes before others. Rejects with an AppError of a failure class, or with the signal's reason. */
export async function login(
  deps: LoginDeps,
  account: AccountRecord,
  priority: Priority,
  signal: AbortSignal,
  stage: LoginStage = () => undefined,
): Promise<LoggedIn> {
  stage('queued')
  const { developerId, server, port, username } = account
  const secret = secretOf(openCredential(deps.sealer, account))
  const entering: Login = { host: server, developerId, username, secret }
  const urgent = priority === 'api'
  return deps.dialing.run(
    { developerId, key: `${server.toLowerCase()}:${port}`, urgent },
    (loan) => {
      stage('dialing')
      const either = AbortSignal.any([signal, loan.signal])
      // What comes over the connection is this account's work, also when another one asked for the login.
      return workAs({ kind: 'account', id: account.id }, () => dial(deps, account, entering, either))
    },
    { signal, before: () => deps.limiter.enter(entering, { urgent, signal }) },
  )
}

async function dial(deps: LoginDeps, account: AccountRecord, entered: Login, signal: AbortSignal): Promise<LoggedIn> {
  const { config, metrics, budget } = deps.sync
  const { onLine } = deps
  const owner = { developerId: account.developerId, part: account.id }
  const { auth, expiresAt, refused } = await authOf(deps, account)
  try {
    const session = await deps.openSession(
      {
        ...settingsOf(config, account),
        auth,
        take: takeFor(budget, owner),
        onCommand: (kind, seconds) => metrics.imapCommands.observe({ kind }, seconds),
        ...(onLine && { onLine }),
      },
      signal,
    )
    metrics.imapLogins.inc({ outcome: 'ok' })
    deps.hostLogins.count(account.server, 'ok')
    return { session, expiresAt }
  } catch (error) {
    const { code } = toAppError(error)
    metrics.imapLogins.inc({ outcome: code })
    deps.hostLogins.count(account.server, code)
    if (code === 'auth_rejected') {
      deps.limiter.failed(entered)
      refused()
    }
    throw error
  }
}

/** What tells one credential from another, for the limiter. */
export function secretOf(credential: Credential): string {
  return credential.kind === 'password' ? credential.password : credential.refreshToken
}

export function takeFor(budget: Pick<Budget, 'take'>, owner: Owner): NonNullable<SessionOptions['take']> {
  return (bytes, options) => budget.take('literal', owner, bytes, options)
}

/** Of every session, also of one that is only tried. */
export function settingsOf(config: Config, mailbox: MailboxSettings): Omit<SessionOptions, 'auth'> {
  const { server, port, useSsl, username } = mailbox
  return {
    ...{ server, port, useSsl, username },
    plaintext: config.MAILROOM_PLAINTEXT,
    allowPrivate: config.MAILROOM_ALLOW_PRIVATE,
    connectTimeoutMs: config.MAILROOM_CONNECT_TIMEOUT,
    loginTimeoutMs: config.MAILROOM_LOGIN_TIMEOUT,
    commandTimeoutMs: config.MAILROOM_COMMAND_TIMEOUT,
  }
}

async function authOf(deps: LoginDeps, account: AccountRecord): Promise<Auth> {
  const credential = openCredential(deps.sealer, account)
  if (credential.kind === 'password') {
    return { auth: { password: credential.password }, expiresAt: null, refused: () => undefined }
  }
  const token = await deps.tokens.get(account.developerId, credential)
  const newest = token.rotated === null ? credential : { ...credential, refreshToken: token.rotated }
  if (newest !== credential) {
    const sealedCredential = sealCredential(deps.sealer, account.id, newest)
    await deps.sync.store.accounts.edit(account.id, { sealedCredential })
  }
  // The provider may end an access token early: the next login asks for another one.
  const refused = (): void => deps.tokens.forget(account.developerId, newest)
  return { auth: { accessToken: token.accessToken }, expiresAt: token.expiresAt, refused }
}
