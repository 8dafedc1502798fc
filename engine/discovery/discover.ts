/**
 * Finds IMAP settings for an email address: in the table of known providers, in the domain's file for mail clients
 * (Autoconfig), and in DNS (SRV, MX), in this order. If all find nothing, the usual hosts of the domain are probed.
 * Look-ups have deadlines, and results are kept for an hour per domain. Discovery never logs in.
 */
import type { SrvRecord } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { domainToASCII } from 'node:url'
import { DomUtils, parseDocument } from 'htmlparser2'
import { LRUCache } from 'lru-cache'
import { AppError } from '../errors.ts'
import type { HttpClient } from '../net/http.ts'
import { domainOf } from '../messages/addresses.ts'
import { withinTime } from '../scheduling.ts'
import type { HostProbe } from './host-probe.ts'
import { similarAddress } from './similar.ts'
import { type HelpPage, providers, usernameFor, type ProviderFacts, type Settings } from './providers.ts'

export interface DiscoveredSettings extends Settings {
  /** `gmail`, `outlook` …, or `generic`. */
  readonly type: string
}

type DnsResolver = Pick<Resolver, 'resolveSrv' | 'resolveMx'>

export type Discovery = ReturnType<typeof createDiscovery>

export interface DiscoveryDeps {
  readonly http: Pick<HttpClient, 'get'>
  readonly probe: HostProbe
  readonly resolver?: DnsResolver
  /** Deadline of each look-up; all run side by side, and the probe after them. Default 8 s. */
  readonly timeoutMs?: number
}

const lookUpMs = 8000
const rememberedMs = 3_600_000
/** A failed look-up is repeated after this time, sooner than a look-up that found nothing. */
const failedMs = 60_000
/** Bound on the kept settings of all domains, as JSON. */
const keptBytes = 8 * 1_048_576
/** Memory of a domain besides its texts, about. */
const recordBytes = 1024

export function createDiscovery(deps: DiscoveryDeps) {
  const resolver = deps.resolver ?? createResolver()
  const known = new LRUCache<string, Found>({
    maxSize: keptBytes,
    sizeCalculation: (found, domain) => 2 * (domain.length + JSON.stringify(found).length) + recordBytes,
    ttl: rememberedMs,
    async fetchMethod(domain, _stale, { options }) {
      // A copy, because slices would keep whole responses in memory.
      const found = structuredClone(await lookUp({ ...deps, resolver }, domain))
      options.ttl = found.complete ? rememberedMs : failedMs
      return found
    },
  })
  return {
    similar: similarAddress,
    /**
     * Settings within 13 s, best first, each server once. [] = none found. Rejects with `network` when none were found
     * and a name server did not answer.
     */
    async discover(email: string): Promise<DiscoveredSettings[]> {
      const domain = domainToASCII(domainOf(email))
      const found = isPublicName(domain) ? await known.fetch(domain) : undefined
      const { settings, answered } = found ?? { settings: [], answered: true }
      if (settings.length === 0 && !answered) {
        const words = `the name servers of ${domain} do not answer as they should; try again`
        throw new AppError('network', words, { retryAfterMs: failedMs })
      }
      return settings.map((one) => ({ ...one, username: usernameFor(one, email) }))
    },
  }
}

/** true for a name of at least two labels that is no IP address. */
function isPublicName(domain: string): boolean {
  return domain.length <= 253 && /^(?:[a-z0-9_-]{1,63}\.)+(?!\d+$)[a-z0-9-]{2,63}$/.test(domain)
}

interface Found {
  readonly settings: readonly DiscoveredSettings[]
  /** No look-up failed or timed out. */
  readonly complete: boolean
  /** No look-up in DNS failed or timed out. */
  readonly answered: boolean
}

