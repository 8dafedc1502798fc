/** Servers as they are: answers to FETCH that lack things, cannot be read, or are poisoned. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { entity, multipart, textPart } from '../support/corpus/build.ts'
import { fullCapabilities, type HookCall } from '../support/imap-server/index.ts'
import { failure, fill, play, replaced } from '../support/imap-server/play.ts'
import { mail } from '../support/mail.ts'

suite('answers to FETCH', () => {
  test('row 11: without UID, without FLAGS, with UIDs left out', async (t) => {
    const { server, inbox } = await play(t, {})
    fill(server, 4)
    const session = await inbox()
    server.hooks = {
      send(response) {
        const text = response.toString('latin1')
        if (text.startsWith('* 2 FETCH')) return text.replace(/UID \d+ /, '')
        if (text.startsWith('* 3 FETCH')) return text.replace(/FLAGS \(\) /, '')
        return text.startsWith('* 4 FETCH') ? null : response
      },
    }
    const found = await session.fetchIndex('1:*')
    assert.deepEqual(
      found.map(({ uid, flags }) => [uid, flags]),
      [
        [1, []],
        [3, null],
      ],
    )
    assert.deepEqual(
      (await session.fetchIndex('2')).map(({ uid }) => uid),
      [2],
    )
    assert.deepEqual(await session.searchUids('1:*'), [1, 2, 3, 4])
  })

  test('row 12: RFC822 is never asked for, and nothing sets \\Seen', async (t) => {
    const { server, inbox, sent } = await play(t, {})
    fill(server, 1)
    const session = await inbox()
    await session.fetchIndex('1:*')
    await session.fetchSection(1, '', 1000)
    assert(await session.fetchChunk(1, '1', 0, 1000))
    const asked = sent()
      .filter((line) => line.includes('UID FETCH'))
      .join('\n')
    assert.doesNotMatch(asked, /RFC822(?!\.SIZE)|BODY\[/)
    assert.deepEqual((await session.fetchFlags('1'))[0]?.flags, [])
  })

  test('row 13: a poisoned message is left out by a NO; the session goes on', async (t) => {
    const { server, inbox } = await play(t, {})
    fill(server, 3)
    const session = await inbox()
    server.hooks = {
      command({ name, text }) {
        if (name !== 'UID FETCH') return undefined
        return / (1:3|2|2:3) /.test(text) ? { tagged: 'NO [SERVERBUG] System Error (Failure)' } : undefined
      },
    }
    assert.deepEqual(await session.fetchIndex('1:3'), [])
    assert.deepEqual(
      (await session.fetchIndex('1')).map(({ uid }) => uid),
      [1],
    )
    assert.deepEqual(await session.fetchIndex('2'), [])
    assert.deepEqual(
      (await session.fetchIndex('3')).map(({ uid }) => uid),
      [3],
    )
    assert.equal(session.closed, false)
  })

  test('a part that is refused is cut out of the whole message; the whole is given up where that does not help', async (t) => {
    const { server, inbox, sent } = await play(t, {})
    const inner = Buffer.from(mail({ to: 'ann@mail.example', subject: 'inner', text: 'in\r\n--outer-not\r\nit' }))
    const passedOn = entity(['Content-Type: message/rfc822'], inner)
    const plain = (text: string): Buffer => textPart(text)
    server.append('ann', 'INBOX', multipart('multipart/mixed', 'outer', [plain('one'), passedOn, plain('three')]))
    const session = await inbox()
    const refuse = (sections: RegExp): void => {
      server.hooks = {
        command: ({ name, text }) =>
          name === 'UID FETCH' && sections.test(text) ? { tagged: 'NO UID failed. ArrayIndexOutOfBounds' } : undefined,
      }
    }
    refuse(/BODY\.PEEK\[[1-9]/)
    assert.deepEqual(await session.fetchSection(1, '2', 100_000), inner)
    assert.deepEqual(await session.fetchSection(1, '2', 7), inner.subarray(0, 7))
    assert.deepEqual(await session.fetchChunk(1, '2', 0, 10), { bytes: inner, last: true })
    assert.deepEqual(await session.fetchChunk(1, '2', 10, 10), { bytes: inner.subarray(10), last: true })
    assert.equal((await session.fetchSection(1, '3', 100))?.toString(), 'three')
    await failure(session.fetchSection(1, '4', 100), 'server_refused')
    await failure(session.fetchSection(1, '2.MIME', 100), 'server_refused')
    refuse(/BODY\.PEEK/)
    const before = sent().length
    await failure(session.fetchSection(1, '2', 100), 'server_refused')
    await failure(session.fetchSection(1, '', 100), 'server_refused')
    assert.equal(sent().length - before, 3, 'the whole is not asked for twice')
  })

  test('row 28: a range that is labelled with its length too is the range', async (t) => {
    const { server, inbox } = await play(t, {
      send: (response, call) => {
        const asked = /BODY\.PEEK\[(.*?)\]<(\d+\.\d+)>/.exec(call?.text ?? '')
        if (asked === null) return response
        return Buffer.from(response.toString('latin1').replace(/(BODY\[[^\]]*\])<\d+>/g, `$1<${asked[2]}>`), 'latin1')
      },
    })
    const long = 'abcdefghij'.repeat(30_000)
    server.append('ann', 'INBOX', multipart('multipart/mixed', 'outer', [textPart('one'), textPart(long)]))
    const session = await inbox()
    assert.equal((await session.fetchSection(1, '1', 524_288))?.toString(), 'one')
    assert.equal((await session.fetchSection(1, '2', 524_288))?.toString(), long)
    assert.equal((await session.fetchSections([1], ['2'], 524_288)).get(1)?.get('2')?.length, long.length)
    assert.deepEqual(await session.fetchChunk(1, '2', 299_990, 20), { bytes: Buffer.from('abcdefghij'), last: true })
  })

  test('row 14: a BODYSTRUCTURE that is none: headers stay, the structure is null, the neighbours are whole', async (t) => {
    const broken = [
      'BODYSTRUCTURE ("TEXT" "PLAIN" ((',
      'BODYSTRUCTURE "unfinished',
      'BODYSTRUCTURE ("MIXED" ("boundary" "x"))',
      'BODYSTRUCTURE (NIL NIL NIL)',
      'BODYSTRUCTURE (("TEXT" "PLAIN" NIL NIL NIL "7BIT" 3 1)(NIL) "MIXED")',
      `BODYSTRUCTURE ${'('.repeat(60)}"TEXT" "PLAIN"${')'.repeat(60)}`,
      'BODYSTRUCTURE {3}\r\nabc',
    ]
    const { server, inbox } = await play(t, {})
    fill(server, 3)
    const session = await inbox()
    for (const structure of broken) {
      server.hooks = {
        send(response) {
          const text = response.toString('latin1')
          return text.startsWith('* 2 FETCH') ? text.replace(/BODYSTRUCTURE \(.*?\)(?= MODSEQ)/, structure) : response
        },
      }
      const found = (await session.fetchIndex('1:*')).sort((a, b) => a.uid - b.uid)
      assert.deepEqual(
        found.map(({ uid }) => uid),
        [1, 2, 3],
        structure,
      )
      assert.deepEqual(
        found.map(({ body }) => body?.type ?? null),
        ['text/plain', null, 'text/plain'],
        structure,
      )
      assert.match(found[1]?.headers.toString() ?? '', /^Subject: m2\r$/m)
    }
    assert.equal(session.closed, false)
  })

  test('row 14: structures that are merely odd are read by their shape', async (t) => {
    const { server, inbox } = await play(t, {})
    fill(server, 1)
    const session = await inbox()
    const read = async (structure: string) => {
      server.hooks = { send: replaced(/BODYSTRUCTURE \(.*?\)(?= MODSEQ)/, `BODYSTRUCTURE ${structure}`) }
      return (await session.fetchIndex('1'))[0]?.body ?? null
    }
    const noLines = await read(
      '("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "8BIT" 12 NIL ("attachment" ("FILENAME" "a.txt")) NIL NIL)',
    )
    assert.equal(noLines?.dispositionParameters['filename'], 'a.txt')
    assert.equal(noLines.encoding, '8bit')
    const field = 'attachment; filename=\\"a \\(1\\).txt\\"; size=12'
    const asText = await read(`("TEXT" "PLAIN" NIL NIL NIL "8BIT" 12 1 NIL "${field}" NIL NIL)`)
    assert.equal(asText?.disposition, 'attachment')
    assert.equal(asText.dispositionParameters['filename'], 'a (1).txt')
    const nilSize = await read('("IMAGE" "PNG" NIL NIL NIL NIL NIL)')
    assert.deepEqual([nilSize?.type, nilSize?.size, nilSize?.part], ['image/png', undefined, '1'])
    const noSpace = await read(
      '(("TEXT" "PLAIN" NIL NIL NIL "7BIT" 3 1) ("TEXT" "HTML" NIL NIL NIL "7BIT" 3 1) "ALTERNATIVE" NIL NIL)',
    )
    assert.deepEqual(
      noSpace?.children.map(({ part }) => part),
      ['1', '2'],
    )
    const literalName = await read('("APPLICATION" "PDF" ("NAME" {5}\r\na"b".) NIL NIL "BASE64" 3)')
    assert.equal(literalName?.parameters['name'], 'a"b".')
    const nested = await read(
      '(("MESSAGE" "RFC822" NIL NIL NIL "7BIT" 90 ("d" "Re: x" NIL NIL NIL NIL NIL NIL NIL NIL) (("TEXT" "PLAIN" NIL NIL NIL "7BIT" 3 1)("TEXT" "HTML" NIL NIL NIL "7BIT" 3 1) "MIXED") 5) "MIXED")',
    )
    const inner = nested?.children[0]
    assert.equal(inner?.subject, 'Re: x')
    assert.equal(inner.children[0]?.part, undefined)
    assert.deepEqual(
      inner.children[0]?.children.map(({ part }) => part),
      ['1.1', '1.2'],
    )
  })

  test('row 15: noise in the grammar', async (t) => {
    const { server, inbox } = await play(t, {}, [...fullCapabilities, 'OBJECTID'])
    fill(server, 2)
    const session = await inbox()
    server.hooks = {
      send(response) {
        const text = response.toString('latin1')
        if (!text.startsWith('* ')) return `* OK Still here\r\n* OK [\r\n* OK [NIL] x\r\n*\r\n+ \r\n\r\n${text}`
        const noisy = text
          .replace('FLAGS ()', 'FLAGS (\\Seen [odd] $Label1 )')
          .replace(/THREADID \(.*?\)/, 'THREADID NIL')
          .replace(/\)\r\n$/, ' )\r\n')
        return `\0\0\0${noisy}`
      },
    }
    const found = await session.fetchIndex('1:*')
    assert.deepEqual(
      found.map(({ uid, flags, threadId }) => [uid, flags, threadId]),
      [1, 2].map((uid) => [uid, ['\\Seen', '[odd]', '$Label1'], null]),
    )
    assert(found.every(({ emailId }) => /^M\d+$/.test(emailId ?? '')))
    assert.equal(session.closed, false)
  })

  test('identities: Gmail’s and OBJECTID’s', async (t) => {
    const { server, inbox } = await play(t, {}, [...fullCapabilities, 'X-GM-EXT-1'])
    fill(server, 1)
    const [message] = server.folder('ann', 'INBOX').messages
    const session = await inbox()
    const [found] = await session.fetchIndex('1:*')
    assert.equal(session.capabilities.identity, 'gmail')
    assert.equal(found?.emailId, message?.identity)
    assert.equal(found?.threadId, message?.thread)
  })

  test('row 31: NIL for a part is an empty part; for the header, the whole or a MIME header nothing is there', async (t) => {
    const { server, inbox } = await play(t, {})
    server.append('ann', 'INBOX', multipart('multipart/mixed', 'outer', [textPart(''), textPart('two')]))
    const session = await inbox()
    const empty = Buffer.alloc(0)
    server.hooks = { send: replaced(/ \{0\}\r\n/g, ' NIL') }
    assert.deepEqual(await session.fetchSection(1, '1', 100), empty)
    assert.deepEqual(await session.fetchChunk(1, '1', 0, 100), { bytes: empty, last: true })
    const read = await session.fetchSections([1, 2], ['1', '2'], 100)
    assert.deepEqual(
      read.get(1),
      new Map([
        ['1', empty],
        ['2', Buffer.from('two')],
      ]),
    )
    assert.deepEqual(read.get(2), new Map())
    assert.equal(await session.fetchSection(2, '1', 100), null)
    server.hooks = { send: replaced(/ \{\d+\}\r\n[^]*\)\r\n$/, ' NIL)\r\n') }
    assert.deepEqual(await session.fetchSection(1, 'TEXT', 100), empty)
    for (const section of ['', 'HEADER', '1.MIME']) assert.equal(await session.fetchSection(1, section, 100), null)
    assert.deepEqual(await session.fetchSections([1], ['HEADER'], 100), new Map([[1, new Map()]]))
  })

  test('a message that goes between two pieces of a part is not there, and the part not as long as the first', async (t) => {
    const { server, inbox } = await play(t, {})
    const text = `${'x'.repeat(73)}\r\n`.repeat(20_000)
    const appended = () => server.append('ann', 'INBOX', mail({ to: 'ann@mail.example', subject: 'long', text }))
    const session = await inbox(5000)
    const expungeAt = (piece: string, uid: number) => (call: HookCall | null) => {
      if (call?.text.includes(`<${piece}.`)) server.expunge('ann', 'INBOX', uid)
      return undefined
    }
    const lengthAt = async (uid: number) => (await session.fetchSection(uid, '1', 2_000_000))?.length ?? null
    const [kept, nil, told] = [appended(), appended(), appended()]
    await session.noop()
    assert.equal(await lengthAt(kept), text.length + 2)
    // NIL is answered, or nothing: what goes during the first piece is told with it.
    server.hooks = { command: expungeAt('1048576', nil) }
    assert.equal(await lengthAt(nil), null)
    const during = expungeAt('0', told)
    const send = (response: Buffer, call: HookCall | null): Buffer => {
      during(call)
      return response
    }
    server.hooks = { send }
    assert.equal(await lengthAt(told), null)
  })

  test('row 25: a long set goes in several commands of 8 kB at most', async (t) => {
    const { server, inbox, sent } = await play(t, {})
    fill(server, 3)
    const session = await inbox()
    const set = Array.from({ length: 4000 }, (_, index) => String(1_000_000 + index * 2))
    assert.deepEqual(
      (await session.fetchIndex(['1', ...set, '3'].join(','))).map(({ uid }) => uid),
      [1, 3],
    )
    await session.fetchFlags(set.join(','))
    await session.searchUids(set.join(','))
    assert(sent().filter((line) => line.includes('UID FETCH')).length >= 8)
    assert(sent().every((line) => line.length < 8700))
    await failure(session.searchUids('1 OR ALL'), 'bad_request')
    assert.equal(session.closed, false)
  })
})
