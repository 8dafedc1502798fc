/**
 * One account's actor whole: connecting, losing, being disabled and healed, paused, stopped, and what commands answer
 * meanwhile.
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isAppError, type ErrorCode } from '../../../engine/errors.ts'
import { fullCapabilities } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { openWing, watchingWing, type Wing } from './wing.ts'

/** Rejects with this code, within the time. */
async function answers(work: Promise<unknown>, code: ErrorCode, withinMs: number): Promise<void> {
  const started = performance.now()
  await assert.rejects(work, (error) => isAppError(error, code))
  const took = performance.now() - started
  assert(took < withinMs, `${code} took ${took} ms`)
}

const reading = async (wing: Wing) => wing.accounts.fetchHeaders(accountId, await wing.message('m1'))

suite('logins', () => {
  test('wrong password: few logins, then DISABLED, told once; new password and WAKE heal it, told once', async (t) => {
    const wing = await watchingWing(t, { settings: { MAILROOM_BACKOFF_AUTH: '50ms' } }, ({ server }) =>
      fill(server, 'INBOX', 1),
    )
    const before = wing.server.accepted
    wing.server.setPassword('ann', 'other')
    wing.server.dropConnections()
    await wing.tagged('disabled')
    await until('stored', async () => (await wing.record()).status === 'DISABLED')
    assert.match((await wing.record()).statusMessage ?? '', /rejected|password|login/i)
    assert(wing.server.accepted - before <= 4, `${wing.server.accepted - before} logins`)
    await answers(reading(wing), 'account_disabled', 1000)
    wing.server.setPassword('ann', 'secret')
    wing.accounts.wake(accountId)
    await wing.tagged('watching')
    await until('OK', async () => (await wing.record()).status === 'OK')
    assert.deepEqual(wing.listener.statuses, ['DISABLED', 'OK'])
    assert.equal((await wing.record()).statusMessage, null)
    wing.server.append('ann', 'INBOX', letter('healed'))
    await wing.tells(['received healed INBOX'])
  })

  test('checkNow answers the true status, both ways', async (t) => {
    const wing = await watchingWing(t)
    const checked = async () => {
      const { account, failure } = await wing.accounts.checkNow(accountId)
      return [account.status, failure?.failure ?? null]
    }
    assert.deepEqual(await checked(), ['OK', null])
    wing.server.setPassword('ann', 'other')
    assert.deepEqual(await checked(), ['DISABLED', 'auth_rejected'])
    await wing.tagged('disabled')
    assert.deepEqual(await checked(), ['DISABLED', 'auth_rejected'])
    wing.server.setPassword('ann', 'secret')
    await wing.accounts.checkNow(accountId)
    await wing.tagged('watching')
    await until('OK', async () => (await wing.record()).status === 'OK')
  })

  test('throttled: stays OK, waits as long as the server wishes, answers commands at once', async (t) => {
    const wing = await openWing(t)
    wing.server.hooks = {
      command: ({ name }) =>
        name === 'SELECT'
          ? { tagged: 'NO Request is throttled. Suggested Backoff Time: 92415 milliseconds' }
          : undefined,
    }
    wing.accounts.start(wing.account)
    await wing.tagged('throttled')
    const next = wing.accounts.view(accountId)?.next
    // Not before the hint, and up to a tenth later.
    assert(next && next.at - Date.now() > 90_000 && next.at - Date.now() < 102_000)
    assert.equal((await wing.record()).status, 'OK')
    await answers(wing.accounts.refreshFolders(accountId), 'account_unavailable', 500)
  })

  test('NetEase: nothing is opened before ID is sent after the login', async (t) => {
    const identified = new Set<number>()
    const loggedIn = new Set<number>()
    const wing = await openWing(t)
    wing.server.hooks = {
      command({ name, connection }) {
        if (name === 'LOGIN' || name === 'AUTHENTICATE') loggedIn.add(connection)
        if (name === 'ID' && loggedIn.has(connection)) identified.add(connection)
        if (name === 'SELECT' && !identified.has(connection))
          return { tagged: 'NO SELECT Unsafe Login. Please contact kefu@188.com' }
        return undefined
      },
    }
    wing.accounts.start(wing.account)
    await wing.settled()
  })
})

