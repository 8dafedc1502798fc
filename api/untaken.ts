/** Clients that take nothing of an answer. What they send meanwhile is no sign of it; to a socket it is. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** From now on the connection ends when something waits on it for the client, and nothing of it is taken for `ms`. */
export function endUntaken(response: ServerResponse, ms: number): void {
  const { socket } = response
  if (socket === null) return
  let last: string | null = null
  const timer = setInterval(() => {
    const now = response.writableLength > 0 ? takenOf(socket) : null
    if (now !== null && now === last) response.destroy()
    last = now
    if (response.destroyed) clearInterval(timer)
  }, ms).unref()
  response.once('finish', () => clearInterval(timer))
}

/** Another text when the client has taken something: pieces that are through, and what is left of the one that goes. */
function takenOf(socket: Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null }): string {
  return `${socket.bytesWritten - socket.writableLength} ${socket._handle?.writeQueueSize}`
}
