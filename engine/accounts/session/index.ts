/**
 * Sessions over imapflow: the only folder that imports it. index.ts connects and puts the parts together; below.ts
 * holds all that is below imapflow's documented API; line.ts keeps commands one after the other, with deadlines; the
 * rest speak the commands.
 */
import { AppError, errnoOf, isAppError } from '../../errors.ts'
import { type CheckedAddress, isPrivateAddress, resolveGuarded } from '../../net/address.ts'
import { withinTime } from '../../waits.ts'
import { connectionFailure, serverFailure } from '../failures.ts'
import type { SelectedMailbox, SessionCapabilities, SessionOptions } from '../session-types.ts'
import { type Wire, createWire, secretMask, type OnUnparsed } from './below.ts'
import { createFetcher } from './fetch.ts'
import { createIdler, createLine, type Life } from './line.ts'
import { createMailboxes } from './mailboxes.ts'
import { createMessages } from './messages.ts'
import { createNames } from './names.ts'
import { subscribe } from './notify.ts'
import { createUnparsed } from './parts.ts'
import { enableModseqs } from './qresync.ts'
import { statusText, type StatusText } from './responses.ts'
import { createSearcher } from './search.ts'
import { capabilitiesOf, createFacts, installHandlers, type Facts } from './server-state.ts'

/**
 * The kernel asks a silent connection this often, and ends it after ten questions without an answer, a second apart: a
 * dead line of a quiet account costs no timer. imapflow's own 5 s would be 2000 packets a second for 10,000 accounts.
 */
const keepAliveMs = 60_000
/** A LOGOUT is a courtesy: it is not waited for longer. */
const logoutMs = 1000
/** After a BYE during the login: a tagged answer may follow, and says more. */
const byeMs = 1000

function createLife(wire: Wire, facts: Facts): Life {
  const over = new AbortController()
  let reason: AppError | null = null
  return {
    ended: () => reason,
    closed: over.signal,
    end(error) {
      if (over.signal.aborted) return
      reason = error ?? new AppError('network', 'the session is closed')
      over.abort()
      wire.close()
      facts.emit({ type: 'closed', error })
    },
  }
}

/** BYE, socket errors and the end of the socket: from here on they end the session, whatever is under way. */
function watchEnd(wire: Wire, facts: Facts, life: Life, leaving: () => boolean): void {
  let bye: AppError | null = null
  const onBye = ({ code, text }: StatusText): void => {
    if (leaving()) return
    const expired = code === 'ACCESSTOKENEXPIRED' || /access ?token ?(?:is )?expired/i.test(text)
    bye = serverFailure({ status: 'BYE', code, text, phase: 'command' })
    if (expired) bye = tokenExpired(bye)
    // The tagged answer that may stand in the same packet says more: it is read first.
    setImmediate(() => life.end(bye))
  }
  installHandlers(wire, facts, onBye)
  wire.on('error', (error) => life.end(bye ?? connectionFailure(error)))
  const gone = (): void => life.end(bye ?? new AppError('network', 'the mail server closed the connection'))
  wire.on('close', gone)
  // It may have been lost between the login and these listeners; the caller sees that with its first command.
  if (!wire.socket || wire.socket.destroyed) gone()
}

/** Not a failure, only the end of the token; details.reason says so. */
function tokenExpired({ details }: AppError): AppError {
  return new AppError('network', 'the mail server ended the session with its access token', {
    details: { ...details, reason: 'token_expired' },
  })
}

/**
 * Connects, upgrades (STARTTLS where it is offered without useSsl), logs in, sends ID. Rejects with an AppError of a
 * failure class. Every method of the session has a deadline on progress (MAILROOM_COMMAND_TIMEOUT) and rejects with a
 * failure class, `timeout`, `server_refused` (NO or BAD, its text in details.response), `not_found` or `conflict`; any
 * but the last three has closed the session. A socket error never escapes as an unhandled event.
 */
