/**
 * Answers that are long: what fits within the limits is read as ever, what does not is asked for in another way.
 * In a process of its own: the heap is measured.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { texts } from '../../engine/accounts/session/responses.ts'
import { createNames } from '../../engine/accounts/session/names.ts'
import type { FetchedMessage } from '../../engine/accounts/session-types.ts'
import type { Hooks } from '../support/imap-server/index.ts'
import { failure, fill, on, play, type Played } from '../support/imap-server/play.ts'
import { until } from '../support/until.ts'

const exists = 500_000
/** Every second UID. */
const scattered = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => 1_000_000_000 + 2 * (from + n))

/** INBOX with 500,000 messages; `search` answers. */
async function large(t: TestContext, search: NonNullable<Hooks['command']>): Promise<Played> {
  const command: Hooks['command'] = (call) => {
    if (call.name === 'UID SEARCH') return search(call)
    if (call.name !== 'SELECT') return undefined
    return {
      lines: [`* ${exists} EXISTS`, '* OK [UIDVALIDITY 1] ok', '* OK [UIDNEXT 2000000000] ok'],
      tagged: 'OK done',
    }
  }
  return play(t, { command })
}

function slice(text: string): [number, number] {
  const [, from, to] = / SEARCH (\d+):(\d+) UID 1:\*/.exec(text) ?? assert.fail(text)
  return [Number(from), Number(to)]
}

suite('a search in a folder of 500,000 messages', () => {
  test('slice by slice, none longer than a line may be', async (t) => {
    let slices = 0
    const { inbox } = await large(t, ({ text }) => {
      const [from, to] = slice(text)
      slices += 1
      const line = `* SEARCH ${scattered(from, to).join(' ')}`
      assert(line.length < 1_048_576, `${line.length} bytes`)
      return { lines: [line], tagged: 'OK done' }
    })
    assert.deepEqual(await (await inbox(5000)).searchUids('1:*'), scattered(1, exists))
    assert.equal(slices, 6)
  })

  test('messages that go meanwhile: asked anew', async (t) => {
    let slices = 0
    const { inbox } = await large(t, ({ text }) => {
      const [from, to] = slice(text)
      slices += 1
      const lines = [`* SEARCH ${scattered(from, to).join(' ')}`, ...(slices === 3 ? ['* 7 EXPUNGE'] : [])]
      return { lines, tagged: 'OK done' }
    })
    await (await inbox(5000)).searchUids('1:*')
    assert.equal(slices, 12)
  })
})

