/**
 * What stands behind the port from the first moment on: until the app takes over (the store may be away at the start), health is
 * answered truly and everything else is asked to come back.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

export interface Front {
  callback(): RequestListener
  /** From now on the app answers. */
  use(app: { callback(): RequestListener }): void
}

const retryAfterSeconds = 5

export function createFront(): Front {
  let handle: RequestListener = starting
  return {
    callback: () => (request, response) => handle(request, response),
    use(app) {
      handle = app.callback()
    },
  }
}

function starting(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url?.split('?')[0]?.replace(/\/$/, '')
  if (path === '/healthz') answer(response, 200, { status: 'ok' })
  else answer(response, 503, { type: 'error', value: 'the service is starting: it waits for its store' })
}

function answer(response: ServerResponse, status: number, body: Readonly<Record<string, string>>): void {
  const headers = {
    'Content-Type': 'application/json',
    ...(status === 503 ? { 'Retry-After': String(retryAfterSeconds) } : {}),
  }
  response.writeHead(status, headers).end(JSON.stringify(body))
}
