/**
 * Access tokens for IMAP (XOAUTH2) from refresh tokens (RFC 6749 section 6), kept until shortly before they expire.
 * Errors: `consent_lost` (invalid_grant: the end user revoked it), `permission` (the provider refuses this client or
 * scope), `auth_unavailable` (no usable response now: network, 5xx, a rate limit, nonsense).
 */
import { LRUCache } from 'lru-cache'
import {
  ClientSecretPost,
  ResponseBodyError,
  processRefreshTokenResponse,
  refreshTokenGrantRequest,
  type TokenEndpointResponse,
} from 'oauth4webapi'
import { AppError } from '../errors.ts'
import { retryAfterOf } from '../net/http.ts'
import type { Sealer } from '../secrets/seal.ts'
import type { Store } from '../store/port.ts'
import type { OAuthProviderRecord } from '../store/records.ts'
import { issuingOf, type OAuthServers } from './providers.ts'

export interface Grant {
  readonly refreshToken: string
  readonly providerKey: string
}

export type Tokens = ReturnType<typeof createTokens>

/** The access token of a refresh token and of all refresh tokens that replaced it. */
type Kept = ReturnType<typeof keptFrom>

interface Deps {
  readonly store: Pick<Store, 'providers'>
  readonly sealer: Sealer
  readonly servers: OAuthServers
  readonly now?: () => number
}

const spareMs = 6 * 60_000
/** The same for a token with a short life: a share of its life. */
const spareShare = 1 / 4
const fallbackLifeMs = 3_600_000

export function createTokens(deps: Deps) {
  const { store, now = Date.now } = deps
  const cache = new LRUCache<string, Kept>({ maxSize: 20_000, sizeCalculation: () => 1 })
  const underWay = new Map<string, Promise<Kept>>()
  const nameOf = (developerId: string, { providerKey, refreshToken }: Grant): string =>
    JSON.stringify([developerId, providerKey, refreshToken])

  function keep(developerId: string, grant: Grant, kept: Kept): void {
    cache.set(nameOf(developerId, grant), kept)
    cache.set(nameOf(developerId, { ...grant, refreshToken: kept.refreshToken }), kept)
  }

  /** The entry of the newest refresh token. Providers take the use of a replaced one for a theft and revoke all. */
  function newest(developerId: string, grant: Grant): Kept | undefined {
    const known = cache.get(nameOf(developerId, grant))
    if (known === undefined || known.refreshToken === grant.refreshToken) return known
    return newest(developerId, { ...grant, refreshToken: known.refreshToken }) ?? known
  }

  return {
    /** Tokens are kept by developer, provider and refresh token, so that no developer gets another's access token. */
    async get(developerId: string, grant: Grant) {
      const provider = await store.providers.get(developerId, grant.providerKey)
      if (provider === null)
        throw new AppError('permission', `the OAuth provider ${grant.providerKey} is not registered any more`)
      const { sealedSecret } = provider
      const known = newest(developerId, grant)
      if (known?.sealedSecret === sealedSecret && now() < known.renewAt) return tokenOf(known, grant)
      const refreshToken = known?.refreshToken ?? grant.refreshToken
      const call = JSON.stringify([developerId, grant.providerKey, refreshToken, sealedSecret])
      const refuse = (error: unknown): never => refused(error, now())
      const running = underWay.get(call) ?? refresh(deps, provider, refreshToken, now).catch(refuse)
      underWay.set(call, running)
      try {
        const kept = await running
        keep(developerId, { ...grant, refreshToken }, kept)
        keep(developerId, grant, kept)
        return tokenOf(kept, grant)
      } finally {
        underWay.delete(call)
      }
    },
    /** Keeps the access token of a sign-in, which is used before the refresh token. */
    keep(provider: OAuthProviderRecord, answer: TokenEndpointResponse, refreshToken: string): void {
      const { developerId, consumerKey: providerKey } = provider
      keep(developerId, { providerKey, refreshToken }, keptFrom(provider, answer, refreshToken, now))
    },
    /** The IMAP server refused the access token: the next `get` asks for a new token. */
    forget(developerId: string, grant: Grant): void {
      const known = newest(developerId, grant)
      if (known !== undefined) keep(developerId, grant, { ...known, renewAt: 0 })
    },
  }
}

