/**
 * Sign-in of an end user at an OAuth provider: the authorization-code flow (RFC 6749 section 4.1) with PKCE (RFC 7636,
 * S256). The state is bound to the connect token and the browser, and is valid once, for 15 minutes. It is kept in
 * memory: after a restart, a user at the provider begins again. An ID token comes from the token endpoint itself, so
 * its claims are checked and not its signature (OpenID Connect Core section 3.1.3.7).
 */
import { LRUCache } from 'lru-cache'
import {
  AuthorizationResponseError,
  authorizationCodeGrantRequest,
  calculatePKCECodeChallenge,
  ClientSecretPost,
  generateRandomCodeVerifier,
  generateRandomNonce,
  generateRandomState,
  getValidatedIdTokenClaims,
  processAuthorizationCodeResponse,
  ResponseBodyError,
  type TokenEndpointResponse,
  validateAuthResponse,
} from 'oauth4webapi'
import { isAppError } from '../errors.ts'
import { own } from '../own-property.ts'
import { sameText, type Sealer } from '../secrets/seal.ts'
import type { Store } from '../store/port.ts'
import type { OAuthProviderRecord } from '../store/records.ts'
import { issuing, issuingOf, type OAuthServer, type OAuthServers } from './providers.ts'
import { busyAnswer, isAccessToken, type Tokens, wordsOf } from './tokens.ts'

/** Reason of a failed sign-in, for the page that tells the end user the next step. */
export type ConsentReason =
  /** The end user refused. */
  | 'denied'
  /** Access was granted, but not to the mail. */
  | 'scope_missing'
  | 'no_refresh_token'
  /** The provider is away or out of order: the end user tries again later. */
  | 'provider_down'
  /** The provider refuses the application or its request: the end user cannot correct it. */
  | 'provider_refuses'
  /** The response does not belong to the request: another issuer, nonce or ID token. */
  | 'answer_wrong'
  | 'not_registered'
  | 'state_unknown'
  | 'state_expired'
  | 'state_used'
  | 'other_browser'

