/**
 * How many connections there are at once, in all and from one address (MAILROOM_CONNECTIONS_MAX,
 * MAILROOM_CONNECTIONS_PER_ADDRESS). Where there are too many, those that ask nothing at the moment are closed first,
 * the oldest of them; then, for the limit in all, those whose caller is not known yet. When none is left to close, the
 * new one gets one of a few spare places, whose oldest is closed in turn: there health is answered, and everything else
 * refused. For the limit in all it is asked first who calls: the place of a developer who has more connections in use
 * than the caller is given to the caller.
 *
 * A connection has one call under way. Of those that a client sends before it has the answer (pipelining) a few wait,
 * in order.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AppError, createRing, networkOf, settled, type Config, workAsNobody } from '../engine/index.ts'
import { clientAddressReader } from './addresses.ts'

type Settings = Pick<Config, 'MAILROOM_CONNECTIONS_MAX' | 'MAILROOM_CONNECTIONS_PER_ADDRESS' | 'MAILROOM_TRUST_PROXY'>

type Limit = 'all' | 'address'

export type Connections = ReturnType<typeof createConnections>

interface Entry {
  readonly pool: Pool
  readonly socket: Socket
  readonly address: string
  /** Why it has one of the spare places; null = it has an ordinary one. */
  spare: Limit | null
  /** idle: no call under way. asking: one whose caller is not known (yet). known: one of a developer. */
  state: 'idle' | 'asking' | 'known'
  /** While it is known. */
  developerId: string | null
  /** Calls that wait for the answer to the one under way. */
  readonly line: Arrival[]
  /** Of the calls after these none is answered: the connection ends first. */
  isEnding: boolean
  /** Where the call under way comes from. */
  caller: string
}

interface Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly address: string
  readonly begin: () => void
}

const sparePlaces = 16
const mostWaiting = 16
/** Of a refusal. */
const retryMs = 5000
const alwaysAnswered = new Set(['/healthz', '/readyz', '/metrics'])

const entries = new WeakMap<Socket, Entry>()

/** The caller has shown its key: the connection is not closed to make room. Throws `busy` without room. */
export function knowCaller({ socket }: IncomingMessage, developerId: string): void {
  const entry = entries.get(socket)
  if (entry?.state !== 'asking') return
  if (entry.spare === 'all' && !makeRoom(entry.pool, developerId)) {
    entry.pool.refused.all += 1
    throw new AppError('busy', words.all, { retryAfterMs: retryMs })
  }
  entry.spare = null
  entry.state = 'known'
  entry.developerId = developerId
}

/** Where a call comes from, for what is counted by address; see clientAddressReader. */
export function callerAddress({ socket }: IncomingMessage): string {
  return entries.get(socket)?.caller ?? ''
}

/** Before work on a call that takes long for its size, and of which many may come at the same moment. */
export async function takeTurn({ socket }: IncomingMessage): Promise<void> {
  const entry = entries.get(socket)
  if (entry !== undefined) await new Promise<void>((resolve) => entry.pool.turns.enter(entry.caller, false, resolve))
}

type Pool = ReturnType<typeof createPool>

function createPool(settings: Settings) {
  return {
    settings,
    turns: createCallTurns(),
    /** Calls under way, by address: counted behind a trusted proxy alone. */
    underWay: new Map<string, number>(),
    /** Those that have been as they are for the longest time come first. */
    open: new Set<Entry>(),
    refused: { all: 0, address: 0 },
    closed: { all: 0, address: 0 },
  }
}

