/**
 * All that we use below imapflow's documented API, so that an update of imapflow is read against this file alone (and
 * against intake.ts, for its stream of responses). By the documented API: connect, close, capabilities, the events
 * 'error' and 'close', and the options of createWire. Switched off there: compression (a zlib context per connection
 * costs more memory than the rest of the session), auto-IDLE (it starts 15 s late), IMAP4rev2 and UTF8=ACCEPT (one
 * dialect is enough).
 *
 * Commands after the login go through `exec`, not through imapflow's methods, because these
 * - answer `false` to a NO or BAD (status, flags, copy, move, delete, noop, idle), where the caller has to hear what
 *   the server said;
 * - send commands that were not asked for: LIST before SELECT, LSUB after LIST, NOOP and SEARCH after APPEND, CLOSE
 *   (which expunges) before DELETE of the open mailbox;
 * - read an answer in one form only (special use, BODYSTRUCTURE, SEARCH with sequence numbers), or encode a mailbox
 *   name anew that the server listed in a form which is not valid;
 * - give no way to bound what the server may answer (frames.ts).
 */
import { ImapFlow, type ImapResponse } from 'imapflow'
import type { LookupFunction, Socket } from 'node:net'
import type { CheckedAddress } from '../../net/address.ts'
import type { SessionOptions } from '../session-types.ts'
import type { Allowance } from './frames.ts'
import { takeIn, type Streamer } from './intake.ts'

export type { ImapAttribute, ImapResponse } from 'imapflow'
/** What a mailbox is for by its name, in many languages. */
export { specialUse } from 'imapflow/lib/special-use.js'

export type Argument =
  | {
      readonly type: 'ATOM' | 'STRING' | 'SEQUENCE'
      readonly value: string
      readonly section?: readonly Argument[]
      readonly partial?: readonly number[]
    }
  | { readonly type: 'LITERAL'; readonly value: Buffer; readonly isLiteral8?: boolean }
  | readonly Argument[]

export const atom = (value: string): Argument => ({ type: 'ATOM', value })
export const uidSet = (value: string): Argument => ({ type: 'SEQUENCE', value })

export type Untagged = (response: ImapResponse) => void | Promise<void>

interface ExecOptions {
  readonly untagged?: Readonly<Record<string, Untagged>>
  readonly allowance?: Allowance
  readonly onPlusTag?: () => void | Promise<void>
}

type Command = (connection: Wire & { readonly state: number }, ...rest: readonly unknown[]) => Promise<unknown>

export interface Wire {
  /** Sends one command. Its answer is read by the given handlers, and bounded by `allowance`. */
  exec(
    command: string,
    attributes: readonly Argument[] | false,
    options?: ExecOptions,
  ): Promise<{ readonly response: ImapResponse; readonly next: () => void }>
  /** DONE, which is no command. */
  write(line: string): void
  close(): void
  connect(): Promise<void>
  on(event: 'error', listener: (error: unknown) => void): void
  on(event: 'close', listener: () => void): void
  readonly capabilities: ReadonlyMap<string, unknown>
  /** What the server says unasked. facts.ts reads it in every state, imapflow only of a mailbox that it opened. */
  readonly untaggedHandlers: Record<string, Untagged | null>
  readonly sectionHandlers: Record<string, unknown>
  /** Why the server ended the connection during the login. */
  readonly byeReason?: string
  /** Whether the deadline of the connection or that of the login is running. */
  readonly greetingReceived?: boolean
  /** Bounds and counts what comes in (intake.ts); its counter of bytes is the sign of progress. */
  readonly streamer: Streamer
  getUntaggedHandler(command: string, attributes: ImapResponse['attributes']): Untagged | undefined
  /** Bytes sent are a sign of progress too; and errors after the end need a listener. */
  readonly socket: Socket | null
  /** imapflow sends ID before the login. NetEase wants it after: it is sent once, there. */
  commands: Map<string, Command>
  /** imapflow would sit out a server's back-off, minutes long, without reading. We answer `throttled` at once. */
  throttleWait: (ms: number) => Promise<boolean>
}

/** Deadlines are ours: imapflow's own inactivity timer is set beyond them. */
const never = 2 ** 31 - 1

/** A line that imapflow could not parse: it was left out, and may have been the answer to a FETCH. */
export type OnUnparsed = (line: string) => void

/** The first line of a host that speaks something else than IMAP: SMTP, POP3, HTTP. */
type OnForeign = (line: string) => void

interface LogEntry {
  readonly src?: string
  readonly msg?: string
}

