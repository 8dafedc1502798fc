/**
 * A server that answers UID SEARCH with sequence numbers, and what COPY, MOVE and EXPUNGE make of what they are told.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { fullCapabilities, plainCapabilities, type ImapServer } from '../support/imap-server/index.ts'
import { bySequence } from '../support/imap-server/by-sequence.ts'
import { failure, fill, play } from '../support/imap-server/play.ts'

const without = (...names: readonly string[]) => fullCapabilities.filter((name) => !names.includes(name))

function subjects(server: ImapServer, path: string): string[] {
  return server.folder('ann', path).messages.map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw.toString())?.[1] ?? '?')
}

/** UIDs with \Deleted. */
function deleted(server: ImapServer, path: string): number[] {
  return server.folder('ann', path).messages.flatMap(({ uid, flags }) => (flags.has('\\Deleted') ? [uid] : []))
}

suite('UID SEARCH answered with sequence numbers', () => {
  test('every search finds the UIDs that it means', async (t) => {
    const { server, inbox, sent } = await play(t, { send: bySequence })
    fill(server, 6)
    const session = await inbox()
    assert.deepEqual(await session.searchUids('1:*'), [1, 2, 3, 4, 5, 6], 'UIDs and sequence numbers are the same yet')
    server.expunge('ann', 'INBOX', 1, 3)
    await session.noop()
    assert.deepEqual(await session.searchUids('1:*'), [2, 4, 5, 6])
    assert.deepEqual(await session.searchUids('5:6'), [5, 6])
    assert.deepEqual(await session.searchUids('3'), [])
    assert.deepEqual(await session.searchBody('Hello'), [2, 4, 5, 6])
    assert.deepEqual(await session.searchBody('nothing of it'), [])
    const before = sent().length
    server.expunge('ann', 'INBOX', 2)
    assert.deepEqual(await session.searchUids('1:*'), [4, 5, 6], 'the list moved while it was asked for')
    assert(sent().length - before <= 4)
  })

  test('a server that means UIDs is asked once whether it does, or not at all', async (t) => {
    const { server, inbox, sent } = await play(t)
    fill(server, 5)
    server.expunge('ann', 'INBOX', 2)
    const session = await inbox()
    const asked = async (range: string): Promise<number> => {
      const before = sent().length
      await session.searchUids(range)
      return sent().length - before
    }
    assert.equal(await asked('1:4'), 3)
    assert.equal(await asked('1:4'), 1)
    const other = await inbox()
    const before = sent().length
    assert.deepEqual(await other.searchUids('1:*'), [1, 3, 4, 5])
    assert.equal(sent().length - before, 1, 'an answer that holds 5 of 4 messages leaves no doubt')
  })

  for (const [name, capabilities] of [
    ['plain RFC 3501', plainCapabilities],
    ['MOVE without UIDPLUS', without('UIDPLUS')],
    ['everything', fullCapabilities],
  ] as const) {
    test(`a move and a copy, with a server of ${name}: done, and nothing else is touched`, async (t) => {
      const { server, inbox } = await play(t, { send: bySequence }, capabilities)
      fill(server, 7)
      server.expunge('ann', 'INBOX', 1, 2)
      server.setFlags('ann', 'INBOX', 6, ['\\Deleted'])
      const session = await inbox(2000)
      assert((await session.move(4, 'Archive')) !== null)
      assert((await session.copy(5, 'Archive')) !== null)
      assert.deepEqual(subjects(server, 'INBOX'), ['m3', 'm5', 'm6', 'm7'])
      assert.deepEqual(subjects(server, 'Archive'), ['m4', 'm5'])
      assert.deepEqual(deleted(server, 'INBOX'), [6], 'what another client has marked stays, marked')
      assert.deepEqual(deleted(server, 'Archive'), [])
      assert.equal(await session.move(4, 'Archive'), null)
      assert.equal(await session.copy(4, 'Archive'), null)
    })
  }
})

