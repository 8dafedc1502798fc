/** Stands between the service and a mail server, and can stop the talk of one connection at one command. */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** `before`: the server never hears the command; `middle`: nothing of its literal; `after`: nobody hears its answer. */
export type Moment = 'before' | 'middle' | 'after'

export interface ImapGate {
  readonly host: string
  readonly port: number
  /** From now on; one command at a time. */
  hold(command: RegExp, moment: Moment): void
  /** Whether the talk has come so far: with `after`, that the server has answered. */
  held(): boolean
  /** Everything passes again. */
  open(): void
  close(): Promise<void>
}

interface Hold {
  readonly command: RegExp
  readonly moment: Moment
  held: boolean
}

export async function startImapGate(server: { readonly host: string; readonly port: number }): Promise<ImapGate> {
  let hold: Hold | null = null
  const sockets = new Set<Socket>()
  const pass = (from: Socket): void => {
    const to = connect(server.port, server.host)
    let tag: string | null = null
    const isOpen = (): boolean => tag === null || hold === null
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
    from.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1')
      if (hold !== null && tag === null && !hold.held && hold.command.test(text)) {
        tag = /^\S+/.exec(text)?.[0] ?? ''
        hold.held = hold.moment === 'before'
        if (hold.moment !== 'before') to.write(chunk)
      } else if (isOpen() || hold?.moment === 'after') to.write(chunk)
      else if (hold !== null) hold.held = true
    })
    to.on('data', (chunk: Buffer) => {
      const isAnswer = !isOpen() && new RegExp(`(^|\\n)${tag ?? ''} `).test(chunk.toString('latin1'))
      if (hold !== null && isAnswer) hold.held = true
      if (isOpen() || (hold !== null && !hold.held)) from.write(chunk)
    })
  }
  const gate = createServer(pass).listen(0, '127.0.0.1')
  await once(gate, 'listening')
  return {
    host: '127.0.0.1',
    port: (gate.address() as AddressInfo).port,
    hold: (command, moment) => (hold = { command, moment, held: false }),
    held: () => hold?.held ?? false,
    open: () => (hold = null),
    async close() {
      for (const socket of sockets) socket.destroy()
      gate.close()
      await once(gate, 'close')
    },
  }
}