/** imapflow reports lines by its log: `debug` of those that it has read, `error` of those that it could not parse. */
function loggerFor({ onLine, auth, username }: SessionOptions, onUnparsed: OnUnparsed, onForeign: OnForeign) {
  const mask = secretMask(auth, username)
  let greeted = false
  const tell = ({ src, msg = '' }: LogEntry): void => {
    if (src === 'c' || src === 's') onLine?.(`${src.toUpperCase()}: ${mask(msg)}`)
  }
  const hear = (entry: LogEntry): void => {
    const { src, msg = '' } = entry
    tell(entry)
    if (greeted || src !== 's' || msg.trim() === '') return
    greeted = true
    // Every greeting of IMAP is untagged (RFC 9051 §7.1): what begins otherwise is another protocol's.
    if (!msg.startsWith('*')) onForeign(msg)
  }
  const unparsed = (entry: LogEntry): void => {
    hear(entry)
    if (entry.src === 's') onUnparsed(entry.msg ?? '')
  }
  const quiet = (): void => undefined
  return { trace: onLine ? tell : quiet, debug: hear, info: quiet, warn: quiet, error: unparsed, fatal: quiet }
}

/** The socket goes to an address that the guard has checked, whatever the name resolves to by then. */
function pinned(addresses: readonly CheckedAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses
    if (options.all) callback(null, [...addresses])
    else callback(null, first?.address ?? '', first?.family ?? 4)
  }
}

let commands: Map<string, Command> | null = null
function withIdAfterLogin(original: Map<string, Command>): Map<string, Command> {
  if (commands) return commands
  const id = original.get('ID')
  const notAuthenticated = 1
  commands = new Map(original)
  if (id) {
    commands.set('ID', (connection, ...rest) =>
      connection.state === notAuthenticated ? Promise.resolve({}) : id(connection, ...rest),
    )
  }
  return commands
}

/** For what imapflow asks by itself: CAPABILITY, ID, NAMESPACE. It keeps all that the answers say. */
const duringLogin: Allowance = { bytes: 1_048_576 }

/** Not connected yet. The caller sets its listeners before it calls connect. */
export function createWire(
  options: SessionOptions & { readonly mustEncrypt: boolean },
  addresses: readonly CheckedAddress[],
  onUnparsed: OnUnparsed,
  onForeign: OnForeign,
): Wire {
  const { auth } = options
  const logger = loggerFor(options, onUnparsed, onForeign)
  const client = new ImapFlow({
    host: options.server,
    port: options.port,
    secure: options.useSsl,
    // Otherwise it upgrades where STARTTLS is offered, and goes on without where it is not.
    ...(options.mustEncrypt && !options.useSsl ? { doSTARTTLS: true } : {}),
    auth: {
      user: options.username,
      ...('password' in auth ? { pass: auth.password } : { accessToken: auth.accessToken }),
    },
    clientInfo: { name: 'Mailroom', version: '1', vendor: '', 'support-url': '' },
    logger,
    tls: { lookup: pinned(addresses) },
    connectionTimeout: options.connectTimeoutMs,
    greetingTimeout: options.connectTimeoutMs,
    socketTimeout: never,
    disableAutoIdle: true,
    disableAutoEnable: true,
    disableCompression: true,
    disableIMAP4rev2: true,
  })
  const wire = client as unknown as Wire
  const exec = wire.exec.bind(wire)
  const begin = takeIn(wire, options.take, (msg) => logger.debug({ src: 's', msg }))
  wire.exec = (command, attributes, sent = {}) => {
    begin(sent.allowance ?? duringLogin)
    return exec(command, attributes, sent)
  }
  wire.commands = withIdAfterLogin(wire.commands)
  wire.throttleWait = () => Promise.resolve(false)
  return wire
}

/** Shorter secrets would blank out half the log, and stand in no line that imapflow has not masked already. */
const shortest = 4

/** Takes secrets out of protocol lines. imapflow masks what it sends itself; this also masks what a server repeats. */
export function secretMask(auth: SessionOptions['auth'], username: string): (line: string) => string {
  const secret = 'password' in auth ? auth.password : auth.accessToken
  if (secret.length < shortest) return (line) => line
  const encoded = [secret, `\0${username}\0${secret}`].map((text) => Buffer.from(text).toString('base64'))
  const shapes = [secret, secret.replace(/["\\]/g, '\\$&'), ...encoded]
  return (line) => shapes.reduce((masked, shape) => masked.replaceAll(shape, '***'), line)
}
