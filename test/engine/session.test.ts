/** Sessions as the engine uses them, against the scripted server and against Dovecot: the same promises from both. */
import assert from 'node:assert/strict'
import { after, before, suite, test, type TestContext } from 'node:test'
import { isAppError, type ErrorCode } from '../../engine/errors.ts'
import type { SessionOptions } from '../../engine/accounts/session-types.ts'
import { startDovecot, type Dovecot } from '../support/dovecot.ts'
import { createImapServer, fullCapabilities, plainCapabilities } from '../support/imap-server/index.ts'
import { openTest, type Target, type TestSession } from '../support/imap-server/session.ts'
import { freePort } from '../support/port.ts'
import { literalOf, mail } from '../support/mail.ts'
import { needs } from '../support/require.ts'
import { until } from '../support/until.ts'

interface Place extends Target {
  append(raw: string | Buffer, flags?: readonly string[]): Promise<void>
  open(options?: Partial<SessionOptions>): Promise<TestSession>
}

type Setup = (t: TestContext) => Promise<Place>

const attached = [
  'From: Ada <ada@sender.example>',
  'To: ann@mail.example',
  'Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=',
  'Message-ID: <attached@sender.example>',
  'X-Other: left out',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary="cut"',
  '',
  '--cut',
  'Content-Type: text/plain; charset=utf-8',
  'Content-Transfer-Encoding: 8bit',
  '',
  'Grüße aus dem Süden',
  '--cut',
  'Content-Type: application/pdf; name="a.pdf"',
  'Content-Disposition: attachment; filename="a b.pdf"',
  'Content-Transfer-Encoding: base64',
  'Content-ID: <pdf@x>',
  '',
  'AAECAwQ=',
  '--cut',
  'Content-Type: message/rfc822',
  '',
  'Subject: within',
  'Content-Type: text/html',
  '',
  '<p>x</p>',
  '--cut--',
  '',
].join('\r\n')

function rejects(work: Promise<unknown>, code: ErrorCode, details: Record<string, unknown> = {}): Promise<void> {
  return assert.rejects(work, (error) => {
    assert(isAppError(error), String(error))
    assert.equal(error.code, code, error.message)
    for (const [name, value] of Object.entries(details)) assert.equal(error.details[name], value)
    return true
  })
}

