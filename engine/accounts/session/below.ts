/**
 * All that we use below imapflow's documented API, so that an update of imapflow is read against this file alone. By
 * the documented API: connect, close, capabilities, the events 'error' and 'close', and the options of createWire.
 * Switched off there: compression (a zlib context per connection costs more memory than the rest of the session),
 * auto-IDLE (it starts 15 s late), IMAP4rev2 and UTF8=ACCEPT (one dialect is enough).
 *
 * Commands after the login go through `exec`, not through imapflow's methods, because these
 * - answer `false` to a NO or BAD (status, flags, copy, move, delete, noop, idle), where the caller has to hear what
 *   the server said;
 * - send commands that were not asked for: LIST before SELECT, LSUB after LIST, NOOP and SEARCH after APPEND, CLOSE
 *   (which expunges) before DELETE of the open mailbox;
 * - read an answer in one form only (special use, BODYSTRUCTURE, SEARCH with sequence numbers), or encode a mailbox
 *   name anew that the server listed in a form which is not valid;
 * - give no way to bound what the server may answer (frames.ts), nor to send a literal that is not whole in memory.
 */
import { ImapFlow, type ImapResponse } from 'imapflow'
import { parser } from 'imapflow/lib/handler/imap-handler.js'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Release } from '../../budget.ts'
import { AppError, isAppError } from '../../errors.ts'
import { yieldToLoop } from '../../waits.ts'
import { type CheckedAddress, pinned } from '../../net/address.ts'
import type { Literal } from '../../spool.ts'
import type { SessionOptions } from '../session-types.ts'
import { parseFetch } from './fetch-parser.ts'
import { type Allowance, createBounds, type Frame, type Framing } from './frames.ts'

export type { ImapAttribute, ImapResponse } from 'imapflow'
/** What a mailbox is for by its name, in many languages. */
export { specialUse } from 'imapflow/lib/special-use.js'

export type Argument =
  | {
      readonly type: 'ATOM' | 'STRING' | 'SEQUENCE' | 'TEXT'
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
  /** Mailboxes of others and shared ones; false = there are none (RFC 2342). */
  readonly namespaces?: Readonly<Record<'other' | 'shared', false | readonly unknown[]>> | undefined
  /** What the server says unasked. We read it in every state, imapflow only of a mailbox that it opened. */
  readonly untaggedHandlers: Record<string, Untagged | null>
  readonly sectionHandlers: Record<string, unknown>
  /** Whether the deadline of the connection or that of the login is running. */
  readonly greetingReceived?: boolean
  /** Bounds and counts what comes in; its counter of bytes is the sign of progress. */
  readonly streamer: Streamer
  getUntaggedHandler(command: string, attributes: ImapResponse['attributes']): Untagged | undefined
  /** Bytes sent are a sign of progress too; and errors after the end need a listener. */
  readonly socket: Socket | null
  /** imapflow sends ID before the login. NetEase wants it after: it is sent once, there. */
  commands: Map<string, Command>
  /** imapflow would sit out a server's back-off, minutes long, without reading. We answer `throttled` at once. */
  throttleWait: (ms: number) => Promise<boolean>
}

/**
 * A literal that imapflow does not hold: the command ends with its size as text, and the bytes go to the socket when
 * the server has said that it waits for them. The empty line at the end ends the command.
 */
export const literalSize = ({ size }: Literal, isLiteral8: boolean): Argument => ({
  type: 'TEXT',
  value: `${isLiteral8 ? '~' : ''}{${size}}`,
})