test('for COPY a UID is there when FETCH or SEARCH shows it', async (t) => {
  for (const silent of ['UID SEARCH', 'UID FETCH']) {
    const { server, inbox } = await play(
      t,
      { send: (response, call) => (call?.name === silent && response.toString().startsWith('*') ? null : response) },
      plainCapabilities,
    )
    fill(server, 3)
    const session = await inbox()
    assert((await session.copy(2, 'Archive')) !== null, silent)
  }
})

test('a message that the server has not shown yet is copied before it is removed', async (t) => {
  const { server, inbox } = await play(t, {}, without('MOVE'))
  fill(server, 2)
  const session = await inbox()
  fill(server, 1)
  await session.move(3, 'Archive')
  assert.deepEqual([subjects(server, 'INBOX').length, subjects(server, 'Archive').length], [2, 1])
})

test('MOVE that tells neither the new UID nor that the old one has gone', async (t) => {
  const { server, inbox } = await play(t, {}, without('UIDPLUS'))
  fill(server, 3)
  const session = await inbox()
  server.hooks = {
    send: (response) => (/EXPUNGE/.test(response.toString()) ? null : response),
  }
  assert.deepEqual(await session.move(2, 'Archive'), { newUid: null, uidValidity: null })
  assert.equal(await session.move(9, 'Archive'), null)
})

suite('a copy whose original cannot be removed', () => {
  const kinds: readonly (readonly [string, readonly string[]])[] = [
    ['neither MOVE nor UIDPLUS', plainCapabilities],
    ['UIDPLUS', without('MOVE')],
  ]
  for (const [name, capabilities] of kinds) {
    for (const refused of ['STORE', 'EXPUNGE']) {
      test(`${refused} is refused, ${name}: the copy is taken back`, async (t) => {
        const { server, inbox } = await play(t, {}, capabilities)
        fill(server, 3)
        server.setFlags('ann', 'INBOX', 3, ['\\Deleted'])
        server.append('ann', 'Archive', 'Subject: other\r\n\r\nx')
        server.hooks = {
          command: ({ name: command, folder }) =>
            command.endsWith(refused) && folder?.name === 'INBOX'
              ? { tagged: 'NO [NOPERM] no right to do that' }
              : undefined,
        }
        const session = await inbox(2000)
        const error = await failure(session.move(2, 'Archive'), 'server_refused')
        assert.match(error.message, /no right to do that$/)
        assert.deepEqual(subjects(server, 'INBOX'), ['m1', 'm2', 'm3'])
        assert.deepEqual(subjects(server, 'Archive'), ['other'])
        assert.deepEqual(deleted(server, 'INBOX'), [3], 'what another client has marked stays marked')
        assert.equal(session.selected?.path, 'INBOX')
      })
    }
  }

  test('where it is not sure which one the copy is, nothing is removed, and the error says so', async (t) => {
    const { server, inbox } = await play(t, {}, plainCapabilities)
    fill(server, 3)
    server.hooks = {
      command({ name, folder }) {
        if (name === 'UID COPY') server.append('ann', 'Archive', 'Subject: between\r\n\r\nx')
        return name === 'UID STORE' && folder?.name === 'INBOX' ? { tagged: 'NO no' } : undefined
      },
    }
    const session = await inbox(2000)
    const error = await failure(session.move(2, 'Archive'), 'server_refused')
    assert.match(error.message, /a copy of the message stays in Archive$/)
    assert.deepEqual(subjects(server, 'Archive'), ['between', 'm2'])
    assert.deepEqual(deleted(server, 'Archive'), [])
  })

  test('a folder that is open for reading only is not copied from', async (t) => {
    const { server, inbox } = await play(
      t,
      { send: (response) => response.toString('latin1').replace('[READ-WRITE]', '[READ-ONLY]') },
      plainCapabilities,
    )
    fill(server, 2)
    const session = await inbox()
    await failure(session.move(1, 'Archive'), 'server_refused')
    assert.deepEqual(subjects(server, 'Archive'), [])
  })
})