/** RFC 6749 appendix A.12: visible ASCII and spaces. A line break or a ^A would end the token in the SASL response. */
export function isAccessToken(token: string): boolean {
  return /^[\x20-\x7e]+$/.test(token)
}

function tokenOf({ accessToken, renewAt, refreshToken }: Kept, grant: Grant) {
  /** `rotated`: the new refresh token, to be stored; null = the given refresh token is still the newest. */
  return { accessToken, renewAt, rotated: refreshToken === grant.refreshToken ? null : refreshToken }
}

function keptFrom(
  { sealedSecret }: OAuthProviderRecord,
  answer: TokenEndpointResponse,
  refreshToken: string,
  now: () => number,
) {
  if (!isAccessToken(answer.access_token)) throw new Error('the access token has characters that none may have')
  const lifeMs = answer.expires_in === undefined ? fallbackLifeMs : answer.expires_in * 1000
  /** When to ask for a new token and renew the session, some time before the token expires. In ms since 1970. */
  const renewAt = now() + lifeMs - Math.min(spareMs, lifeMs * spareShare)
  // `sealedSecret` is the provider's at the request: after a change of the provider the token is not used.
  return { accessToken: answer.access_token, renewAt, refreshToken, sealedSecret }
}

async function refresh(
  { sealer, servers }: Deps,
  provider: OAuthProviderRecord,
  refreshToken: string,
  now: () => number,
): Promise<Kept> {
  const { developerId, consumerKey, type, sealedSecret } = provider
  const secret = sealer.open(sealedSecret, `${developerId}:${consumerKey}`)
  const { server } = await servers.of(type)
  const client = { client_id: consumerKey }
  const auth = ClientSecretPost(secret)
  const response = await refreshTokenGrantRequest(server, client, auth, refreshToken, servers.options)
  const answer = await processRefreshTokenResponse(await issuingOf(server, response), client, response)
  return keptFrom(provider, answer, answer.refresh_token ?? refreshToken, now)
}

type ErrorAnswer = Pick<ResponseBodyError, 'error' | 'error_description'>

export function wordsOf({ error, error_description: why }: ErrorAnswer): string {
  return `the OAuth provider says ${error}${why === undefined ? '' : `: ${why}`}`
}

/** Passing errors (RFC 6749 section 4.1.2.1, RFC 8628 section 3.5): they do not concern the grant or the client. */
const passing = new Set(['temporarily_unavailable', 'server_error', 'slow_down'])

/** The response of a provider that is busy or failing for now; null = another error. */
export function busyAnswer(error: unknown): Response | null {
  const answer = error instanceof ResponseBodyError ? error.response : error instanceof Error ? error.cause : null
  if (!(answer instanceof Response)) return null
  const isPassing = error instanceof ResponseBodyError && passing.has(error.error)
  return isPassing || answer.status === 429 || answer.status >= 500 ? answer : null
}

const longestWaitMs = 24 * 3_600_000

function refused(error: unknown, now: number): never {
  const busy = busyAnswer(error)
  if (busy === null && error instanceof ResponseBodyError) {
    const text = wordsOf(error)
    if (error.error === 'invalid_grant') {
      throw new AppError('consent_lost', `consent lost, the end user has to sign in again: ${text}`, { cause: error })
    }
    throw new AppError('permission', text, { cause: error })
  }
  if (error instanceof AppError && (error.fault === 'us' || error.code === 'permission')) throw error
  const wait = retryAfterOf(busy?.headers.get('retry-after'), now, longestWaitMs)
  const words = error instanceof ResponseBodyError ? wordsOf(error) : 'the OAuth provider does not answer as it should'
  throw new AppError('auth_unavailable', words, { cause: error, ...(wait === null ? {} : { retryAfterMs: wait }) })
}
