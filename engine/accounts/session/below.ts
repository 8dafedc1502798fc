/**
 * All uses of imapflow below its documented API, so that an update of imapflow is checked against this file alone.
 * Documented are connect, close, capabilities, the events 'error' and 'close', and the options in createWire. These
 * switch off compression (a zlib context per connection costs more memory than the rest of the session), auto-IDLE (it
 * starts 15 s late), IMAP4rev2 and UTF8=ACCEPT (one dialect is enough).
 *
 * Commands after the login go through `exec`, because imapflow's own methods
 * - answer `false` to a NO or BAD (status, flags, copy, move, delete, noop, idle); our callers need the server's text;
 * - send further commands: LIST before SELECT, LSUB after LIST, NOOP and SEARCH after APPEND, CLOSE (which expunges)
 *   before DELETE of the open mailbox;
 * - read some answers in one form only (special use, BODYSTRUCTURE, SEARCH with sequence numbers), and encode a mailbox
 *   name again that the server listed in an invalid form;
 * - set no bounds for an answer (frames.ts), and send only literals that are whole in memory.
 */
import { ImapFlow, type ImapResponse } from 'imapflow'
import { parser } from 'imapflow/lib/handler/imap-handler.js'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Release } from '../../budget.ts'
import { AppError, isAppError } from '../../errors.ts'
import { measured } from '../../observe/loop.ts'
import { yieldToLoop } from '../../scheduling.ts'
import { type CheckedAddress, pinned } from '../../net/address.ts'
import type { Literal } from '../../spool.ts'
import type { SessionOptions } from '../session-types.ts'
import { parseFetch } from './fetch-parser.ts'
import { type Allowance, createBounds, type Frame, type Framing, isFetch } from './frames.ts'

export type { ImapAttribute, ImapResponse } from 'imapflow'
/** Guesses the special use of a mailbox by its name, in many languages. */
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
  /** Sends one command. The given handlers read the answer; `allowance` bounds it. */
  exec(
    command: string,
    attributes: readonly Argument[] | false,
    options?: ExecOptions,
  ): Promise<{ readonly response: ImapResponse; readonly next: () => void }>
  /** Sends a line that is no command: DONE. */
  write(line: string): void
  close(): void
  connect(): Promise<void>
  on(event: 'error', listener: (error: unknown) => void): void
  on(event: 'close', listener: () => void): void
  readonly capabilities: ReadonlyMap<string, unknown>
  /** Namespaces of other users and shared ones; false = the server has none (RFC 2342). */
  readonly namespaces?: Readonly<Record<'other' | 'shared', false | readonly unknown[]>> | undefined
  /** Handlers of unsolicited responses. Ours run in every state, imapflow's own only for a mailbox that it opened. */
  readonly untaggedHandlers: Record<string, Untagged | null>
  readonly sectionHandlers: Record<string, unknown>
  /** false = the deadline of the connection is running, true = that of the login. */
  readonly greetingReceived?: boolean
  readonly streamer: Streamer
  getUntaggedHandler(command: string, attributes: ImapResponse['attributes']): Untagged | undefined
  readonly socket: Socket | null
  /** imapflow sends ID before the login. NetEase wants it after the login: there we send it, once. */
  commands: Map<string, Command>
  /** imapflow would wait for a server's back-off, minutes long, without reading. We answer `throttled` at once. */
  throttleWait: (ms: number) => Promise<boolean>
}

/**
 * A literal that is not held in memory: the command ends with its size as text, and pourLiteral sends the bytes after
 * the server's continuation request.
 */
export const literalSize = ({ size }: Literal, isLiteral8: boolean): Argument => ({
  type: 'TEXT',
  value: `${isLiteral8 ? '~' : ''}{${size}}`,
})

/** The empty line at the end ends the command. Rejects when the literal cannot be read, or when `closed` aborts. */
export async function pourLiteral(wire: Pick<Wire, 'socket' | 'write'>, literal: Literal, closed: AbortSignal) {
  for await (const chunk of literal.read()) {
    closed.throwIfAborted()
    if (wire.socket?.write(chunk) === false) await once(wire.socket, 'drain', { signal: closed })
  }
  closed.throwIfAborted()
  wire.write('')
}

/** Our own deadlines come first: imapflow's inactivity timer never ends. */
const never = 2 ** 31 - 1

/** Called with the first line of a host that speaks another protocol than IMAP: SMTP, POP3, HTTP. */
type OnForeign = (line: string) => void

interface LogEntry {
  readonly src?: string
  readonly msg?: string
}

/** imapflow reports lines by its log: `debug` for a line that it has read, `error` for one that it could not parse. */
function loggerFor({ onLine, auth, username }: SessionOptions, onForeign: OnForeign) {
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
    // Every greeting of IMAP is untagged (RFC 9051 §7.1).
    if (!msg.startsWith('*')) onForeign(msg)
  }
  const quiet = (): void => undefined
  return { trace: onLine ? trace : quiet, debug: hear, info: quiet, warn: quiet, error: hear, fatal: quiet }
}

const notAuthenticated = 1
/** One map for all connections. */
let commands: Map<string, Command> | null = null

function withIdAfterLogin(original: Map<string, Command>): Map<string, Command> {
  const id = original.get('ID')
  commands ??= new Map(original).set('ID', async (connection, ...rest) =>
    connection.state === notAuthenticated ? {} : id?.(connection, ...rest),
  )
  return commands
}