/** Rejects when the literal cannot be read, or when `closed` aborts. */
export async function pourLiteral(wire: Pick<Wire, 'socket' | 'write'>, literal: Literal, closed: AbortSignal) {
  for await (const chunk of literal.read()) {
    closed.throwIfAborted()
    if (wire.socket?.write(chunk) === false) await once(wire.socket, 'drain', { signal: closed })
  }
  closed.throwIfAborted()
  wire.write('')
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
  const trace = ({ src, msg = '' }: LogEntry): void => {
    if (src === 'c' || src === 's') onLine?.(`${src.toUpperCase()}: ${mask(msg)}`)
  }
  const hear = (entry: LogEntry): void => {
    const { src, msg = '' } = entry
    trace(entry)
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
  return { trace: onLine ? trace : quiet, debug: hear, info: quiet, warn: quiet, error: unparsed, fatal: quiet }
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
  const begin = takeIn(wire, options.take, { onLine: (msg) => logger.debug({ src: 's', msg }), onUnparsed })
  wire.exec = (command, attributes, sent = {}) => {
    begin(sent.allowance ?? duringLogin)
    // Between commands nothing of the last one is kept.
    return exec(command, attributes, sent).finally(() => begin(duringLogin))
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

/** imapflow's stream of responses. */
interface Streamer extends Framing {
  readonly readBytesCounter: number
  readonly responseBytes: number
  readonly lineBytes: number
  push(item: Item | null): boolean
  processInputChunk: (chunk: Buffer) => Promise<void>
  destroy(error?: unknown): unknown
  once(event: 'close', listener: () => void): unknown
}

/** A response; the next one is read after `next`. */
interface Item extends Frame {
  readonly next: () => void
}

/** Where a response comes without imapflow's own reader: its line, and the line of one that is no IMAP. */
interface Heard {
  readonly onLine: (line: string) => void
  readonly onUnparsed: OnUnparsed
}

/**
 * What comes in, within our bounds. imapflow itself reads greetings, tagged answers, and what has a response code; what
 * else is untagged is read here: imapflow would make a text of each response again, for its log.
 *
 * What a mail server sends draws from the budget of the process before it is read into memory: an answer under way (its
 * lines, and the literals that it announces) holds a share until it has been taken apart. A server whose answers find
 * no room is not read meanwhile.
 *
 * Answers the way to begin a command, with what it allows.
 */
function takeIn(wire: Wire, take: SessionOptions['take'], heard: Heard): (allowance: Allowance) => void {
  const { streamer } = wire
  const bounds = createBounds(streamer)
  const shares = createShares(streamer, take)
  const push = streamer.push.bind(streamer)

  async function rest(): Promise<void> {
    shares.giveBack()
    await yieldToLoop()
  }

  async function read(item: Item): Promise<void> {
    const isRead = bounds.admits(item)
    if (isRead && isStatus.test(item.payload.toString('latin1', 0, 64)))
      return void push({ ...item, next: () => void rest().then(item.next) })
    if (isRead) await readUntagged(wire, item, heard)
    await rest()
    item.next()
  }

  async function readChunk(chunk: Buffer): Promise<void> {
    await yieldToLoop()
    const { responseBytes, lineBytes } = streamer
    await shares.grow(responseBytes - bounds.passed + lineBytes + chunk.length)
    await bounds.read(chunk)
  }

  bounds.begin(duringLogin)
  streamer.processInputChunk = readChunk
  streamer.push = (item) => {
    if (item === null) return push(null)
    read({ ...item, payload: withoutNuls(item.payload) }).catch((error: unknown) => streamer.destroy(error))
    return true
  }
  return bounds.begin
}

/** Some servers put NULs before a response. */
function withoutNuls(payload: Buffer): Buffer {
  return payload[0] === 0
    ? payload.subarray(
        Math.max(
          0,
          payload.findIndex((byte) => byte !== 0),
        ),
      )
    : payload
}

const isStatus = /^(?!\* )|^\* (?:OK|NO|BAD|BYE|PREAUTH)\b/i

/** What the parser cannot read is left out. A handler reads whatever was parsed: its error is a fault of ours. */
async function readUntagged(wire: Wire, { payload, literals }: Item, { onLine, onUnparsed }: Heard): Promise<void> {
  const line = payload.toString('latin1', 0, longestHeard)
  onLine(line)
  const plain = parseFetch(payload, literals) ?? (literals.length > 0 ? null : plainOf(payload))
  const parsed = plain ?? (await parser(payload, { literals: [...literals] }).catch(() => null))
  try {
    if (parsed === null) onUnparsed(line)
    else await wire.getUntaggedHandler(parsed.command ?? '', parsed.attributes)?.(parsed)
  } catch (cause) {
    if (isAppError(cause)) throw cause
    const name = line.split(' ', 3).join(' ')
    throw new AppError('internal', `the response ${name} could not be handled`, { cause })
  }
}

/** Of a line for the log, and for a UID that stands before the rest. */
const longestHeard = 640
const counted = /^\* (\d{1,10}) (EXISTS|EXPUNGE|RECENT) ?$/i
const listed = /^\* (E?SEARCH|VANISHED)(?: (.*))?$/is

/** The response as imapflow would give it, with all the numbers in one text; null = its tokenizer has to read it. */
function plainOf(payload: Buffer): ImapResponse | null {
  const few = counted.exec(payload.toString('latin1', 0, 40))
  if (few && payload.length < 40) return response(few[1] ?? '', few[2] ?? '')
  const many = listed.exec(payload.toString('latin1', 0, 10)) && listed.exec(payload.toString('latin1'))
  return many ? response(many[1] ?? '', many[2] ?? '') : null
}

function response(command: string, value: string): ImapResponse {
  return { tag: '*', command, attributes: [{ type: 'TEXT', value }] }
}

/** Smaller answers are not counted: connections are few enough. */
const uncounted = 65_536
/** A literal is held as it came and put together; what grows line by line is asked for in steps. */
const heldTimes = 2
const step = 1_048_576

/** Shares of the budget for the answer under way. */
function createShares(streamer: Streamer, take: SessionOptions['take']) {
  const closed = new AbortController()
  let releases: Release[] = []
  let held = 0

  function giveBack(): void {
    if (held === 0) return
    for (const release of releases) release()
    releases = []
    held = 0
  }

  async function draw(bytes: number): Promise<void> {
    const more = Math.ceil((bytes - held) / step) * step
    const release = await take?.(more * heldTimes, { signal: closed.signal })
    if (!release) throw new AppError('timeout', 'too much is read from mail servers at once (MAILROOM_BUFFER_MAX)')
    releases.push(release)
    held += more
    if (closed.signal.aborted) giveBack()
  }

  streamer.once('close', () => {
    closed.abort(new AppError('network', 'the connection is closed'))
    giveBack()
  })
  return {
    /** The answer has become so large. */
    async grow(bytes: number): Promise<void> {
      if (!take || bytes <= uncounted || bytes <= held) return
      await draw(bytes).catch((error: unknown) => void streamer.destroy(error as Error))
    },
    giveBack,
  }
}
