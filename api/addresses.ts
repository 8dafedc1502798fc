/** Addresses: of the service as the client used it, of the client, and of everything in the API. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { type AccountRecord, AppError, type Config, networkOf, type WebhookRecord } from '../engine/index.ts'

type Settings = Pick<Config, 'MAILROOM_PUBLIC_URL' | 'MAILROOM_TRUST_PROXY'>
type PageSettings = Settings & Pick<Config, 'MAILROOM_HOST'>

/** The base URL of a call. Throws `bad_request` that names the header at fault. */
export type BaseUrlReader = (request: IncomingMessage) => string

const hostShape = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/**
 * MAILROOM_PUBLIC_URL, else X-Forwarded-Proto and -Host of a trusted proxy, else Host; without a trailing slash. Throws
 * `bad_request` for a Host that is none: it would get into links.
 */
export function baseUrlReader(config: Settings): BaseUrlReader {
  const fixed = config.MAILROOM_PUBLIC_URL
  if (fixed !== null) return () => fixed
  return (request) => {
    const forwarded = config.MAILROOM_TRUST_PROXY ? request.headers : {}
    const scheme = firstOf(forwarded['x-forwarded-proto']).toLowerCase()
    const host = firstOf(forwarded['x-forwarded-host']) || (request.headers.host ?? ownHost(request))
    const url = `${/^https?$/.test(scheme) ? scheme : ownScheme(request)}://${host}`
    if (!hostShape.test(host) || !URL.canParse(url))
      throw new AppError('bad_request', 'Host: not a host name', { details: { parameter: 'Host' } })
    return url
  }
}

/**
 * The same for pages that people see, where passwords and consents come in, and for links that need no key. Throws as
 * ownUrl does.
 */
export function pageUrlReader(config: PageSettings): BaseUrlReader {
  const baseUrl = baseUrlReader(config)
  return (request) => relayed.get(request)?.pages || ownUrl(config, baseUrl(request))
}

/**
 * A base URL that somebody else cannot have chosen: MAILROOM_PUBLIC_URL, or without it a loopback name or
 * MAILROOM_HOST. Throws `bad_request` for another host.
 */
export function ownUrl(config: PageSettings, url: string): string {
  if (config.MAILROOM_PUBLIC_URL !== null || isOwnHost(new URL(url).hostname, config.MAILROOM_HOST)) return url
  throw new AppError(
    'bad_request',
    'Host: not a name of this service; set MAILROOM_PUBLIC_URL to the address that browsers use',
    { details: { parameter: 'Host' } },
  )
}

function isOwnHost(name: string, configured: string): boolean {
  const host = name.toLowerCase()
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host) || host === bracketed(configured)
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host.toLowerCase()
}

/** The client's own proxy comes first in the list. */
function firstOf(header: string | string[] | undefined): string {
  const [first = ''] = String(header ?? '').split(',', 1)
  return first.trim()
}

/** Carries, from the node that a client has called to the one that answers, who called and how. */
export const relayHeader = 'x-mailroom-relayed'

interface Relayed {
  readonly address: string
  readonly scheme: 'http' | 'https'
  /** Base URL of pages at the listener that was called; '' = it has none for this Host. */
  readonly pages: string
}

const relayed = new WeakMap<IncomingMessage, Relayed>()

export function relayValue(
  config: Pick<Config, 'MAILROOM_TRUST_PROXY'>,
  request: IncomingMessage,
  pages: BaseUrlReader,
): string {
  let base = ''
  try {
    base = pages(request)
  } catch {
    // Where it matters the owner refuses the Host.
  }
  return `${ownScheme(request)} ${clientAddressReader(config)(request)} ${base}`
}

/** The call comes from another node: it is the client's that it names. */
export function markRelayed(request: IncomingMessage): void {
  const [scheme, address = '', pages = ''] = String(request.headers[relayHeader] ?? '').split(' ')
  relayed.set(request, { scheme: scheme === 'https' ? 'https' : 'http', address, pages })
}

function ownScheme(request: IncomingMessage): 'http' | 'https' {
  const first = relayed.get(request)
  if (first !== undefined) return first.scheme
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
    const first = relayed.get(request)
    if (first !== undefined) return first.address
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

/** Which API a call is made to, and in whose words it is answered. */
export type ApiVersion = WebhookRecord['version']

/** resource_url of everything: the base URL of the client, and `::` percent-encoded. */
export type Urls = ReturnType<typeof urlsOf>

type AccountName = Pick<AccountRecord, 'userId' | 'label'>

/** `name`, of a folder, with '/' between its levels. */
export function urlsOf({ baseUrl, version }: { readonly baseUrl: string; readonly version: ApiVersion }) {
  const isLite = version === 'lite'
  const root = `${baseUrl}/${version}`
  const user = (id: string) => `${root}/${isLite ? 'users' : 'accounts'}/${id}`
  const account = (one: AccountName) =>
    `${user(one.userId)}/${isLite ? 'email_accounts' : 'sources'}/${encodeURIComponent(one.label)}`
  const folder = (one: AccountName, name: string) => `${account(one)}/folders/${encodeURIComponent(name)}`
  return {
    user: ({ id }: { readonly id: string }) => user(id),
    account,
    folder,
    /** Without a folder: the message wherever it lies. In 2.0 it is always that. */
    message: (one: AccountName, id: string, name?: string) => {
      const at = !isLite ? user(one.userId) : name === undefined ? account(one) : folder(one, name)
      return `${at}/messages/${encodeURIComponent(id)}`
    },
    webhook: ({ userId, id }: { readonly userId: string | null; readonly id: string }) =>
      `${userId === null ? root : user(userId)}/webhooks/${id}`,
    token: (token: string) => `${root}/connect_tokens/${token}`,
    provider: (key: string) => `${root}/oauth_providers/${encodeURIComponent(key)}`,
  }
}

/** Seconds, as the API has times. */
export const seconds = (ms: number): number => Math.floor(ms / 1000)

export function secondsOrNull(at: number | null | undefined): number | null {
  return at === null || at === undefined ? null : seconds(at)
}