suite('connections', () => {
  test('the server goes away and comes back: OK all the time, nothing lost, nothing twice', async (t) => {
    const wing = await watchingWing(t, {}, ({ server }) => fill(server, 'INBOX', 2))
    for (let n = 1; n <= 5; n += 1) {
      wing.server.append('ann', 'INBOX', letter(`n${n}`))
      wing.server.dropConnections()
      await until('connected', () => wing.server.connections.length > 0)
    }
    await wing.tells([1, 2, 3, 4, 5].map((n) => `received n${n} INBOX`))
    assert.deepEqual(wing.listener.statuses, [])
  })

  test('a reset in the middle of a FETCH', async (t) => {
    const wing = await watchingWing(t, { settings: { MAILROOM_SYNC_BATCH: '5' } })
    let resets = 0
    wing.server.hooks = {
      command({ name, text }) {
        if (name !== 'UID FETCH' || !text.includes('BODYSTRUCTURE') || resets >= 3) return undefined
        resets += 1
        return {
          lines: ['* 1 FETCH (UID 1 FLAGS (\\Seen) BODY[HEADER.FIELDS (X)] {500}', 'Subject: half'],
          close: 'reset',
        }
      },
    }
    for (let n = 1; n <= 12; n += 1) wing.server.append('ann', 'INBOX', letter(`n${n}`))
    await wing.tells(Array.from({ length: 12 }, (_, n) => `received n${n + 1} INBOX`))
    assert.equal(resets, 3)
  })

  test('IDLE that dies without a word is noticed within its cycle and one deadline', async (t) => {
    const wing = await watchingWing(t, {
      settings: { MAILROOM_FOLDER_POLL: '300ms', MAILROOM_COMMAND_TIMEOUT: '400ms' },
    })
    const dead = new Set(wing.server.connections.map(({ id }) => id))
    wing.server.hooks = {
      command: ({ connection }) => (dead.has(connection) ? {} : undefined),
      send: (response, call) => (/EXISTS/.test(response.toString()) && call?.name !== 'SELECT' ? null : response),
    }
    const from = performance.now()
    wing.server.append('ann', 'INBOX', letter('n1'))
    await wing.tells(['received n1 INBOX'])
    assert(performance.now() - from < 3000)
  })

  test('IDLE that never pushes: the poll finds it', async (t) => {
    const wing = await watchingWing(t, { capabilities: ['IMAP4rev1', 'IDLE'] })
    // Row 17: not even NOOP tells; STATUS does.
    wing.server.hooks = {
      send: (response, call) => (/EXISTS/.test(response.toString()) && call?.name !== 'SELECT' ? null : response),
    }
    wing.server.append('ann', 'INBOX', letter('n1'))
    wing.server.append('ann', 'INBOX', letter('n2'))
    await wing.tells(['received n1 INBOX', 'received n2 INBOX'])
  })

  test('a server that ends the session with every IDLE', async (t) => {
    const wing = await watchingWing(t, {
      hooks: { command: ({ name }) => (name === 'IDLE' ? { tagged: 'BAD no' } : undefined) },
    })
    wing.server.append('ann', 'INBOX', letter('n1'))
    await wing.tells(['received n1 INBOX'])
    assert.equal(wing.accounts.view(accountId)?.state, 'watching')
  })
})

suite('paused, stopped, removed', () => {
  test('PAUSE closes every socket, RESUME catches up', async (t) => {
    const wing = await watchingWing(t, {}, ({ server }) => fill(server, 'INBOX', 1))
    await reading(wing)
    await wing.accounts.pause(accountId)
    await until('no connection', () => wing.server.connections.length === 0)
    await answers(reading(wing), 'account_unavailable', 500)
    wing.server.append('ann', 'INBOX', letter('n1'))
    await wing.accounts.resume(accountId)
    await wing.tells(['received n1 INBOX'])
  })

  test('stop ends every socket, while watching, syncing and connecting', async (t) => {
    const wing = await openWing(t, { settings: { MAILROOM_SYNC_BATCH: '5' } })
    fill(wing.server, 'INBOX', 60)
    for (const state of ['connecting', 'syncing', 'watching']) {
      wing.server.hooks =
        state === 'connecting'
          ? { greeting: () => null }
          : state === 'syncing'
            ? { command: ({ name }) => (name === 'UID FETCH' ? { delayMs: 100, proceed: true } : undefined) }
            : {}
      wing.accounts.start(wing.account)
      await wing.tagged(state)
      await until('a connection', () => wing.server.connections.length > 0)
      await wing.accounts.stop(accountId)
      await until(`none left after ${state}`, () => wing.server.connections.length === 0, { withinMs: 3000 })
      assert.equal(wing.accounts.view(accountId), null)
    }
    await answers(wing.accounts.refreshFolders(accountId), 'account_unavailable', 500)
  })

  test('the account is removed while it is read: no trace, no socket, no error', async (t) => {
    const wing = await openWing(t, { settings: { MAILROOM_SYNC_BATCH: '5' } })
    fill(wing.server, 'INBOX', 100)
    wing.accounts.start(wing.account)
    await until('half read', async () => (await wing.store.messages.count(accountId)) > 20)
    await wing.accounts.stop(accountId)
    await wing.store.accounts.remove(accountId)
    await until('no connection', () => wing.server.connections.length === 0)
    assert.equal(await wing.store.messages.count(accountId), 0)
    assert.deepEqual(await wing.store.folders.list(accountId), [])
    assert.deepEqual(
      wing.warnings.filter(({ message }) => /bug/.test(message)),
      [],
    )
  })

  test('a restart goes on where it was', async (t) => {
    const wing = await watchingWing(t, {}, ({ server }) => fill(server, 'INBOX', 3))
    await wing.accounts.stop(accountId)
    wing.server.append('ann', 'INBOX', letter('n1'))
    wing.accounts.start(await wing.record())
    await wing.tells(['received n1 INBOX'])
    assert.equal(wing.listener.initialSyncs, 1)
  })
})

