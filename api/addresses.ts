/** Addresses: of the service as the client used it, of the client, and of everything in the lite API. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { type AccountRecord, AppError, type Config, networkOf } from '../engine/index.ts'

type Settings = Pick<Config, 'MAILROOM_PUBLIC_URL' | 'MAILROOM_TRUST_PROXY'>

const hostShape = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/**
 * MAILROOM_PUBLIC_URL, else X-Forwarded-Proto and -Host of a trusted proxy, else Host; without a trailing slash. Throws
 * `bad_request` for a Host that is none: it would get into links.
 */
export function baseUrlReader(config: Settings): (request: IncomingMessage) => string {
  const fixed = config.MAILROOM_PUBLIC_URL?.replace(/(?<!\/)\/+$/, '') ?? null
  if (fixed !== null) return () => fixed
  return (request) => {
    const forwarded = config.MAILROOM_TRUST_PROXY ? forwardedOrigin(request) : {}
    const host = forwarded.host ?? request.headers.host ?? ownHost(request)
    if (!hostShape.test(host))
      throw new AppError('bad_request', 'Host: not a host name', { details: { parameter: 'Host' } })
    return `${forwarded.scheme ?? ownScheme(request)}://${host}`
  }
}

function forwardedOrigin(request: IncomingMessage): { readonly scheme?: string; readonly host?: string } {
  const scheme = firstOf(request.headers['x-forwarded-proto'])?.toLowerCase()
  const host = firstOf(request.headers['x-forwarded-host'])
  return {
    ...(scheme === 'http' || scheme === 'https' ? { scheme } : {}),
    ...(host === undefined || host === '' ? {} : { host }),
  }
}

/** The client's own proxy comes first in the list. */
function firstOf(header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header[0] : header
  return text?.split(',')[0]?.trim()
}

function ownScheme(request: IncomingMessage): 'http' | 'https' {
  return 'encrypted' in request.socket ? 'https' : 'http'
}

/** HTTP/1.0 clients may send no Host; later ones must (RFC 9112 section 3.2). */
function ownHost(request: IncomingMessage): string {
  if (request.httpVersion !== '1.0')
    throw new AppError('bad_request', 'Host: is required', { details: { parameter: 'Host' } })
  const { localAddress = '127.0.0.1', localPort = 0, localFamily } = request.socket
  return localFamily === 'IPv6' ? `[${localAddress}]:${localPort}` : `${localAddress}:${localPort}`
}

/**
 * The client's IPv4 address, or the /64 network of its IPv6 address, which one client has to itself. Behind a trusted
 * proxy it is the last one of X-Forwarded-For: the proxy itself wrote that; what stands before it may be the client's
 * own invention.
 */
export function clientAddressReader(
  config: Pick<Config, 'MAILROOM_TRUST_PROXY'>,
): (request: IncomingMessage) => string {
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

/** resource_url of everything in the lite API: the base URL of the client, and `::` percent-encoded. */
export type LiteUrls = ReturnType<typeof liteUrls>

type AccountName = Pick<AccountRecord, 'userId' | 'label'>

export function liteUrls(baseUrl: string) {
  const user = (id: string) => `${baseUrl}/lite/users/${id}`
  const account = (one: AccountName) => `${user(one.userId)}/email_accounts/${encodeURIComponent(one.label)}`
  /** `name` with '/' between its levels. */
  const folder = (one: AccountName, name: string) => `${account(one)}/folders/${encodeURIComponent(name)}`
  return {
    user: ({ id }: { readonly id: string }) => user(id),
    account,
    folder,
    /** Without a folder: the message wherever it lies. */
    message: (one: AccountName, id: string, name?: string) =>
      `${name === undefined ? account(one) : folder(one, name)}/messages/${encodeURIComponent(id)}`,
    webhook: ({ userId, id }: { readonly userId: string | null; readonly id: string }) =>
      userId === null ? `${baseUrl}/lite/webhooks/${id}` : `${user(userId)}/webhooks/${id}`,
    token: (token: string) => `${baseUrl}/lite/connect_tokens/${token}`,
    provider: (key: string) => `${baseUrl}/lite/oauth_providers/${encodeURIComponent(key)}`,
  }
}

/** Seconds, as the API has times. */
export const seconds = (ms: number): number => Math.floor(ms / 1000)
