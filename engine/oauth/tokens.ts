/**
 * Access tokens for IMAP (XOAUTH2) from refresh tokens (RFC 6749 section 6), kept until shortly before they expire.
 * Errors: `consent_lost` (invalid_grant: the end user revoked it), `permission` (the provider refuses this client or scope),
 * `auth_unavailable` (the endpoint cannot say now: network, 5xx, nonsense).
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
import { endpointsOf } from './providers.ts'

export interface AccessToken {
  readonly accessToken: string
  /** ms since 1970. */
  readonly expiresAt: number
  /** The provider gave a new refresh token: the old one may end; store this one. */
  readonly rotated: string | null
}

export interface Tokens {
  get(
    developerId: string,
    credential: { readonly refreshToken: string; readonly providerKey: string },
  ): Promise<AccessToken>
  /** The server refused it: ask for a new one next time. */
  forget(refreshToken: string): void
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

export function createTokens(deps: Deps): Tokens {
  const now = deps.now ?? Date.now
  const cache = new LRUCache<string, AccessToken>({ max: 20_000 })
  const underWay = new Map<string, Promise<AccessToken>>()

  async function refresh(developerId: string, refreshToken: string, providerKey: string): Promise<AccessToken> {
    const provider = await deps.store.providers.get(developerId, providerKey)
    if (provider === null)
      throw new AppError('permission', `the OAuth provider ${providerKey} is not registered any more`)
    const secret = deps.sealer.open(provider.sealedSecret, `${developerId}:${providerKey}`)
    const endpoints = endpointsOf(provider.type, deps.config)
    const server: AuthorizationServer = { issuer: endpoints.issuer, token_endpoint: endpoints.token }
    const client = { client_id: providerKey }
    const options = { [customFetch]: fetchOver(deps), [allowInsecureRequests]: deps.config.MAILROOM_ALLOW_PRIVATE }
    const response = await refreshTokenGrantRequest(server, client, ClientSecretPost(secret), refreshToken, options)
    const answer = await processRefreshTokenResponse(server, client, response)
    const life = answer.expires_in === undefined ? fallbackLifeMs : answer.expires_in * 1000
    const rotated =
      answer.refresh_token !== undefined && answer.refresh_token !== refreshToken ? answer.refresh_token : null
    return { accessToken: answer.access_token, expiresAt: now() + life, rotated }
  }

  return {
    async get(developerId, { refreshToken, providerKey }) {
      const known = cache.get(refreshToken)
      if (known !== undefined && known.expiresAt - spareMs > now()) return known
      const running = underWay.get(refreshToken) ?? refresh(developerId, refreshToken, providerKey).catch(refused)
      underWay.set(refreshToken, running)
      try {
        const token = await running
        cache.set(refreshToken, token)
        if (token.rotated !== null) cache.set(token.rotated, { ...token, rotated: null })
        return token
      } finally {
        underWay.delete(refreshToken)
      }
    },
    forget: (refreshToken) => void cache.delete(refreshToken),
  }
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