export async function openSession(options: SessionOptions, signal: AbortSignal) {
  const unparsed = createUnparsed()
  const wire = await connect(options, signal, unparsed.add)
  const facts = createFacts(wire.capabilities)
  const life = createLife(wire, facts)
  let closing: Promise<void> | null = null
  watchEnd(wire, facts, life, () => closing !== null)
  const { commandTimeoutMs, onCommand, names = createNames() } = options
  const line = createLine({ wire, life, commandTimeoutMs, onCommand })
  const parts = { line, facts, unparsed, names, searcher: createSearcher(facts) }
  const idler = createIdler({ wire, life, line, offered: facts.offers('IDLE') })
  const { closed } = life
  return {
    ...createMailboxes(parts),
    ...createFetcher(parts),
    ...createMessages(parts),
    idle: idler.idle,
    get capabilities(): SessionCapabilities {
      return capabilitiesOf(facts, idler.useful)
    },
    /** As the server advertises them after the login, for people. */
    capabilityNames: (): string[] => [...wire.capabilities.keys()],
    get selected(): SelectedMailbox | null {
      return facts.selected
    },
    /** UIDs of the open folder that the server has named as vanished since the last call (QRESYNC). */
    takeVanished: (): Promise<number[]> => facts.vanished.take(),
    get closed(): boolean {
      return closed.aborted
    },
    listen: facts.listen,
    /** Where NOTIFY is offered, the server tells of all folders from now on. Answers whether it does. */
    notify: (): Promise<boolean> => subscribe(wire, parts),
    noop: (): Promise<void> => line.run((send) => send('NOOP')).then(() => undefined),
    /** At once, with an error or on purpose (null). */
    end: (error: AppError | null): void => life.end(error),
    /** LOGOUT with a short deadline, then the socket is destroyed. Never rejects. */
    close: (): Promise<void> =>
      (closing ??= withinTime(
        logoutMs,
        line.run((send) => send('LOGOUT')).catch(() => undefined),
      ).then(() => life.end(null))),
  }
}

/** One IMAP connection with one owner. */
export type Session = Awaited<ReturnType<typeof openSession>>

/** What imapflow hangs on its errors. */
interface ClientError {
  readonly responseStatus?: unknown
  readonly serverResponseCode?: unknown
  /** A tagged NO or BAD without its code. */
  readonly responseText?: unknown
  /** The text of a refusal that came after the login; see `afterLogin`. */
  readonly response?: unknown
  readonly authenticationFailed?: unknown
  /** STARTTLS that was asked for and not had, or a handshake that failed: that one has a code as well. */
  readonly tlsFailed?: unknown
}

const noPlaintext = {
  never: 'MAILROOM_PLAINTEXT=never allows no login in clear text',
  private: 'MAILROOM_PLAINTEXT=private allows a login in clear text at private addresses only',
} as const

/** No credentials were sent. The message names the setting: another mail program may log in there. */
function notEncrypted(plaintext: keyof typeof noPlaintext, cause: unknown): AppError {
  return new AppError('tls', `the mail server does not do STARTTLS, and ${noPlaintext[plaintext]}`, { cause })
}

/** A host of which one address is not private is on the way of strangers. */
function mustEncrypt(
  { plaintext, isPrivate = isPrivateAddress }: SessionOptions,
  to: readonly CheckedAddress[],
): boolean {
  if (plaintext !== 'private') return plaintext === 'never'
  return !to.every(({ address }) => isPrivate(address))
}

