/**
 * Hosts that take a connection and say nothing: another developer's mailboxes are back at once, and those of the same
 * developer after one try of each host.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { openStage, type Stage } from '../e2e/stage.ts'
import { createImapServer, type ImapServer } from '../support/imap-server/index.ts'
import { until } from '../support/until.ts'
import { createUser } from '../support/users.ts'
import { neighbourOf } from './neighbour.ts'

const hosts = Array.from({ length: 12 }, (_, n) => `127.0.1.${n + 1}`)
const silent = hosts.map((_, n) => `silent${n}@mail.example`)
const own = 'ann@mail.example'
const neighbours = 'bob@mail.example'
const password = 'secret'

/**
 * On all addresses of this machine: the way to a mail server, until it takes connections and does nothing with them.
 */
async function createWay(to: { readonly host: string; readonly port: number }) {
  let open = true
  const sockets = new Set<Socket>()
  const listener = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    if (!open) return
    const onward = connect(to).on('error', () => socket.destroy())
    socket.once('close', () => onward.destroy())
    onward.once('close', () => socket.destroy())
    socket.pipe(onward).pipe(socket)
  })
  listener.listen(0, '0.0.0.0')
  await once(listener, 'listening')
  const cut = (): void => sockets.forEach((socket) => void socket.destroy())
  return {
    port: (listener.address() as AddressInfo).port,
    /** Connections that hear nothing. */
    hanging: (): number => (open ? 0 : sockets.size),
    silence(): void {
      open = false
      cut()
    },
    speak(): void {
      open = true
      cut()
    },
    async close(): Promise<void> {
      cut()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

suite('hosts that never greet', () => {
  let stage: Stage
  let server: ImapServer
  let way: Awaited<ReturnType<typeof createWay>>
  before(async () => {
    stage = await openStage({ env: { MAILROOM_START_CONCURRENCY: '4', MAILROOM_CONNECT_TIMEOUT: '2s' } })
    server = await createImapServer({
      users: Object.fromEntries([...silent, own, neighbours].map((name) => [name, {}])),
    })
    way = await createWay(server)
  })
  after(async () => {
    await stage.remove()
    await way.close()
    await server.close()
  })

  const watched = (email: string): boolean => server.connections.some(({ user, idling }) => user === email && idling)
  /** Resolves with the time that it took to be back. */
  const backAfterLoss = async (email: string): Promise<number> => {
    const started = performance.now()
    server.dropConnections(email)
    await until(`${email} is away`, () => !watched(email))
    await until(`${email} is back`, () => watched(email), { withinMs: 20_000 })
    return performance.now() - started
  }

  test('keep no other developer from being back at once, and are back themselves when they greet', async () => {
    const { service } = stage
    const bob = await neighbourOf(service)
    await createUser(service, { host: server.host, port: server.port, password }, own)
    await createUser(bob, { host: server.host, port: server.port, password }, neighbours)
    await Promise.all(
      silent.map((email, n) => createUser(service, { host: hosts[n] ?? '', port: way.port, password }, email)),
    )
    await until('all are watched', () => [...silent, own, neighbours].every(watched), { withinMs: 20_000 })
    way.silence()
    await until('all places are taken', () => way.hanging() >= 4)
    const neighbour = await backAfterLoss(neighbours)
    assert(neighbour < 3000, `another developer's mailbox was back after ${neighbour} ms`)
    const same = await backAfterLoss(own)
    assert(same < 12_000, `another mailbox was back after ${same} ms`)
    way.speak()
    await until('all are watched again', () => silent.every(watched), { withinMs: 15_000 })
  })
})
