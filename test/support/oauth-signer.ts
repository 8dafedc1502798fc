/**
 * An independent OAuth 1.0a signer (oauth-1.0a) in every shape that clients use: three carriers, several spellings of
 * the header, raw and encoded values. It signs from decoded parameters; what goes on the wire is spelled here.
 */
import { createHmac } from 'node:crypto'
import OAuth from 'oauth-1.0a'

export type SignerMethod = 'HMAC-SHA1' | 'HMAC-SHA256' | 'PLAINTEXT'
export type Carrier = 'header' | 'query' | 'form'

export interface SignerOptions {
  readonly key: string
  readonly secret: string
  readonly signatureMethod?: SignerMethod
  readonly carrier?: Carrier
  /** Between the header's parameters; ', ' otherwise. */
  readonly separator?: string
  readonly realm?: string
  /** Sends an empty oauth_token too. */
  readonly emptyToken?: boolean
  /** Unix seconds; now otherwise. */
  readonly timestamp?: number
  readonly nonce?: string
}

export interface Unsigned {
  readonly method: string
  /** Scheme, host and port. */
  readonly baseUrl: string
  /** As it goes on the wire. */
  readonly path: string
  readonly query?: readonly (readonly [string, string])[]
  /** Parameters of a form body. */
  readonly form?: readonly (readonly [string, string])[]
  /** Of a body that is no form, sent beside; this signer signs no query and no form together with it. */
  readonly bodyHash?: string
}

/** What to send: the target, headers, and the form body when there is one. */
export interface Signed {
  readonly target: string
  readonly headers: Record<string, string>
  readonly body: string | null
}

export function sign(call: Unsigned, options: SignerOptions): Signed {
  const { carrier = 'header', signatureMethod = 'HMAC-SHA1' } = options
  const signer = new OAuth({
    consumer: { key: options.key, secret: options.secret },
    signature_method: signatureMethod,
    hash_function: (base, key) => hash(signatureMethod, base, key),
    body_hash_function: () => call.bodyHash ?? '',
    parameter_seperator: options.separator ?? ', ',
    ...(options.realm === undefined ? {} : { realm: options.realm }),
  })
  if (options.timestamp !== undefined) signer.getTimeStamp = () => options.timestamp ?? 0
  if (options.nonce !== undefined) signer.getNonce = () => options.nonce ?? ''
  const parameters = gather([...(call.query ?? []), ...(call.form ?? [])])
  const hashed = call.bodyHash === undefined ? {} : { includeBodyHash: true }
  const request = { url: call.baseUrl + call.path, method: call.method, data: parameters, ...hashed }
  const data = signer.authorize(request, options.emptyToken === true ? { key: '', secret: '' } : undefined)
  // The signer puts the call's own parameters into its answer.
  const protocol = Object.entries(data)
    .filter(([name]) => name.startsWith('oauth_'))
    .map(([name, value]) => [name, String(value)] as const)
  return spell(call, carrier, protocol, signer.toHeader(data).Authorization)
}

function hash(method: SignerMethod, base: string, key: string): string {
  if (method === 'PLAINTEXT') return key
  return createHmac(method === 'HMAC-SHA1' ? 'sha1' : 'sha256', key)
    .update(base)
    .digest('base64')
}

/** Repeated names become arrays, as the signer wants them. */
function gather(pairs: readonly (readonly [string, string])[]): Record<string, string | string[]> {
  const values = new Map<string, string[]>()
  for (const [name, value] of pairs) values.set(name, [...(values.get(name) ?? []), value])
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length === 1 ? (all[0] ?? '') : all]))
}

function spell(
  call: Unsigned,
  carrier: Carrier,
  protocol: readonly (readonly [string, string])[],
  header: string,
): Signed {
  const query = [...(call.query ?? []), ...(carrier === 'query' ? protocol : [])]
  const form = [...(call.form ?? []), ...(carrier === 'form' ? protocol : [])]
  const hasForm = call.form !== undefined || carrier === 'form'
  return {
    target: query.length === 0 ? call.path : `${call.path}?${encodePairs(query, '%20')}`,
    headers: {
      ...(carrier === 'header' ? { authorization: header } : {}),
      ...(hasForm ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
    },
    body: hasForm ? encodePairs(form, '+') : null,
  }
}

/** A space is '%20' or '+', as programs spell it in a query and browsers in a form. */
function encodePairs(pairs: readonly (readonly [string, string])[], space: '%20' | '+'): string {
  const encode = (text: string): string => encodeURIComponent(text).replaceAll('%20', space)
  return pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')
}
