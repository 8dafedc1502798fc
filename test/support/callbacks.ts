/**
 * A developer's server: receives callbacks, checks both signatures with code of its own (nothing of engine/ is used here),
 * and can be told to fail.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from './service.ts'

export interface Callback {
  /** performance.now() when the whole body was there. */
  readonly at: number
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: string
  readonly body: Json
  /** The status that it was answered with. */
  readonly answered: number
}

/** The status to answer with; 'reset' closes the connection without an answer. */
export type Behaviour = (callback: { readonly path: string; readonly count: number }) => number | 'reset'

export interface CallbackReceiver {
  readonly url: string
  /** All that came, also those that were answered with an error. */
  readonly all: readonly Callback[]
  /** Those that were answered with 200. */
  accepted(): Callback[]
  behave(behaviour: Behaviour): void
  /** Called for each as it comes, before the answer. */
  onCallback(listener: (callback: Callback) => void): void
  close(): Promise<void>
}

export async function startReceiver(): Promise<CallbackReceiver> {
  const all: Callback[] = []
  let behaviour: Behaviour = () => 200
  let listener: (callback: Callback) => void = () => undefined

  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const at = performance.now()
    const path = request.url ?? '/'
    const verdict = behaviour({ path, count: all.length })
    const raw = Buffer.concat(chunks).toString()
    const answered = verdict === 'reset' ? 0 : verdict
    const callback = { at, path, headers: request.headers, raw, body: JSON.parse(raw) as Json, answered }
    all.push(callback)
    listener(callback)
    if (verdict === 'reset') request.socket.destroy()
    else response.writeHead(verdict).end()
  }
  const server = createServer((request, response) => {
    receive(request, response).catch((error: unknown) => response.writeHead(400).end(String(error)))
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    all,
    accepted: () => all.filter((callback) => callback.answered === 200),
    behave: (next) => (behaviour = next),
    onCallback: (next) => (listener = next),
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close').catch(() => undefined)
    },
  }
}

/** A field of an object in the body, as an object. */
export function part(body: Json, name: string): Json {
  const value = body[name]
  if (typeof value !== 'object' || value === null) throw new Error(`${name} is missing in ${JSON.stringify(body)}`)
  return value as Json
}

export function subjectOf(callback: Callback): string {
  return String(part(callback.body, 'message_data')['subject'])
}

/** interface.md, Authentication 3: HMAC-SHA256 (hex) of timestamp and token, keyed with the consumer secret. */
export function bodySignatureFits(callback: Callback, consumerSecret: string): boolean {
  const { timestamp, token, signature } = callback.body
  const expected = createHmac('sha256', consumerSecret)
    .update(`${String(timestamp)}${String(token)}`)
    .digest('hex')
  return same(expected, String(signature))
}

/**
 * Standard Webhooks 1.0: `v1,<base64>` of HMAC-SHA256 over `id.timestamp.body`; the key is the base64 part of `whsec_…`.
 * Several signatures may stand in the header; one must fit. The time must be within five minutes of ours.
 */
export function headerSignatureFits(callback: Callback, webhookSecret: string): boolean {
  const header = (name: string): string => String(callback.headers[name] ?? '')
  const key = Buffer.from(webhookSecret.replace(/^whsec_/, ''), 'base64')
  const content = `${header('webhook-id')}.${header('webhook-timestamp')}.${callback.raw}`
  const expected = createHmac('sha256', key).update(content).digest('base64')
  const recent = Math.abs(Date.now() / 1000 - Number(header('webhook-timestamp'))) < 300
  const signatures = header('webhook-signature').split(' ')
  return recent && signatures.some((text) => text.startsWith('v1,') && same(text.slice(3), expected))
}

function same(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
