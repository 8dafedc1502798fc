/**
 * A server shows a connection its open folder as it was until a command that tells of changes ends. What another client
 * has taken out since is not believed to be there.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import type { HookCall } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter, openStage } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

/** No poll tells the index what another client does. */
async function play(t: TestContext, capabilities?: readonly string[]): Promise<Running> {
  const settings = {
    MAILROOM_FOLDER_POLL: '1h',
    MAILROOM_FOLDER_LIST: '1h',
    MAILROOM_GONE_HOLD: '1h',
    MAILROOM_COMMAND_TIMEOUT: '20s',
  }
  return watchingAccounts(t, { settings, ...(capabilities && { capabilities }) }, ({ server }) => {
    fill(server, 'INBOX', 4)
    fill(server, 'Archive', 3, 'a')
  })
}

const uidsIn = ({ server }: Running, path: string): number[] =>
  server.folder('ann', path).messages.map(({ uid }) => uid)

suite('out of one folder, when it stays in another', () => {
  /** m1 lies in INBOX, and in Archive as UID 4; Archive is open on the command connection. */
  async function twofold(t: TestContext) {
    const running = await play(t)
    const { accounts, server } = running
    const message = await running.message('m1')
    await accounts.copy(message, message.placements[0] ?? assert.fail(), await running.folder('Archive'))
    await accounts.syncFolder(accountId, 'Archive')
    const { id } = await running.folder('INBOX')
    return { running, server, leave: async () => accounts.remove(await running.message('m1'), [id]) }
  }

  test('it leaves it when it does', async (t) => {
    const { running, leave } = await twofold(t)
    await leave()
    assert.deepEqual(
      [uidsIn(running, 'INBOX'), uidsIn(running, 'Archive')],
      [
        [2, 3, 4],
        [1, 2, 3, 4],
      ],
    )
  })

  test('it stays when another client has taken it out of that one', async (t) => {
    const { running, server, leave } = await twofold(t)
    server.expunge('ann', 'Archive', 4)
    const before = server.log.length
    await assert.rejects(leave(), { code: 'conflict', message: /lies in no other folder now/ })
    const selects = server.log.slice(before).filter(({ line }) => / SELECT /.test(line))
    const [first, ...more] = selects
    assert(first && more.every(({ connection }) => connection !== first.connection), 'it is asked once')
    assert.deepEqual(uidsIn(running, 'INBOX'), [1, 2, 3, 4])
    assert.deepEqual([...(server.folder('ann', 'INBOX').messages[0]?.flags ?? [])], [])
  })

  const refusing = (path: RegExp) => ({
    command: ({ text }: HookCall) => (path.test(text) ? { tagged: 'NO [NOPERM] not for you' } : undefined),
  })

  for (const path of ['Archive', 'Sent'])
    test(`it leaves it when it lies in two, of which ${path} cannot be opened`, async (t) => {
      const { running, server, leave } = await twofold(t)
      const message = await running.message('m1')
      await running.accounts.copy(message, message.placements[0] ?? assert.fail(), await running.folder('Sent'))
      await running.accounts.syncFolder(accountId, 'INBOX')
      server.hooks = refusing(new RegExp(`SELECT "?${path}`))
      await leave()
      assert.deepEqual(uidsIn(running, 'INBOX'), [2, 3, 4])
      assert.deepEqual([uidsIn(running, 'Archive').length, uidsIn(running, 'Sent').length], [4, 1])
    })

  test('where no other folder can be opened, that is what is said', async (t) => {
    const { running, server, leave } = await twofold(t)
    await running.accounts.syncFolder(accountId, 'INBOX')
    server.hooks = refusing(/SELECT "?Archive/)
    await assert.rejects(leave(), { code: 'server_refused' })
    assert.deepEqual(uidsIn(running, 'INBOX'), [1, 2, 3, 4])
  })

  test('out of a folder where it does not lie nothing is asked', async (t) => {
    const { running, server } = await twofold(t)
    const { id } = await running.folder('Sent')
    await running.accounts.syncFolder(accountId, 'INBOX')
    await until('it listens', () => server.connections.some((one) => one.idling))
    server.hooks = refusing(/SELECT/)
    await assert.rejects(running.accounts.remove(await running.message('m1'), [id]), { code: 'not_found' })
  })

  test('it stays when another client has marked it for removal there', async (t) => {
    const { running, server, leave } = await twofold(t)
    server.setFlags('ann', 'Archive', 4, ['\\Deleted'])
    await assert.rejects(leave(), { code: 'conflict' })
    assert.deepEqual(uidsIn(running, 'INBOX'), [1, 2, 3, 4])
  })
})

test('a removal goes on after a folder that lets no mail be removed, and says which', async (t) => {
  const running = await play(t)
  const { accounts, server } = running
  const message = await running.message('a1')
  await accounts.copy(message, message.placements[0] ?? assert.fail(), await running.folder('INBOX'))
  server.hooks = {
    command: ({ name, folder }) =>
      name === 'UID STORE' && folder?.name === 'Archive' ? { tagged: 'OK Store completed.' } : undefined,
  }
  const removing = accounts.remove(await running.message('a1'), null)
  await assert.rejects(removing, { code: 'server_refused', message: /removed from folder Archive/ })
  assert.deepEqual(uidsIn(running, 'INBOX'), [1, 2, 3, 4])
})

suite('out of the folder that is open, where another client has just taken it', () => {
  /** The mail server has told where the last one in this folder lies: it is not asked whether the message is there. */
  async function stale(t: TestContext, kind: 'move' | 'copy', toPath: string) {
    const running = await play(t)
    const { accounts, server } = running
    const to = await running.folder(toPath)
    const other = await running.message('m4')
    await accounts[kind](other, other.placements[0] ?? assert.fail(), to)
    const message = await running.message('m1')
    return { running, accounts, server, to, message, at: message.placements[0] ?? assert.fail() }
  }

  test('it is not there, to a move and to a copy', async (t) => {
    for (const kind of ['move', 'copy'] as const) {
      const { running, accounts, server, to, message, at } = await stale(t, kind, 'Archive')
      server.expunge('ann', 'INBOX', 1)
      await assert.rejects(accounts[kind](message, at, to), { code: 'not_found' }, kind)
      assert.deepEqual(uidsIn(running, 'Archive'), [1, 2, 3, 4])
    }
  })

  test('it is moved from its other folder', async (t) => {
    const { running, accounts, server, to, message, at } = await stale(t, 'move', 'Sent')
    await accounts.copy(message, at, await running.folder('Archive'))
    server.expunge('ann', 'INBOX', 1)
    await accounts.move(await running.message('m1'), null, to)
    assert.deepEqual(uidsIn(running, 'Archive'), [1, 2, 3])
    assert.deepEqual(uidsIn(running, 'Sent').length, 2)
  })
})

suite('a message that a command of ours has removed', () => {
  test('and that the server keeps: its flags are followed once the folder has been read', async (t) => {
    const stage = await openStage(t)
    fill(stage.server, 'INBOX', 1)
    const { state, catchUp, readAll } = await stage.work()
    await readAll()
    const { id: messageId, placements } = await stage.message('m1')
    const [place] = placements
    assert(place)
    const flags = async () => (await stage.message('m1')).placements[0]?.flags
    state.moved.expect('INBOX')
    state.hints.departures.add(place, { messageId, to: null, mark: state.moved.mark() })
    stage.server.setFlags('ann', 'INBOX', 1, ['\\Deleted'])
    await catchUp('INBOX')
    assert.deepEqual(await flags(), [])
    await state.moved.reading('INBOX', () => catchUp('INBOX'))
    stage.server.setFlags('ann', 'INBOX', 1, ['\\Flagged'])
    await catchUp('INBOX')
    assert.deepEqual(await flags(), ['\\Flagged'])
  })
})

/** Courier answers with a placeholder for a message that another client has taken out. */
suite('a placeholder for a removed message', () => {
  const placeholder = 'From: System Administrator <root@localhost>\r\nSubject: message unavailable\r\n\r\n'
  const literal = `{${placeholder.length}}\r\n${placeholder}`

  for (const [which, subject, rest] of [
    ['the newest that is known', 'm2', ['m1']],
    ['new mail', 'filtered', ['m1', 'm2']],
  ] as const)
    test(`${which} has gone: the placeholder is no mail, and nothing is quarantined`, async (t) => {
      const stage = await openStage(t)
      const { server } = stage
      fill(server, 'INBOX', 2)
      const worker = await stage.work()
      await worker.readAll()
      const uid = subject === 'm2' ? 2 : server.append('ann', 'INBOX', letter(subject))
      let given = 0
      server.hooks = {
        cached: true,
        command({ text: line }) {
          if (/UID FETCH .*RFC822\.SIZE/.test(line) && given === 0) server.expunge('ann', 'INBOX', uid)
          return undefined
        },
        send(response) {
          const text = response.toString('latin1')
          if (!text.includes(`FETCH (UID ${uid} `) || !text.includes('HEADER.FIELDS')) return response
          given += 1
          return text.replace(/\{\d+\}\r\n.*(?=\)\r\n$)/s, literal)
        },
      }
      await worker.catchUp('INBOX')
      assert(given > 0)
      assert.deepEqual([stage.warnings, await stage.story()], [[], []])
      assert.deepEqual(await stage.subjects('INBOX'), rest)
      assert.deepEqual((await stage.folder('INBOX')).cursor?.quarantined, [])
    })
})
