/**
 * Limits the open connections, in all and per address (MAILROOM_CONNECTIONS_MAX, MAILROOM_CONNECTIONS_PER_ADDRESS).
 * Some spare connections serve health checks and refusals in words; all further ones are closed at once. Limits
 * against slow clients and floods belong to the reverse proxy: docs/operations.md.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { AppError, type Config, networkOf } from '../engine/index.ts'
import { clientAddress } from './addresses.ts'
import { createCounts } from './limits.ts'
import { alwaysAnswered } from './system.ts'

type Settings = Pick<Config, 'MAILROOM_CONNECTIONS_MAX' | 'MAILROOM_CONNECTIONS_PER_ADDRESS' | 'MAILROOM_TRUST_PROXY'>

type Limit = 'all' | 'address'

export type Connections = ReturnType<typeof createConnections>

const spareConnections = 16
/** A spare connection without a call for this time is closed. */
const spareIdleMs = 2000
/** Unanswered calls on one connection; Node answers them in order. */
const mostPipelined = 16
const retryAfterMs = 5000

/** `over`: the limit that the connection is over; null = none. */
interface ConnectionState {
  readonly over: Limit | null
  calls: number
  /** A refusal ends the connection. */
  isEnding?: true
}

export function createConnections(settings: Settings) {
  const { MAILROOM_CONNECTIONS_MAX: most, MAILROOM_CONNECTIONS_PER_ADDRESS: mostOfOne } = settings
  const behindProxy = settings.MAILROOM_TRUST_PROXY
  /** Counts connections. Behind a proxy, whose address all clients share, counts calls. */
  const byAddress = createCounts()
  const states = new WeakMap<Socket, ConnectionState>()
  let open = 0
  const refused = { all: 0, address: 0 }
  const closed = { all: 0, address: 0 }

  function admit(socket: Socket): void {
    const address = networkOf(socket.remoteAddress ?? '')
    const ofAddress = behindProxy ? 0 : byAddress.of(address)
    const over = ofAddress >= mostOfOne ? 'address' : open >= most ? 'all' : null
    if (over !== null && Math.max(ofAddress - mostOfOne, open - most) >= spareConnections) {
      closed[over] += 1
      socket.destroy()
      return
    }
    states.set(socket, { over, calls: 0 })
    open += 1
    if (!behindProxy) byAddress.change(address, 1)
    socket.once('close', () => {
      open -= 1
      if (!behindProxy) byAddress.change(address, -1)
    })
    if (over !== null) socket.setTimeout(spareIdleMs, () => socket.destroy())
  }

  /** null = the call is accepted. */
  function refusalOf(state: ConnectionState, request: IncomingMessage, address: string): Refusal | null {
    if (state.calls > mostPipelined) return 'pipelined'
    const over = state.over ?? (behindProxy && byAddress.of(address) > mostOfOne ? 'address' : null)
    return over === null || alwaysAnswered.has(request.url?.split('?', 1)[0] ?? '') ? null : over
  }

  return {
    admit,
    /** Wraps the app: refuses calls over a limit. */
    guard: (app: RequestListener) => (request: IncomingMessage, response: ServerResponse) => {
      const state: ConnectionState = states.get(request.socket) ?? { over: null, calls: 0 }
      if (state.isEnding) {
        leave(request, response)
        return
      }
      const address = behindProxy ? clientAddress(settings, request) : ''
      state.calls += 1
      if (behindProxy) byAddress.change(address, 1)
      response.on('close', () => {
        state.calls -= 1
        if (behindProxy) byAddress.change(address, -1)
      })
      const refusal = refusalOf(state, request, address)
      if (refusal === null) app(request, response)
      else {
        if (refusal !== 'pipelined') refused[refusal] += 1
        refuse(state, response, refusal)
      }
    },
    get open() {
      return open
    },
    /** Refused calls and closed connections since the start, by the limit that was reached. */
    refused,
    closed,
  }
}

const words = {
  all: 'too many connections at once (MAILROOM_CONNECTIONS_MAX); try again',
  address: 'too many connections at once from this address (MAILROOM_CONNECTIONS_PER_ADDRESS); try again',
  pipelined: `more than ${mostPipelined} calls wait on this connection for the answer to an earlier one; try again`,
} as const

type Refusal = keyof typeof words

function refuse(state: ConnectionState, response: ServerResponse, refusal: Refusal): void {
  state.isEnding = true
  response.setHeader('Connection', 'close')
  const code = refusal === 'all' ? 'busy' : 'rate_limited'
  answerError(response, new AppError(code, words[refusal], { retryAfterMs }))
}

/** A call behind a refusal, which ends the connection: its answer is never sent, and keeps Node from reading on. */
function leave(request: IncomingMessage, response: ServerResponse): void {
  response.statusCode = 429
  response.end()
  // Else Node makes an error with a stack for each call when the connection ends.
  request.destroy = () => request
}

/** An error answer from outside the app. */
export function answerError(response: ServerResponse, { status, message, retryAfterMs }: AppError): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'X-Content-Type-Options': 'nosniff',
    ...(retryAfterMs === null ? {} : { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }),
  })
  response.end(JSON.stringify({ type: 'error', value: message }))
}
