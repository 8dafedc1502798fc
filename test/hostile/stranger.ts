/** HTTP calls as a stranger makes them: any header, any bytes, and from any of this machine's own addresses. */
import { request, type IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'

export interface Heard {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Said {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** 127.0.0.1 otherwise; all of 127.0.0.0/8 is this machine. */
  readonly from?: string
}

export function say(
  url: string,
  { method = 'GET', headers = {}, body, from = '127.0.0.1' }: Said = {},
): Promise<Heard> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const call = request(url, { method, headers: { ...length, ...headers }, localAddress: from, agent: false })
    call.once('error', reject)
    call.once('response', (response) => {
      text(response).then(
        (heard) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: heard }),
        reject,
      )
    })
    call.end(body)
  })
}

export function basicOf(key: string, secret: string): string {
  return `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`
}