export class ConsentError extends Error {
  readonly reason: ConsentReason
  constructor(reason: ConsentReason, message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}

export interface ConsentWish {
  readonly developerId: string
  /** Consumer key of a registered provider. */
  readonly providerKey: string
  /** The URL that the provider sends the browser back to. */
  readonly redirectUri: string
  /** The end user's address, if it is known. */
  readonly loginHint: string | null
  readonly connectToken: string
  /** The login that the tokens are for: server, port, TLS and username, in one text. */
  readonly destination: string
  /** This browser's secret, from a cookie. */
  readonly browser: string
}

export interface ConsentAnswer {
  /** The URL of the called page, without its query. */
  readonly redirectUri: string
  readonly parameters: URLSearchParams
  /** null = the browser has no cookie. */
  readonly browser: string | null
}

export type Consents = ReturnType<typeof createConsent>
export type Consent = Awaited<ReturnType<Consents['finish']>>

interface Deps {
  readonly store: Pick<Store, 'providers'>
  readonly sealer: Sealer
  readonly servers: OAuthServers
  readonly tokens: Pick<Tokens, 'keep'>
  readonly now?: () => number
}

interface Begun {
  readonly wish: ConsentWish
  used: boolean
  readonly expiresAt: number
  readonly verifier: string
  readonly nonce: string
}

const lifeMs = 15 * 60_000
/** For this time a response with a used or expired state gets the exact reason. */
const rememberedMs = 3_600_000
const statesAtMost = 20_000

export function createConsent(deps: Deps) {
  const now = deps.now ?? Date.now
  const begun = new LRUCache<string, Begun>({ maxSize: statesAtMost, sizeCalculation: () => 1, ttl: rememberedMs })

  /** Marks the state as used, whatever the outcome, except for another browser. */
  function take(state: string, { redirectUri, browser }: ConsentAnswer): Begun {
    const kept = begun.get(state)
    if (kept?.wish.redirectUri !== redirectUri)
      throw new ConsentError('state_unknown', 'state: no such sign-in was begun here')
    if (browser === null || !sameText(kept.wish.browser, browser))
      throw new ConsentError('other_browser', 'state: the sign-in was begun in another browser')
    if (kept.used) throw new ConsentError('state_used', 'state: it has been used')
    kept.used = true
    if (now() >= kept.expiresAt) throw new ConsentError('state_expired', 'state: it was begun too long ago')
    return kept
  }

  return {
    /** The connect token of a sign-in that was begun here; null = there is none. */
    tokenOf: (state: string): string | null => begun.get(state)?.wish.connectToken ?? null,

    /** The URL to send the browser to. Rejects with ConsentError `not_registered` or `provider_down`. */
    async begin(wish: ConsentWish): Promise<{ readonly url: string; readonly state: string }> {
      const { server, settings } = await serverOf(deps, await providerOf(deps, wish))
      const [verifier, nonce] = [generateRandomCodeVerifier(), generateRandomNonce()]
      // The token routes the browser back to the node that holds the sign-in.
      const state = `${generateRandomState()}.${wish.connectToken}`
      const url = new URL(server.authorization_endpoint ?? '')
      const fields = {
        ...Object.fromEntries(settings.params),
        response_type: 'code',
        client_id: wish.providerKey,
        redirect_uri: wish.redirectUri,
        scope: settings.scope,
        state,
        ...(asksForOpenId(settings.scope) ? { nonce } : {}),
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(wish.loginHint === null ? {} : { login_hint: wish.loginHint }),
      }
      for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
      // The URL has the address: the typed text is not kept.
      const asked = { ...wish, loginHint: null }
      begun.set(state, { wish: asked, used: false, verifier, nonce, expiresAt: now() + lifeMs })
      return { url: url.href, state }
    },

    /**
     * Exchanges the provider's response for tokens. The caller sends them to the login `destination` only. `email`: the
     * end user's in the ID token; null = none. Rejects with ConsentError, or with an error of the store.
     */
    async finish(answer: ConsentAnswer) {
      const { parameters } = answer
      const state = parameters.get('state') ?? ''
      const taken = take(state, answer)
      const { connectToken, destination, providerKey } = taken.wish
      const provider = await providerOf(deps, taken.wish)
      const found = await serverOf(deps, provider)
      const granted = await exchange(deps, provider, found, taken, parameters, state).catch(refuse)
      const refreshToken = checked(granted, found.settings.scope)
      deps.tokens.keep(provider, granted, refreshToken)
      return { connectToken, destination, providerKey, refreshToken, email: addressIn(granted) }
    },
  }
}

async function providerOf({ store }: Deps, { developerId, providerKey }: ConsentWish) {
  const provider = await store.providers.get(developerId, providerKey)
  if (provider !== null) return provider
  throw new ConsentError('not_registered', `the OAuth provider ${providerKey} is not registered`)
}

async function serverOf({ servers }: Deps, { type }: OAuthProviderRecord): Promise<OAuthServer> {
  try {
    return await servers.of(type)
  } catch (error) {
    throw new ConsentError('provider_down', 'the OAuth provider does not tell its endpoints', error)
  }
}

function asksForOpenId(scope: string): boolean {
  return scope.split(' ').includes('openid')
}

async function exchange(
  { sealer, servers }: Deps,
  { developerId, consumerKey, sealedSecret }: OAuthProviderRecord,
  { server, settings }: OAuthServer,
  { verifier, nonce, wish }: Begun,
  parameters: URLSearchParams,
  state: string,
): Promise<TokenEndpointResponse> {
  const client = { client_id: consumerKey }
  const code = validateAuthResponse(issuing(server, parameters.get('iss')), client, parameters, state)
  const auth = ClientSecretPost(sealer.open(sealedSecret, `${developerId}:${consumerKey}`))
  const { redirectUri } = wish
  const { options } = servers
  const response = await authorizationCodeGrantRequest(server, client, auth, code, redirectUri, verifier, options)
  const expected = asksForOpenId(settings.scope) ? { expectedNonce: nonce, requireIdToken: true } : {}
  return processAuthorizationCodeResponse(await issuingOf(server, response), client, response, expected)
}

/** RFC 6749 sections 4.1.2.1 and 5.2. A refused code was used before or is too old. */
const refusals: Readonly<Record<string, ConsentReason>> = {
  access_denied: 'denied',
  invalid_grant: 'state_expired',
  server_error: 'provider_down',
  temporarily_unavailable: 'provider_down',
}

function refuse(error: unknown): never {
  const fail = (reason: ConsentReason, words: string): never => {
    throw new ConsentError(reason, words, error)
  }
  if (isAppError(error) && error.fault === 'us') throw error
  if (isAppError(error)) return fail('provider_down', `the OAuth provider does not answer: ${error.message}`)
  const busy = busyAnswer(error)
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
    const reason = busy === null ? own(refusals, error.error) : 'provider_down'
    return fail(reason ?? 'provider_refuses', wordsOf(error))
  }
  if (busy !== null) return fail('provider_down', `the OAuth provider answers with status ${busy.status}`)
  return fail('answer_wrong', 'the OAuth provider does not answer as it should')
}

/** Scopes that IMAP does not need, and that a provider may leave out of its response. */
const besides = new Set(['openid', 'email', 'profile', 'offline_access'])

/** The refresh token, if the response grants access. Without a scope in it, `asked` is granted (section 5.1). */
function checked({ scope, access_token, refresh_token: token }: TokenEndpointResponse, asked: string): string {
  if (!isAccessToken(access_token))
    throw new ConsentError('answer_wrong', 'the access token has characters that none may have')
  const given = (scope ?? asked).toLowerCase().split(' ')
  const missing = asked.split(' ').filter((name) => !besides.has(name) && !given.includes(name.toLowerCase()))
  if (missing.length > 0) throw new ConsentError('scope_missing', `access was not granted: ${missing.join(' ')}`)
  if (token === undefined) throw new ConsentError('no_refresh_token', 'the OAuth provider gave no refresh token')
  return token
}

function addressIn(answer: TokenEndpointResponse): string | null {
  const claims = getValidatedIdTokenClaims(answer)
  const names = [claims?.['email'], claims?.['preferred_username']]
  return names.find((name): name is string => typeof name === 'string' && name.includes('@')) ?? null
}