export function createConnections(settings: Settings) {
  const pool = createPool(settings)
  const addressOf = clientAddressReader(settings)
  return {
    admit: (socket: Socket): void => void admit(pool, socket),
    /** Stands in front of the app. */
    guard:
      (app: RequestListener): RequestListener =>
      (request, response) => {
        const entry = entries.get(request.socket) ?? admit(pool, request.socket)
        const address = addressOf(request)
        const begin = (): void => {
          const refusal = enterClient(pool, address, response) ?? entry.spare
          if (refusal === null || refusal === 'all' || isAlwaysAnswered(request)) app(request, response)
          else {
            pool.refused[refusal] += 1
            refuse(response, refusal)
          }
        }
        arrive(entry, { request, response, address, begin })
      },
    get open(): number {
      return pool.open.size
    },
    /** Calls that wait for their turn to begin. */
    get waiting(): number {
      return pool.turns.waiting
    },
    /** Since the start: refused, or closed to make room, by the limit that was reached. */
    refused: pool.refused as Readonly<Record<Limit, number>>,
    closed: pool.closed as Readonly<Record<Limit, number>>,
  }
}

function admit(pool: Pool, socket: Socket): Entry {
  const address = networkOf(socket.remoteAddress ?? '')
  const entry: Entry = {
    pool,
    socket,
    address,
    spare: placeFor(pool, address),
    state: 'idle',
    developerId: null,
    line: [],
    isEnding: false,
    caller: address,
  }
  entries.set(socket, entry)
  pool.open.add(entry)
  socket.once('close', () => pool.open.delete(entry))
  return entry
}

/** Makes room; null = there is an ordinary place. */
function placeFor(pool: Pool, address: string): Limit | null {
  const {
    MAILROOM_CONNECTIONS_MAX: most,
    MAILROOM_CONNECTIONS_PER_ADDRESS: mostOfOne,
    MAILROOM_TRUST_PROXY,
  } = pool.settings
  const ordinary = ordinaryOf(pool)
  const own = ordinary.filter((one) => one.address === address)
  // All clients share the address of a trusted proxy.
  const limit = !MAILROOM_TRUST_PROXY && own.length >= mostOfOne ? 'address' : ordinary.length >= most ? 'all' : null
  if (limit === null) return null
  const among = limit === 'address' ? own : ordinary
  const idle = among.find(({ state }) => state === 'idle')
  const victim = idle ?? (limit === 'all' ? among.find(({ state }) => state === 'asking') : undefined)
  if (victim !== undefined) {
    close(pool, victim, limit)
    return null
  }
  const spares = [...pool.open].filter(({ spare }) => spare !== null)
  if (spares[0] !== undefined && spares.length >= sparePlaces) close(pool, spares[0], limit)
  return limit
}

/** For a call of this developer: takes a connection of the one who uses most, when that still leaves it more. */
function makeRoom(pool: Pool, developerId: string): boolean {
  const ordinary = ordinaryOf(pool)
  if (ordinary.length < pool.settings.MAILROOM_CONNECTIONS_MAX) return true
  const known = Map.groupBy(
    ordinary.filter(({ state }) => state === 'known'),
    (entry) => entry.developerId,
  )
  const largest = [...known.values()].reduce((most, one) => (one.length > most.length ? one : most), [])
  const own = known.get(developerId)?.length ?? 0
  if (largest[0] === undefined || largest.length <= own + 1) return false
  close(pool, largest[0], 'all')
  return true
}

function ordinaryOf({ open }: Pool): Entry[] {
  return [...open].filter(({ spare }) => spare === null)
}

function close({ open, closed }: Pool, entry: Entry, limit: Limit): void {
  closed[limit] += 1
  open.delete(entry)
  entry.socket.destroy()
}

function isAlwaysAnswered({ url }: IncomingMessage): boolean {
  return alwaysAnswered.has(url?.split('?')[0] ?? '')
}

function arrive(entry: Entry, arrival: Arrival): void {
  if (entry.isEnding) return
  if (entry.state === 'idle') start(entry, arrival)
  else if (entry.line.length < mostWaiting) entry.line.push(arrival)
  else {
    entry.isEnding = true
    stopReading(entry.socket)
    refuse(arrival.response, 'pipelined')
  }
}

/**
 * Node's parser takes all calls out of what has come, however many, and there is no public way to end that. What a
 * parser answers with 2 is the end of HTTP on the connection, as for an upgrade. Without such a parser it only takes
 * longer.
 */
