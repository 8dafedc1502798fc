/** Stands between the service and a mail server, and does to some of the connections what networks do. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface FaultGate {
  readonly host: string
  readonly port: number
  /** Ends this share of the connections, politely or by a reset. Answers how many. */
  drop(share: number): number
  /** Nothing passes on this share of the connections for so long; then all that waited does. */
  stall(share: number, ms: number): number
  /** Half-open: nothing passes any more, and the service is not told. */
  silence(share: number): number
  close(): Promise<void>
}

interface Link {
  readonly from: Socket
  readonly to: Socket
}

export async function startFaultGate(server: { readonly host: string; readonly port: number }): Promise<FaultGate> {
  const links = new Set<Link>()
  /** Connections of the service, also where the link is silent. */
  const entered = new Set<Socket>()
  const gate = createServer((from) => {
    const to = connect(server.port, server.host)
    const link = { from, to }
    links.add(link)
    entered.add(from)
    from.once('close', () => entered.delete(from))
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      one.on('error', () => one.destroy())
      one.on('close', () => {
        links.delete(link)
        other.destroy()
      })
      one.pipe(other)
    }
  }).listen(0, '127.0.0.1')
  await once(gate, 'listening')
  const some = (share: number, act: (link: Link) => void): number => {
    const chosen = [...links].filter(() => Math.random() < share)
    chosen.forEach(act)
    return chosen.length
  }
  const hold = ({ from, to }: Link): void => {
    from.unpipe(to).pause()
    to.unpipe(from).pause()
  }
  return {
    host: '127.0.0.1',
    port: (gate.address() as AddressInfo).port,
    drop: (share) => some(share, ({ from }) => (Math.random() < 0.5 ? from.destroySoon() : from.resetAndDestroy())),
    stall: (share, ms) =>
      some(share, (link) => {
        hold(link)
        setTimeout(() => {
          link.from.pipe(link.to)
          link.to.pipe(link.from)
        }, ms).unref()
      }),
    // What has been held cannot be seen to end: the service gives it up, and the kernel of the other side after it.
    silence: (share) =>
      some(share, (link) => {
        hold(link)
        link.to.destroySoon()
        link.to.removeAllListeners('close')
        links.delete(link)
      }),
    async close() {
      const closed = once(gate, 'close')
      gate.close()
      for (const socket of entered) socket.destroy()
      await closed
    },
  }
}