suite('commands', () => {
  test('while connecting they wait for the connection', async (t) => {
    const wing = await openWing(t, {
      hooks: {
        command: ({ name }) =>
          name === 'LOGIN' || name === 'AUTHENTICATE' ? { delayMs: 300, proceed: true } : undefined,
      },
    })
    wing.accounts.start(wing.account)
    const folders = await wing.accounts.refreshFolders(accountId)
    assert.equal(folders.length, 6)
  })

  test('while it waits for its next try they say when that is', async (t) => {
    const wing = await openWing(t, { settings: { MAILROOM_BACKOFF_FIRST: '30s', MAILROOM_BACKOFF_MAX: '30s' } })
    const down = { ...wing.account, port: 1 }
    await wing.store.accounts.edit(accountId, { port: 1 })
    wing.accounts.start(down)
    await wing.tagged('waiting')
    await answers(wing.accounts.refreshFolders(accountId), 'account_unavailable', 500)
  })

  test('a server that does not answer them: timeout, and the next one is served', async (t) => {
    const wing = await watchingWing(t, { settings: { MAILROOM_COMMAND_TIMEOUT: '500ms' } }, ({ server }) =>
      fill(server, 'INBOX', 1),
    )
    let swallowed = 0
    wing.server.hooks = {
      command({ text }) {
        if (!text.includes('BODY.PEEK[HEADER]') || swallowed > 0) return undefined
        swallowed += 1
        return {}
      },
    }
    await answers(reading(wing), 'timeout', 2000)
    assert.match((await reading(wing)).toString(), /Subject: m1/)
  })

  test('folders are made and removed, mail in them read; the command connection is closed when idle', async (t) => {
    const wing = await watchingWing(t, { settings: { MAILROOM_COMMAND_IDLE_CLOSE: '100ms' } }, ({ server }) =>
      fill(server, 'INBOX', 1),
    )
    const made = await wing.accounts.createFolder(accountId, 'Projects/Ünïcode')
    assert.equal(made.path, 'Projects/Ünïcode')
    await answers(wing.accounts.createFolder(accountId, 'Projects/Ünïcode'), 'conflict', 2000)
    wing.server.append('ann', 'Projects/Ünïcode', letter('in there'))
    await wing.accounts.syncFolder(accountId, 'Projects/Ünïcode')
    assert.deepEqual(await wing.subjects('Projects/Ünïcode'), ['in there'])
    assert.deepEqual(await wing.accounts.searchBody(accountId, await wing.folder('INBOX'), 'hello'), [
      (await wing.message('m1')).id,
    ])
    await wing.accounts.deleteFolder(accountId, 'Projects/Ünïcode')
    assert.equal(await wing.store.folders.byPath(accountId, 'Projects/Ünïcode'), null)
    await until('one connection', () => wing.server.connections.length === 1)
  })
})

test('500 messages arrive at once while commands are under way', async (t) => {
  const wing = await watchingWing(t, { capabilities: fullCapabilities }, ({ server }) => fill(server, 'INBOX', 1))
  for (let n = 1; n <= 500; n += 1) wing.server.append('ann', 'INBOX', letter(`n${n}`))
  const asked = Array.from({ length: 10 }, () => reading(wing))
  for (const header of await Promise.all(asked)) assert.match(header.toString(), /Subject: m1/)
  await until('all told', async () => (await wing.told()).length >= 500)
  assert.equal((await wing.told()).length, 500)
})
