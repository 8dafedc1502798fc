/**
 * The guard against requests into the operator's own network. A host name is resolved once, all its addresses are
 * checked, and the connection goes to a checked address: a change of the name after the check has no effect.
 */
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { AppError, badParameter, errnoOf, isAppError, shortageOf } from '../errors.ts'
import { type Lookup, lookUp } from './names.ts'

export interface CheckedAddress {
  readonly address: string
  readonly family: 4 | 6
}

interface GuardOptions {
  /** true = private, loopback and other special addresses are allowed as well (MAILROOM_ALLOW_PRIVATE). */
  readonly allowPrivate: boolean
  readonly signal?: AbortSignal
  readonly lookup?: Lookup
}

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * true for a public unicast address: not private, loopback, link-local, multicast, reserved, and not a transition
 * address (IPv4-mapped, 6to4, Teredo, NAT64) that could lead to one.
 */
export function isPublicAddress(address: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return ipaddr.IPv4.parse(address).range() === 'unicast'
  if (address.includes('%') || !ipaddr.IPv6.isValid(address)) return false
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().range() === 'unicast'
  return parsed.range() === 'unicast' && parsed.match(globalUnicast)
}

const privateRanges: ReadonlySet<string> = new Set(['loopback', 'private', 'linkLocal', 'uniqueLocal'])

/** true for an address of this machine or its private network: fewer addresses than "not public". */
export function isPrivateAddress(address: string): boolean {
  return ipaddr.isValid(address) && privateRanges.has(ipaddr.process(address).range())
}

/** The /64 network of an IPv6 address, the plain IPv4 address of an IPv4-mapped one; any other text unchanged. */
export function networkOf(address: string): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return `${new ipaddr.IPv6([...parsed.parts.slice(0, 4), 0, 0, 0, 0]).toString()}/64`
}

/** '[::1]' → '::1', 'mail.example.com.' → 'mail.example.com'. */
function bareHost(host: string): string {
  const inner = /^\[(.*)\]$/.exec(host.trim())?.[1] ?? host.trim()
  return inner.replace(/\.$/, '')
}

/** A literal address in plain notation, or null. The resolver takes unusual notations (0x7f.1, 2130706433). */
function literal(host: string): CheckedAddress | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(host)) return { address: host, family: 4 }
  return ipaddr.IPv6.isValid(host) ? { address: host, family: 6 } : null
}

export function notPublic(host: string): AppError {
  return new AppError('private_address', `${host} is not a public address`, { details: { host } })
}

function resolveFailure(host: string, cause: unknown): AppError {
  const ours = shortageOf(cause)
  if (ours !== null) return ours
  const errno = errnoOf(cause) ?? 'EUNKNOWN'
  const known = errno === 'ENOTFOUND' || errno === 'ENODATA'
  const message = known ? `${host} does not exist` : `${host} could not be resolved`
  return new AppError('network', message, { cause, details: { host, errno, reason: errno } })
}

async function unlessAborted<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const late = () => new AppError('timeout', 'the name server did not answer in time', { cause: signal.reason })
  const stop = () => reject(late())
  if (signal.aborted) throw late()
  signal.addEventListener('abort', stop)
  try {
    return await Promise.race([aborted, work()])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/**
 * The allowed addresses of a host, in the resolver's order; never empty. Rejects with `private_address` when no address
 * is public, `network` (details.errno, ENOTFOUND …) when the name has no address, `timeout` when `signal` aborts.
 */
export async function resolveGuarded(host: string, options: GuardOptions): Promise<readonly CheckedAddress[]> {
  const bare = bareHost(host)
  const { allowPrivate, signal, lookup = lookUp } = options
  const given = literal(bare)
  if (given) {
    if (!allowPrivate && !isPublicAddress(given.address)) throw notPublic(bare)
    return [given]
  }
  if (bare === '') throw resolveFailure(host, undefined)
  const found = await unlessAborted(() => lookup(bare, signal), signal).catch((error: unknown) => {
    throw error instanceof AppError ? error : resolveFailure(bare, error)
  })
  const addresses = found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }) as const)
  const allowed = allowPrivate ? addresses : addresses.filter(({ address }) => isPublicAddress(address))
  if (allowed.length > 0) return allowed
  throw addresses.length > 0 ? notPublic(bare) : resolveFailure(bare, undefined)
}

/** A look-up for a socket that returns these checked addresses for any name. */
export function pinned(addresses: readonly CheckedAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses
    if (options.all) callback(null, [...addresses])
    else callback(null, first?.address ?? '', first?.family ?? 4)
  }
}

const longestUrl = 2048
const resolveMs = 10_000

/**
 * Checks a callback URL when it is registered; each delivery checks the connection again. Rejects with `bad_request`
 * (no http or https URL, credentials in it, too long) or `private_address`; the error names the parameter. A host that
 * does not resolve within 10 s is accepted: it may resolve later.
 */
export async function checkUrl(parameter: string, url: string, allowPrivate: boolean): Promise<void> {
  const parsed = URL.parse(url)
  if (url.length > longestUrl) throw badParameter(parameter, `longer than ${longestUrl} characters`)
  if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:'))
    throw badParameter(parameter, 'expected an http:// or https:// URL')
  if (parsed.username !== '' || parsed.password !== '')
    throw badParameter(parameter, 'must not hold a user name or password')
  try {
    await resolveGuarded(parsed.hostname, { allowPrivate, signal: AbortSignal.timeout(resolveMs) })
  } catch (error) {
    if (!isAppError(error, 'private_address')) return
    throw new AppError('private_address', `${parameter}: ${error.message}`, { details: { parameter }, cause: error })
  }
}
