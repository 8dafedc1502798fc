/**
 * The smallest IMAP client that can put mail into a mailbox: login, APPEND (RFC 9051 6.3.12; several messages at once
 * by MULTIAPPEND, RFC 3502), any other command as text. For tests only: its literals are non-synchronising (RFC 7888),
 * but for a server that knows neither those nor MULTIAPPEND.
 */
import { connect, type Socket } from 'node:net'

export interface RawImap {
  /** Sends one command and answers its untagged lines. Rejects with the server's own words on NO and BAD. */
  command(text: string | Buffer): Promise<string[]>
  /** All in one APPEND: they become visible together, in this order. */
  append(folder: string, messages: readonly (string | Buffer)[], flags?: readonly string[]): Promise<void>
  close(): Promise<void>
}

export interface RawImapOptions {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly timeoutMs?: number
  /** One synchronising literal in each APPEND. */
  readonly synchronising?: boolean
}

interface Waiter {
  readonly tag: string
  readonly lines: string[]
  /** Sent after the server's continuation request. */
  readonly literal: Buffer
  readonly resolve: (lines: string[]) => void
  readonly reject: (error: Error) => void
}

export function quote(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

/** A server that was killed a moment ago may accept a connection and never log it in: the next one is answered. */
const loginTries = 4
const loginWithinMs = 5_000

export async function openRawImap(options: RawImapOptions): Promise<RawImap> {
  for (let left = loginTries - 1; ; left -= 1) {
    try {
      return await openOnce(options)
    } catch (error) {
      if (left === 0 || !(error instanceof Error) || !error.message.includes('no answer in time')) throw error
    }
  }
}

async function openOnce(options: RawImapOptions): Promise<RawImap> {
  const socket = connect({ host: options.host, port: options.port })
  socket.setTimeout(Math.min(options.timeoutMs ?? loginWithinMs, loginWithinMs), () =>
    socket.destroy(new Error('IMAP: no answer in time')),
  )
  const conversation = converse(socket)
  await conversation.greeting
  await conversation.command(`LOGIN ${quote(options.user)} ${quote(options.password)}`)
  /** Between two commands nothing has to be answered. */
  const command = async (text: string | Buffer, literal?: Buffer): Promise<string[]> => {
    socket.setTimeout(options.timeoutMs ?? 30_000)
    return conversation.command(text, literal).finally(() => socket.setTimeout(0))
  }
  socket.setTimeout(0)
  return {
    command,
    async append(folder, messages, flags = []) {
      const head = `APPEND ${quote(folder)}`
      const parts: Buffer[] = []
      for (const message of messages) {
        const bytes = typeof message === 'string' ? Buffer.from(message) : message
        if (options.synchronising) await command(`${head} (${flags.join(' ')}) {${bytes.length}}`, bytes)
        else parts.push(Buffer.from(` (${flags.join(' ')}) {${bytes.length}+}\r\n`), bytes)
      }
      if (parts.length > 0) await command(Buffer.concat([Buffer.from(head), ...parts]))
    },
    async close() {
      if (socket.destroyed) return
      // A server that has ended may answer with a reset, which closes the connection too.
      const closed = Promise.withResolvers<undefined>()
      socket.once('close', () => closed.resolve(undefined))
      socket.end('bye LOGOUT\r\n')
      await closed.promise
    },
  }
}

function converse(socket: Socket) {
  let waiting: Waiter | null = null
  let rest = ''
  let count = 0
  let failure: Error | null = null
  const greeting = Promise.withResolvers<undefined>()
  greeting.promise.catch(() => undefined)

  const fail = (error: Error): void => {
    failure ??= error
    greeting.reject(failure)
    waiting?.reject(failure)
    waiting = null
  }
  const line = (text: string): void => {
    if (waiting === null) {
      if (text.startsWith('* ')) greeting.resolve(undefined)
      return
    }
    if (text.startsWith('+') && waiting.literal.length > 0) {
      socket.write(Buffer.concat([waiting.literal, Buffer.from('\r\n')]))
      return
    }
    if (!text.startsWith(`${waiting.tag} `)) {
      waiting.lines.push(text)
      return
    }
    const { lines, resolve, reject, tag } = waiting
    waiting = null
    if (text.startsWith(`${tag} OK`)) resolve(lines)
    else reject(new Error(`IMAP: ${text.slice(tag.length + 1)}`))
  }
  socket.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('latin1')).split('\r\n')
    rest = lines.pop() ?? ''
    for (const text of lines) line(text)
  })
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('IMAP: connection closed')))

  return {
    greeting: greeting.promise,
    command: (text: string | Buffer, literal: Buffer = Buffer.alloc(0)): Promise<string[]> => {
      if (failure !== null) return Promise.reject(failure)
      if (waiting !== null) return Promise.reject(new Error('IMAP: one command at a time'))
      const tag = `a${++count}`
      const { promise, resolve, reject } = Promise.withResolvers<string[]>()
      waiting = { tag, lines: [], literal, resolve, reject }
      socket.write(Buffer.concat([Buffer.from(`${tag} `), Buffer.from(text), Buffer.from('\r\n')]))
      return promise
    },
  }
}
