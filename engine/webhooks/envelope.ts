/**
 * The body of a callback as bytes: envelope, signature, and the size cap. What is too large is thinned step by step: body contents
 * first, then headers, person_info, and at last the long lists; the message itself stays one request away (resource_url).
 */
import type { OutboxRecord } from '../store/records.ts'
import { type BodySignature, type SigningKeys, bodySignature, signatureHeaders } from './sign.ts'

/** What a callback says besides its signature. */
export type Body = Readonly<Record<string, unknown>>

export interface SignedCallback {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const userAgent = 'Mailroom (+webhook)'

export function signCallback(
  row: Pick<OutboxRecord, 'id'>,
  body: Body,
  keys: SigningKeys,
  options: { readonly now: number; readonly maxBytes: number },
): SignedCallback {
  const signature = bodySignature(keys.apiSecret, options.now)
  const text = serialize(body, signature, options.maxBytes)
  return {
    headers: { 'user-agent': userAgent, ...signatureHeaders(keys, row.id, signature.timestamp, text) },
    body: text,
  }
}

function serialize(body: Body, signature: BodySignature, maxBytes: number): string {
  let text = JSON.stringify({ ...body, ...signature })
  const data = body['message_data']
  if (!isMap(data)) return text
  let thinned: Body = data
  for (const thin of thinnings) {
    if (Buffer.byteLength(text) <= maxBytes) break
    thinned = { ...thin(thinned), truncated: true }
    text = JSON.stringify({ ...body, message_data: thinned, ...signature })
  }
  return text
}

function isMap(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const without = (data: Body, key: string): Body =>
  Object.fromEntries(Object.entries(data).filter(([name]) => name !== key))
const keptOfLists = 50

const thinnings: readonly ((data: Body) => Body)[] = [
  (data) => ({ ...data, bodies: contentless(data['bodies']) }),
  (data) => without(data, 'headers'),
  (data) => ({ ...data, person_info: [] }),
  (data) =>
    Object.fromEntries(
      Object.entries(data).map(([name, value]) => [
        name,
        name === 'addresses' && isMap(value) ? shortened(value) : cut(value),
      ]),
    ),
]

function contentless(bodies: unknown): unknown[] {
  const list: readonly unknown[] = Array.isArray(bodies) ? bodies : []
  return list.map((one) => (isMap(one) ? without(one, 'content') : one))
}

function shortened(addresses: Body): Body {
  return Object.fromEntries(Object.entries(addresses).map(([field, list]) => [field, cut(list)]))
}

function cut(value: unknown): unknown {
  return Array.isArray(value) ? (value as readonly unknown[]).slice(0, keptOfLists) : value
}
