/**
 * Servers as they are: IDLE that is missing, useless, dead or early, and MOVE that says where in every way there is.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net'
import { suite, test, type TestContext } from 'node:test'
import { fullCapabilities, type ImapServer } from '../support/imap-server/index.ts'
import { closings, failure, fill, long, on, play } from '../support/imap-server/play.ts'
import { openTest, type Target } from '../support/imap-server/session.ts'
import { standstill, until } from '../support/until.ts'

suite('IDLE', () => {
  test('row 17: without IDLE it waits for its time; a NOOP brings the news', async (t) => {
    const { server, inbox } = await play(
      t,
      {},
      fullCapabilities.filter((name) => name !== 'IDLE'),
    )
    const session = await inbox()
    assert.equal(session.capabilities.idle, false)
    const started = performance.now()
    const idling = session.idle(120, long())
    fill(server, 1)
    await session.noop()
    assert.deepEqual(session.events, [{ type: 'exists' }])
    await idling
    assert(performance.now() - started >= 110)
    const stop = new AbortController()
    const second = session.idle(60_000, stop.signal)
    stop.abort()
    await second
  })

  test('row 17: IDLE that is refused, or ended as soon as begun, is done without', async (t) => {
    for (const answer of [
      { tagged: 'NO not now' },
      { tagged: 'BAD what' },
      { lines: ['+ idling'], tagged: 'OK done' },
    ]) {
      const { server, inbox } = await play(t, { command: on('IDLE', answer) })
      const session = await inbox()
      // A round that takes a second, as on a machine that stood still, counts as a useful one.
      const still = standstill()
      for (let n = 0; n < 10 && session.capabilities.idle; n += 1) await session.idle(50, long())
      assert.equal(session.capabilities.idle, false)
      const count = server.log.filter(({ line }) => /^C: .* IDLE/.test(line)).length
      assert(count <= 3 || still.lost() > 500, `${count} rounds`)
      still.stop()
      await session.idle(50, long())
      assert.equal(server.log.filter(({ line }) => /^C: .* IDLE/.test(line)).length, count)
      assert.equal(session.closed, false)
    }
  })

  test('ended early now and then, it is trusted again after each round that was not', async (t) => {
    const { server, inbox } = await play(t)
    const session = await inbox()
    const early = { command: on('IDLE', { lines: ['+ idling'], tagged: 'OK done' }) }
    for (const hooks of [early, early, {}, early, early, {}]) {
      server.hooks = hooks
      await session.idle(20, long())
    }
    assert.equal(session.capabilities.idle, true)
  })

  test('it is renewed on time, and the mailbox is heard in every round', async (t) => {
    const { server, inbox } = await play(t)
    const session = await inbox()
    for (let n = 1; n <= 3; n += 1) {
      await session.idle(40, long())
      fill(server, 1)
    }
    await session.idle(40, long())
    assert.equal(session.selected?.exists, 3)
  })

  test('row 18: a connection that died in silence is noticed within the round and the deadline', async (t) => {
    let dead = false
    const { server } = await play(t)
    const proxy = await silentProxy(t, server.port, () => dead)
    const session = await openTest(t, proxy, { commandTimeoutMs: 200 })
    await session.select('INBOX')
    const idling = session.idle(3000, long())
    await until('idle', () => server.connections.some(({ idling: on }) => on))
    dead = true
    const started = performance.now()
    await failure(idling, 'timeout')
    assert(performance.now() - started < 12_000)
    assert.equal(closings(session).length, 1)
  })

  test('row 18: the kernel asks a silent connection each minute', { skip: process.platform !== 'linux' }, async (t) => {
    const { server, inbox } = await play(t)
    await inbox()
    const to = server.port.toString(16).toUpperCase().padStart(4, '0')
    const rows = (await readFile('/proc/net/tcp', 'latin1')).split('\n').map((line) => line.trim().split(/\s+/))
    // State 01 is established: connections to an earlier server at this port may be closing still.
    const ours = rows.filter(([, , remote, state]) => remote?.endsWith(`:${to}`) === true && state === '01')
    // Timer 02 is the keep-alive, and the time until then is in hundredths of a second.
    const due = ours.map(([, , , , , timer]) => /^02:(\w+)$/.exec(timer ?? '')?.[1])
    assert.equal(due.length, 1)
    assert(Math.abs(parseInt(due[0] ?? '', 16) - 6000) < 1500, due.join())
  })

  test('"+" once more in the place of an answer to DONE: the deadline goes on', async (t) => {
    const isDone = (response: Buffer): boolean => /^\w+ OK/.test(response.toString('latin1'))
    const { inbox } = await play(t, {
      send: (response, call) => (call?.name === 'IDLE' && isDone(response) ? '+ once more\r\n' : response),
    })
    const session = await inbox(200)
    void session.idle(50, long()).catch(() => undefined)
    await until('the end of the session', () => session.closed)
    await failure(session.noop(), 'timeout')
  })

  test('row 19: news before the "+", flag changes without UID, EXISTS only after NOOP', async (t) => {
    const { server, inbox } = await play(t, {
      command: on('IDLE', {
        lines: ['* 7 EXISTS', '* 2 FETCH (FLAGS (\\Seen))', '* 1 EXPUNGE', '* VANISHED 3:4'],
        proceed: true,
      }),
    })
    const session = await inbox()
    const idling = session.idle(60_000, long())
    await until('idle', () => server.connections.some(({ idling: on }) => on))
    await session.noop()
    await idling
    assert.deepEqual(session.events, [
      { type: 'exists' },
      { type: 'flags' },
      { type: 'expunge' },
      // Two have gone: one fact.
      { type: 'expunge' },
    ])
    assert.equal(session.selected?.exists, 4)
  })

  test('many who want the line at once all get it, and IDLE comes back', async (t) => {
    const { server, inbox } = await play(t)
    fill(server, 3)
    const session = await inbox()
    const stop = new AbortController()
    const watching = (async () => {
      while (!stop.signal.aborted) await session.idle(60_000, stop.signal)
    })()
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => session.fetchFlags('1:*')))
      assert(answers.every((answer) => answer.length === 3))
    }
    await until('idle again', () => server.connections.some(({ idling: on }) => on))
    stop.abort()
    await watching
  })
})

suite('moving and copying', () => {
  test('row 24: COPYUID untagged, tagged, or not at all', async (t) => {
    const { server, inbox } = await play(t)
    fill(server, 4)
    const session = await inbox()
    assert.equal((await session.move(1, 'Archive'))?.newUid, 1)
    server.hooks = {
      send(response) {
        const text = response.toString('latin1')
        if (/^\* OK \[COPYUID/.test(text)) return null
        return text.replace(/OK Moved\./, 'OK [COPYUID 5 2 77] Moved.')
      },
    }
    assert.deepEqual(await session.move(2, 'Archive'), { newUid: 77, uidValidity: '5' })
    server.hooks = { send: withoutMoved }
    // As of a folder that may be written to, but not read.
    assert.deepEqual(await session.move(3, 'Trash'), { newUid: null, uidValidity: null })
    server.hooks = { send: (response) => response.toString('latin1').replace(/ \[COPYUID .*\]/, '') }
    assert.deepEqual(await session.copy(4, 'Trash'), { newUid: null, uidValidity: null })
  })

  test('told of copies, and of moves never: each move is done', async (t) => {
    const { server, inbox } = await play(t, { send: withoutMoved })
    fill(server, 4)
    const session = await inbox()
    for (const [uid, copy] of [
      [2, 1],
      [3, 3],
    ] as const) {
      assert.equal((await session.copy(1, 'Archive'))?.newUid, copy)
      assert.deepEqual(await session.move(uid, 'Archive'), { newUid: null, uidValidity: null })
    }
    assert.deepEqual(uidsIn(server, 'INBOX'), [1, 4])
    assert.equal(uidsIn(server, 'Archive').length, 4)
  })

  test('told of copies no more: the first counts as not done, all others are one copy each', async (t) => {
    const { server, inbox, sent } = await play(t)
    fill(server, 4)
    const session = await inbox()
    assert.equal((await session.copy(1, 'Archive'))?.newUid, 1)
    server.hooks = { send: (response) => response.toString('latin1').replace(/ \[COPYUID .*\]/, '') }
    assert.equal(await session.copy(2, 'Archive'), null)
    // Asked again.
    for (const uid of [2, 3, 4])
      assert.deepEqual(await session.copy(uid, 'Archive'), { newUid: null, uidValidity: null }, `${uid}`)
    assert.equal(uidsIn(server, 'Archive').length, 5)
    server.expunge('ann', 'INBOX', 3)
    const copies = () => sent().filter((line) => line.includes('UID COPY')).length
    const before = copies()
    assert.equal(await session.copy(3, 'Archive'), null)
    assert.equal(copies(), before)
    server.hooks = {}
    assert.equal((await session.copy(4, 'Archive'))?.newUid, 6)
  })

  test('COPYUID, and then OK [EXPUNGEISSUED]: of other messages, this one was moved', async (t) => {
    const { server, inbox } = await play(t)
    fill(server, 3)
    const session = await inbox()
    const expunged = (response: Buffer) => response.toString('latin1').replace(/OK Moved\./, 'OK [EXPUNGEISSUED] Some.')
    server.hooks = { send: expunged }
    const { uidValidity } = server.folder('ann', 'Archive')
    for (const uid of [1, 2])
      assert.deepEqual(await session.move(uid, 'Archive'), { newUid: uid, uidValidity: String(uidValidity) })
    // Without COPYUID it is this one.
    server.hooks = { command: on('UID MOVE', { tagged: 'OK [EXPUNGEISSUED] Some.' }) }
    for (const path of ['Archive', 'Trash']) assert.equal(await session.move(3, path), null, path)
    assert.deepEqual(uidsIn(server, 'INBOX'), [3])
  })

  test('a message that others took out meanwhile was not moved, whatever else has left', async (t) => {
    for (const isTold of [true, false]) {
      const { server, inbox } = await play(t)
      fill(server, 5)
      const session = await inbox()
      if (isTold) await session.move(1, 'Archive')
      server.expunge('ann', 'INBOX', 2)
      await session.noop()
      // Told while the server looks for the first.
      server.expunge('ann', 'INBOX', 3)
      assert.equal(await session.move(2, 'Archive'), null, `COPYUID before: ${isTold}`)
      assert.equal((await session.move(4, 'Archive'))?.newUid, isTold ? 2 : 1)
    }
  })

  test('refused since another client has removed it, in whatever words: it is not there', async (t) => {
    for (const words of ['Some of the requested messages no longer exist (0.001 secs).', 'No matching messages']) {
      const { server, inbox } = await play(t)
      fill(server, 3)
      const session = await inbox()
      const refused = { tagged: `NO [EXPUNGEISSUED] ${words}` }
      await session.copy(1, 'Archive')
      server.hooks = { command: ({ name }) => (/COPY|MOVE/.test(name) ? refused : undefined) }
      // Of the second folder it is not known yet whether the server tells where copies lie.
      for (const path of ['Archive', 'Trash'])
        assert.deepEqual([await session.copy(2, path), await session.move(3, path)], [null, null], path)
    }
  })

  test('a MOVE that is refused as unsupported is done by COPY, STORE and EXPUNGE, with UIDPLUS and without', async (t) => {
    for (const refused of ['BAD Unknown command', 'NO MOVE is not supported']) {
      for (const capabilities of [fullCapabilities, ['IMAP4rev1', 'AUTH=PLAIN', 'MOVE']]) {
        const { server, inbox, sent } = await play(t, { command: on('UID MOVE', { tagged: refused }) }, capabilities)
        fill(server, 4)
        server.setFlags('ann', 'INBOX', 1, ['\\Deleted'])
        const session = await inbox()
        for (const uid of [2, 3]) assert.notEqual(await session.move(uid, 'Archive'), null, refused)
        assert.deepEqual(
          [uidsIn(server, 'INBOX'), uidsIn(server, 'Archive')],
          [
            [1, 4],
            [1, 2],
          ],
          refused,
        )
        assert.equal(sent().filter((line) => line.includes('UID MOVE')).length, 1, refused)
      }
    }
  })

  test('a MOVE that is refused for another reason is not tried in another way', async (t) => {
    const { server, inbox, sent } = await play(t)
    fill(server, 2)
    const session = await inbox()
    for (const words of ['NO [OVERQUOTA] Quota exceeded', 'NO [NOPERM] Not yours', 'NO [INUSE] Busy', 'NO not today']) {
      server.hooks = { command: on('UID MOVE', { tagged: words }) }
      await failure(session.move(1, 'Archive'), 'server_refused')
    }
    assert(!sent().some((line) => line.includes('COPY')))
    server.hooks = {}
    assert.equal((await session.move(1, 'Archive'))?.newUid, 1)
    assert.match(sent().at(-1) ?? '', /UID MOVE/)
    assert.deepEqual(uidsIn(server, 'INBOX'), [2])
  })

  test('without MOVE and UIDPLUS only the one message goes; what others marked stays', async (t) => {
    const { server, inbox } = await play(t, {}, ['IMAP4rev1', 'AUTH=PLAIN'])
    fill(server, 3)
    server.setFlags('ann', 'INBOX', 1, ['\\Deleted'])
    const session = await inbox()
    await session.move(2, 'Trash')
    assert.deepEqual(server.folder('ann', 'Trash').messages.length, 1)
    const left = server.folder('ann', 'INBOX').messages
    assert.deepEqual(
      left.map(({ uid, flags }) => [uid, [...flags]]),
      [
        [1, ['\\Deleted']],
        [3, []],
      ],
    )
  })
})

/** Says of a move nothing of where it went. */
function withoutMoved(response: Buffer): Buffer | null {
  return /^\* OK \[COPYUID/.test(response.toString('latin1')) ? null : response
}

function uidsIn(server: ImapServer, path: string): number[] {
  return server.folder('ann', path).messages.map(({ uid }) => uid)
}

/** Passes everything on until told that the line is dead; then swallows without a word. */
async function silentProxy(t: TestContext, port: number, dead: () => boolean): Promise<Target> {
  const sockets: Socket[] = []
  const server = createServer((client) => {
    const upstream = createConnection({ port, host: '127.0.0.1' })
    sockets.push(client, upstream)
    for (const socket of [client, upstream]) socket.on('error', () => undefined)
    client.on('data', (chunk) => dead() || upstream.write(chunk))
    upstream.on('data', (chunk) => dead() || client.write(chunk))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}
