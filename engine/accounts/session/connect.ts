/** Connects, upgrades, logs in: everything up to a session that takes commands, within its two deadlines. */
import { AppError, isAppError } from '../../errors.ts'
import { type CheckedAddress, isPrivateAddress, resolveGuarded } from '../../net/address.ts'
import { connectionFailure, serverFailure } from '../failures.ts'
import type { SessionOptions } from '../session-types.ts'
import { atom, createWire, secretMask, type OnUnparsed, type Wire } from './below.ts'

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

/** People read what the server said: without the secret, which the server may have repeated. */
function loginFailure(error: unknown, wire: Wire, options: SessionOptions): AppError {
  if (isAppError(error)) return error
  const mask = secretMask(options.auth, options.username)
  const { responseStatus, serverResponseCode, responseText, response, authenticationFailed, tlsFailed } = (error ??
    {}) as ClientError
  const said = mask(words(wire.byeReason))
  const afterLogin = mask(words(response))
  const phase = wire.greetingReceived ? 'login' : 'connect'
  if (responseStatus === 'NO' || responseStatus === 'BAD') {
    const code = typeof serverResponseCode === 'string' ? serverResponseCode : null
    return serverFailure({ status: responseStatus, code, text: mask(words(responseText)), phase }, error)
  }
  // Exchange: the login was fine, the first command after it was not.
  if (afterLogin !== '') return serverFailure({ status: 'BAD', code: null, text: afterLogin, phase }, error)
  if (said !== '') return serverFailure({ status: 'BYE', code: codeIn(said), text: said, phase }, error)
  if (!hasCode(error)) {
    if (tlsFailed === true && options.plaintext !== 'always') return notEncrypted(options.plaintext, error)
    if (wire.greetingReceived) return unsupported(error, wire, authenticationFailed === true)
  }
  return connectionFailure(error)
}

/** imapflow keeps a BYE's text with its code before it or without; a code in brackets is all that is looked for. */
function codeIn(text: string): string | null {
  return /^\[?([A-Z]{4,20})\b\]?/.exec(text)?.[1] ?? null
}

function hasCode(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
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

/** Logged in, with ID sent and CONDSTORE enabled. Rejects with an AppError; nothing is left open then. */
export async function connect(options: SessionOptions, signal: AbortSignal, onUnparsed: OnUnparsed): Promise<Wire> {
  let made: Wire | null = null
  let failed = false
  const { over, onForeign, stop } = watchLogin(options, signal, () => made)
  async function start(): Promise<Wire> {
    const addresses = await resolveGuarded(options.server, { allowPrivate: options.allowPrivate })
    const encrypted = { ...options, mustEncrypt: mustEncrypt(options, addresses) }
    const wire = createWire(encrypted, addresses, onUnparsed, onForeign)
    made = wire
    if (failed) wire.close()
    wire.on('error', () => undefined)
    const connecting = wire.connect()
    neverThrow(wire)
    await connecting
    neverThrow(wire)
    await enable(wire)
    return wire
  }
  const starting = start()
  starting.catch(() => undefined)
  try {
    return await Promise.race([starting, over])
  } catch (error) {
    failed = true
    const wire = made as Wire | null
    const failure = wire === null ? connectionFailure(error) : loginFailure(error, wire, options)
    wire?.close()
    throw failure
  } finally {
    stop()
  }
}

/** Must come before SELECT (RFC 7162 §3.1). The answer does not matter: iCloud names nothing and enables it. */
async function enable(wire: Wire): Promise<void> {
  if (!wire.capabilities.has('ENABLE') || !wire.capabilities.has('CONDSTORE')) return
  try {
    const { next } = await wire.exec('ENABLE', [atom('CONDSTORE')])
    next()
  } catch (error) {
    const { responseStatus } = error as ClientError
    if (responseStatus !== 'NO' && responseStatus !== 'BAD') throw error
  }
}
