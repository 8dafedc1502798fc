/** Base URLs of the service, the client's address, and the URLs of resources. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { type AccountRecord, badParameter, type Config, networkOf, type WebhookRecord } from '../engine/index.ts'

type ProxySettings = Pick<Config, 'MAILROOM_TRUST_PROXY'>
type Settings = ProxySettings & Pick<Config, 'MAILROOM_PUBLIC_URL'>
type PageSettings = Settings & Pick<Config, 'MAILROOM_HOST'>

/** Returns the base URL of a call, without a trailing slash. Throws `bad_request` for an invalid Host. */
export type BaseUrlReader = (request: IncomingMessage) => string

const hostShape = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** MAILROOM_PUBLIC_URL, else X-Forwarded-Proto and -Host of a trusted proxy, else Host. */
export function baseUrlReader(config: Settings): BaseUrlReader {
  const fixed = config.MAILROOM_PUBLIC_URL
  if (fixed !== null) return () => fixed
  return (request) => {
    const forwarded = config.MAILROOM_TRUST_PROXY ? request.headers : {}
    const scheme = firstOf(forwarded['x-forwarded-proto']).toLowerCase()
    const host = firstOf(forwarded['x-forwarded-host']) || (request.headers.host ?? ownHost(request))
    const url = `${/^https?$/.test(scheme) ? scheme : ownScheme(request)}://${host}`
    if (!hostShape.test(host) || !URL.canParse(url)) throw badParameter('Host', 'not a host name')
    return url
  }
}

/** The base URL of pages with passwords and consents, and of links that need no key. Throws as ownUrl does. */
export function pageUrlReader(config: PageSettings): BaseUrlReader {
  const baseUrl = baseUrlReader(config)
  return (request) => relayed.get(request)?.pages || ownUrl(config, baseUrl(request))
}

/**
 * Returns a base URL that no stranger can choose: MAILROOM_PUBLIC_URL, else a loopback name or MAILROOM_HOST. Throws
 * `bad_request` for another host.
 */
export function ownUrl(config: PageSettings, url: string): string {
  if (config.MAILROOM_PUBLIC_URL !== null || isOwnHost(new URL(url).hostname, config.MAILROOM_HOST)) return url
  throw badParameter('Host', 'not a name of this service; set MAILROOM_PUBLIC_URL to the address that browsers use')
}

function isOwnHost(host: string, configured: string): boolean {
  const own = isIP(configured) === 6 ? `[${configured}]` : configured.toLowerCase()
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host) || host === own
}

/** The first proxy, next to the client, comes first in the list. */
function firstOf(header: string | string[] | undefined): string {
  const [first = ''] = String(header ?? '').split(',', 1)
  return first.trim()
}

/** Header of a forwarded call: the client's scheme and address, and the base URL of pages. */
export const relayHeader = 'x-mailroom-relayed'

interface Relayed {
  readonly address: string
  readonly scheme: 'http' | 'https'
  /** Base URL of pages at the listener that the client called; '' = none for this Host. */
  readonly pages: string
}

const relayed = new WeakMap<IncomingMessage, Relayed>()

export function relayValue(config: ProxySettings, request: IncomingMessage, pages: BaseUrlReader): string {
  let base = ''
  try {
    base = pages(request)
  } catch {
    // The owner refuses the Host if the call needs it.
  }
  return `${ownScheme(request)} ${clientAddress(config, request)} ${base}`
}

/** Notes the client's facts of a call that another node forwarded. */
export function markRelayed(request: IncomingMessage): void {
  const [scheme, address = '', pages = ''] = String(request.headers[relayHeader] ?? '').split(' ')
  relayed.set(request, { scheme: scheme === 'https' ? 'https' : 'http', address, pages })
}

function ownScheme(request: IncomingMessage): 'http' | 'https' {
  return relayed.get(request)?.scheme ?? ('encrypted' in request.socket ? 'https' : 'http')
}

/** For HTTP/1.0 without a Host. Later versions require the header (RFC 9112 section 3.2). */
function ownHost(request: IncomingMessage): string {
  if (request.httpVersion !== '1.0') throw badParameter('Host', 'is required')
  const { localAddress = '127.0.0.1', localPort = 0, localFamily } = request.socket
  return localFamily === 'IPv6' ? `[${localAddress}]:${localPort}` : `${localAddress}:${localPort}`
}

/**
 * The client's IPv4 address, or the /64 network of its IPv6 address, which belongs to one client. Behind a trusted
 * proxy: the last address of X-Forwarded-For, which the proxy wrote. The client may have invented the earlier ones.
 */
export function clientAddress(config: ProxySettings, request: IncomingMessage): string {
  const first = relayed.get(request)
  if (first !== undefined) return first.address
  const forwarded = config.MAILROOM_TRUST_PROXY ? lastForwarded(request) : null
  return networkOf(forwarded ?? request.socket.remoteAddress ?? '')
}

/** null = no address. Some proxies append the port. */
function lastForwarded(request: IncomingMessage): string | null {
  const header = String(request.headers['x-forwarded-for'] ?? '')
  const last = header.slice(header.lastIndexOf(',') + 1).trim()
  if (last.length > 64) return null
  const bare = isIP(last) === 0 ? last.replace(/^\[(.*)\](?::\d+)?$|^([^:]*):\d+$/, '$1$2') : last
  return isIP(bare) === 0 ? null : bare
}

/** The API that a call uses; its answer has the words of this API. */
export type ApiVersion = WebhookRecord['version']

/** Makes every resource_url: from the client's base URL, with `::` percent-encoded. */
export type Urls = ReturnType<typeof urlsOf>

type AccountName = Pick<AccountRecord, 'userId' | 'label'>

/** The `name` of a folder has '/' between its levels. */
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
    /** URL with the folder `name`, or without any folder. In 2.0 always without. */
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

/** Milliseconds to seconds, the API's unit of time. */
export const seconds = (ms: number): number => Math.floor(ms / 1000)

export function secondsOrNull(at: number | null | undefined): number | null {
  return at === null || at === undefined ? null : seconds(at)
}