function words(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A BYE during the login, with its code, of which imapflow keeps nothing. Set once imapflow has its own handlers. */
function hearBye({ untaggedHandlers: handlers }: Wire, hear: (bye: StatusText) => void): void {
  const { BYE: own } = handlers
  handlers['BYE'] = (response) => {
    hear(statusText(response))
    return own?.(response)
  }
}

/** People read what the server said: without the secret, which the server may have repeated. */
function loginFailure(error: unknown, wire: Wire, bye: StatusText | null, options: SessionOptions): AppError {
  // What was said before the time was over says more.
  if (isAppError(error) && (bye === null || error.code !== 'timeout')) return error
  const mask = secretMask(options.auth, options.username)
  const { responseStatus, serverResponseCode, responseText, response, authenticationFailed, tlsFailed } = (error ??
    {}) as ClientError
  const afterLogin = mask(words(response))
  const phase = wire.greetingReceived ? 'login' : 'connect'
  if (responseStatus === 'NO' || responseStatus === 'BAD') {
    const code = typeof serverResponseCode === 'string' ? serverResponseCode : null
    return serverFailure({ status: responseStatus, code, text: mask(words(responseText)), phase }, error)
  }
  // Exchange: the login was fine, the first command after it was not.
  if (afterLogin !== '') return serverFailure({ status: 'BAD', code: null, text: afterLogin, phase }, error)
  if (bye !== null) return serverFailure({ status: 'BYE', code: bye.code, text: mask(bye.text), phase }, error)
  if (errnoOf(error) === null) {
    if (tlsFailed === true && options.plaintext !== 'always') return notEncrypted(options.plaintext, error)
    if (wire.greetingReceived) return unsupported(error, wire, authenticationFailed === true)
  }
  return connectionFailure(error)
}

/** Nothing was sent: the server offers no way to log in that we could use. */
function unsupported(error: unknown, wire: Wire, noLogin: boolean): AppError {
  if (noLogin && wire.capabilities.has('LOGINDISABLED')) {
    return new AppError('tls', 'the mail server takes no login without encryption', { cause: error })
  }
  if (noLogin) return new AppError('auth_rejected', 'no password was given', { cause: error })
  return new AppError('permission', 'the mail server offers no login method that fits the credentials', {
    cause: error,
  })
}

/** `over` rejects with the first of: abort, no greeting or login in time, a host that speaks another protocol. */
function watchLogin(options: SessionOptions, signal: AbortSignal, wire: () => Wire | null) {
  const { promise: over, reject } = Promise.withResolvers<never>()
  over.catch(() => undefined)
  const late = (message: string): void => reject(new AppError('timeout', message))
  let timer = setTimeout(() => {
    if (!wire()?.greetingReceived) late('the mail server did not answer in time')
    else timer = setTimeout(late, options.loginTimeoutMs, 'the mail server did not answer the login in time')
  }, options.connectTimeoutMs)
  const onAbort = (): void => {
    const { reason } = signal as { readonly reason: unknown }
    reject(isAppError(reason) ? reason : new AppError('network', 'the connection was given up', { cause: reason }))
  }
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return {
    over,
    /** Such a host would never answer us, and the time would run out. */
    onForeign: (line: string): void =>
      reject(new AppError('protocol', `the mail server answered something that is not IMAP: ${line.slice(0, 100)}`)),
    /** A server that has said so may leave it to us to close the connection. */
    onBye(): void {
      clearTimeout(timer)
      timer = setTimeout(late, byeMs, 'the mail server has said BYE')
    },
    stop(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    },
  }
}

/** An error that comes after the last listener has gone must not end the process. */
function neverThrow(wire: Wire): void {
  wire.socket?.on('error', () => undefined)
}

/**
 * Everything up to a session that takes commands, within its two deadlines: logged in, with ID sent, and
 * QRESYNC or CONDSTORE enabled. Rejects with an AppError; nothing is left open then.
 */
async function connect(options: SessionOptions, signal: AbortSignal, onUnparsed: OnUnparsed): Promise<Wire> {
  let made: Wire | null = null
  let bye: StatusText | null = null
  const failed = new AbortController()
  const { over, onForeign, onBye, stop } = watchLogin(options, signal, () => made)
  async function start(): Promise<Wire> {
    const { server, allowPrivate } = options
    const addresses = await resolveGuarded(server, { allowPrivate, signal: failed.signal })
    const encrypted = { ...options, mustEncrypt: mustEncrypt(options, addresses) }
    const wire = createWire(encrypted, addresses, onUnparsed, onForeign)
    made = wire
    if (failed.signal.aborted) wire.close()
    wire.on('error', () => undefined)
    const connecting = wire.connect()
    hearBye(wire, (said) => {
      bye = said
      onBye()
    })
    neverThrow(wire)
    await connecting
    neverThrow(wire)
    wire.socket?.setKeepAlive(true, keepAliveMs)
    await enableModseqs(wire, (error) => {
      const { responseStatus } = error as ClientError
      return responseStatus === 'NO' || responseStatus === 'BAD'
    })
    return wire
  }
  const starting = start()
  starting.catch(() => undefined)
  try {
    return await Promise.race([starting, over])
  } catch (error) {
    failed.abort()
    const wire = made as Wire | null
    const failure = wire === null ? connectionFailure(error) : loginFailure(error, wire, bye, options)
    wire?.close()
    throw failure
  } finally {
    stop()
  }
}
