/**
 * Access tokens for IMAP (XOAUTH2) from refresh tokens (RFC 6749 section 6), kept until shortly before they expire.
 * Errors: `consent_lost` (invalid_grant: the end user revoked it), `permission` (the provider refuses this client or
 * scope), `auth_unavailable` (the endpoint cannot say now: network, 5xx, nonsense).
 */
import { LRUCache } from 'lru-cache'
import {
  type AuthorizationServer,
  ClientSecretPost,
  ResponseBodyError,
  allowInsecureRequests,
  customFetch,
  processRefreshTokenResponse,
  refreshTokenGrantRequest,
} from 'oauth4webapi'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import type { HttpClient } from '../net/http.ts'
import type { Sealer } from '../secrets/seal.ts'
import type { Store } from '../store/port.ts'
import type { OAuthProviderRecord } from '../store/records.ts'
import { endpointsOf } from './providers.ts'

export interface AccessToken {
  readonly accessToken: string
  readonly expiresAt: number
  /** The provider gave a new refresh token: the old one may end; store this one. */
  readonly rotated: string | null
}

interface Grant {
  readonly refreshToken: string
  readonly providerKey: string
}

export type Tokens = ReturnType<typeof createTokens>

interface Kept {
  readonly token: AccessToken
  /**
   * The sealed secret that it was asked for with: a provider that was removed or replaced since gives a token of its
   * own, or none.
   */
  readonly sealedSecret: string
}

interface Deps {
  readonly config: Config
  readonly store: Pick<Store, 'providers'>
  readonly sealer: Sealer
  readonly http: Pick<HttpClient, 'postForm'>
  readonly now?: () => number
}

const spareMs = 6 * 60_000
const fallbackLifeMs = 3_600_000
const answerMax = 65_536

export function createTokens(deps: Deps) {
  const now = deps.now ?? Date.now
  const cache = new LRUCache<string, Kept>({ max: 20_000 })
  const underWay = new Map<string, Promise<AccessToken>>()
  const nameOf = (developerId: string, { providerKey, refreshToken }: Grant): string =>
    JSON.stringify([developerId, providerKey, refreshToken])

  return {
    /**
     * Kept by developer, provider and refresh token: who knows the refresh token alone is given nothing that others
     * asked for.
     */
    async get(developerId: string, grant: Grant): Promise<AccessToken> {
      const provider = await deps.store.providers.get(developerId, grant.providerKey)
      if (provider === null)
        throw new AppError('permission', `the OAuth provider ${grant.providerKey} is not registered any more`)
      const { sealedSecret } = provider
      const name = nameOf(developerId, grant)
      const known = cache.get(name)
      if (known?.sealedSecret === sealedSecret && known.token.expiresAt - spareMs > now()) return known.token
      const call = `${name} ${sealedSecret}`
      const running = underWay.get(call) ?? refresh(deps, provider, grant.refreshToken, now).catch(refused)
      underWay.set(call, running)
      try {
        const token = await running
        cache.set(name, { token, sealedSecret })
        if (token.rotated !== null) {
          const rotated = nameOf(developerId, { ...grant, refreshToken: token.rotated })
          cache.set(rotated, { token: { ...token, rotated: null }, sealedSecret })
        }
        return token
      } finally {
        underWay.delete(call)
      }
    },
    /** The server refused it: ask for a new one next time. */
    forget: (developerId: string, grant: Grant) => void cache.delete(nameOf(developerId, grant)),
  }
}

async function refresh(
  deps: Deps,
  { developerId, consumerKey, type, sealedSecret }: OAuthProviderRecord,
  refreshToken: string,
  now: () => number,
): Promise<AccessToken> {
  const secret = deps.sealer.open(sealedSecret, `${developerId}:${consumerKey}`)
  const endpoints = endpointsOf(type, deps.config)
  const server: AuthorizationServer = { issuer: endpoints.issuer, token_endpoint: endpoints.token }
  const client = { client_id: consumerKey }
  const options = { [customFetch]: fetchOver(deps), [allowInsecureRequests]: deps.config.MAILROOM_ALLOW_PRIVATE }
  const response = await refreshTokenGrantRequest(server, client, ClientSecretPost(secret), refreshToken, options)
  const answer = await processRefreshTokenResponse(server, client, response)
  const life = answer.expires_in === undefined ? fallbackLifeMs : answer.expires_in * 1000
  const rotated =
    answer.refresh_token !== undefined && answer.refresh_token !== refreshToken ? answer.refresh_token : null
  return { accessToken: answer.access_token, expiresAt: now() + life, rotated }
}

function refused(error: unknown): never {
  if (error instanceof ResponseBodyError) {
    const text = `the OAuth provider says ${error.error}${error.error_description === undefined ? '' : `: ${error.error_description}`}`
    if (error.error === 'invalid_grant') throw new AppError('consent_lost', text, { cause: error })
    if (error.status < 500) throw new AppError('permission', text, { cause: error })
  }
  if (error instanceof AppError && error.fault === 'us') throw error
  if (error instanceof AppError && error.code === 'permission') throw error
  throw new AppError('auth_unavailable', 'the OAuth provider does not answer as it should', { cause: error })
}

/** The library's fetch over our one HTTP client: same guard, same deadline. */
function fetchOver({ http, config }: Deps) {
  return async (url: string, init: { readonly body?: unknown }): Promise<Response> => {
    const form = Object.fromEntries(new URLSearchParams(String(init.body)))
    const answer = await http.postForm(url, form, {
      timeoutMs: config.MAILROOM_OAUTH_TIMEOUT,
      allowPrivate: config.MAILROOM_ALLOW_PRIVATE,
      maxResponseBytes: answerMax,
    })
    return new Response(answer.body, {
      status: answer.status,
      headers: { 'content-type': answer.headers['content-type'] ?? 'application/json' },
    })
  }
}
