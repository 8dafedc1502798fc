/** Who takes slowly what is written to it keeps its connection; over TLS too, whose own queue tells little. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { endUntaken } from '../../engine/net/untaken.ts'
import { selfSigned } from '../support/imap-server/certificate.ts'
import { until } from '../support/until.ts'

/** On a busy machine the peer's turns come late, and the kernel tells of them in steps of up to 2 MB. */
const limitMs = 2000

suite('a peer that takes slowly', { concurrency: true }, () => {
  for (const isTls of [false, true])
    test(`${isTls ? 'over TLS' : 'in the clear'}: is kept as long as it takes something, then left`, async () => {
      const theirs: Socket[] = []
      const accept = (socket: Socket): void => void theirs.push(socket.on('error', () => undefined).pause())
      const server = isTls ? createTlsServer(selfSigned('127.0.0.1'), accept) : createServer(accept)
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const where = { port: (server.address() as AddressInfo).port, host: '127.0.0.1', rejectUnauthorized: false }
      const ours = isTls ? connectTls(where) : connect(where)
      try {
        await once(ours, isTls ? 'secureConnect' : 'connect')
        ours.on('error', () => undefined)
        await until('the peer', () => theirs[0])
        endUntaken(ours, limitMs)
        theirs[0]?.on('data', () => theirs[0]?.pause())
        ours.write(Buffer.alloc(96 * 1_048_576))
        const startedAt = performance.now()
        const isOver = (): boolean => {
          theirs[0]?.resume()
          return ours.destroyed || performance.now() - startedAt > 3 * limitMs
        }
        await until('several limits', isOver, { everyMs: 10 })
        assert(!ours.destroyed && ours.writableLength > 0)
        await until('the end', () => ours.destroyed)
      } finally {
        ours.destroy()
        for (const socket of theirs) socket.destroy()
        server.close()
      }
    })
})
