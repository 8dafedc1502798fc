/**
 * Signatures of callbacks, two kinds beside each other:
 * - in the body, as the original service had it: `signature` = hex HMAC-SHA256, key = the developer's API secret, of the
 *   timestamp's text immediately followed by the token;
 * - in the headers, Standard Webhooks: webhook-id, webhook-timestamp, and webhook-signature with one `v1,<base64>` per valid key
 *   over `id.timestamp.body`: first the webhook's own secrets (`whsec_…`; after a rotation the old one too), last the developer's
 *   API secret as UTF-8 bytes (a verifier takes it as `whsec_` + base64 of the secret). A failure notification is signed like its
 *   webhook's callbacks; status and sync callbacks have no webhook: they carry the developer's signature alone.
 */
import { createHmac, randomBytes } from 'node:crypto'

export interface BodySignature {
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly token: string
  readonly signature: string
}

export function bodySignature(apiSecret: string, now: number): BodySignature {
  const timestamp = Math.floor(now / 1000)
  const token = randomBytes(16).toString('hex')
  const signature = createHmac('sha256', apiSecret).update(`${timestamp}${token}`).digest('hex')
  return { timestamp, token, signature }
}

export interface SigningKeys {
  readonly apiSecret: string
  /** `whsec_…`, newest first. */
  readonly webhookSecrets: readonly string[]
}

export function signatureHeaders(
  keys: SigningKeys,
  id: string,
  timestamp: number,
  body: Uint8Array,
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const all = [...keys.webhookSecrets.map(keyBytes), Buffer.from(keys.apiSecret, 'utf8')]
  const begin = `${id}.${timestamp}.`
  const signatures = all.map((key) => `v1,${createHmac('sha256', key).update(begin).update(body).digest('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') }
}

function keyBytes(secret: string): Buffer {
  return Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
}
