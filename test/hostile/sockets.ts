/**
 * Connections to the service as somebody opens them who means ill: many, from many addresses, half of a call each, read
 * slowly or not.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Held {
  readonly socket: Socket
  /** All that came so far. */
  readonly text: string
  readonly closed: boolean
}

/** Of this machine's own addresses: 127.0.0.2, 127.0.0.3 … */
export function addressOf(number: number): string {
  return `127.0.0.${number + 2}`
}

/** Sends `head` and `body` and waits for nothing. `deaf` = reads no answer. */
export async function hold(
  url: string,
  from: string,
  head: readonly string[],
  body: Buffer | string = '',
  deaf = false,
): Promise<Held> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), localAddress: from })
  let [text, closed] = ['', false]
  if (deaf) socket.pause()
  else socket.on('data', (chunk: Buffer) => (text = (text + chunk.toString('latin1')).slice(0, 4000)))
  socket.on('error', () => (closed = true))
  socket.on('close', () => (closed = true))
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  if (head.length > 0) socket.write([...head, 'Host: mail.example', '', ''].join('\r\n'))
  socket.write(body)
  return {
    socket,
    get text() {
      return text
    },
    get closed() {
      return closed
    },
  }
}

export function destroyAll(held: readonly Held[]): void {
  for (const { socket } of held) socket.destroy()
}

/** So many at once, for a while; `then` when all are open. */
export async function holdMany(
  count: number,
  ms: number,
  open: (n: number) => Promise<Held>,
  then: (held: readonly Held[]) => void = () => undefined,
): Promise<void> {
  const held: Held[] = []
  for (let n = 0; n < count; n += 1) held.push(await open(n))
  then(held)
  await sleep(ms)
  destroyAll(held)
}
