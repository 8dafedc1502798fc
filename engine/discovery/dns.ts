/**
 * What DNS says of a domain's mail: IMAP servers by SRV (RFC 6186), and the mail exchangers, which show who hosts it.
 */
import { Resolver } from 'node:dns/promises'
import { AppError } from '../errors.ts'
import { providers, type ProviderFacts, type Settings } from './providers.ts'

interface SrvRecord {
  readonly name: string
  readonly port: number
  readonly priority: number
  readonly weight: number
}

interface MxRecord {
  readonly exchange: string
  readonly priority: number
}

/** [] when there is no such record. Rejects with `network` when the name server cannot be asked. */
export interface DnsResolver {
  srv(name: string): Promise<readonly SrvRecord[]>
  mx(domain: string): Promise<readonly MxRecord[]>
}

const timeoutMs = 2000
const tries = 2
const noRecord = new Set(['ENODATA', 'ENOTFOUND', 'NXDOMAIN'])

/** Over the system's name servers, or those given as `address:port`. */
export function createResolver(servers?: readonly string[]): DnsResolver {
  const resolver = new Resolver({ timeout: timeoutMs, tries })
  if (servers !== undefined) resolver.setServers([...servers])
  return {
    srv: (name) => orNone(resolver.resolveSrv(name)),
    mx: (domain) => orNone(resolver.resolveMx(domain)),
  }
}

async function orNone<T>(question: Promise<T[]>): Promise<T[]> {
  try {
    return await question
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    if (noRecord.has(code)) return []
    throw new AppError('network', 'the name server cannot be asked', { cause, details: { reason: code } })
  }
}

/** RFC 6186: implicit TLS goes before STARTTLS; a target of "." means that there is no such service. */
export async function srvSettings(resolver: DnsResolver, domain: string): Promise<Settings[]> {
  const [secure, plain] = await Promise.all([
    resolver.srv(`_imaps._tcp.${domain}`),
    resolver.srv(`_imap._tcp.${domain}`),
  ])
  return [
    ...inOrder(secure).map((record) => settingsOf(record, true)),
    ...inOrder(plain).map((record) => settingsOf(record, false)),
  ]
}

function inOrder(records: readonly SrvRecord[]): SrvRecord[] {
  return records
    .filter(({ name, port }) => hostOf(name) !== '' && port > 0)
    .sort((left, right) => left.priority - right.priority || right.weight - left.weight)
}

function settingsOf({ name, port }: SrvRecord, useSsl: boolean): Settings {
  return { server: hostOf(name), port, useSsl, oauth: false, username: '%EMAILADDRESS%', documentation: [] }
}

function hostOf(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

export async function providerByMx(resolver: DnsResolver, domain: string): Promise<ProviderFacts | null> {
  const records = await resolver.mx(domain)
  const hosts = [...records]
    .sort((left, right) => left.priority - right.priority)
    .map(({ exchange }) => hostOf(exchange))
  for (const host of hosts) {
    const known = providers.find(({ mxSuffixes }) => mxSuffixes.some((suffix) => host.endsWith(suffix)))
    if (known !== undefined) return known
  }
  return null
}
