/** The texts of OAuth 1.0a (RFC 5849 section 3): Authorization header, parameters, base string, signature. Pure functions. */
import { createHmac } from 'node:crypto'
import { decodePercent, percentEncode, type Pair } from './wire.ts'

export type SignatureMethod = 'HMAC-SHA1' | 'HMAC-SHA256' | 'PLAINTEXT'

const hashes = { 'HMAC-SHA1': 'sha1', 'HMAC-SHA256': 'sha256' } as const

export function isSignatureMethod(text: string): text is SignatureMethod {
  return text === 'PLAINTEXT' || Object.hasOwn(hashes, text)
}

/** The parameters of `OAuth a="1", b="2"`, decoded, without realm; null when the text is not of that form. */
export function parseOAuthHeader(header: string): Pair[] | null {
  const text = header.replace(/^OAuth\s*/i, '')
  const piece = /\s*([^\s=,"]+)\s*=\s*(?:"([^"]*)"|([^\s,"]*))\s*(?:,|$)/y
  const pairs: Pair[] = []
  while (piece.lastIndex < text.length) {
    // A comma may end the list.
    if (/^\s*$/.test(text.slice(piece.lastIndex))) break
    const match = piece.exec(text)
    if (match === null) return null
    const name = decodePercent(match[1] ?? '')
    const value = decodePercent(match[2] ?? match[3] ?? '')
    if (name === null || value === null) return null
    if (name.toLowerCase() !== 'realm') pairs.push([name, value])
  }
  return pairs
}

/** Section 3.4.1.3.2: encoded, sorted by name and then by value, joined. The signature is left out. */
export function normalizeParameters(pairs: readonly Pair[]): string {
  return pairs
    .filter(([name]) => name !== 'oauth_signature')
    .map(([name, value]) => [percentEncode(name), percentEncode(value)] as const)
    .sort((a, b) => compare(a[0], b[0]) || compare(a[1], b[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/** By bytes: the texts are ASCII. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Section 3.4.1.1. `uri` is scheme, host, port unless default, and the path as it was on the wire. */
export function baseString(method: string, uri: string, pairs: readonly Pair[]): string {
  return `${method.toUpperCase()}&${percentEncode(uri)}&${percentEncode(normalizeParameters(pairs))}`
}

/** Section 3.4.1.2: scheme and host in lower case, the scheme's own port left out; the path is not touched. */
export function baseUri(baseUrl: string, path: string): string {
  const [, scheme = '', host = '', port, prefix = ''] = /^(https?):\/\/([^/]*?)(?::(\d+))?(\/.*)?$/i.exec(baseUrl) ?? []
  const shown = port === undefined || port === (scheme.toLowerCase() === 'https' ? '443' : '80') ? '' : `:${port}`
  return `${scheme.toLowerCase()}://${host.toLowerCase()}${shown}${prefix}${path}`
}

/** The signature that a client with this secret computes; the token secret is always empty. */
export function signatureOf(method: SignatureMethod, secret: string, base: string): string {
  const key = `${percentEncode(secret)}&`
  return method === 'PLAINTEXT' ? key : createHmac(hashes[method], key).update(base).digest('base64')
}
