/**
 * The trial login of a new account, or of new settings: address guard, connection, login, LIST. Its session waits for
 * the account, which takes it over (login.ts).
 */
import { AppError, failureClasses } from '../errors.ts'
import { resolveGuarded } from '../net/address.ts'
import { currentOwner, type Owner, workAs } from '../observe/loop.ts'
import { withinTime } from '../scheduling.ts'
import { connectionFailure } from './failures.ts'
import { authOf, type Bearer, type DialDeps, loginOf, openCounted, type TriedSessions } from './login.ts'
import type { Login } from './login-limiter.ts'
import { createNames } from './session/names.ts'
import type { Credential, MailboxSettings, ProbeFailure, ProbeResult, ProbeStep } from './types.ts'

export interface ProbeDeps extends DialDeps {
  readonly tried: Pick<TriedSessions, 'add' | 'drop'>
}

interface ProbeOptions {
  readonly onStep?: ((step: ProbeStep) => void) | undefined
  /** Stores the credential of an account before the login: the provider has ended the former refresh token. */
  readonly onRotated?: ((rotated: Credential) => Promise<void>) | undefined
  /** The session stays open for the account, which takes it over. */
  readonly staysOpen?: boolean
}

export type Probe = (
  developerId: string,
  settings: MailboxSettings,
  credential: Credential,
  options?: ProbeOptions,
) => Promise<ProbeResult>

/** Bounds of the log in the answer. */
const mostLines = 200
const longestLine = 500

function createLog() {
  const lines: string[] = []
  return {
    lines,
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

interface Attempt extends ProbeOptions {
  readonly developerId: string
  readonly settings: MailboxSettings
  readonly credential: Credential
  readonly log: ReturnType<typeof createLog>
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
async function takeTurn({ sync, limiter }: ProbeDeps, login: Login, signal: AbortSignal): Promise<void> {
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

/** A login and a LIST. */
async function attempt(deps: ProbeDeps, given: Attempt, signal: AbortSignal): Promise<void> {
  const { config } = deps.sync
  const { developerId, settings, credential, log, onStep } = given
  onStep?.('finding')
  const addresses = await resolveGuarded(settings.server, { allowPrivate: config.MAILROOM_ALLOW_PRIVATE, signal })
  log.add(`# ${settings.server} is ${addresses.map(({ address }) => address).join(', ')}`)
  let newest = credential
  const { tokenRenewAt, ...auth } = await authOf(deps, developerId, credential, (rotated) => {
    newest = rotated
    return given.onRotated?.(rotated)
  })
  const entered = loginOf(developerId, settings, credential)
  const kept = loginOf(developerId, settings, newest)
  // Some servers allow a mailbox one connection.
  await deps.tried.drop(settings, kept)
  await takeTurn(deps, entered, signal)
  onStep?.('login')
  const bearer: Bearer = { owner: { developerId, part: 'trials' }, names: createNames(), onLine: log.add }
  const worker: Owner = { kind: 'call', id: 'trial login', ...currentOwner() }
  const session = await workAs(worker, () => openCounted(deps, { mailbox: settings, bearer, entered, ...auth }, signal))
  const close = (): void => void session.close()
  signal.addEventListener('abort', close, { once: true })
  let isKept = false
  try {
    onStep?.('folders')
    await session.list({ status: false, most: config.MAILROOM_FOLDERS_MAX })
    const lines = log.lines.filter((line) => !line.startsWith('#'))
    isKept =
      given.staysOpen === true && deps.tried.add(settings, kept, { session, tokenRenewAt, bearer, lines, worker })
  } finally {
    signal.removeEventListener('abort', close)
    if (!isKept) close()
  }
}

/**
 * The trial login of a new account: address guard, connection, login, LIST, all within MAILROOM_CREATE_TIMEOUT. Only
 * `onRotated` stores anything. Rejects only with failures of this service, such as a store that is away.
 */
export function createProbe(deps: ProbeDeps): Probe {
  return async (developerId, settings, credential, options = {}) => {
    const log = createLog()
    let tried: { readonly rotated?: Credential } = {}
    const onRotated = async (rotated: Credential): Promise<void> => {
      tried = { rotated }
      await options.onRotated?.(rotated)
    }
    const given = { ...options, developerId, settings, credential, log, onRotated }
    try {
      await within(deps.sync.config.MAILROOM_CREATE_TIMEOUT, (signal) => attempt(deps, given, signal))
      return { ok: true, log: log.text(), ...tried }
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
