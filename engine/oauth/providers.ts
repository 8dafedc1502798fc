/**
 * The two OAuth 2.0 providers that a developer may register a consumer key for: their names, their endpoints (from the
 * configuration or OpenID Connect Discovery), and the OAuth library's requests over Mailroom's HTTP client, with its
 * address guard and deadline.
 */
import { LRUCache } from 'lru-cache'
import {
  type AuthorizationServer,
  allowInsecureRequests,
  customFetch,
  discoveryRequest,
  processDiscoveryResponse,
} from 'oauth4webapi'
import type { Config } from '../config.ts'
import type { HttpClient } from '../net/http.ts'

const namesOfA = ['PROVIDER_A_OAUTH2', 'GMAIL_OAUTH2', 'GMAIL'] as const
const namesOfB = ['PROVIDER_B_CONNECT', 'MSLIVECONNECT'] as const
export const providerTypes = [...namesOfA, ...namesOfB] as const

/** One of the two providers: the ending of its settings' names. */
type ProviderLetter = 'A' | 'B'

const known = {
  A: {
    name: 'Google',
    issuer: 'https://accounts.google.com',
    authorization: 'https://accounts.google.com/o/oauth2/v2/auth',
    token: 'https://oauth2.googleapis.com/token',
  },
  B: {
    name: 'Microsoft',
    issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
    authorization: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    token: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
  },
} as const

/** `type`: as registered. */
export function letterOf(type: string): ProviderLetter {
  return (namesOfA as readonly string[]).includes(type) ? 'A' : 'B'
}

function providerSettings(letter: ProviderLetter, config: Config) {
  const issuer = config[`MAILROOM_OAUTH_ISSUER_${letter}`]
  const facts = issuer === null ? known[letter] : { issuer, authorization: null, token: null }
  return {
    /** May hold `{tenantid}`: the claim `tid` of the ID token. */
    issuer: facts.issuer,
    /** null = read from the issuer (OpenID Connect Discovery). */
    authorization: config[`MAILROOM_OAUTH_AUTHORIZATION_URL_${letter}`] ?? facts.authorization,
    token: config[`MAILROOM_OAUTH_TOKEN_URL_${letter}`] ?? facts.token,
    /** Asks for full mail access and a refresh token. */
    scope: config[`MAILROOM_OAUTH_SCOPE_${letter}`],
    /** Further parameters of the authorization request. */
    params: new URLSearchParams(config[`MAILROOM_OAUTH_PARAMS_${letter}`]),
    /** IMAP hosts that the provider signs in for, in lower case. */
    hosts: config[`MAILROOM_OAUTH_HOSTS_${letter}`].toLowerCase().split(/[\s,]+/),
  }
}

/** The provider that signs in for mailboxes of this IMAP server; null = none. */
export function letterOfHost(server: string, config: Config): ProviderLetter | null {
  const host = server.toLowerCase()
  return (['A', 'B'] as const).find((letter) => providerSettings(letter, config).hosts.includes(host)) ?? null
}

/** The provider's name for people: its brand, or the host of a configured issuer. */
export function nameOfProvider(letter: ProviderLetter, config: Config): string {
  const issuer = config[`MAILROOM_OAUTH_ISSUER_${letter}`]
  return issuer === null ? known[letter].name : new URL(issuer).hostname
}

const shortest = 10

/** First three characters, `[...]`, last three; of a short secret nothing is shown. */
export function abbreviated(secret: string): string {
  if (secret.length < shortest) return '[...]'
  return `${secret.slice(0, 3)}[...]${secret.slice(-3)}`
}

interface Deps {
  readonly config: Config
  readonly http: Pick<HttpClient, 'get' | 'postForm'>
}

export type OAuthServers = ReturnType<typeof createOAuthServers>
export type OAuthServer = Awaited<ReturnType<OAuthServers['of']>>

const keptMs = 3_600_000
/** One server for each letter. */
const mostServers = 2
const answerMax = 65_536

/** All methods reject with errors of the HTTP client or the library. */
export function createOAuthServers({ config, http }: Deps) {
  const limits = { timeoutMs: config.MAILROOM_OAUTH_TIMEOUT, maxResponseBytes: answerMax }

  async function fetchOver(url: string, { method, body }: { method: string; body?: unknown }): Promise<Response> {
    const answer =
      method === 'GET'
        ? await http.get(url, { accept: 'application/json' }, limits)
        : await http.postForm(url, Object.fromEntries(new URLSearchParams(String(body))), limits)
    const { 'content-type': type = 'application/json', 'retry-after': retryAfter } = answer.headers
    const headers = { 'content-type': type, ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }) }
    return new Response(answer.body, { status: answer.status, headers })
  }

  /** Options for every request of the library. */
  const options = { [customFetch]: fetchOver, [allowInsecureRequests]: config.MAILROOM_ALLOW_PRIVATE }

  const discovered = new LRUCache<string, AuthorizationServer>({
    max: mostServers,
    ttl: keptMs,
    async fetchMethod(issuer) {
      const url = new URL(issuer)
      return processDiscoveryResponse(url, await discoveryRequest(url, options))
    },
  })

  return {
    options,
    /** `type`: of the provider as registered. */
    async of(type: string) {
      const settings = providerSettings(letterOf(type), config)
      const { issuer, authorization, token } = settings
      const known = authorization !== null && token !== null
      const server: AuthorizationServer = {
        ...(known ? { issuer } : await discovered.forceFetch(issuer)),
        ...(authorization === null ? {} : { authorization_endpoint: authorization }),
        ...(token === null ? {} : { token_endpoint: token }),
      }
      return { server, settings }
    },
  }
}

const tenant = '{tenantid}'

/** The server with the issuer `named` in its response, if the server's issuer pattern allows it. */
export function issuing(server: AuthorizationServer, named: unknown): AuthorizationServer {
  const [start = '', end] = server.issuer.split(tenant)
  if (end === undefined || typeof named !== 'string') return server
  const tenantId = named.slice(start.length, named.length - end.length)
  return /^[\w-]+$/.test(tenantId) && named === start + tenantId + end ? { ...server, issuer: named } : server
}

/** The same with the issuer of the response's ID token, which the library checks afterwards. */
export async function issuingOf(server: AuthorizationServer, answer: Response): Promise<AuthorizationServer> {
  if (!server.issuer.includes(tenant)) return server
  const payload = /"id_token"\s*:\s*"[\w-]+\.([\w-]+)\./.exec(await answer.clone().text())?.[1]
  if (payload === undefined) return server
  const { iss } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { readonly iss?: unknown }
  return issuing(server, iss)
}
