/**
 * Verifies two-legged OAuth 1.0a (RFC 5849). Every error is a 401; a wrong signature's error text has the computed base
 * string, so that the client's author can compare it.
 */
import { createHash, createHmac, type Hash } from 'node:crypto'
import { AppError, type Authenticated, type NonceStore, sameText, secretsOf } from '../engine/index.ts'
import { decodePercent, type Pair, percentEncode } from './wire.ts'

export interface SignedCall {
  readonly method: string
  /** Scheme, host and prefix as the client used them. */
  readonly baseUrl: string
  /** Exactly as on the wire. */
  readonly path: string
  /** The Authorization header if its scheme is OAuth, else null. */
  readonly header: string | null
  readonly query: readonly Pair[]
  /** Reads the body to its end and hashes it. Called after the key is verified: the body may be large. */
  readonly hashBody: (found: Authenticated, hash: Hash) => Promise<void>
  /** Pairs of an application/x-www-form-urlencoded body; empty for any other body. */
  readonly form: readonly Pair[]
}

/** Runs one try of a key; see Tries. */
export type TryKey = <T>(key: string, check: () => Promise<T>) => Promise<T>

export type OAuthVerifier = ReturnType<typeof createOAuthVerifier>

interface Deps {
  readonly authenticate: (apiKey: string) => Promise<Authenticated | null>
  readonly nonces: NonceStore
  readonly windowMs: number
  readonly nonceTtlMs: number
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The protocol parameters, from the header, the query or a form. */
type Claim = ReturnType<typeof readClaim>

type Stamp = NonNullable<Claim['stamp']>

const protocolName = /^oauth_(?:consumer_key|signature(?:_method)?|timestamp|nonce|version|token|body_hash)$/

/** A longer nonce is an attempt to fill the store. */
const longestNonce = 512

export function isSigned(call: Pick<SignedCall, 'header' | 'query' | 'form'>): boolean {
  const carries = ([name]: Pair): boolean => name === 'oauth_consumer_key' || name === 'oauth_signature'
  return call.header !== null || call.query.some(carries) || call.form.some(carries)
}

export function createOAuthVerifier(deps: Deps) {
  return {
    /** Returns the signer. Rejects with `unauthorized`, `bad_signature` (details.baseString), or as `tryKey` does. */
    async verify(call: SignedCall, tryKey: TryKey): Promise<Authenticated> {
      const pairs = allPairs(call)
      const claim = readClaim(pairs)
      if (claim.stamp !== null) checkTime(claim.stamp, deps)
      const found = await tryKey(claim.key, async () => {
        const developer = await deps.authenticate(claim.key)
        if (developer === null) throw refused('oauth_consumer_key', 'is unknown')
        checkSignature(call, pairs, claim, secretsOf(developer, deps.now()))
        return developer
      })
      if (claim.bodyHash !== null) await checkBodyHash(call, found, claim.bodyHash)
      if (claim.stamp !== null) await checkNonce(claim.key, claim.stamp, deps)
      return found
    },
  }
}

function allPairs(call: SignedCall): Pair[] {
  const carried = call.header === null ? [] : parseOAuthHeader(call.header)
  if (carried === null) throw refused('Authorization', 'is not a well-formed OAuth header')
  return [...carried, ...call.query, ...call.form]
}

function readClaim(pairs: readonly Pair[]) {
  const values = new Map<string, string>()
  for (const [name, value] of pairs) {
    if (!protocolName.test(name)) continue
    if (values.has(name)) throw refused(name, 'is given more than once')
    values.set(name, value)
  }
  const required = (name: `oauth_${string}`): string => {
    const value = values.get(name) ?? ''
    if (value === '') throw refused(name, 'is required')
    return value
  }
  if ((values.get('oauth_version') ?? '1.0') !== '1.0') throw refused('oauth_version', 'must be 1.0')
  if ((values.get('oauth_token') ?? '') !== '') throw refused('oauth_token', 'must be empty: calls are two-legged')
  const method = required('oauth_signature_method')
  if (!isSignatureMethod(method)) throw refused('oauth_signature_method', 'must be HMAC-SHA1, HMAC-SHA256 or PLAINTEXT')
  return {
    key: required('oauth_consumer_key'),
    method,
    signature: required('oauth_signature'),
    bodyHash: values.get('oauth_body_hash') ?? null,
    /** null = no timestamp and nonce, which PLAINTEXT may omit (RFC 5849 section 3.1). */
    stamp:
      method === 'PLAINTEXT' && !values.has('oauth_timestamp') && !values.has('oauth_nonce')
        ? null
        : { timestamp: required('oauth_timestamp'), nonce: required('oauth_nonce') },
  }
}

function checkTime(stamp: Stamp, deps: Deps): void {
  if (!/^\d{1,12}$/.test(stamp.timestamp)) throw refused('oauth_timestamp', 'must be a Unix timestamp in seconds')
  const offMs = Math.abs(Number(stamp.timestamp) * 1000 - deps.now())
  if (offMs <= deps.windowMs) return
  const clock = Math.floor(deps.now() / 1000)
  throw refused('oauth_timestamp', `is ${Math.round(offMs / 1000)} s away from the server's clock, which says ${clock}`)
}

function checkSignature(call: SignedCall, pairs: readonly Pair[], claim: Claim, secrets: readonly string[]): void {
  const { method } = claim
  if (method === 'PLAINTEXT' && !/^https:/i.test(call.baseUrl))
    throw refused('oauth_signature_method', 'PLAINTEXT is accepted over https only')
  const base = baseString(call.method, baseUri(call.baseUrl, call.path), pairs)
  const isRight = (text: string): boolean =>
    secrets.some((secret) => sameText(signatureOf(method, secret, text), claim.signature))
  // Some clients do not normalize host and port as section 3.4.1.2 demands.
  if (isRight(base) || isRight(baseString(call.method, `${call.baseUrl}${call.path}`, pairs))) return
  if (method === 'PLAINTEXT') throw new AppError('bad_signature', 'oauth_signature is invalid')
  throw new AppError('bad_signature', `oauth_signature is invalid; the server computed this base string: ${base}`, {
    details: { baseString: base },
  })
}

/**
 * The extension for bodies that a signature does not cover (draft-eaton-oauth-bodyhash). Clients use SHA-1 or the hash
 * of the signature method: the length of the value shows which.
 */
async function checkBodyHash(call: SignedCall, found: Authenticated, given: string): Promise<void> {
  const algorithm = Buffer.from(given, 'base64').length === 32 ? 'sha256' : 'sha1'
  const hash = createHash(algorithm)
  await call.hashBody(found, hash)
  if (!sameText(hash.digest('base64'), given))
    throw refused('oauth_body_hash', `is not the ${algorithm} of the body that came`)
}

/** Called after the signature check: only the owner of the key may use up nonces. */
async function checkNonce(key: string, stamp: Stamp, deps: Deps): Promise<void> {
  if (stamp.nonce.length > longestNonce) throw refused('oauth_nonce', `is longer than ${longestNonce} characters`)
  const timestamp = Number(stamp.timestamp)
  // Not earlier than the timestamp stops being acceptable.
  const expiresAt = Math.max(deps.now() + deps.nonceTtlMs, timestamp * 1000 + deps.windowMs + 1000)
  const fresh = await deps.nonces.remember(key, stamp.nonce, timestamp, expiresAt)
  if (!fresh) throw refused('oauth_nonce', 'was used before: sign every call with a new nonce')
}

function refused(parameter: string, problem: string): AppError {
  return new AppError('unauthorized', `${parameter} ${problem}`, { details: { parameter } })
}

type SignatureMethod = 'HMAC-SHA1' | 'HMAC-SHA256' | 'PLAINTEXT'

const hashes = { 'HMAC-SHA1': 'sha1', 'HMAC-SHA256': 'sha256' } as const

function isSignatureMethod(text: string): text is SignatureMethod {
  return text === 'PLAINTEXT' || Object.hasOwn(hashes, text)
}

/** One parameter with its comma. No part can match in two ways, so the time is linear in the length. */
const headerParameter = /([^ \t",=]+)[ \t]*=[ \t]*(?![ \t])(?:"([^"]*)"|([^ \t",]*)(?![^ \t",]))[ \t]*(?:,[ \t]*|$)/y

/** The decoded parameters of `OAuth a="1", b="2"`, without realm; null when the text has another form. */
export function parseOAuthHeader(header: string): Pair[] | null {
  const list = header.slice('OAuth'.length).replace(/^[ \t]+/, '')
  const pairs: Pair[] = []
  headerParameter.lastIndex = 0
  while (headerParameter.lastIndex < list.length) {
    const found = headerParameter.exec(list)
    if (found === null) return null
    const name = decodePercent(found[1] ?? '')
    const value = decodePercent(found[2] ?? found[3] ?? '')
    if (name === null || value === null) return null
    if (name.toLowerCase() !== 'realm') pairs.push([name, value])
  }
  return pairs
}

/** Section 3.4.1.3.2: encoded, sorted by name and then by value, joined. The signature is left out. */
export function normalizeParameters(pairs: readonly Pair[]): string {
  return pairs
    .filter(([name]) => name !== 'oauth_signature')
    .map(([name, value]) => `${percentEncode(name)} ${percentEncode(value)}`)
    .sort() // A space sorts before every character of an encoded text.
    .map((pair) => pair.replace(' ', '='))
    .join('&')
}

/** Section 3.4.1.1. `uri` is scheme, host, port unless default, and the path as it was on the wire. */
export function baseString(method: string, uri: string, pairs: readonly Pair[]): string {
  return `${method.toUpperCase()}&${percentEncode(uri)}&${percentEncode(normalizeParameters(pairs))}`
}

/** Section 3.4.1.2: scheme and host in lower case, without the scheme's default port; the path is unchanged. */
export function baseUri(baseUrl: string, path: string): string {
  const [, scheme = '', host = '', port, prefix = ''] = /^(https?):\/\/([^/]*?)(?::(\d+))?(\/.*)?$/i.exec(baseUrl) ?? []
  const shown = port === undefined || port === (scheme.toLowerCase() === 'https' ? '443' : '80') ? '' : `:${port}`
  return `${scheme.toLowerCase()}://${host.toLowerCase()}${shown}${prefix}${path}`
}

/** The signature of a client with this secret; the token secret is always empty. */
export function signatureOf(method: SignatureMethod, secret: string, base: string): string {
  const key = `${percentEncode(secret)}&`
  return method === 'PLAINTEXT' ? key : createHmac(hashes[method], key).update(base).digest('base64')
}