async function lookUp(deps: DiscoveryDeps & { readonly resolver: DnsResolver }, domain: string): Promise<Found> {
  const table = providers.find(({ domains }) => domains.includes(domain))
  if (table !== undefined) return { settings: [ofProvider(table)], complete: true, answered: true }
  const { resolver, timeoutMs = lookUpMs } = deps
  const [published, services, exchanges] = await Promise.all([
    within(timeoutMs, autoconfig({ ...deps, timeoutMs }, domain)),
    within(timeoutMs, srvSettings(resolver, domain)),
    within(timeoutMs, exchangesOf(resolver, domain)),
  ])
  const host = exchanges?.map(providerOf).find((provider) => provider !== undefined)
  const all = [
    ...[...(published ?? []), ...(services ?? [])].map(typed),
    ...(host === undefined ? [] : [ofProvider(host)]),
  ]
  const answered = services !== undefined && exchanges !== undefined
  const complete = answered && published !== undefined
  if (all.length > 0 || services === null) return { settings: distinct(all), complete, answered }
  const probed = await deps.probe(domain, exchanges?.filter(isPublicName) ?? []).catch(() => undefined)
  return { settings: probed?.map(typed) ?? [], complete: complete && probed !== undefined, answered }
}

/** undefined = the look-up failed or timed out. */
function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  return withinTime(ms, work).catch(() => undefined)
}

function ofProvider({ name, server, port, useSsl, oauth, username, documentation }: ProviderFacts): DiscoveredSettings {
  return { type: name, server, port, useSsl, oauth, username, documentation }
}

/** Settings with the type of a known provider of this server, or `generic`. */
function typed(settings: Settings): DiscoveredSettings {
  const known = providers.find(({ server, domains }) => server === settings.server && domains.length === 0)
  const provider = known ?? providers.find(({ server }) => server === settings.server)
  if (provider === undefined) return { ...settings, type: 'generic' }
  return { ...settings, type: provider.name, oauth: settings.oauth || provider.oauth }
}

function distinct(settings: readonly DiscoveredSettings[]): DiscoveredSettings[] {
  const byServer = Map.groupBy(settings, ({ server, port }) => `${server}:${port}`)
  return [...byServer.values()].flatMap(([first]) => first ?? [])
}

/** Asks the system's name servers, or `servers` (`address:port`). */
export function createResolver(servers?: readonly string[]): Resolver {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return resolver
}

/** `EBADNAME`: a domain of nearly the longest length leaves no room for the labels of a service. */
const noRecord = new Set(['ENODATA', 'ENOTFOUND', 'NXDOMAIN', 'EBADNAME'])

/** [] when the name has no record. Rejects when the name server fails. */
function orNone<T>(question: Promise<T[]>): Promise<T[]> {
  return question.catch((error: unknown) => {
    if (noRecord.has((error as NodeJS.ErrnoException).code ?? '')) return []
    throw error
  })
}

/** IMAP servers by SRV (RFC 6186), implicit TLS first. null = a target of "." declares that the domain has none. */
async function srvSettings(resolver: DnsResolver, domain: string): Promise<Settings[] | null> {
  const [secure, plain] = await Promise.all([
    orNone(resolver.resolveSrv(`_imaps._tcp.${domain}`)),
    orNone(resolver.resolveSrv(`_imap._tcp.${domain}`)),
  ])
  const found = [...settingsOfRecords(secure, true), ...settingsOfRecords(plain, false)]
  return found.length === 0 && secure.length + plain.length > 0 ? null : found
}

function settingsOfRecords(records: readonly SrvRecord[], useSsl: boolean): Settings[] {
  const usual = { useSsl, oauth: false, username: '%EMAILADDRESS%', documentation: [] }
  return records
    .filter(({ name, port }) => hostOf(name) !== '' && port > 0)
    .sort((left, right) => left.priority - right.priority || right.weight - left.weight)
    .map(({ name, port }) => ({ server: hostOf(name), port, ...usual }))
}

