/** The texts of OAuth 1.0a (RFC 5849 section 3): Authorization header, parameters, base string, signature. Pure functions. */
import { createHmac } from 'node:crypto'
import { decodePercent, percentEncode, type Pair } from './wire.ts'

export type SignatureMethod = 'HMAC-SHA1' | 'HMAC-SHA256' | 'PLAINTEXT'

const hashes = { 'HMAC-SHA1': 'sha1', 'HMAC-SHA256': 'sha256' } as const

export function isSignatureMethod(text: string): text is SignatureMethod {
  return text === 'PLAINTEXT' || Object.hasOwn(hashes, text)
}

/** What the reader needs of a text. A string is one; whoever counts the work gives another. */
export interface Characters {
  readonly length: number
  charCodeAt(index: number): number
  slice(from: number, to: number): string
}

const scheme = 'OAuth'
const quote = 0x22
const comma = 0x2c
const equals = 0x3d
const isSpace = (code: number): boolean => code === 0x20 || code === 0x09
const isQuoted = (code: number): boolean => code !== quote
const isBare = (code: number): boolean => !isSpace(code) && code !== quote && code !== comma
const isName = (code: number): boolean => isBare(code) && code !== equals

/**
 * The parameters of `OAuth a="1", b="2"`, decoded, without realm; null when the text is not of that form. Never goes back: each
 * character costs the same few steps, whatever comes.
 */
export function parseOAuthHeader(header: Characters): Pair[] | null {
  const pairs: Pair[] = []
  let at = past(header, scheme.length, isSpace)
  // A comma may end the list.
  while (at < header.length) {
    const nameEnd = past(header, at, isName)
    const sign = past(header, nameEnd, isSpace)
    if (nameEnd === at || header.charCodeAt(sign) !== equals) return null
    const from = past(header, sign + 1, isSpace)
    const quoted = header.charCodeAt(from) === quote
    const start = quoted ? from + 1 : from
    const end = past(header, start, quoted ? isQuoted : isBare)
    if (quoted && end === header.length) return null
    const next = past(header, quoted ? end + 1 : end, isSpace)
    if (next < header.length && header.charCodeAt(next) !== comma) return null
    const name = decodePercent(header.slice(at, nameEnd))
    const value = decodePercent(header.slice(start, end))
    if (name === null || value === null) return null
    if (name.toLowerCase() !== 'realm') pairs.push([name, value])
    at = past(header, next + 1, isSpace)
  }
  return pairs
}

/** The first place from `at` on that does not fit. */
function past(text: Characters, at: number, fits: (code: number) => boolean): number {
  let index = at
  while (index < text.length && fits(text.charCodeAt(index))) index += 1
  return index
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
