/** A client of server-sent events that keeps what it reads. */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'

export interface ServerSentEvent {
  readonly id: string
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface EventStream {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly events: readonly ServerSentEvent[]
  /** All that came, comments too. */
  readonly text: string
  readonly ended: boolean
  close(): void
}

export async function openEventStream(url: string, headers: Readonly<Record<string, string>>): Promise<EventStream> {
  const call = request(url, { headers: { accept: 'text/event-stream', ...headers }, agent: false })
  call.end()
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  let text = ''
  let ended = false
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => (text += chunk))
  response.on('end', () => (ended = true))
  response.on('error', () => (ended = true))
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    get events() {
      return text
        .slice(0, text.lastIndexOf('\n\n') + 1)
        .split('\n\n')
        .flatMap(readEvent)
    },
    get text() {
      return text
    },
    get ended() {
      return ended
    },
    close: () => void response.destroy(),
  }
}

/** [] for comments and settings. */
export function readEvent(block: string): ServerSentEvent[] {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  const data = fields.get('data')
  if (data === undefined) return []
  return [
    {
      id: fields.get('id') ?? '',
      event: fields.get('event') ?? 'message',
      data: JSON.parse(data) as ServerSentEvent['data'],
    },
  ]
}
