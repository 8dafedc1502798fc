/** One call of the API, with the first developer's key unless its headers say otherwise. */
import { request, type IncomingHttpHeaders } from 'node:http'

export const apiKey = 'frame-key'
export const apiSecret = 'frame secret & more'

export const basic = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`

export interface CallOptions {
  /** Without it the call carries Basic. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Parsed on demand. */
  readonly json: Record<string, unknown>
}

/** One call with the path exactly as given: fetch would tidy it up. */
export function callRaw(port: number, method: string, path: string, options: CallOptions = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const headers = options.headers ?? { authorization: basic }
  const chunked = 'transfer-encoding' in headers
  const length =
    options.body === undefined || chunked ? {} : { 'content-length': String(Buffer.byteLength(options.body)) }
  const call = request({ host: '127.0.0.1', port, method, path, headers: { ...length, ...headers }, agent: false })
  call.once('error', reject)
  call.once('response', (response) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.once('error', reject)
    response.once('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        text,
        get json() {
          return JSON.parse(text) as Record<string, unknown>
        },
      })
    })
  })
  call.end(options.body)
  return promise
}