function stopReading(socket: Socket & { readonly parser?: { onIncoming?: unknown } | null }): void {
  // Node reads on after each call that is whole.
  setImmediate(() => socket.pause())
  if (typeof socket.parser?.onIncoming === 'function') socket.parser.onIncoming = () => 2
}

function start(entry: Entry, { request, response, address, begin }: Arrival): void {
  const { pool, socket, line } = entry
  const turn = (state: Entry['state']): void => {
    entry.state = state
    entry.developerId = null
    if (pool.open.delete(entry)) pool.open.add(entry)
  }
  turn('asking')
  entry.caller = address
  // The deadline of the answer before: whoever waits now waits for us.
  socket.setTimeout(0)
  response.once('close', () => {
    const next = line.shift()
    if (socket.destroyed) line.length = 0
    else if (next === undefined) turn('idle')
    else start(entry, next)
  })
  pool.turns.enter(address, isAlwaysAnswered(request), () => {
    if (!socket.destroyed) begin()
  })
}

/** Counts a call of one address behind a trusted proxy. */
function enterClient({ settings, underWay }: Pool, address: string, response: ServerResponse): Limit | null {
  if (!settings.MAILROOM_TRUST_PROXY) return null
  const count = (change: number): number => {
    const now = (underWay.get(address) ?? 0) + change
    if (now > 0) underWay.set(address, now)
    else underWay.delete(address)
    return now
  }
  response.once('close', () => count(-1))
  return count(1) > settings.MAILROOM_CONNECTIONS_PER_ADDRESS ? 'address' : null
}

const words = {
  all: 'too many connections at once (MAILROOM_CONNECTIONS_MAX); try again',
  address: 'too many connections at once from this address (MAILROOM_CONNECTIONS_PER_ADDRESS); try again',
  pipelined: `more than ${mostWaiting} calls wait on this connection for the answer to an earlier one; try again`,
} as const

function refuse(response: ServerResponse, limit: keyof typeof words): void {
  const status = limit === 'all' ? 503 : 429
  const headers = {
    'Content-Type': 'application/json',
    'X-Content-Type-Options': 'nosniff',
    'Retry-After': String(retryMs / 1000),
    Connection: 'close',
  }
  response.writeHead(status, headers).end(JSON.stringify({ type: 'error', value: words[limit] }))
}

type Work = () => void

const stretchMs = 10

/**
 * Calls begin in turns: in each turn of the event loop calls are worked on for 10 ms, then come timers, mail servers
 * and new connections. Addresses take turns, so that the flood of one delays no other. Where nothing waits, a call
 * begins at once.
 */
export function createCallTurns() {
  /** By address. */
  const first = createRing<Work>()
  const others = createRing<Work>()
  /** When the first call of this turn of the loop began; null = none has. */
  let began: number | null = null
  /** After one that is first one of the others has its turn, so that a flood of health checks does not stop them. */
  let isOwed = false

  const used = (): number => performance.now() - (began ?? performance.now())
  const schedule = (): void => {
    began = performance.now()
    workAsNobody(() => setImmediate(() => void stretch()))
  }
  const stretch = async (): Promise<void> => {
    began = performance.now()
    do {
      const isFirst = others.size === 0 || (!isOwed && first.size > 0)
      const ring = isFirst ? first : others
      isOwed = isFirst
      ring.take()?.()
      await settled()
    } while (first.size + others.size > 0 && used() < stretchMs)
    if (first.size + others.size > 0) schedule()
    else began = null
  }
  return {
    get waiting(): number {
      return first.size + others.size
    },
    /** Runs `work` at once, or when its address has its turn. `isFirst` = in every second turn, where some wait. */
    enter(address: string, isFirst: boolean, work: Work): void {
      const isFree = used() < stretchMs && first.size === 0 && (isFirst || others.size === 0)
      if (began === null) schedule()
      if (isFree) work()
      else (isFirst ? first : others).add(address, AsyncLocalStorage.bind(work))
    },
  }
}