/** Bounds the answers to imapflow's own commands, which it keeps in memory: CAPABILITY, ID, NAMESPACE. */
const duringLogin: Allowance = { bytes: 1_048_576 }

/** Not connected yet: the caller adds its listeners before it calls connect. */
export function createWire(
  options: SessionOptions & { readonly mustEncrypt: boolean },
  addresses: readonly CheckedAddress[],
  onForeign: OnForeign,
): Wire {
  const { auth } = options
  const logger = loggerFor(options, onForeign)
  const client = new ImapFlow({
    host: options.server,
    port: options.port,
    secure: options.useSsl,
    // By default imapflow upgrades where STARTTLS is offered, and goes on in clear text where it is not.
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
  const begin = boundInput(wire, options.take, (msg) => logger.debug({ src: 's', msg }))
  wire.exec = (command, attributes, sent = {}) => {
    begin(sent.allowance ?? duringLogin)
    // Frees the allowance of the command, with its callbacks.
    return exec(command, attributes, sent).finally(() => begin(duringLogin))
  }
  wire.commands = withIdAfterLogin(wire.commands)
  wire.throttleWait = () => Promise.resolve(false)
  return wire
}

/** Shorter secrets are not masked: they would blank out half the log. */
const shortest = 4

/** Masks secrets in protocol lines. imapflow masks the lines that it sends; this also masks a server's repetition. */
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

/**
 * Reads the server's input within our bounds. imapflow reads greetings, tagged responses, and untagged ones with a
 * status; the other untagged ones are read here, because imapflow would make a second text of each for its log.
 *
 * A response (its lines, and the literals that it announces) draws from the budget of the process before it is read
 * into memory, and holds that share until it has been handled. While the budget has no room, the server is not read.
 * `onLine` hears the lines that are read here; of many FETCH responses to a command, the first and the number.
 *
 * Returns the function that begins a command with its allowance.
 */
function boundInput(
  wire: Wire,
  take: SessionOptions['take'],
  onLine: (line: string) => void,
): (allowance: Allowance) => void {
  const { streamer } = wire
  const bounds = createBounds(streamer)
  const shares = createShares(streamer, take)
  const push = streamer.push.bind(streamer)
  let fetched = 0

  async function rest(): Promise<void> {
    shares.giveBack()
    await yieldToLoop()
  }

  async function read(item: Item): Promise<void> {
    const isRead = bounds.admits(item)
    const head = item.payload.toString('latin1', 0, headLength)
    if (isRead && isStatus.test(head)) {
      if (fetched > mostHeard) onLine(`* ${fetched - mostHeard} more FETCH responses`)
      fetched = 0
      return void push({ ...item, next: () => void rest().then(item.next) })
    }
    const isHeard = isRead && (!isFetch(head) || (fetched += 1) <= mostHeard)
    if (isHeard) onLine(item.payload.toString('latin1', 0, longestHeard))
    if (isRead && !(await isReadable(wire, item))) bounds.leftOut()
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
  if (payload[0] !== 0) return payload
  const start = payload.findIndex((byte) => byte !== 0)
  return payload.subarray(Math.max(0, start))
}

const headLength = 64
const isStatus = /^(?!\* )|^\* (?:OK|NO|BAD|BYE|PREAUTH)\b/i
/** Bytes of a line that the log gets. */
const longestHeard = 640
/** FETCH responses to one command of which the log gets the lines. */
const mostHeard = 5

/** false = the parser cannot read the response. An error of a handler is a fault of ours. */
async function isReadable(wire: Wire, { payload, literals }: Item): Promise<boolean> {
  const plain = measured(() => parseFetch(payload, literals)) ?? (literals.length > 0 ? null : plainOf(payload))
  const parsed = plain ?? (await parser(payload, { literals: [...literals] }).catch(() => null))
  if (parsed === null) return false
  try {
    await wire.getUntaggedHandler(parsed.command ?? '', parsed.attributes)?.(parsed)
    return true
  } catch (cause) {
    if (isAppError(cause)) throw cause
    const name = payload.toString('latin1', 0, headLength).split(' ', 3).join(' ')
    throw new AppError('internal', `the response ${name} could not be handled`, { cause })
  }
}

const counted = /^\* (\d{1,10}) (EXISTS|EXPUNGE|RECENT) ?$/i
const listed = /^\* (SEARCH|VANISHED)(?: (.*))?$/is

/** The response in imapflow's shape, with all numbers in one text; null = imapflow's tokenizer has to read it. */
function plainOf(payload: Buffer): ImapResponse | null {
  const few = counted.exec(payload.toString('latin1', 0, 40))
  if (few && payload.length < 40) return response(few[1] ?? '', few[2] ?? '')
  const many = listed.exec(payload.toString('latin1', 0, 10)) && listed.exec(payload.toString('latin1'))
  return many ? response(many[1] ?? '', many[2] ?? '') : null
}

function response(command: string, value: string): ImapResponse {
  return { tag: '*', command, attributes: [{ type: 'TEXT', value }] }
}

/** Smaller responses draw nothing from the budget: connections are few enough. */
const uncounted = 65_536
/** A literal is held twice: in chunks, and put together. */
const heldTimes = 2
/** A response that grows line by line draws in steps of this size. */
const step = 1_048_576

/** Shares of the budget for the response under way. */
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
    /** The response has grown to this size. */
    async grow(bytes: number): Promise<void> {
      if (!take || bytes <= uncounted || bytes <= held) return
      await draw(bytes).catch((error: unknown) => void streamer.destroy(error as Error))
    },
    giveBack,
  }
}
