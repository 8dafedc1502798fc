/** A typed client of the API. It signs calls with OAuth 1.0a, and verifies callbacks by Standard Webhooks. */
import { createHash, createHmac } from 'node:crypto'
import OAuth from 'oauth-1.0a'
import createFetchClient, { type Client as FetchClient, type Middleware } from 'openapi-fetch'
import { Webhook } from 'standardwebhooks'
import type { components, paths, webhooks } from './schema.d.ts'

export { WebhookVerificationError } from 'standardwebhooks'
export type { paths }

/** Named objects of the API, such as `Schemas['Message']`. */
export type Schemas = components['schemas']

/** Bodies of callbacks by kind: `message`, `status`, `failure`, `sync`. */
export type Callbacks = {
  [Kind in keyof webhooks]: webhooks[Kind] extends {
    post: { requestBody: { content: { 'application/json': infer Body } } }
  }
    ? Body
    : never
}
export type Callback = Callbacks[keyof Callbacks]

export type Client = FetchClient<paths>

export interface ClientOptions {
  /** URL of the service, such as `https://mail.example.com`. */
  readonly baseUrl: string
  /** The API key. */
  readonly key: string
  /** The API secret, which is never sent. */
  readonly secret: string
}

export function createClient({ baseUrl, key, secret }: ClientOptions): Client {
  const client = createFetchClient<paths>({ baseUrl })
  client.use(signing(key, secret))
  return client
}

/** Two-legged OAuth 1.0a over method, URL and body. */
function signing(key: string, secret: string): Middleware {
  const oauth = new OAuth({
    consumer: { key, secret },
    signature_method: 'HMAC-SHA256',
    hash_function: (base, signingKey) => createHmac('sha256', signingKey).update(base).digest('base64'),
    body_hash_function: (body) => createHash('sha256').update(body).digest('base64'),
  })
  return {
    async onRequest({ request }) {
      const { method, url } = request
      const data = await request.clone().text()
      // The library takes an empty body for the object {}.
      const call = data === '' ? { method, url } : { method, url, data, includeBodyHash: true }
      request.headers.set('Authorization', oauth.toHeader(oauth.authorize(call)).Authorization)
      return request
    },
  }
}

/** The headers of a Fetch API request, or of Node's `IncomingMessage`. */
type CallbackHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * The parsed body of a callback. Throws `WebhookVerificationError` when it is not signed with `secret` (of the webhook,
 * `whsec_…`, or the API secret, which signs callbacks of every kind), or was signed more than five minutes ago.
 */
export function verify(rawBody: string | Buffer, headers: CallbackHeaders, secret: string): Callback {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers)
  const values = Object.fromEntries(entries.map(([name, value]) => [name, String(value ?? '')]))
  const isOwn = secret.startsWith('whsec_')
  const webhook = isOwn ? new Webhook(secret) : new Webhook(Buffer.from(secret), { format: 'raw' })
  return webhook.verify(rawBody, values) as Callback
}
