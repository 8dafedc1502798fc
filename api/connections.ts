/**
 * How many connections there are at once, in all and from one address (MAILROOM_CONNECTIONS_MAX, MAILROOM_CONNECTIONS_PER_ADDRESS).
 * Where there are too many, those that ask nothing at the moment are closed first, the oldest of them; then, for the limit in all,
 * those whose caller is not known yet. When none is left to close, the new one gets one of a few spare places, whose oldest is closed
 * in turn: there health is told, and everything else refused. For the limit in all it is asked first who calls: the place of a
 * developer who has more connections in use than the caller is given to the caller.
 *
 * A connection has one call under way. Of those that a client sends before it has the answer (pipelining) a few wait, in order.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AppError, createRing, networkOf, settled, type Config } from '../engine/index.ts'
import { clientAddressReader } from './addresses.ts'

type Settings = Pick<Config, 'MAILROOM_CONNECTIONS_MAX' | 'MAILROOM_CONNECTIONS_PER_ADDRESS' | 'MAILROOM_TRUST_PROXY'>

type Limit = 'all' | 'address'

export interface Connections {
  /** Of every new connection. */
  admit(socket: Socket): void
  /** In front of the app. */
  guard(app: RequestListener): RequestListener
  readonly open: number
  /** Since the start: refused, or closed to make room, by the limit that was reached. */
  readonly refused: Readonly<Record<Limit, number>>
  readonly closed: Readonly<Record<Limit, number>>
}

interface Entry {
  readonly hall: Hall
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
}

interface Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly begin: () => void
}

const sparePlaces = 16
const mostWaiting = 16
/** Of a refusal. */
const retryMs = 5000
const alwaysTold = new Set(['/healthz', '/readyz', '/metrics'])

const entries = new WeakMap<Socket, Entry>()

/** The caller has shown its key: the connection is not closed to make room for strangers. Throws `busy` when there is no room for it. */
export function knowCaller({ socket }: IncomingMessage, developerId: string): void {
  const entry = entries.get(socket)
  if (entry?.state !== 'asking') return
  if (entry.spare === 'all' && !makeRoom(entry.hall, developerId)) {
    entry.hall.refused.all += 1
    throw new AppError('busy', words.all, { retryAfterMs: retryMs })
  }
  entry.spare = null
  entry.state = 'known'
  entry.developerId = developerId
}

/** Before work on a call that takes long for its size, and of which many may come at the same moment. */
export async function takeTurn(request: IncomingMessage): Promise<void> {
  const hall = entries.get(request.socket)?.hall
  if (hall !== undefined) {
    await new Promise<void>((resolve) => hall.turns.enter(hall.addressOf(request), false, resolve))
  }
}

interface Hall {
  readonly settings: Settings
  readonly turns: CallTurns
  readonly addressOf: (request: IncomingMessage) => string
  /** Those that have been as they are for the longest time come first. */
  readonly open: Set<Entry>
  readonly refused: Record<Limit, number>
  readonly closed: Record<Limit, number>
}

export function createConnections(settings: Settings): Connections {
  const hall: Hall = {
    settings,
    turns: createCallTurns(),
    addressOf: clientAddressReader(settings),
    open: new Set(),
    refused: { all: 0, address: 0 },
    closed: { all: 0, address: 0 },
  }
  const clients = createClients(hall)
  return {
    admit: (socket) => admit(hall, socket),
    guard: (app) => (request, response) => {
      const begin = (): void => {
        const refusal = clients.enter(request, response) ?? entries.get(request.socket)?.spare ?? null
        if (refusal === null || refusal === 'all' || isAlwaysTold(request)) app(request, response)
        else {
          hall.refused[refusal] += 1
          refuse(response, refusal)
        }
      }
      const entry = entries.get(request.socket)
      if (entry === undefined) begin()
      else arrive(entry, { request, response, begin })
    },
    get open() {
      return hall.open.size
    },
    refused: hall.refused,
    closed: hall.closed,
  }
}

function admit(hall: Hall, socket: Socket): void {
  const address = networkOf(socket.remoteAddress ?? '')
  const entry: Entry = {
    hall,
    socket,
    address,
    spare: placeFor(hall, address),
    state: 'idle',
    developerId: null,
    line: [],
    isEnding: false,
  }
  entries.set(socket, entry)
  hall.open.add(entry)
  socket.once('close', () => hall.open.delete(entry))
}

