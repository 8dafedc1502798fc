/**
 * IMAP settings from an email address, by three look-ups: the table of known providers, what the domain publishes for
 * mail clients (Autoconfig), and what DNS says of it (SRV, MX). Their answers come in this order. Bounded by deadlines,
 * and remembered for an hour per domain; nothing is ever logged in to.
 */
import { domainToASCII } from 'node:url'
import { LRUCache } from 'lru-cache'
import type { HttpClient } from '../net/http.ts'
import { domainOf } from '../messages/addresses.ts'
import { autoconfig } from './autoconfig.ts'
import { createResolver, providerByMx, srvSettings, type DnsResolver } from './dns.ts'
import { providers, usernameFor, type ProviderFacts, type Settings } from './providers.ts'

export interface DiscoveredSettings extends Settings {
  /** `gmail`, `outlook` …, or `generic`. */
  readonly type: string
}

export type Discovery = ReturnType<typeof createDiscovery>

export interface DiscoveryDeps {
  readonly http: Pick<HttpClient, 'get'>
  /** true = Autoconfig may be read from private addresses. */
  readonly allowPrivate: boolean
  readonly resolver?: DnsResolver
  /** Of each look-up; all run side by side. Default 8 s. */
  readonly timeoutMs?: number
}

const lookUpMs = 8000
const rememberedMs = 3_600_000
/** A look-up that failed is tried again sooner than one that found nothing. */
const failedMs = 60_000
const domainsKept = 5000

export function createDiscovery(deps: DiscoveryDeps) {
  const resolver = deps.resolver ?? createResolver()
  const known = new LRUCache<string, readonly DiscoveredSettings[]>({
    max: domainsKept,
    ttl: rememberedMs,
    async fetchMethod(domain, _stale, { options }) {
      const { settings, complete } = await lookUp({ ...deps, resolver }, domain)
      options.ttl = complete ? rememberedMs : failedMs
      return settings
    },
  })
  return {
    /** Best first, each server once; [] when nothing is known. Within 8 s. */
    async discover(email: string): Promise<DiscoveredSettings[]> {
      const domain = domainToASCII(domainOf(email))
      const settings = isPublicName(domain) ? ((await known.fetch(domain)) ?? []) : []
      return settings.map((one) => ({ ...one, username: usernameFor(one, email) }))
    },
  }
}

/** A name of at least two labels, not an address. */
function isPublicName(domain: string): boolean {
  return domain.length <= 253 && /^(?:[a-z0-9_-]{1,63}\.)+(?!\d+$)[a-z0-9-]{2,63}$/.test(domain)
}

async function lookUp(
  deps: DiscoveryDeps & { readonly resolver: DnsResolver },
  domain: string,
): Promise<{ readonly settings: DiscoveredSettings[]; readonly complete: boolean }> {
  const table = providers.find(({ domains }) => domains.includes(domain))
  if (table !== undefined) return { settings: [ofProvider(table)], complete: true }
  const { resolver, timeoutMs = lookUpMs } = deps
  const [published, services, host] = await Promise.all([
    within(timeoutMs, autoconfig({ ...deps, timeoutMs }, domain)),
    within(timeoutMs, srvSettings(resolver, domain)),
    within(timeoutMs, providerByMx(resolver, domain)),
  ])
  const all = [
    ...[...(published ?? []), ...(services ?? [])].map(typed),
    ...(host === null || host === undefined ? [] : [ofProvider(host)]),
  ]
  return { settings: distinct(all), complete: ![published, services, host].includes(undefined) }
}

/** undefined when it failed or took too long: another look-up may have found something. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  try {
    return await Promise.race([work.catch(() => undefined), late])
  } finally {
    clearTimeout(timer)
  }
}

function ofProvider({ name, server, port, useSsl, oauth, username, documentation }: ProviderFacts): DiscoveredSettings {
  return { type: name, server, port, useSsl, oauth, username, documentation }
}

/** A server of the table keeps its name wherever it is found. */
function typed(settings: Settings): DiscoveredSettings {
  const known = providers.find(({ server, domains }) => server === settings.server && domains.length === 0)
  const provider = known ?? providers.find(({ server }) => server === settings.server)
  if (provider === undefined) return { ...settings, type: 'generic' }
  return { ...settings, type: provider.name, oauth: settings.oauth || provider.oauth }
}

function distinct(settings: readonly DiscoveredSettings[]): DiscoveredSettings[] {
  const seen = new Set<string>()
  return settings.filter(({ server, port }) => {
    const key = `${server}:${port}`
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}
