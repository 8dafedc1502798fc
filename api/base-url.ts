/** The base URL as the client used it: signatures cover it and resource_url begins with it. */
import type { IncomingMessage } from 'node:http'
import { AppError, type Config } from '../engine/index.ts'

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