/** Makes room; null = there is an ordinary place. */
function placeFor(hall: Hall, address: string): Limit | null {
  const {
    MAILROOM_CONNECTIONS_MAX: most,
    MAILROOM_CONNECTIONS_PER_ADDRESS: mostOfOne,
    MAILROOM_TRUST_PROXY,
  } = hall.settings
  const ordinary = ordinaryOf(hall)
  const own = ordinary.filter((one) => one.address === address)
  // The address of a trusted proxy is everybody's.
  const limit = !MAILROOM_TRUST_PROXY && own.length >= mostOfOne ? 'address' : ordinary.length >= most ? 'all' : null
  if (limit === null) return null
  const among = limit === 'address' ? own : ordinary
  const idle = among.find(({ state }) => state === 'idle')
  const victim = idle ?? (limit === 'all' ? among.find(({ state }) => state === 'asking') : undefined)
  if (victim !== undefined) {
    close(hall, victim, limit)
    return null
  }
  const spares = [...hall.open].filter(({ spare }) => spare !== null)
  if (spares[0] !== undefined && spares.length >= sparePlaces) close(hall, spares[0], limit)
  return limit
}

/** For a call of this developer: one connection of whoever has most of them in use, when that stays more than the caller has. */
function makeRoom(hall: Hall, developerId: string): boolean {
  const ordinary = ordinaryOf(hall)
  if (ordinary.length < hall.settings.MAILROOM_CONNECTIONS_MAX) return true
  const known = Map.groupBy(
    ordinary.filter(({ state }) => state === 'known'),
    (entry) => entry.developerId,
  )
  const largest = [...known.values()].reduce((most, one) => (one.length > most.length ? one : most), [])
  const own = known.get(developerId)?.length ?? 0
  if (largest[0] === undefined || largest.length <= own + 1) return false
  close(hall, largest[0], 'all')
  return true
}

function ordinaryOf({ open }: Hall): Entry[] {
  return [...open].filter(({ spare }) => spare === null)
}

function close({ open, closed }: Hall, entry: Entry, limit: Limit): void {
  closed[limit] += 1
  open.delete(entry)
  entry.socket.destroy()
}

function isAlwaysTold({ url }: IncomingMessage): boolean {
  return alwaysTold.has(url?.split('?')[0] ?? '')
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
 * Node's parser takes all calls out of what has come, however many, and there is no public way to end that. What a parser answers
 * with 2 is the end of HTTP on the connection, as for an upgrade. Without such a parser it only takes longer.
 */
function stopReading(socket: Socket & { readonly parser?: { onIncoming?: unknown } | null }): void {
  // Node reads on after each call that is whole.
  setImmediate(() => socket.pause())
  if (typeof socket.parser?.onIncoming === 'function') socket.parser.onIncoming = () => 2
}

function start(entry: Entry, { request, response, begin }: Arrival): void {
  const { hall, socket, line } = entry
  const turn = (state: Entry['state']): void => {
    entry.state = state
    entry.developerId = null
    if (hall.open.delete(entry)) hall.open.add(entry)
  }
  turn('asking')
  response.once('close', () => {
    const next = line.shift()
    if (socket.destroyed) line.length = 0
    else if (next === undefined) turn('idle')
    else start(entry, next)
  })
  hall.turns.enter(hall.addressOf(request), isAlwaysTold(request), () => {
    if (!socket.destroyed) begin()
  })
}

/** Behind a trusted proxy: calls under way, by the address that the proxy names. */
function createClients({ settings, addressOf }: Hall) {
  const underWay = new Map<string, number>()
  const count = (address: string, change: number): number => {
    const now = (underWay.get(address) ?? 0) + change
    if (now > 0) underWay.set(address, now)
    else underWay.delete(address)
    return now
  }
  return {
    enter(request: IncomingMessage, response: ServerResponse): Limit | null {
      if (!settings.MAILROOM_TRUST_PROXY) return null
      const address = addressOf(request)
      response.once('close', () => count(address, -1))
      return count(address, 1) > settings.MAILROOM_CONNECTIONS_PER_ADDRESS ? 'address' : null
    },
  }
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

/**
 * Calls begin in turns: in each turn of the event loop calls are worked on for 10 ms, then come timers, mail servers and new
 * connections. Addresses take turns, so that the flood of one delays no other. Where nothing waits, a call begins at once.
 */
interface CallTurns {
  /** Runs `work` at once, or when its address has its turn. `first` = in every second turn, while there are such. */
  enter(address: string, first: boolean, work: Work): void
}

const stretchMs = 10

/** The work that waits must not count as the work of the call that happens to be under way. */
const outside = AsyncLocalStorage.snapshot()

export function createCallTurns(): CallTurns {
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
    outside(() => setImmediate(() => void stretch()))
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
    enter(address, isFirst, work) {
      const isFree = used() < stretchMs && first.size === 0 && (isFirst || others.size === 0)
      if (began === null) schedule()
      if (isFree) work()
      else (isFirst ? first : others).add(address, AsyncLocalStorage.bind(work))
    },
  }
}
