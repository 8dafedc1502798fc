/** QRESYNC (RFC 7162) on Dovecot: what vanished is named by the server, and what catching up with it costs. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { startDovecot } from '../../support/dovecot.ts'
import { fullCapabilities } from '../../support/imap-server/index.ts'
import { needs } from '../../support/require.ts'
import { fill, letter, openStage } from './stage.ts'

/** A way to a mail server, on which all that passes is counted and kept. */
async function openCounted(t: TestContext, server: { readonly host: string; readonly port: number }) {
  let [sent, received] = ['', 0]
  const relay = createServer((from) => {
    const to = connect(server.port, server.host)
    from.on('data', (chunk: Buffer) => (sent += chunk.toString('latin1')))
    to.on('data', (chunk: Buffer) => (received += chunk.length))
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      one.on('error', () => other.destroy())
      one.pipe(other)
    }
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.after(() => relay.close())
  return {
    host: '127.0.0.1',
    port: (relay.address() as AddressInfo).port,
    count(): { readonly commands: string[]; readonly received: number } {
      const counted = { commands: sent.split('\r\n').filter((line) => line !== ''), received }
      sent = ''
      received = 0
      return counted
    },
  }
}

const messages = 1000

/** A folder full of gaps changes while nobody watches it: what a new session does to catch up, and what it tells. */
async function caughtUp(t: TestContext, capability?: string) {
  const dovecot = await startDovecot(capability === undefined ? {} : { capability })
  t.after(() => dovecot.remove())
  const client = await dovecot.connect('ann')
  t.after(() => client.close())
  await client.append(
    'INBOX',
    Array.from({ length: messages }, (_, index) => letter(`m${index + 1}`)),
  )
  // From here on Dovecot knows what vanished when.
  await client.command('SELECT INBOX (CONDSTORE)')
  const odd = Array.from({ length: messages / 2 }, (_, index) => String(2 * index + 1))
  await client.command(`UID STORE ${odd.join(',')} +FLAGS.SILENT (\\Deleted)`)
  await client.command('EXPUNGE')
  const way = await openCounted(t, dovecot)
  const stage = await openStage(t, { target: { ...way, password: dovecot.password } })
  const first = await stage.work()
  await first.readAll()
  await first.session.close()
  await client.command('UID STORE 4,500,998 +FLAGS.SILENT (\\Deleted)')
  await client.command('EXPUNGE')
  await client.command('UID STORE 10 +FLAGS.SILENT (\\Flagged)')
  await client.append('INBOX', [letter('new')])
  const { session, catchUp } = await stage.work()
  way.count()
  await catchUp('INBOX')
  const cost = way.count()
  const stored = await stage.folder('INBOX')
  await catchUp('INBOX')
  const again = way.count()
  await client.command('UID STORE 6 +FLAGS.SILENT (\\Deleted)')
  await client.command('EXPUNGE')
  await session.noop()
  way.count()
  await catchUp('INBOX')
  const live = way.count()
  return {
    cost,
    again,
    live,
    counts: [stored.counts.messages, stored.cursor?.exists],
    left: await stage.subjects('INBOX'),
  }
}

suite('QRESYNC', needs('dovecot'), () => {
  test('a folder that changed unseen is caught up without a list of its UIDs, in few bytes', async (t) => {
    const all = 'IMAP4rev1 ENABLE UIDPLUS ESEARCH MOVE LIST-STATUS LIST-EXTENDED SPECIAL-USE CONDSTORE'
    const plain = await caughtUp(t, all)
    const named = await caughtUp(t)
    const even = Array.from({ length: messages / 2 }, (_, index) => 2 * (index + 1))
    const left = even.filter((uid) => ![4, 6, 500, 998].includes(uid)).map((uid) => `m${uid}`)
    for (const one of [plain, named]) {
      assert.deepEqual(one.counts, [498, 498])
      assert.deepEqual(one.left, [...left, 'new'])
    }
    const lists = ({ commands }: typeof plain.cost) => commands.filter((line) => /UID SEARCH .*\d:\*/.test(line))
    assert.equal(lists(plain.cost).length, 1, plain.cost.commands.join('\n'))
    for (const one of [named.cost, named.again, named.live]) assert.deepEqual(lists(one), [])
    const confirmed = named.cost.commands.filter((line) => /UID SEARCH UID /.test(line))
    assert.deepEqual(
      confirmed.map((line) => line.replace(/^\S+ /, '')),
      ['UID SEARCH UID 4,500,998'],
    )
    assert(named.cost.commands.length <= plain.cost.commands.length, named.cost.commands.join('\n'))
    assert(named.cost.received < 0.6 * plain.cost.received, `${named.cost.received} of ${plain.cost.received} bytes`)
    t.diagnostic(
      `${plain.cost.commands.length} commands and ${plain.cost.received} bytes without it, ` +
        `${named.cost.commands.length} and ${named.cost.received} with it`,
    )
  })
})

test('a server that offers QRESYNC and refuses it is asked without, once and from then on', async (t) => {
  const stage = await openStage(t, {
    capabilities: [...fullCapabilities, 'QRESYNC'],
    hooks: { command: ({ text }) => (/ENABLE QRESYNC|VANISHED/.test(text) ? { tagged: 'BAD unknown' } : undefined) },
  })
  fill(stage.server, 'INBOX', 4)
  const { catchUp, readAll } = await stage.work()
  await readAll()
  for (const uid of [2, 3]) {
    stage.server.expunge('ann', 'INBOX', uid)
    stage.server.setFlags('ann', 'INBOX', 1, uid === 2 ? ['\\Seen'] : [])
    await catchUp('INBOX')
  }
  assert.deepEqual(await stage.subjects('INBOX'), ['m1', 'm4'])
  const asked = stage.server.log.filter(({ line }) => line.includes('VANISHED')).length
  assert.equal(asked, 1)
})
