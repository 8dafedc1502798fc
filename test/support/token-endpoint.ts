/**
 * An OAuth 2.0 token endpoint (RFC 6749 section 6) on a free port: remembers what it was asked, answers as it is told.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TokenAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>> | string
  readonly headers?: Readonly<Record<string, string>>
}

export interface TokenEndpoint {
  readonly url: string
  /** Form bodies in order of arrival. */
  readonly asked: readonly Readonly<Record<string, string>>[]
  /** The answer from now on; null = none, ever. */
  answer(next: (form: Readonly<Record<string, string>>, count: number) => TokenAnswer | null): void
  close(): Promise<void>
}

/** A bearer token that is good for an hour. */
export function granted(accessToken: string, more: Readonly<Record<string, unknown>> = {}): TokenAnswer {
  return { status: 200, body: { access_token: accessToken, token_type: 'Bearer', expires_in: 3600, ...more } }
}

export function refused(error: string, status = 400): TokenAnswer {
  return { status, body: { error, error_description: `it is ${error}` } }
}

export async function startTokenEndpoint(): Promise<TokenEndpoint> {
  const asked: Record<string, string>[] = []
  let answerTo: Parameters<TokenEndpoint['answer']>[0] = () => refused('invalid_request')
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString('utf8')))
      asked.push(form)
      const answer = answerTo(form, asked.length)
      if (answer === null) return
      const { status, body, headers } = answer
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    asked,
    answer: (next) => (answerTo = next),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
