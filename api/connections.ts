/**
 * How many connections there are at once, in all and from one address (MAILROOM_CONNECTIONS_MAX, MAILROOM_CONNECTIONS_PER_ADDRESS).
 * Where there are too many, those that ask nothing at the moment are closed first, the oldest of them; then, for the limit in all,
 * those whose caller is not known yet. When none is left to close, the new one gets one of a few spare places, whose oldest is closed
 * in turn: there health is told, and everything else refused.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf, type Config } from '../engine/index.ts'
import { clientAddressReader } from './client-address.ts'

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
  readonly socket: Socket
  readonly address: string
  /** Why it has one of the spare places; null = it has an ordinary one. */
  readonly spare: Limit | null
  /** idle: no call under way. asking: one whose caller is not known (yet). known: one of a developer. */
  state: 'idle' | 'asking' | 'known'
}

const sparePlaces = 16
const alwaysTold = new Set(['/healthz', '/readyz', '/metrics'])

const entries = new WeakMap<Socket, Entry>()

/** The caller has shown its key: the connection is not closed to make room for others. */
export function knowCaller({ socket }: IncomingMessage): void {
  const entry = entries.get(socket)
  if (entry?.state === 'asking') entry.state = 'known'
}

interface Hall {
  readonly settings: Settings
  /** Those that have been as they are for the longest time come first. */
  readonly open: Set<Entry>
  readonly refused: Record<Limit, number>
  readonly closed: Record<Limit, number>
}

export function createConnections(settings: Settings): Connections {
  const hall: Hall = { settings, open: new Set(), refused: { all: 0, address: 0 }, closed: { all: 0, address: 0 } }
  const clients = createClients(settings)
  return {
    admit: (socket) => admit(hall, socket),
    guard: (app) => (request, response) => {
      const refusal = hasSparePlace(request) ?? clients.enter(request, response)
      follow(hall, request, response)
      if (refusal === null || alwaysTold.has(request.url?.split('?')[0] ?? '')) app(request, response)
      else {
        hall.refused[refusal] += 1
        refuse(response, refusal)
      }
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
  const entry: Entry = { socket, address, spare: placeFor(hall, address), state: 'idle' }
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
  const ordinary = [...hall.open].filter(({ spare }) => spare === null)
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

function close({ open, closed }: Hall, entry: Entry, limit: Limit): void {
  closed[limit] += 1
  open.delete(entry)
  entry.socket.destroy()
}

function hasSparePlace({ socket }: IncomingMessage): Limit | null {
  return entries.get(socket)?.spare ?? null
}

function follow({ open }: Hall, { socket }: IncomingMessage, response: ServerResponse): void {
  const entry = entries.get(socket)
  if (entry === undefined) return
  const turn = (state: Entry['state']): void => {
    entry.state = state
    if (open.delete(entry)) open.add(entry)
  }
  turn('asking')
  response.once('close', () => turn('idle'))
}

/** Behind a trusted proxy: calls under way, by the address that the proxy names. */
function createClients(settings: Settings) {
  const addressOf = clientAddressReader(settings)
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
} as const

function refuse(response: ServerResponse, limit: Limit): void {
  const status = limit === 'address' ? 429 : 503
  const headers = {
    'Content-Type': 'application/json',
    'X-Content-Type-Options': 'nosniff',
    'Retry-After': '5',
    Connection: 'close',
  }
  response.writeHead(status, headers).end(JSON.stringify({ type: 'error', value: words[limit] }))
}