function promises(setup: Setup): void {
  test('lists folders with special use and counts, opens one, and again for nothing', async (t) => {
    const place = await setup(t)
    await place.append(mail({ to: 'ann@mail.example', subject: 'one' }))
    const session = await place.open()
    const folders = await session.list({ status: true })
    const uses = folders.map(({ specialUse }) => specialUse).filter((use) => use !== null)
    assert.deepEqual(uses.sort(), ['\\Archive', '\\Drafts', '\\Inbox', '\\Junk', '\\Sent', '\\Trash'])
    assert(folders.every(({ selectable, delimiter }) => selectable && delimiter === '/'))
    const inbox = folders.find(({ path }) => path === 'INBOX')
    if (session.capabilities.listStatus) assert.equal(inbox?.status?.messages, 1)
    const selected = await session.select('INBOX')
    assert.equal(selected.exists, 1)
    assert.equal(selected.uidNext, 2)
    assert.match(selected.uidValidity ?? '', /^[1-9]\d*$/)
    assert.equal(selected.highestModseq === null, !session.capabilities.condstore)
    assert.equal(await session.select('INBOX'), selected)
    assert.notEqual(await session.select('INBOX', { refresh: true }), selected)
    const status = await session.status('INBOX')
    assert.equal(status.unseen, 1)
    assert.equal(status.uidValidity, selected.uidValidity)
  })

  test('reads what the index needs: flags, date, size, structure, the raw header fields', async (t) => {
    const place = await setup(t)
    await place.append(attached, ['\\Flagged', 'Custom'])
    const session = await place.open()
    await session.select('INBOX')
    const [message, ...others] = await session.fetchIndex('1:*')
    assert(message && others.length === 0)
    assert.equal(message.uid, 1)
    assert.deepEqual([...(message.flags ?? [])].filter((flag) => flag !== '\\Recent').sort(), ['Custom', '\\Flagged'])
    assert.equal(message.size, Buffer.byteLength(attached))
    assert(Math.abs((message.internalDate ?? 0) - Date.now()) < 60_000)
    assert.equal(message.modseq === null, !session.capabilities.condstore)
    const header = message.headers.toString()
    assert.match(header, /^Subject: =\?utf-8\?q\?Gr=C3=BC=C3=9Fe\?=\r$/m)
    assert.doesNotMatch(header, /X-Other/)
    assert.equal(message.body?.type, 'multipart/mixed')
    assert.equal(message.body.part, undefined)
    const [text, pdf, inner] = message.body.children
    assert.deepEqual([text?.part, text?.type, text?.parameters['charset']], ['1', 'text/plain', 'utf-8'])
    assert.deepEqual([pdf?.part, pdf?.disposition, pdf?.id], ['2', 'attachment', '<pdf@x>'])
    assert.equal(pdf?.dispositionParameters['filename'], 'a b.pdf')
    assert.deepEqual([inner?.type, inner?.subject, inner?.children[0]?.part], ['message/rfc822', 'within', '3.1'])
    assert.deepEqual(await session.fetchIndex('5:*'), [])
  })

  test('reads parts of several messages at once; of a message that is not there, none', async (t) => {
    const place = await setup(t)
    for (const raw of [attached, 'Subject: plain\r\n\r\nHello', attached]) await place.append(raw)
    const session = await place.open()
    await session.select('INBOX')
    const read = await session.fetchSections([3, 1, 2, 9], ['2', 'HEADER'], 8)
    // of a part that is not there Dovecot says that it is empty, others NIL
    const told = (parts: ReadonlyMap<string, Buffer>) =>
      [...parts].filter(([, part]) => part.length > 0).map(([name, part]) => `${name}=${part.toString()}`)
    const texts = [...read].map(([uid, parts]) => [uid, ...told(parts)])
    assert.deepEqual(texts, [
      [3, '2=AAECAwQ=', `HEADER=${attached.slice(0, 8)}`],
      [1, '2=AAECAwQ=', `HEADER=${attached.slice(0, 8)}`],
      [2, 'HEADER=Subject:'],
      [9],
    ])
    assert.deepEqual(await session.fetchSections([], ['1'], 8), new Map())
    assert.deepEqual(
      (await session.fetchFlags('1:3')).filter(({ flags }) => flags.includes('\\Seen')),
      [],
    )
  })

  test('reads parts: bytes as they are, cut where asked, null where there is nothing', async (t) => {
    const place = await setup(t)
    await place.append(attached)
    const session = await place.open()
    await session.select('INBOX')
    assert.equal((await session.fetchSection(1, '', 1e6))?.toString(), attached)
    assert.equal((await session.fetchSection(1, '2', 1e6))?.toString(), 'AAECAwQ=')
    assert.equal((await session.fetchSection(1, '2', 4))?.toString(), 'AAEC')
    assert.match((await session.fetchSection(1, '2.MIME', 1e6))?.toString() ?? '', /^Content-Type: application\/pdf/)
    assert.match((await session.fetchSection(1, 'HEADER', 1e6))?.toString() ?? '', /^X-Other: left out\r$/m)
    assert.equal(await session.fetchSection(7, '', 1e6), null)
    assert.equal(await session.fetchChunk(7, '', 0, 10), null)
    assert.deepEqual(await session.fetchChunk(1, '2', 4, 3), { bytes: Buffer.from('AwQ'), last: false })
    assert.deepEqual(await session.fetchChunk(1, '2', 4, 9), { bytes: Buffer.from('AwQ='), last: true })
    assert.deepEqual(await session.fetchChunk(1, '2', 8, 9), { bytes: Buffer.alloc(0), last: true })
    await rejects(session.fetchSection(1, '1] evil', 10), 'bad_request')
    await rejects(session.fetchSections([1], ['1', '1] evil'], 10), 'bad_request')
    assert.deepEqual(await session.fetchFlags('1'), await session.fetchFlags('1:*'))
    assert(!(await session.fetchFlags('1'))[0]?.flags.includes('\\Seen'))
  })

  test('of a message that another client has expunged just now there is nothing, neither a rest nor an empty part', async (t) => {
    const place = await setup(t)
    for (let n = 1; n <= 7; n += 1) await place.append(mail({ to: 'ann@mail.example', subject: `m${n}` }))
    const [session, other] = [await place.open(), await place.open()]
    for (const one of [session, other]) await one.select('INBOX')
    const expunged = async (uid: number): Promise<number> => {
      await other.store(uid, { add: ['\\Deleted'], remove: [] })
      await other.expunge(uid)
      return uid
    }
    assert.equal(await session.fetchSection(await expunged(1), '1', 100), null)
    assert.equal(await session.fetchChunk(await expunged(2), '', 10, 10), null)
    assert.equal(await session.fetchChunk(await expunged(3), '1', 0, 10), null)
    const read = await session.fetchSections([await expunged(4), 5], ['1'], 100)
    assert.deepEqual([...read.entries()].map(([uid, parts]) => [uid, parts.size]).sort(), [
      [4, 0],
      [5, 1],
    ])
    const found = await session.fetchIndex(`5:${await expunged(6)},7`)
    assert.deepEqual(
      found.map(({ uid }) => uid),
      [5, 7],
    )
  })

  test('IDLE hears of mail, flags and removals at once, and makes way for a command at once', async (t) => {
    const place = await setup(t)
    await place.append(mail({ to: 'ann@mail.example', subject: 'one' }))
    const [session, other] = await Promise.all([place.open(), place.open()])
    await Promise.all([session.select('INBOX'), other.select('INBOX')])
    const abort = new AbortController()
    const idling = session.idle(60_000, abort.signal)
    await place.append(mail({ to: 'ann@mail.example', subject: 'two' }))
    await until('exists', () => session.selected?.exists === 2)
    const started = performance.now()
    assert.equal((await session.fetchFlags('1:*')).length, 2)
    assert(performance.now() - started < 10_000)
    await idling
    const again = session.idle(60_000, abort.signal)
    await other.store(1, { add: ['\\Seen'], remove: [] })
    await until('flags', () => session.events.some((event) => event.type === 'flags'))
    await other.move(1, 'Trash')
    await until('expunge', () => session.events.some((event) => event.type === 'expunge'))
    assert.equal(session.selected?.exists, 1)
    abort.abort()
    await again
    assert.equal(session.closed, false)
  })

  test('writes: flags, copy, move, append, expunge, each with what the server says of it', async (t) => {
    const place = await setup(t)
    for (const subject of ['one', 'two', 'three']) await place.append(mail({ to: 'ann@mail.example', subject }))
    const session = await place.open()
    await session.select('INBOX')
    const stored = await session.store(1, { add: ['\\Seen', '\\Flagged'], remove: [] })
    assert.deepEqual([...(stored?.flags ?? [])].filter((flag) => flag !== '\\Recent').sort(), ['\\Flagged', '\\Seen'])
    const fewer = await session.store(1, { add: ['\\Answered'], remove: ['\\Seen'] })
    assert.deepEqual([...(fewer?.flags ?? [])].filter((flag) => flag !== '\\Recent').sort(), [
      '\\Answered',
      '\\Flagged',
    ])
    assert.equal(await session.store(99, { add: ['\\Seen'], remove: [] }), null)
    const known = (await session.copy(1, 'Archive'))?.newUid
    // null = without UIDPLUS.
    assert(known === 1 || known === null)
    assert.equal((await session.move(2, 'Archive'))?.newUid, known === null ? null : 2)
    assert.deepEqual(await session.searchUids('1:*'), [1, 3])
    assert.equal(await session.copy(2, 'Archive'), null)
    assert.equal(await session.move(2, 'Archive'), null)
    await rejects(session.copy(1, 'No such'), 'not_found')
    const placed = await session.append('Sent', literalOf(attached), ['\\Seen'], Date.UTC(2020, 1, 29, 12, 34, 56))
    assert.equal(placed.newUid, known)
    await session.store(1, { add: ['\\Deleted'], remove: [] })
    await session.store(3, { add: ['\\Deleted'], remove: [] })
    await session.expunge(3)
    assert.deepEqual(
      await session.fetchFlags('1:*').then((all) => all.map(({ uid, flags }) => [uid, flags.includes('\\Deleted')])),
      [[1, true]],
    )
    await session.expunge(null)
    assert.deepEqual(await session.searchUids('1:*'), [])
    await session.select('Sent')
    const [sent] = await session.fetchIndex('1:*')
    assert.equal(sent?.internalDate, Date.UTC(2020, 1, 29, 12, 34, 56))
    assert.equal((await session.fetchSection(1, '', 1e6))?.toString(), attached)
    assert.deepEqual(await session.searchBody('GRÜSSE aus'.replace('SS', 'ß')), [1])
    assert.deepEqual(await session.searchBody('nowhere "quoted" \\'), [])
  })

  test('folders of any name: made, listed, opened, removed; the same again is an error', async (t) => {
    const session = await (await setup(t)).open()
    const names = ['Grüße & Co', 'a/b c/d', '100%*"x"\\', '日本', 'R&-D', '&', 'x'.repeat(60)]
    for (const name of names) await session.createMailbox(name)
    const listed = (await session.list({ status: false })).map(({ path }) => path)
    for (const name of names) {
      assert(listed.includes(name), `${name} in ${listed.join(' ')}`)
      assert.equal((await session.select(name)).exists, 0)
    }
    await rejects(session.createMailbox('日本'), 'conflict')
    for (const name of names) await session.deleteMailbox(name)
    await rejects(session.deleteMailbox('日本'), 'not_found')
    await rejects(session.select('日本'), 'not_found')
    await rejects(session.status('日本'), 'not_found')
    assert.equal(session.closed, false)
    assert.equal(session.selected, null)
  })

  test('a wrong password, a closed port and a host that is not public, each by its class', async (t) => {
    const place = await setup(t)
    await rejects(place.open({ auth: { password: 'wrong one' } }), 'auth_rejected')
    await rejects(place.open({ port: await freePort() }), 'network', { errno: 'ECONNREFUSED' })
    await rejects(place.open({ allowPrivate: false }), 'private_address')
  })

  test('close ends it with one event, and everything after it is refused', async (t) => {
    const session = await (await setup(t)).open()
    await session.select('INBOX')
    const idling = session.idle(60_000, AbortSignal.timeout(60_000)).catch((error: unknown) => error)
    await Promise.all([session.close(), session.close()])
    await idling
    assert.equal(session.closed, true)
    assert.deepEqual(session.events, [{ type: 'closed', error: null }])
    await rejects(session.noop(), 'network')
    await rejects(session.fetchIndex('1:*'), 'network')
    await session.close()
  })
}

