/**
 * Calls between nodes: HTTP over TLS with a pre-shared key (RFC 4279, with an ephemeral key exchange: RFC 5489). Both
 * sides prove in the handshake that they have the key, which is derived from MAILROOM_SECRET; before that no byte of
 * HTTP is read or sent. While the setting is being replaced, a client uses the key that the server names, if it has
 * that key, and a server also accepts the key of MAILROOM_SECRET_OLD.
 */
import { createHash } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Readable } from 'node:stream'
import { Agent } from 'undici'
import { AppError, errnoOf } from '../errors.ts'
import { withinTime } from '../scheduling.ts'

const tls = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const
const connectMs = 2000
const tellMs = 2000
/** Connections for `tell` from one node to another. `call` has no limit. */
const tellingConnections = 8
const keepAliveMs = 10_000
/** A client closes an idle connection before the server does. */
const idleMs = { asking: 30_000, answering: 75_000 } as const
const maxHeaderBytes = 48 * 1024

interface PeerCall {
  readonly method: string
  readonly path: string
  /** Name, value, name, value … */
  readonly headers: readonly string[]
  readonly body: Buffer | Readable | null
  readonly signal: AbortSignal
}

export type Peers = ReturnType<typeof createPeers>
export type PeerAnswer = Awaited<ReturnType<Peers['call']>>

/** `former`: keys that are still accepted. */
export function createPeers(key: Buffer, former: readonly Buffer[] = []) {
  const keys = new Map([...former, key].map((one) => [nameOf(one), one]))
  const own = nameOf(key)
  const chosen: ChooseKey = (hint) => {
    const identity = hint !== null && keys.has(hint) ? hint : own
    return { psk: keys.get(identity) ?? key, identity }
  }
  const agents = { call: agentWith(chosen, null), tell: agentWith(chosen, tellingConnections) }
  let server: Server | null = null

  async function ask(agent: Agent, address: string, asked: PeerCall) {
    const { method, path, headers, body, signal } = asked
    try {
      // The path is sent unchanged: the caller has read it already.
      const options = { origin: `https://${address}`, path, method, headers: [...headers], body, signal }
      const answer = await agent.request(options)
      return { status: answer.statusCode, headers: answer.headers, body: answer.body }
    } catch (cause) {
      const reason = errnoOf(cause) ?? 'unknown'
      throw new AppError('network', `the node at ${address} does not answer`, { cause, details: { reason } })
    }
  }

  return {
    /** Rejects with `network` when no connection was made or it broke. */
    call: (address: string, asked: PeerCall) => ask(agents.call, address, asked),
    /** Returns this node's address (host:port) for other nodes. `bad_request` when it cannot listen there. */
    async listen(listener: RequestListener, host: string, port: number): Promise<string> {
      const psk = { pskIdentityHint: own, pskCallback: (_: unknown, name: string) => keys.get(name) ?? null }
      server = createServer({ ...tls, ...psk, maxHeaderSize: maxHeaderBytes, requireHostHeader: false }, listener)
      server.requestTimeout = 0
      server.keepAliveTimeout = idleMs.answering
      await listening(server, host, port)
      const { port: listened } = server.address() as AddressInfo
      return `${isIP(host) === 6 ? `[${host}]` : host}:${listened}`
    },
    /** Sends a POST. Returns the status; 0 = no response. */
    async tell(address: string, path: string, sent?: Buffer): Promise<number> {
      try {
        const signal = AbortSignal.timeout(tellMs)
        const asked = { method: 'POST', path, headers: [], body: sent ?? null, signal }
        const { status, body } = await ask(agents.tell, address, asked)
        body.resume()
        return status
      } catch {
        return 0
      }
    },
    async close(): Promise<void> {
      const closed = new Promise<void>((resolve) => (server === null ? resolve() : server.close(() => resolve())))
      server?.closeIdleConnections()
      await Promise.all([agents.call.destroy(), agents.tell.destroy()])
      await withinTime(1000, closed)
      server?.closeAllConnections()
    },
  }
}

/** A short hash that tells keys apart. Anybody who connects sees it, so it is too short to test pass phrases with. */
function nameOf(key: Buffer): string {
  return `mailroom ${createHash('sha256').update('mailroom/peers/').update(key).digest('hex').slice(0, 2)}`
}

type ChooseKey = (hint: string | null) => { psk: Buffer; identity: string }

/** `connections`: limit for one node; null = no limit. */
function agentWith(pskCallback: ChooseKey, connections: number | null): Agent {
  return new Agent({
    connect: {
      ...tls,
      pskCallback,
      checkServerIdentity: () => undefined,
      timeout: connectMs,
      keepAliveInitialDelay: keepAliveMs,
      maxCachedSessions: 0,
    },
    allowH2: false,
    connections,
    pipelining: 1,
    keepAliveTimeout: idleMs.asking,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: maxHeaderBytes,
  })
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const words = `MAILROOM_NODE_HOST, MAILROOM_NODE_PORT: cannot listen on ${host}:${port}: ${cause.code ?? cause.message}`
      reject(new AppError('bad_request', words, { cause }))
    })
    // A client without the key is disconnected.
    server.on('tlsClientError', (_, socket) => socket.destroy())
    server.listen(port, host, resolve)
  })
}

/** This machine's address for other nodes, when it listens on all of its addresses. */
export function ownAddress(): string {
  const found = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  const outer = found.filter(({ internal }) => !internal)
  return (outer.find(({ family }) => family === 'IPv4') ?? outer[0])?.address ?? '127.0.0.1'
}
