/**
 * IMAP sessions over imapflow; no other folder imports it. index.ts connects, logs in and puts the parts together;
 * below.ts has all uses of imapflow below its documented API; line.ts runs one command at a time, with deadlines; the
 * other files speak the commands.
 */
import { AppError, errnoOf, isAppError } from '../../errors.ts'
import { type CheckedAddress, isPrivateAddress, resolveGuarded } from '../../net/address.ts'
import { withinTime } from '../../scheduling.ts'
import { connectionFailure, serverFailure } from '../failures.ts'
import type { SelectedMailbox, SessionCapabilities, SessionOptions } from '../session-types.ts'
import { type Wire, createWire, secretMask } from './below.ts'
import { createFetcher } from './fetch.ts'
import { createIdler, createLine, refusalOf, type Life } from './line.ts'
import { createMailboxes } from './mailboxes.ts'
import { createMessages } from './messages.ts'
import { createNames } from './names.ts'
import { subscribe } from './notify.ts'
import { enableModseqs } from './qresync.ts'
import { statusText, type StatusText } from './responses.ts'
import { createSearcher } from './search.ts'
import { capabilitiesOf, createFacts, installHandlers, type Facts } from './server-state.ts'

/**
 * The kernel probes a silent connection this often, and ends it after ten probes without an answer, a second apart: a
 * dead connection of a quiet account costs no timer. imapflow's 5 s would be 2000 packets a second for 10,000 accounts.
 */
const keepAliveMs = 60_000
/** Longest wait for LOGOUT, which is a courtesy. */
const logoutMs = 1000
/** Wait after a BYE during the login: a tagged answer that says more may follow. */
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

/** From here on BYE, a socket error and the end of the socket end the session, whatever is under way. */
function watchEnd(wire: Wire, facts: Facts, life: Life, leaving: () => boolean): void {
  let bye: AppError | null = null
  const onBye = ({ code, text }: StatusText): void => {
    if (leaving()) return
    bye = serverFailure({ status: 'BYE', code, text, phase: 'command' })
    // A tagged answer in the same packet says more, and is read first.
    setImmediate(() => life.end(bye))
  }
  installHandlers(wire, facts, onBye)
  wire.on('error', (error) => life.end(bye ?? connectionFailure(error)))
  const gone = (): void => life.end(bye ?? new AppError('network', 'the mail server closed the connection'))
  wire.on('close', gone)
  // The connection may have been lost before these listeners; the caller's first command shows it.
  if (!wire.socket || wire.socket.destroyed) gone()
}

/**
 * Connects, upgrades (STARTTLS where it is offered without useSsl), logs in, sends ID. Rejects with an AppError of a
 * failure class. Every method of the session has a deadline on progress (MAILROOM_COMMAND_TIMEOUT) and rejects with a
 * failure class, `timeout`, `server_refused` (NO or BAD, its text in details.response), `not_found` or `conflict`; all
 * errors but the last three have closed the session. A socket error is never an unhandled event.
 */
