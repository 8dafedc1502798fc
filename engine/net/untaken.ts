/** Peers that take nothing of what is written to them. What they send meanwhile is no sign of it; to a socket it is. */
import type { Socket } from 'node:net'

/** Ends the connection when something waits on it, and nothing of it is taken for `ms`. Answers how to stop that. */
export function endUntaken(socket: Socket, ms: number): () => void {
  let last: string | null = null
  const timer = setInterval(() => {
    const now = socket.writableLength > 0 ? takenOf(socket) : null
    if (now !== null && now === last) socket.destroy()
    last = now
    if (socket.destroyed) clearInterval(timer)
  }, ms).unref()
  return () => clearInterval(timer)
}

interface Handle {
  readonly writeQueueSize?: number
  /** Of TLS, whose own queue shrinks only when all of it is through. */
  readonly _parent?: Handle | null
}

/** Another text when the peer has taken something: pieces that are through, and what is left of the one that goes. */
function takenOf(socket: Socket & { readonly _handle?: Handle | null }): string {
  const { _handle: handle } = socket
  return `${socket.bytesWritten - socket.writableLength} ${(handle?._parent ?? handle)?.writeQueueSize}`
}