suite('long FETCH answers', () => {
  test('a structure of 100 KB is left out, and so is one of 6,000 words: the rest of the message is read', async (t) => {
    for (const [size, text] of [
      [1200, 'x'.repeat(60)],
      [700, ''],
    ] as const) {
      const part = `("text" "plain" ("name" "${text}") NIL NIL "7bit" 5 1)`
      const { server, inbox } = await play(t, {
        send: (response) =>
          / \(UID 2 .*BODYSTRUCTURE/.test(response.toString('latin1'))
            ? response
                .toString('latin1')
                .replace(/BODYSTRUCTURE \(.*?\) BODY\[/, () => `BODYSTRUCTURE (${part.repeat(size)} "mixed") BODY[`)
            : response,
      })
      fill(server, 3)
      const found = await (await inbox(5000)).fetchIndex('1:*')
      assert.deepEqual(found.map(({ uid }) => uid).sort(), [1, 2, 3])
      const second = found.find(({ uid }) => uid === 2)
      assert(second)
      assert.equal(second.body, null)
      assert.match(second.headers.toString(), /Subject: m2/)
    }
  })

  test('of header fields the first 512 KiB are read', async (t) => {
    const { server, inbox } = await play(t)
    server.append('ann', 'INBOX', `Subject: long\r\nTo: ${'a@b.example,\r\n '.repeat(40_000)}\r\n\r\nHello.\r\n`)
    const [message] = await (await inbox(5000)).fetchIndex('1:*')
    assert(message)
    assert.equal(message.headers.length, 524_288)
    assert.match(message.headers.toString('latin1'), /^Subject: long/)
  })

  test('a part of 2.5 MiB comes in pieces of 1 MiB, one of 1 MiB at once', async (t) => {
    const { server, inbox, sent } = await play(t)
    const raw = Buffer.alloc(2_621_440, 'abcdefghijklmnopqrstuvwxyz0123456789')
    raw.write('Subject: x\r\n\r\n')
    server.append('ann', 'INBOX', raw.toString('latin1'))
    const session = await inbox(5000)
    assert((await session.fetchSection(1, '', 4_000_000))?.equals(raw))
    assert.deepEqual(
      sent().flatMap((line) => /<\d+\.\d+>/.exec(line)?.[0] ?? []),
      ['<0.1048576>', '<1048576.1048576>', '<2097152.1048576>'],
    )
    const asked = sent().length
    assert.equal((await session.fetchSection(1, '', 1_048_576))?.length, 1_048_576)
    assert.equal(sent().length, asked + 1)
    assert.deepEqual(
      [...((await session.fetchSections([1], ['HEADER', 'TEXT'], 2_000_000)).get(1)?.keys() ?? [])],
      ['HEADER'],
    )
  })

  test('a server that sends all for each piece: every piece is right', async (t) => {
    const { server, inbox } = await play(t)
    const raw = Buffer.alloc(2_621_440, 'abcdefghijklmnopqrstuvwxyz0123456789')
    server.append('ann', 'INBOX', 'Subject: x\r\n\r\n')
    const line = Buffer.concat([Buffer.from(`* 1 FETCH (UID 1 BODY[] {${raw.length}}\r\n`), raw, Buffer.from(')')])
    server.hooks = { command: on('UID FETCH', { lines: [line], tagged: 'OK done' }) }
    const session = await inbox(5000)
    assert((await session.fetchSection(1, '', 4_000_000))?.equals(raw))
    for (const [from, count, last] of [
      [0, 500_000, false],
      [1_000_000, 524_288, false],
      [2_400_000, 524_288, true],
      [2_621_440, 524_288, true],
      [9_000_000, 524_288, true],
    ] as const) {
      const chunk = await session.fetchChunk(1, '', from, count)
      assert(chunk)
      assert.deepEqual(chunk.bytes, raw.subarray(from, from + count), `from ${from}`)
      assert.equal(chunk.last, last, `from ${from}`)
    }
  })
})

suite('flags, attributes and names that are kept have bounds', () => {
  test('of a message 200 flags of 200 characters, and no EMAILID of more than 255', async (t) => {
    const { inbox, server } = await play(t)
    const many = Array.from({ length: 201 }, (_, n) => `k${n}`)
    const lines = [
      `* 1 FETCH (UID 1 FLAGS (${'a'.repeat(201)} \\Seen ${'b'.repeat(200)}) EMAILID (${'e'.repeat(256)}) BODY[HEADER.FIELDS (X)] "")`,
      `* 2 FETCH (UID 2 FLAGS ({201}\r\n${'c'.repeat(201)}${many.map((flag) => ` ${flag}`).join('')}) EMAILID (${'e'.repeat(255)}) BODY[HEADER.FIELDS (X)] "")`,
    ]
    const session = await inbox(5000)
    server.hooks = { command: on('UID FETCH', { lines, tagged: 'OK done' }) }
    const [first, second] = await session.fetchIndex('1:2')
    assert.deepEqual(first?.flags, ['\\Seen', 'b'.repeat(200)])
    assert.equal(first.emailId, null)
    assert.deepEqual(second?.flags, many.slice(0, 200))
    assert.equal(second.emailId?.length, 255)
  })

  for (const [name, flags, count, told, refused] of [
    ['20,000 messages: all of them', '\\Seen', 20_000, 20_000, false],
    ['20,001 messages: 20,000, and that there are more', '\\Seen', 20_001, 20_000, false],
    ['of 9 MiB what fits into 8', 'x'.repeat(4096), 2304, 2021, false],
    ['the same where CHANGEDSINCE is refused', 'x'.repeat(4096), 2304, 2021, true],
  ] as const) {
    test(`changed, ${name}`, async (t) => {
      const { inbox, server } = await play(t)
      const line = (n: number): string =>
        `* ${n} FETCH (UID ${n + 1_000_000} MODSEQ (${n + 1_000_000}) FLAGS (${flags}))`
      const answer = [...Array.from({ length: count }, (_, n) => line(n + 1)), '* OK Still here']
      const lines = [Buffer.from(answer.join('\r\n'))]
      const session = await inbox(5000)
      server.hooks = {
        command({ name: word, text }) {
          if (word !== 'UID FETCH') return undefined
          return refused && text.includes('CHANGEDSINCE') ? { tagged: 'BAD what' } : { lines, tagged: 'OK done' }
        },
      }
      let more = 0
      const found = await session.fetchFlags('1:*', '1', () => void (more += 1))
      assert.equal(more, count - found.length)
      assert(Math.abs(found.length - told) < 30, `${found.length}`)
      assert.equal(session.closed, false)
    })
  }

  test('of a folder 32 attributes of 64 characters, and a delimiter of one', async (t) => {
    const { inbox, server } = await play(t)
    const many = Array.from({ length: 33 }, (_, n) => `\\A${n}`)
    const lines = [
      `* LIST ({60000}\r\n${'a'.repeat(60_000)} \\Noselect) "//" "one"`,
      `* LIST (${'b'.repeat(64)} ${'c'.repeat(65)}) "/" "two"`,
      `* LIST (${many.join(' ')}) NIL "INBOX"`,
    ]
    const session = await inbox(5000)
    server.hooks = { command: on('LIST', { lines, tagged: 'OK done' }) }
    const listed = await session.list({ status: false })
    assert.deepEqual(
      listed.map(({ path, delimiter, attributes }) => [path, delimiter, attributes]),
      [
        ['one', '', ['\\Noselect']],
        ['two', '/', ['b'.repeat(64)]],
        ['INBOX', '', many.slice(0, 32)],
      ],
    )
    assert.equal(listed[0]?.selectable, false)
  })

  test('a connection keeps nothing of a page that was read', async (t) => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const { server, inbox } = await play(t)
    for (let n = 1; n <= 10; n += 1)
      server.append('ann', 'INBOX', `Subject: m${n}\r\nReferences: ${'<r> '.repeat(15_000)}\r\n\r\nx`)
    const session = await inbox(5000)
    const read = async (): Promise<WeakRef<FetchedMessage>[]> =>
      (await session.fetchIndex('1:*')).map((message) => new WeakRef(message))
    const page = await read()
    assert.equal(page.length, 10)
    await until('the page is free', () => {
      gc()
      return page.every((message) => message.deref() === undefined)
    })
    assert.equal(session.closed, false)
  })

  test('a text that was put together character by character takes its characters', () => {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    const built = (): string => Array.from({ length: 2000 }).reduce<string>((word, _, n) => word + String(n % 10), '')
    const tokens = Array.from({ length: 1000 }, () => ({ type: 'STRING', value: built() }))
    gc()
    const before = process.memoryUsage().heapUsed
    assert.equal(texts(tokens).length, 1000)
    gc()
    const less = before - process.memoryUsage().heapUsed
    assert(less > 40_000_000, `${less} bytes less`)
    assert.equal(tokens[0]?.value.length, 2000)
  })

  test('of names in an odd spelling the last 10,000', () => {
    const names = createNames()
    for (let n = 0; n <= 10_000; n += 1) assert.equal(names.fromWire(`R&D ${n}`), `R&D ${n}`)
    assert.equal(names.toWire('R&D 0'), 'R&-D 0')
    assert.equal(names.toWire('R&D 1'), 'R&D 1')
    names.fromWire('R&D 1')
    names.fromWire('R&D new')
    assert.deepEqual(
      ['R&D 1', 'R&D 2', 'R&D 10000'].map((name) => names.toWire(name)),
      ['R&D 1', 'R&-D 2', 'R&D 10000'],
    )
  })

  test('what a server offers after the login is not added to what it offered', async (t) => {
    const { inbox, server } = await play(t)
    const session = await inbox(5000)
    const lines = ['* CAPABILITY IMAP4rev1 X-GM-EXT-1', '* OK [CAPABILITY IMAP4rev1 X-GM-EXT-1] hello']
    server.hooks = { command: on('NOOP', { lines, tagged: 'OK [CAPABILITY IMAP4rev1 X-GM-EXT-1] done' }) }
    await session.noop()
    assert.notEqual(session.capabilities.identity, 'gmail')
  })

  test('what is said during the login: 1 MiB', async (t) => {
    const line = (n: number): string => `* ID ("name ${n}" {60000}\r\n${'x'.repeat(60_000)})`
    const lines = Array.from({ length: 18 }, (_, n) => line(n))
    const { open } = await play(t, { command: on('ID', { lines, tagged: 'OK done' }) })
    const { message } = await failure(open({ commandTimeoutMs: 5000 }), 'protocol')
    assert.match(message, /more than 1048576 bytes of responses to one command/)
  })
})

suite('what passes a limit ends the connection, and the limit is told', () => {
  for (const [name, line, wanted] of [
    [
      'one word',
      `* OK [X ${'1,'.repeat(20_000)}] hello`,
      /OK response of more than 5000 words, or 5000 characters in one/,
    ],
    ['a line', `* FLAGS (${'abcdefgh '.repeat(10_000)})`, /FLAGS response of more than 65536 bytes/],
    [
      'a literal',
      `* X {100000}\r\n${'x'.repeat(100_000)}`,
      /Literal size 100000 exceeds maximum allowed size of 65536 bytes/,
    ],
    ['many words', `* CAPABILITY${' A'.repeat(6000)}`, /CAPABILITY response of more than 5000 words/],
    ['numbers', `* SEARCH${' 1'.repeat(600_000)}`, /Line length \d+ exceeds maximum allowed size of 1048576 bytes/],
    [
      'bytes',
      Array.from({ length: 140 }, () => `* X {60000}\r\n${'x'.repeat(60_000)}`).join('\r\n'),
      /more than 8388608 bytes of responses to one command/,
    ],
    ['responses', Array.from({ length: 100_001 }, () => '* 1 RECENT').join('\r\n'), /more than 100000 responses/],
  ] as const) {
    test(name, async (t) => {
      const { server, inbox } = await play(t)
      const session = await inbox(5000)
      server.hooks = { command: on('NOOP', { lines: [line], tagged: 'OK done' }) }
      const { message } = await failure(session.noop(), 'protocol')
      assert.match(message, wanted)
      assert.equal(session.closed, true)
    })
  }
})
