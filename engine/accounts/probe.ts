/**
 * The trial login of a new account: address guard, connection, login, list of folders, all within
 * MAILROOM_CREATE_TIMEOUT. Nothing is kept; the answer is a result, never an error.
 */
import { AppError, failureClasses, isAppError } from '../errors.ts'
import { resolveGuarded } from '../net/address.ts'
import { connectionFailure } from './failures.ts'
import { type LoginDeps, secretOf, settingsOf, takeFor } from './login.ts'
import type { Login } from './login-limiter.ts'
import type { SyncDeps } from './state.ts'
import type { Credential, MailboxSettings, ProbeFailure, ProbeResult } from './types.ts'

export interface ProbeDeps extends Pick<LoginDeps, 'openSession' | 'limiter' | 'tokens'> {
  readonly sync: Pick<SyncDeps, 'config' | 'budget'>
}

export type Probe = (developerId: string, settings: MailboxSettings, credential: Credential) => Promise<ProbeResult>

/** A talkative server must not fill the answer. */
const mostLines = 200
const longestLine = 500

interface Log {
  add(line: string): void
  text(): string
}

function createLog(): Log {
  const lines: string[] = []
  return {
    add(line) {
      if (lines.length < mostLines) lines.push(line.length > longestLine ? `${line.slice(0, longestLine)}…` : line)
    },
    text: () => lines.join('\n'),
  }
}

const unknownHostCodes = new Set(['ENOTFOUND', 'ENODATA', 'EAI_NONAME', 'EAI_NODATA'])

/** A login alone sets no account aside. */
const classesOfLogin = failureClasses.filter((name) => name !== 'set_aside')

function failureOf(error: AppError): ProbeFailure {
  const { errno } = error.details
  if (errno === 'ECONNREFUSED') return 'connection_refused'
  if (typeof errno === 'string' && unknownHostCodes.has(errno)) return 'host_not_found'
  if (error.code === 'private_address' || error.code === 'timeout') return error.code
  return classesOfLogin.find((name) => name === error.code) ?? 'protocol'
}

/** Everything that waits gives up at the deadline, also a host that says nothing at all. */
async function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const error = new AppError('timeout', 'the mail server did not answer in time')
    over.abort(error)
    late.reject(error)
  }, ms)
  const working = work(over.signal)
  working.catch(() => undefined)
  try {
    return await Promise.race([working, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

interface Attempt {
  readonly developerId: string
  readonly settings: MailboxSettings
  readonly credential: Credential
  readonly log: Log
}

/** Our own limit on logins: there was no connection. `rejections` 0 = the pace of the host. */
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

/** Waits for the turn at the host, half of the whole time at most: what is left must do for the login itself. */
async function takeTurn({ sync, limiter }: ProbeDeps, given: Attempt, signal: AbortSignal): Promise<void> {
  const login = loginOf(given)
  const patienceMs = sync.config.MAILROOM_CREATE_TIMEOUT / 2
  const missedBy = (): TurnMissed => new TurnMissed(limiter.delay(login), limiter.rejections(login))
  if (limiter.delay(login) > patienceMs) throw missedBy()
  const missed = AbortSignal.timeout(patienceMs)
  try {
    await limiter.enter(login, { urgent: true, signal: AbortSignal.any([signal, missed]) })
  } catch (error) {
    // By now it waits no longer, and does not count itself.
    throw missed.aborted && !signal.aborted ? missedBy() : error
  }
}

function loginOf({ developerId, settings: { server, username }, credential }: Attempt): Login {
  return { host: server, developerId, username, secret: secretOf(credential), check: true }
}

/** Capabilities of the server that let us in and listed its folders. */
async function attempt(deps: ProbeDeps, given: Attempt, signal: AbortSignal): Promise<readonly string[]> {
  const { sync, openSession, tokens } = deps
  const { config, budget } = sync
  const { developerId, settings, credential, log } = given
  const addresses = await resolveGuarded(settings.server, { allowPrivate: config.MAILROOM_ALLOW_PRIVATE, signal })
  log.add(`# ${settings.server} is ${addresses.map(({ address }) => address).join(', ')}`)
  const auth =
    credential.kind === 'password'
      ? { password: credential.password }
      : { accessToken: (await tokens.get(developerId, credential)).accessToken }
  await takeTurn(deps, given, signal)
  const onLine = (line: string): void => log.add(line)
  const take = takeFor(budget, { developerId, part: 'trials' })
  const session = await openSession({ ...settingsOf(config, settings), auth, onLine, take }, signal)
  const close = (): void => void session.close()
  signal.addEventListener('abort', close, { once: true })
  try {
    await session.list({ status: false, most: config.MAILROOM_FOLDERS_MAX })
    return session.capabilityNames()
  } finally {
    signal.removeEventListener('abort', close)
    close()
  }
}

export function createProbe(deps: ProbeDeps): Probe {
  return async (developerId, settings, credential) => {
    const log = createLog()
    const given = { developerId, settings, credential, log }
    try {
      const capabilities = await within(deps.sync.config.MAILROOM_CREATE_TIMEOUT, (signal) =>
        attempt(deps, given, signal),
      )
      return { ok: true, log: log.text(), capabilities }
    } catch (error) {
      const known = connectionFailure(error)
      if (isAppError(known, 'auth_rejected')) {
        deps.limiter.failed(loginOf(given))
        if (credential.kind === 'oauth2') deps.tokens.forget(developerId, credential)
      }
      log.add(`# ${known.message}`)
      const ours =
        known instanceof TurnMissed && known.retryAfterMs !== null ? { retryAfterMs: known.retryAfterMs } : {}
      return { ok: false, failure: failureOf(known), message: known.message, log: log.text(), ...ours }
    }
  }
}
