/**
 * A TCP proxy in front of the database that reads the commands which pass: it can show them, slow them down, keep them
 * from ever being answered, and cut every connection at the n-th write, before it or after it, as a crash does.
 */
import assert from 'node:assert/strict'
import { createServer, connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { BSON, type Document } from 'mongodb'
import { isAppError } from '../../engine/errors.ts'

/**
 * What happens to a command: it is passed on, never answered, or the proxy dies before it or after it (answer lost).
 */
export type Verdict = 'pass' | 'hang' | 'die' | 'die-after'

/** Called with each command as the command is passed on. The returned function is called with the answer. */
export type Watch = (command: Document) => ((answer: Document) => void) | null

export interface Proxy {
  /** The same URI, through the proxy. */
  readonly uri: string
  /** Commands but for the driver's own (hello, ping, endSessions), in order. */
  readonly seen: Document[]
  /** Asked for each of these commands; one that waits for its answer is held. Default: pass. */
  decide: (command: Document) => Verdict | Promise<Verdict>
  /** Each command waits this long before it is passed on. */
  delayMs: number
  /** Cuts every connection and takes no new ones. */
  die(): void
  /** Takes connections again. */
  revive(): void
  /** Whether bytes are taken from either side; those that wait meanwhile pass when they are taken again. */
  listen(takes: boolean): void
  close(): Promise<void>
}

const opMsg = 2013
/** Offsets in a frame. */
const [requestId, responseTo] = [4, 8]
const own = new Set(['hello', 'ismaster', 'isMaster', 'ping', 'endSessions', 'buildInfo'])
const writes = new Set(['insert', 'update', 'delete', 'findAndModify'])

export function commandName(command: Document): string {
  return Object.keys(command)[0] ?? ''
}

export function isWrite(command: Document): boolean {
  return writes.has(commandName(command))
}

/** Lets `count` writes through, then dies: before the next one, or (`answerLost`) after the last of them. */
function dieAfterWrites(count: number, answerLost: boolean): (command: Document) => Verdict {
  let passed = 0
  return (command) => {
    if (!isWrite(command)) return 'pass'
    passed += 1
    if (answerLost && passed === count) return 'die-after'
    return passed > count ? 'die' : 'pass'
  }
}

/** Holds the first command like this, until `release`. */
export function holdFirst(proxy: Proxy, is: (command: Document) => boolean) {
  const gate = Promise.withResolvers<undefined>()
  const state = { held: false, release: (): void => gate.resolve(undefined) }
  proxy.decide = async (command): Promise<Verdict> => {
    if (state.held || !is(command)) return 'pass'
    state.held = true
    await gate.promise
    return 'pass'
  }
  return state
}

/** Works through a proxy that dies (dieAfterWrites); answers whether it did before the work was through. */
export async function diesIn(
  proxy: Proxy,
  writes: number,
  answerLost: boolean,
  work: () => Promise<unknown>,
): Promise<boolean> {
  proxy.decide = dieAfterWrites(writes, answerLost)
  try {
    await work()
    return false
  } catch (error) {
    assert(isAppError(error, 'store_unavailable'), String(error))
    return true
  } finally {
    proxy.decide = () => 'pass'
  }
}

/** The command of an OP_MSG frame with its document sequences, or the answer; null for other frames. */
function commandOf(frame: Buffer): Document | null {
  if (frame.readInt32LE(12) !== opMsg) return null
  const flags = frame.readUInt32LE(16)
  const end = frame.length - (flags & 1 ? 4 : 0)
  let command: Document = {}
  for (let at = 20; at < end;) {
    const size = frame.readInt32LE(at + 1)
    if (frame[at] === 0) command = { ...BSON.deserialize(frame.subarray(at + 1, at + 1 + size)), ...command }
    else command = { ...command, ...sequence(frame.subarray(at + 5, at + 1 + size)) }
    at += 1 + size
  }
  return command
}

function sequence(section: Buffer): Document {
  const zero = section.indexOf(0)
  const documents: Document[] = []
  for (let at = zero + 1; at < section.length;) {
    const size = section.readInt32LE(at)
    documents.push(BSON.deserialize(section.subarray(at, at + size)))
    at += size
  }
  return { [section.toString('utf8', 0, zero)]: documents }
}

/** Splits the bytes that a socket receives into frames. */
function eachFrameOf(socket: Socket, use: (frame: Buffer) => void): void {
  let rest = Buffer.alloc(0)
  socket.on('data', (data: Buffer) => {
    rest = Buffer.concat([rest, data])
    while (rest.length >= 4 && rest.length >= rest.readInt32LE(0)) {
      const size = rest.readInt32LE(0)
      use(rest.subarray(0, size))
      rest = rest.subarray(size)
    }
  })
}

/** Commands without an answer yet, by id. */
type Answers = Map<number, (answer: Document) => void>

interface Connection {
  readonly client: Socket
  readonly upstream: Socket
  readonly answers: Answers
}

function answer(frame: Buffer, answers: Answers): void {
  const id = frame.readInt32LE(responseTo)
  const use = answers.get(id)
  answers.delete(id)
  if (use !== undefined) use(commandOf(frame) ?? {})
}

export async function createProxy(server: string, watch?: Watch): Promise<Proxy> {
  const target = new URL(server)
  const sockets = new Set<Socket>()
  let alive = true
  let takes = true
  const listener = createServer((client) => {
    if (!alive) {
      client.destroy()
      return
    }
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    upstream.pipe(client)
    const answers: Answers = new Map()
    if (watch !== undefined) eachFrameOf(upstream, (frame) => answer(frame, answers))
    if (!takes) upstream.pause()
    eachFrameOf(client, (frame) => void pass(Buffer.from(frame), { client, upstream, answers }))
    if (!takes) client.pause()
  })

  async function pass(frame: Buffer, { client, upstream, answers }: Connection): Promise<void> {
    const command = commandOf(frame)
    if (command === null || own.has(commandName(command))) {
      upstream.write(frame)
      return
    }
    proxy.seen.push(command)
    const { decide } = proxy
    const verdict = alive ? await decide(command) : 'die'
    if (verdict === 'hang') return
    if (verdict === 'die') {
      proxy.die()
      return
    }
    if (verdict === 'die-after') {
      upstream.unpipe(client)
      // The one who waited for the answer may have given up meanwhile, and the proxy serves others.
      upstream.once('data', () => (proxy.decide === decide ? proxy.die() : client.destroy()))
      // unpipe has paused it: a listener alone would never hear the answer
      upstream.resume()
    }
    const use = watch?.(command)
    if (use) answers.set(frame.readInt32LE(requestId), use)
    if (proxy.delayMs === 0) upstream.write(frame)
    else setTimeout(() => upstream.write(frame), proxy.delayMs)
  }

  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const through = new URL(server)
  through.host = `127.0.0.1:${port}`
  const proxy: Proxy = {
    uri: through.href,
    seen: [],
    decide: () => 'pass',
    delayMs: 0,
    die: () => {
      alive = false
      for (const socket of sockets) socket.destroy()
    },
    revive: () => {
      alive = true
    },
    listen: (now) => {
      takes = now
      for (const socket of sockets) {
        if (takes) socket.resume()
        else socket.pause()
      }
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      listener.close()
      await once(listener, 'close')
    },
  }
  return proxy
}