async function scripted(t: TestContext, capabilities: readonly string[]): Promise<Place> {
  const server = await createImapServer({ users: { ann: {} }, capabilities })
  t.after(() => server.close())
  return {
    host: server.host,
    port: server.port,
    append: (raw, flags) => Promise.resolve(void server.append('ann', 'INBOX', raw, flags)),
    open: (options) => openTest(t, server, options),
  }
}

suite('a session with the scripted server', () => promises((t) => scripted(t, fullCapabilities)))

// IDLE is what the promises are about; the rest of the extensions is gone.
suite('a session with a server without extensions', () => promises((t) => scripted(t, [...plainCapabilities, 'IDLE'])))

suite('a session with Dovecot', needs('dovecot'), () => {
  let dovecot: Dovecot | null = null
  let count = 0
  before(async () => {
    dovecot = await startDovecot()
  })
  after(() => dovecot?.remove())
  promises((t) => {
    assert(dovecot)
    const server = dovecot
    count += 1
    const username = `ann${count}`
    return Promise.resolve({
      host: server.host,
      port: server.port,
      append: (raw, flags) => server.append(username, 'INBOX', raw, flags),
      open: (options) =>
        openTest(t, server, {
          username,
          auth: { password: server.password },
          connectTimeoutMs: 15_000,
          loginTimeoutMs: 15_000,
          commandTimeoutMs: 15_000,
          ...options,
        }),
    })
  })
})
