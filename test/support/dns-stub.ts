/**
 * A name server on a free UDP port that knows SRV and MX records of a few names (RFC 1035, RFC 2782); all others do not
 * exist.
 */
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'

export interface SrvEntry {
  readonly name: string
  readonly port: number
  readonly priority?: number
  readonly weight?: number
}

export interface DnsStub {
  /** '127.0.0.1:port', as a resolver wants it. */
  readonly address: string
  /** Names that were asked for, lower-cased, in order. */
  readonly asked: readonly string[]
  srv(name: string, entries: readonly SrvEntry[]): void
  mx(name: string, exchanges: readonly string[]): void
  /** Answers SERVFAIL for this name. */
  fail(name: string): void
  close(): Promise<void>
}

const types = { mx: 15, srv: 33 } as const

export async function startDnsStub(): Promise<DnsStub> {
  const records = new Map<string, readonly Buffer[]>()
  const failing = new Set<string>()
  const asked: string[] = []
  const socket = createSocket('udp4')

  function answer(query: Buffer, peer: RemoteInfo): void {
    const question = readQuestion(query)
    asked.push(question.name)
    const found = records.get(`${question.type} ${question.name}`) ?? []
    const status = failing.has(question.name) ? 2 : found.length === 0 ? 3 : 0
    const head = Buffer.alloc(12)
    head.writeUInt16BE(query.readUInt16BE(0), 0)
    head.writeUInt16BE(0x8180 | status, 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(found.length, 6)
    socket.send(
      Buffer.concat([head, question.bytes, ...found.map((data) => record(question.type, data))]),
      peer.port,
      peer.address,
    )
  }

  socket.on('message', answer)
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    srv: (name, entries) => void records.set(`${types.srv} ${name}`, entries.map(srvData)),
    mx: (name, exchanges) =>
      void records.set(
        `${types.mx} ${name}`,
        exchanges.map((host, index) => Buffer.concat([uint16(index * 10), wireName(host)])),
      ),
    fail: (name) => void failing.add(name),
    async close() {
      socket.close()
      await once(socket, 'close')
    },
  }
}

function readQuestion(query: Buffer): { readonly name: string; readonly type: number; readonly bytes: Buffer } {
  const labels: string[] = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), bytes: query.subarray(12, at + 5) }
}

/** The name is that of the question, by reference. */
function record(type: number, data: Buffer): Buffer {
  return Buffer.concat([uint16(0xc00c), uint16(type), uint16(1), Buffer.from([0, 0, 0, 60]), uint16(data.length), data])
}

function srvData({ name, port, priority = 0, weight = 0 }: SrvEntry): Buffer {
  return Buffer.concat([uint16(priority), uint16(weight), uint16(port), wireName(name)])
}

function wireName(name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '')
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]),
    Buffer.from([0]),
  ])
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}
