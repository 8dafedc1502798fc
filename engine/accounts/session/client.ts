/**
 * imapflow as we use it: it connects, upgrades, logs in, frames, parses and compiles; commands after the login are ours,
 * sent with its `exec`. That layer is below its documented API, which is why its version is pinned exactly and why nothing
 * outside this folder knows of it. What it is told to leave alone: compression (a zlib context per connection costs more
 * memory than the rest of the session), auto-IDLE (starts 15 s late), IMAP4rev2 and UTF8=ACCEPT (one dialect is enough).
 */
import { ImapFlow, type ImapResponse } from 'imapflow'
import type { LookupFunction, Socket } from 'node:net'
import type { CheckedAddress } from '../../net/address.ts'
import type { SessionOptions } from '../session-types.ts'
import type { Allowance } from './frames.ts'
import { countInflow, type CountedStreamer } from './inflow.ts'
import { takeIn, type Streamer } from './intake.ts'
import { secretMask } from './mask.ts'

/** What a command's line is made of. */
export type Argument =
  | {
      readonly type: 'ATOM' | 'STRING' | 'SEQUENCE'
      readonly value: string
      readonly section?: readonly Argument[]
      readonly partial?: readonly number[]
    }
  | { readonly type: 'LITERAL'; readonly value: Buffer; readonly isLiteral8?: boolean }
  | readonly Argument[]

export type Untagged = (response: ImapResponse) => void | Promise<void>

interface ExecOptions {
  readonly untagged?: Readonly<Record<string, Untagged>>
  readonly allowance?: Allowance
  readonly onPlusTag?: () => void | Promise<void>
}

/** The layer of imapflow 2.1.2 that we stand on. */
export interface Wire {
  exec(
    command: string,
    attributes: readonly Argument[] | false,
    options?: ExecOptions,
  ): Promise<{ readonly response: ImapResponse; readonly next: () => void }>
  write(line: string): void
  close(): void
  connect(): Promise<void>
  on(event: 'error', listener: (error: unknown) => void): void
  on(event: 'close', listener: () => void): void
  readonly capabilities: ReadonlyMap<string, unknown>
  readonly namespace?: { readonly prefix?: string; readonly delimiter?: string | null }
  readonly untaggedHandlers: Record<string, Untagged | null>
  /** Of response codes. */
  readonly sectionHandlers: Record<string, unknown>
  readonly byeReason?: string
  readonly greetingReceived?: boolean
  readonly streamer: Streamer & CountedStreamer
  getUntaggedHandler(command: string, attributes: ImapResponse['attributes']): Untagged | undefined
  readonly socket: Socket | null
  commands: Map<string, Command>
  throttleWait: (ms: number) => Promise<boolean>
}

type Command = (connection: Wire & { readonly state: number }, ...rest: readonly unknown[]) => Promise<unknown>

/** Deadlines are ours: imapflow's own inactivity timer is set beyond them. */
const never = 2 ** 31 - 1

/** A line that imapflow could not parse: it was left out, and may have been the answer to a FETCH. */
export type OnUnparsed = (line: string) => void

/** The first line of a host that speaks something else than IMAP: SMTP, POP3, HTTP. */
export type OnForeign = (line: string) => void

interface LogEntry {
  readonly src?: string
  readonly msg?: string
}

/** Every greeting of IMAP is untagged (RFC 9051 §7.1): what begins otherwise is another protocol's. */
function greetingCheck(onForeign: OnForeign): (entry: LogEntry) => void {
  let greeted = false
  return ({ src, msg = '' }) => {
    if (greeted || src !== 's' || msg.trim() === '') return
    greeted = true
    if (!msg.startsWith('*')) onForeign(msg)
  }
}

function loggerFor(options: SessionOptions, onUnparsed: OnUnparsed, onForeign: OnForeign) {
  const { onLine } = options
  const listen = greetingCheck(onForeign)
  const unparsed = (entry: LogEntry): void => {
    listen(entry)
    if (entry.src === 's') onUnparsed(entry.msg ?? '')
  }
  const quiet = (): void => undefined
  const none = { trace: quiet, debug: listen, info: quiet, warn: quiet, error: unparsed, fatal: quiet }
  if (!onLine) return none
  const mask = secretMask(options.auth, options.username)
  const tell = (entry: LogEntry): void => {
    const speaker = entry.src === 'c' ? 'C' : entry.src === 's' ? 'S' : null
    if (speaker !== null) onLine(`${speaker}: ${mask(entry.msg ?? '')}`)
  }
  const both = (entry: LogEntry): void => {
    tell(entry)
    unparsed(entry)
  }
  const heard = (entry: LogEntry): void => {
    tell(entry)
    listen(entry)
  }
  return { ...none, trace: tell, debug: heard, error: both }
}

/** The socket goes to an address that the guard has checked, whatever the name resolves to by then. */
function pinned(addresses: readonly CheckedAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses
    if (options.all) callback(null, [...addresses])
    else callback(null, first?.address ?? '', first?.family ?? 4)
  }
}

/** imapflow sends ID before the login, and after it only to terse servers. NetEase wants it after: once, there. */
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
  const begin = takeIn(wire, (msg) => logger.debug({ src: 's', msg }))
  wire.exec = (command, attributes, sent = {}) => {
    begin(sent.allowance ?? duringLogin)
    return exec(command, attributes, sent)
  }
  wire.commands = withIdAfterLogin(wire.commands)
  // imapflow would sit out a server's back-off, minutes long, with its reader parked. We answer `throttled` at once.
  wire.throttleWait = () => Promise.resolve(false)
  if (options.take) countInflow(wire.streamer, options.take)
  return wire
}