export async function openSession(options: SessionOptions, signal: AbortSignal) {
  const wire = await connect(options, signal)
  // imapflow forgets its socket when it closes.
  const { socket } = wire
  const facts = createFacts(wire.capabilities)
  const life = createLife(wire, facts)
  let closing: Promise<void> | null = null
  watchEnd(wire, facts, life, () => closing !== null)
  const { commandTimeoutMs, onCommand, names = createNames() } = options
  const line = createLine({ wire, life, commandTimeoutMs, onCommand })
  const parts = { line, facts, names, searcher: createSearcher(facts) }
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
    get selected(): SelectedMailbox | null {
      return facts.selected
    },
    /** UIDs of the open folder that the server has named as vanished since the last call (QRESYNC). */
    takeVanished: (): number[] => facts.vanished.take(),
    get closed(): boolean {
      return closed.aborted
    },
    /** Bytes that the server has sent so far. */
    get received(): number {
      return socket?.bytesRead ?? 0
    },
    listen: facts.listen,
    /** Asks the server to report all folders from now on. false = it will not, or not all (notify.ts). */
    notify: (): Promise<boolean> => subscribe(wire, parts),
    noop: (): Promise<void> => line.run((send) => send('NOOP')).then(() => undefined),
    /** Ends the session at once, with an error or on purpose (null). */
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

/** The properties of imapflow's errors during the login. */
interface ClientError {
  readonly serverResponseCode?: unknown
  /** Text of a tagged NO or BAD, without its code. */
  readonly responseText?: unknown
  /** Text of a refusal that came after the login. */
  readonly response?: unknown
  readonly authenticationFailed?: unknown
  /** The server lacks STARTTLS, which we require; or a handshake failed: then the error has a code too. */
  readonly tlsFailed?: unknown
}

const noPlaintext = {
  never: 'MAILROOM_PLAINTEXT=never allows no login in clear text',
  private: 'MAILROOM_PLAINTEXT=private allows a login in clear text at private addresses only',
} as const

/** No credentials were sent. The message names the setting, because another mail program may log in there. */
function notEncrypted(plaintext: keyof typeof noPlaintext, cause: unknown): AppError {
  return new AppError('tls', `the mail server does not do STARTTLS, and ${noPlaintext[plaintext]}`, { cause })
}

/** With `private`, one address that is not private is enough to require encryption. */
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

/** Reports a BYE during the login with its code, which imapflow does not keep. Wraps imapflow's own handler. */
function hearBye({ untaggedHandlers: handlers }: Wire, hear: (bye: StatusText) => void): void {
  const { BYE: own } = handlers
  handlers['BYE'] = (response) => {
    hear(statusText(response))
    return own?.(response)
  }
}

/** People read the server's text: secrets in it are masked. */
function loginFailure(error: unknown, wire: Wire, bye: StatusText | null, options: SessionOptions): AppError {
  // A BYE says more than the timeout after it.
  if (isAppError(error) && (bye === null || error.code !== 'timeout')) return error
  const mask = secretMask(options.auth, options.username)
  const client = (error ?? {}) as ClientError
  const { serverResponseCode, responseText, response, authenticationFailed, tlsFailed } = client
  const afterLogin = mask(words(response))
  const phase = wire.greetingReceived ? 'login' : 'connect'
  const status = refusalOf(error)
  if (status !== null) {
    const code = typeof serverResponseCode === 'string' ? serverResponseCode : null
    return serverFailure({ status, code, text: mask(words(responseText)), phase }, error)
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

/** No credentials were sent: the server offers no way to log in that fits them. */
function unsupported(cause: unknown, wire: Wire, noLogin: boolean): AppError {
  if (!noLogin)
    return new AppError('permission', 'the mail server offers no login method that fits the credentials', { cause })
  return wire.capabilities.has('LOGINDISABLED')
    ? new AppError('tls', 'the mail server takes no login without encryption', { cause })
    : new AppError('auth_rejected', 'no password was given', { cause })
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
    /** A host with another protocol would let the time run out. */
    onForeign: (line: string): void =>
      reject(new AppError('protocol', `the mail server answered something that is not IMAP: ${line.slice(0, 100)}`)),
    /** After a BYE some servers wait until we close the connection. */
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

/** A socket error after imapflow's last listener has gone must not end the process. */
function neverThrow(wire: Wire): void {
  wire.socket?.on('error', () => undefined)
}

/**
 * Connects and logs in within the two deadlines, sends ID, and enables QRESYNC or CONDSTORE. Rejects with an AppError,
 * and leaves nothing open then.
 */
async function connect(options: SessionOptions, signal: AbortSignal): Promise<Wire> {
  let made: Wire | null = null
  let bye: StatusText | null = null
  const failed = new AbortController()
  const { over, onForeign, onBye, stop } = watchLogin(options, signal, () => made)
  async function start(): Promise<Wire> {
    const { server, allowPrivate } = options
    const addresses = await resolveGuarded(server, { allowPrivate, signal: failed.signal })
    const encrypted = { ...options, mustEncrypt: mustEncrypt(options, addresses) }
    const wire = createWire(encrypted, addresses, onForeign)
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
    await enableModseqs(wire)
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
