/** HTTP by hand: bytes in, bytes out, for clients that no library would be. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from '../../support/until.ts'

export interface RawConnection {
  readonly socket: Socket
  write(text: string): void
  /** All that came so far. */
  received(): string
  /** Resolves when what came matches; answers it. */
  expect(pattern: RegExp, withinMs?: number): Promise<string>
  /** Resolves with all that came when the server has closed the connection. */
  closed(withinMs?: number): Promise<string>
}

export async function connectRaw(port: number): Promise<RawConnection> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  let text = ''
  let ended = false
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => (text += chunk))
  // A reset is one of the ways a server ends a connection.
  socket.on('error', () => (ended = true))
  socket.on('close', () => (ended = true))
  return {
    socket,
    write: (bytes) => void socket.write(bytes, 'latin1'),
    received: () => text,
    async expect(pattern, withinMs = 5000) {
      await until(`answer ${pattern.source}`, () => pattern.test(text), { withinMs, explain: () => text })
      return text
    },
    async closed(withinMs = 5000) {
      await until('end of the connection', () => ended, { withinMs, explain: () => text })
      return text
    },
  }
}
