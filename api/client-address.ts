/** From where a call comes, for what is counted by address. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { networkOf, type Config } from '../engine/index.ts'

type Settings = Pick<Config, 'MAILROOM_TRUST_PROXY'>

/**
 * The client's IPv4 address, or the /64 network of its IPv6 address, which one client has to itself. Behind a trusted proxy it is
 * the last one of X-Forwarded-For: the proxy itself wrote that; what stands before it may be the client's own invention.
 */
export function clientAddressReader(config: Settings): (request: IncomingMessage) => string {
  return (request) => {
    const forwarded = config.MAILROOM_TRUST_PROXY ? lastForwarded(request) : null
    return networkOf(forwarded ?? request.socket.remoteAddress ?? '')
  }
}

/** null when there is none, or it is no address. Some proxies write the port behind it. */
function lastForwarded(request: IncomingMessage): string | null {
  const last = String(request.headers['x-forwarded-for'] ?? '')
    .split(',')
    .at(-1)
    ?.trim()
  if (last === undefined || last.length > 64) return null
  const bare = isIP(last) === 0 ? last.replace(/^\[(.*)\](?::\d+)?$|^([^:]*):\d+$/, '$1$2') : last
  return isIP(bare) === 0 ? null : bare
}