function hostOf(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** Hosts of the mail exchangers, best first. */
async function exchangesOf(resolver: DnsResolver, domain: string): Promise<string[]> {
  const records = await orNone(resolver.resolveMx(domain))
  return records.sort((left, right) => left.priority - right.priority).map(({ exchange }) => hostOf(exchange))
}

/** The known provider that hosts this mail exchanger. */
function providerOf(exchange: string): ProviderFacts | undefined {
  return providers.find(({ mxSuffixes }) => mxSuffixes.some((suffix) => exchange.endsWith(suffix)))
}

type AutoconfigDeps = Required<Pick<DiscoveryDeps, 'http' | 'timeoutMs'>>

const fileBytes = 65_536
const mostTags = 2000
/** A hoster of many domains redirects them to one file. */
const mostRedirects = 2

/**
 * Settings of a domain's file for mail clients (Autoconfig, the format of ISPDB): XML at autoconfig.<domain> or under
 * the domain's /.well-known. Only https is read, because a password will be sent to the server in the file. [] without
 * a readable file. Never rejects.
 */
async function autoconfig(deps: AutoconfigDeps, domain: string): Promise<Settings[]> {
  const urls = [
    `https://autoconfig.${domain}/mail/config-v1.1.xml`,
    `https://${domain}/.well-known/autoconfig/mail/config-v1.1.xml`,
  ]
  const until = performance.now() + deps.timeoutMs
  const settings = async (url: string): Promise<Settings[]> => settingsIn(await fetchFile(deps, url, until))
  const found = await Promise.all(urls.map((url) => settings(url).catch(() => [])))
  return found.find(({ length }) => length > 0) ?? []
}

async function fetchFile(deps: AutoconfigDeps, first: string, until: number): Promise<string> {
  let url = first
  for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
    const timeoutMs = Math.round(until - performance.now())
    if (timeoutMs <= 0) break
    const limits = { timeoutMs, maxResponseBytes: fileBytes }
    const answer = await deps.http.get(url, { accept: 'text/xml, application/xml' }, limits)
    if (answer.status === 200) return answer.body
    const next = URL.parse(answer.headers['location'] ?? '', url)
    if (answer.status < 300 || answer.status > 399 || next?.protocol !== 'https:') break
    url = next.href
  }
  return ''
}

type XmlElement = ReturnType<typeof DomUtils.getElementsByTagName>[number]

/** IMAP servers of the file, implicit TLS first. */
export function settingsIn(file: string): Settings[] {
  // The parser needs time by the square of the depth.
  if (file.split('<', mostTags + 1).length > mostTags) return []
  const document = parseDocument(file, { xmlMode: true })
  const emailProviders = childrenOf(document, 'clientConfig').flatMap((root) => childrenOf(root, 'emailProvider'))
  const found = emailProviders.flatMap((provider) => {
    const documentation = childrenOf(provider, 'documentation').flatMap(helpPage)
    return childrenOf(provider, 'incomingServer').flatMap((server) => settingsOf(server, documentation))
  })
  return found.sort((left, right) => Number(right.useSsl) - Number(left.useSsl))
}

function settingsOf(server: XmlElement, documentation: readonly HelpPage[]): Settings[] {
  const host = textOf(server, 'hostname').toLowerCase()
  const port = Number(textOf(server, 'port'))
  const username = textOf(server, 'username')
  const usable =
    server.attribs['type']?.toLowerCase() === 'imap' &&
    /^[a-z0-9._-]{1,253}$/.test(host) &&
    Number.isInteger(port) &&
    port > 0 &&
    port < 65_536
  if (!usable) return []
  const oauth = childrenOf(server, 'authentication').some((one) => words(one).toLowerCase() === 'oauth2')
  const useSsl = textOf(server, 'socketType').toUpperCase() === 'SSL'
  return [{ server: host, port, useSsl, oauth, username: username === '' ? '%EMAILADDRESS%' : username, documentation }]
}

function childrenOf({ children }: Pick<XmlElement, 'children'>, name: string): XmlElement[] {
  return DomUtils.getElementsByTagName(name, children, false)
}

function textOf(element: XmlElement, name: string): string {
  return words(childrenOf(element, name).slice(0, 1))
}

function words(of: XmlElement | XmlElement[]): string {
  return DomUtils.textContent(of).trim().replaceAll(/\s+/g, ' ')
}

/** A help page with its English description, its first one, or ''. */
function helpPage(element: XmlElement): HelpPage[] {
  const { url } = element.attribs
  if (url === undefined || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return []
  const texts = childrenOf(element, 'descr')
  const english = texts.find(({ attribs }) => /^en\b/i.test(attribs['lang'] ?? ''))
  return [{ description: words(english ?? texts.slice(0, 1)), url }]
}
