/** Calls of the admin API from the command line. */
import { AppError } from '../../engine/index.ts'

export interface Client {
  /** The answer of a good call; else an AppError with the service's own words. */
  call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: Readonly<Record<string, unknown>>): Promise<unknown>
  /** The data of each server-sent event, until the signal aborts or the service ends the stream. */
  events(path: string, signal: AbortSignal): AsyncGenerator<string, void, undefined>
}

interface Init {
  readonly signal: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A backup of a large store takes as long as a call may take. */
const patienceMs = 120_000

export function createClient(url: string, token: string): Client {
  const send = async (method: string, path: string, init: Init): Promise<Response> => {
    const headers = { ...init.headers, authorization: `Bearer ${token}` }
    const answer = await fetch(url.replace(/\/$/, '') + path, { ...init, method, headers }).catch((cause: unknown) => {
      throw new AppError('network', `${url} does not answer: ${wordsOf(cause)}`, { cause })
    })
    if (answer.ok) return answer
    throw new AppError('bad_request', `${method} ${path}: ${refusalOf(await answer.text())} (${answer.status})`)
  }
  return {
    async call(method, path, body) {
      const signal = AbortSignal.timeout(patienceMs)
      const answer = await send(
        method,
        path,
        body === undefined
          ? { signal }
          : { signal, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
      )
      return JSON.parse(await answer.text()) as unknown
    },
    async *events(path, signal) {
      const { body } = await send('GET', path, { signal, headers: { accept: 'text/event-stream' } })
      if (body === null) return
      let rest = ''
      for await (const piece of body.pipeThrough(new TextDecoderStream())) {
        const events = (rest + piece).split('\n\n')
        rest = events.pop() ?? ''
        for (const event of events) {
          const data = [...event.matchAll(/^data: ?(.*)$/gm)].map(([, line = '']) => line)
          if (data.length > 0) yield data.join('\n')
        }
      }
    },
  }
}

function wordsOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}

/** The words of {"type":"error","value":…}, or the text itself. */
function refusalOf(text: string): string {
  try {
    const { value } = JSON.parse(text) as { value?: unknown }
    return typeof value === 'string' ? value : text
  } catch {
    return text.slice(0, 200)
  }
}
