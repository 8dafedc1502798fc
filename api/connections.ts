/**
 * How many connections there are at once, in all and from one address (MAILROOM_CONNECTIONS_MAX,
 * MAILROOM_CONNECTIONS_PER_ADDRESS). A few more are taken, for health checks and for refusals in words; what comes
 * beyond them is closed at once. A connection in use is never closed for another one. Limits for slow clients and for
 * floods are the reverse proxy's: docs/operations.md.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AppError, type Config, networkOf } from '../engine/index.ts'
import { clientAddressReader } from './addresses.ts'
import { createCounts } from './limits.ts'
import { alwaysAnswered } from './system.ts'

type Settings = Pick<Config, 'MAILROOM_CONNECTIONS_MAX' | 'MAILROOM_CONNECTIONS_PER_ADDRESS' | 'MAILROOM_TRUST_PROXY'>

type Limit = 'all' | 'address'

export interface Connections {
  admit(socket: Socket): void
  /** Stands in front of the app. */
  guard(app: RequestListener): RequestListener
  readonly open: number
  /** Since the start, by the limit that was reached: calls refused, connections closed. */
  readonly refused: Readonly<Record<Limit, number>>
  readonly closed: Readonly<Record<Limit, number>>
}

const sparePlaces = 16
/** A connection over a limit that asks nothing for so long is closed. */
const spareMs = 2000
/** Calls under way on one connection; node answers them in order. */
const mostPipelined = 16
/** Of a refusal. */
const retryMs = 5000

interface Place {
  /** Why it is over a limit; null = it is not. */
  readonly over: Limit | null
  underWay: number
}

export function createConnections(settings: Settings): Connections {
  const { MAILROOM_CONNECTIONS_MAX: most, MAILROOM_CONNECTIONS_PER_ADDRESS: mostOfOne } = settings
  // All clients share the address of a trusted proxy: their calls are counted, not their connections.
  const behindProxy = settings.MAILROOM_TRUST_PROXY
  const addressOf = clientAddressReader(settings)
  const byAddress = createCounts()
  const callsByAddress = createCounts()
  const places = new WeakMap<Socket, Place>()
  let open = 0
  const refused = { all: 0, address: 0 }
  const closed = { all: 0, address: 0 }

  function admit(socket: Socket): void {
    const address = networkOf(socket.remoteAddress ?? '')
    const ofAddress = behindProxy ? 0 : byAddress.of(address)
    const over = ofAddress >= mostOfOne ? 'address' : open >= most ? 'all' : null
    if (over !== null && Math.max(ofAddress - mostOfOne, open - most) >= sparePlaces) {
      closed[over] += 1
      socket.destroy()
      return
    }
    places.set(socket, { over, underWay: 0 })
    open += 1
    byAddress.change(address, 1)
    socket.once('close', () => {
      open -= 1
      byAddress.change(address, -1)
    })
    if (over !== null) socket.setTimeout(spareMs, () => socket.destroy())
  }

  /** null = the call is taken. */
  function refusalOf(place: Place, request: IncomingMessage, address: string): keyof typeof words | null {
    if (place.underWay > mostPipelined) return 'pipelined'
    const over = place.over ?? (behindProxy && callsByAddress.of(address) > mostOfOne ? 'address' : null)
    return over === null || alwaysAnswered.has(request.url?.split('?', 1)[0] ?? '') ? null : over
  }

  return {
    admit,
    guard: (app) => (request, response) => {
      const place = places.get(request.socket) ?? { over: null, underWay: 0 }
      const address = behindProxy ? addressOf(request) : ''
      place.underWay += 1
      if (behindProxy) callsByAddress.change(address, 1)
      response.on('close', () => {
        place.underWay -= 1
        if (behindProxy) callsByAddress.change(address, -1)
      })
      const refusal = refusalOf(place, request, address)
      if (refusal === null) {
        app(request, response)
        return
      }
      if (refusal !== 'pipelined') refused[refusal] += 1
      refuse(response, refusal)
    },
    get open() {
      return open
    },
    refused,
    closed,
  }
}

const words = {
  all: 'too many connections at once (MAILROOM_CONNECTIONS_MAX); try again',
  address: 'too many connections at once from this address (MAILROOM_CONNECTIONS_PER_ADDRESS); try again',
  pipelined: `more than ${mostPipelined} calls wait on this connection for the answer to an earlier one; try again`,
} as const

function refuse(response: ServerResponse, limit: keyof typeof words): void {
  response.setHeader('Connection', 'close')
  const code = limit === 'all' ? 'busy' : 'rate_limited'
  answerError(response, new AppError(code, words[limit], { retryAfterMs: retryMs }))
}

/** For who stands in front of the app. */
export function answerError(response: ServerResponse, { status, message, retryAfterMs }: AppError): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'X-Content-Type-Options': 'nosniff',
    ...(retryAfterMs === null ? {} : { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }),
  })
  response.end(JSON.stringify({ type: 'error', value: message }))
}
