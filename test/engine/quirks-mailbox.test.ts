/** Servers as they are: what SELECT, STATUS and LIST leave out, make up or refuse. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { fullCapabilities, type Hooks } from '../support/imap-server/index.ts'
import { literalOf } from '../support/mail.ts'
import { failure, fill, play, replaced } from '../support/imap-server/play.ts'

suite('what a mailbox says of itself', () => {
  test('row 4: without CONDSTORE nothing of it is sent', async (t) => {
    const { server, inbox, sent } = await play(
      t,
      {},
      fullCapabilities.filter((name) => name !== 'CONDSTORE'),
    )
    fill(server, 2)
    const session = await inbox()
    assert.equal(session.capabilities.condstore, false)
    assert.equal((await session.fetchIndex('1:*')).length, 2)
    await session.fetchFlags('1:*', '1')
    await session.list({ status: true })
    await session.status('INBOX')
    assert.deepEqual(
      sent().filter((line) => /MODSEQ|CONDSTORE|CHANGEDSINCE|X-GM|EMAILID/.test(line)),
      [],
    )
  })

  test('row 5: an extension item that is BAD all the same is left out once, and from then on', async (t) => {
    const command: Hooks['command'] = ({ text }) =>
      /MODSEQ|EMAILID|RETURN/.test(text) ? { tagged: 'BAD Error in IMAP command: Unknown parameter' } : undefined
    const { server, inbox, sent } = await play(t, { command }, [...fullCapabilities, 'OBJECTID'])
    fill(server, 3)
    const session = await inbox()
    assert.deepEqual(
      (await session.fetchIndex('1:*')).map(({ uid }) => uid),
      [1, 2, 3],
    )
    assert.equal((await session.fetchIndex('2:*')).length, 2)
    assert.equal((await session.fetchFlags('1:*', '1')).length, 3)
    assert.equal((await session.list({ status: true })).length, 6)
    assert.equal((await session.status('INBOX')).messages, 3)
    assert.equal((await session.list({ status: true })).length, 6)
    assert.equal(sent().filter((line) => /MODSEQ|EMAILID/.test(line) && !/RETURN/.test(line)).length, 1)
    assert.equal(sent().filter((line) => /RETURN/.test(line)).length, 1)
    assert.equal(session.capabilities.condstore, false)
    assert.equal(session.closed, false)
  })

  test('a FETCH that is BAD in every form gives nothing, and teaches nothing', async (t) => {
    const { server, inbox } = await play(t, {})
    fill(server, 1)
    const session = await inbox()
    server.hooks = { command: ({ name }) => (name === 'UID FETCH' ? { tagged: 'BAD Command Error. 10' } : undefined) }
    assert.deepEqual(await session.fetchIndex('1:*'), [])
    server.hooks = {}
    assert.equal((await session.fetchIndex('1:*'))[0]?.modseq !== null, true)
  })

  test('row 6: HIGHESTMODSEQ 0 and an empty ENABLED are no reason to do without; ENABLE precedes SELECT', async (t) => {
    const { server, inbox, sent } = await play(t, {
      send: (response) =>
        Buffer.from(
          response
            .toString('latin1')
            .replace(/HIGHESTMODSEQ \d+/, 'HIGHESTMODSEQ 0')
            .replace(/ENABLED.*\r/, 'ENABLED\r'),
          'latin1',
        ),
    })
    fill(server, 1)
    const session = await inbox()
    assert.equal(session.selected?.highestModseq, null)
    assert.match((await session.fetchFlags('1:*'))[0]?.modseq ?? '', /^\d+$/)
    const order = sent().map((line) => line.split(' ')[1])
    assert(order.indexOf('ENABLE') >= 0 && order.indexOf('ENABLE') < order.indexOf('SELECT'))
    server.hooks = { send: replaced(/\[HIGHESTMODSEQ \d+\]/, '[NOMODSEQ]') }
    await session.select('Archive')
    assert.deepEqual(await session.fetchFlags('1:*', '5'), [])
    assert.doesNotMatch(sent().at(-1) ?? '', /MODSEQ|CHANGEDSINCE/)
  })

  test('row 7: zeros are "unknown": UIDVALIDITY, UIDNEXT, COPYUID', async (t) => {
    const { server, inbox } = await play(t, {
      send: (response) =>
        Buffer.from(
          response
            .toString('latin1')
            .replace(/(UIDVALIDITY|COPYUID|APPENDUID) \d+/, '$1 0')
            .replace(/(UIDNEXT|COPYUID 0 \d+|APPENDUID 0) \d+/, '$1 0'),
          'latin1',
        ),
    })
    const session = await inbox()
    assert.deepEqual([session.selected?.uidValidity, session.selected?.uidNext], [null, null])
    fill(server, 1)
    await session.noop()
    assert.deepEqual(await session.copy(1, 'Archive'), { newUid: null, uidValidity: null })
    assert.deepEqual(await session.append('Archive', literalOf('a: b\r\n\r\n'), [], 0), {
      newUid: null,
      uidValidity: null,
    })
    assert.equal((await session.status('INBOX')).uidValidity, null)
  })

  test('row 8: UIDNEXT missing: from STATUS, else one above the highest UID', async (t) => {
    const { server, open, sent } = await play(t, {
      send: (response) => (response.toString().startsWith('* OK [UIDNEXT') ? null : response),
    })
    fill(server, 3)
    server.expunge('ann', 'INBOX', 3)
    assert.equal((await (await open()).select('INBOX')).uidNext, 4)
    server.hooks = {
      send: (response) =>
        /^\* OK \[UIDNEXT/.test(response.toString()) ? null : response.toString().replace(/ ?UIDNEXT \d+/, ''),
    }
    const session = await open()
    assert.equal((await session.select('INBOX')).uidNext, 3)
    assert.match(sent().at(-1) ?? '', /FETCH 2 /)
    assert.equal((await session.select('Archive')).uidNext, null)
    assert.match(sent().at(-1) ?? '', /STATUS/)
  })

  test('row 8: the star alone is BAD: the last message is asked for by its number', async (t) => {
    const { server, open } = await play(t, {
      command: ({ text }) =>
        /(?:FETCH|UID) \*(?: |$)/.test(text) ? { tagged: 'BAD Invalid sequence set' } : undefined,
      send: (response) =>
        /^\* OK \[UIDNEXT/.test(response.toString()) ? null : response.toString().replace(/ ?UIDNEXT \d+/, ''),
    })
    fill(server, 3)
    const session = await open()
    assert.equal((await session.select('INBOX')).uidNext, 4)
    assert.deepEqual(await session.searchBody('m2'), [])
    server.expunge('ann', 'INBOX', 2)
    await session.noop()
    // The numbers could be sequence numbers: the last message says which.
    assert.deepEqual(await session.searchUids('1:2'), [1])
    assert.equal(session.closed, false)
  })

  test('row 25: what cannot be opened, names that say what a folder is for, an INBOX that "*" leaves out', async (t) => {
    const { server, open } = await play(
      t,
      { command: ({ name, text }) => (name === 'LIST' && text.includes('RETURN') ? { tagged: 'BAD no' } : undefined) },
      fullCapabilities.filter((name) => name !== 'SPECIAL-USE'),
    )
    server.addUser('eve', {
      password: 'secret',
      folders: {
        '[Gmail]': ['\\Noselect'],
        Gone: ['\\NonExistent'],
        Gesendet: [],
        Papierkorb: [],
        'Papierkorb/Entwürfe': [],
        'Old/Sent': [],
      },
    })
    const session = await open({ username: 'eve' })
    const listed = await session.list({ status: true })
    const byPath = new Map(listed.map((folder) => [folder.path, folder]))
    assert.deepEqual(
      listed.filter(({ selectable }) => !selectable).map(({ path }) => path),
      ['[Gmail]', 'Gone'],
    )
    assert.equal(byPath.get('Gesendet')?.specialUse, '\\Sent')
    assert.equal(byPath.get('Old/Sent')?.specialUse, null)
    assert.equal(byPath.get('Papierkorb')?.specialUse, '\\Trash')
    assert.equal(byPath.get('Papierkorb/Entwürfe')?.specialUse, '\\Drafts')
    await failure(session.select('[Gmail]'), 'server_refused')
    await failure(session.select('Gone'), 'not_found')
    server.addUser('fay', { password: 'secret', folders: { Other: [], inbox: [] } })
    server.hooks = {
      command: ({ name, text }) =>
        name === 'LIST' && text.endsWith('"*"')
          ? { lines: ['* LIST () NIL Other', '* LIST () "/" "Other"'], tagged: 'OK done' }
          : undefined,
    }
    const other = await open({ username: 'fay' })
    assert.deepEqual(
      (await other.list({ status: false })).map(({ path }) => path),
      ['Other', 'INBOX'],
    )
  })

  test('names that are no modified UTF-7', async (t) => {
    const lines = [
      '* LIST () "/" "Inbox"',
      '* LIST (\\All) "/" "R&D"',
      '* LIST (\\Junk \\HasNoChildren) NIL {5}\r\nspäm',
    ]
    const { open, sent } = await play(
      t,
      {
        command: ({ name }) =>
          name === 'LIST' ? { lines, tagged: 'OK done' } : name === 'SELECT' ? { tagged: 'OK done' } : undefined,
      },
      ['IMAP4rev1', 'AUTH=PLAIN'],
    )
    const session = await open()
    const listed = await session.list({ status: false })
    assert.deepEqual(
      listed.map(({ path, specialUse, delimiter }) => [path, specialUse, delimiter]),
      [
        ['INBOX', '\\Inbox', '/'],
        ['R&D', '\\All', '/'],
        ['späm', '\\Junk', ''],
      ],
    )
    await session.select('R&D')
    assert.match(sent().at(-1) ?? '', /SELECT "R&D"|STATUS "R&D"/)
    lines[1] = '* LIST () "/" "R&-D"'
    await session.list({ status: false })
    await session.select('R&D', { refresh: true })
    assert.match(sent().at(-1) ?? '', /SELECT "R&-D"|STATUS "R&-D"/)
  })
})
