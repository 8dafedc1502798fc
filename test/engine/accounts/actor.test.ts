/**
 * One account's actor whole: connecting, losing, being disabled and healed, paused, stopped, and what commands answer
 * meanwhile.
 */
import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isAppError, type ErrorCode } from '../../../engine/errors.ts'
import type { MessageRecord, Placement } from '../../../engine/store/records.ts'
import { fullCapabilities } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { openAccounts, watchingAccounts, type Running } from './running.ts'

/** Rejects with this code, within the time. */
async function answers(work: Promise<unknown>, code: ErrorCode, withinMs: number): Promise<void> {
  const started = performance.now()
  await assert.rejects(work, (error) => isAppError(error, code))
  const took = performance.now() - started
  assert(took < withinMs, `${code} took ${took} ms`)
}

const reading = async (running: Running) => running.accounts.fetchHeaders(await running.message('m1'))

suite('logins', () => {
  test('wrong password: few logins, then DISABLED, told once; new password and WAKE heal it, told once', async (t) => {
    const running = await watchingAccounts(t, { settings: { MAILROOM_BACKOFF_AUTH: '50ms' } }, ({ server }) =>
      fill(server, 'INBOX', 1),
    )
    const before = running.server.accepted
    running.server.setPassword('ann', 'other')
    running.server.dropConnections()
    await running.tagged('disabled')
    await until('stored', async () => (await running.record()).status === 'DISABLED')
    assert.match((await running.record()).statusMessage ?? '', /rejected|password|login/i)
    assert(running.server.accepted - before <= 4, `${running.server.accepted - before} logins`)
    await answers(reading(running), 'account_disabled', 5000)
    running.server.setPassword('ann', 'secret')
    running.accounts.wake(accountId)
    await running.tagged('watching')
    await until('OK', async () => (await running.record()).status === 'OK')
    assert.deepEqual(running.listener.statuses, ['DISABLED', 'OK'])
    assert.equal((await running.record()).statusMessage, null)
    running.server.append('ann', 'INBOX', letter('healed'))
    await running.tells(['received healed INBOX'])
  })

  test('checkNow answers the true status, both ways', async (t) => {
    const running = await watchingAccounts(t)
    const checked = async () => {
      const { account, failure } = await running.accounts.checkNow(accountId)
      return [account.status, failure?.failure ?? null]
    }
    assert.deepEqual(await checked(), ['OK', null])
    running.server.setPassword('ann', 'other')
    assert.deepEqual(await checked(), ['DISABLED', 'auth_rejected'])
    await running.tagged('disabled')
    assert.deepEqual(await checked(), ['DISABLED', 'auth_rejected'])
    running.server.setPassword('ann', 'secret')
    await running.accounts.checkNow(accountId)
    await running.tagged('watching')
    await until('OK', async () => (await running.record()).status === 'OK')
  })

  test('throttled: stays OK, waits as long as the server wishes, answers commands at once', async (t) => {
    const running = await openAccounts(t)
    running.server.hooks = {
      command: ({ name }) =>
        name === 'SELECT'
          ? { tagged: 'NO Request is throttled. Suggested Backoff Time: 92415 milliseconds' }
          : undefined,
    }
    running.accounts.start(running.account)
    await running.tagged('throttled')
    const next = running.accounts.view(accountId)?.next
    // Not before the hint, and up to a tenth later.
    assert(next && next.at - Date.now() > 90_000 && next.at - Date.now() < 102_000)
    assert.equal((await running.record()).status, 'OK')
    await answers(running.accounts.refreshFolders(accountId), 'account_unavailable', 5000)
  })

  test('one that is cut short by the end of the service is no bug: nothing is logged', async (t) => {
    for (const tag of ['queued', 'connecting']) {
      const running = await openAccounts(t)
      if (tag === 'queued') running.accounts.hosts.setPace(running.account.server, 0)
      running.server.hooks = { command: () => ({ delayMs: 1000, proceed: true }) }
      running.accounts.start(running.account)
      await running.tagged(tag)
      await running.accounts.stopAll()
      assert.deepEqual(running.warnings, [], tag)
    }
  })

  test('NetEase: nothing is opened before ID is sent after the login', async (t) => {
    const identified = new Set<number>()
    const loggedIn = new Set<number>()
    const running = await openAccounts(t)
    running.server.hooks = {
      command({ name, connection }) {
        if (name === 'LOGIN' || name === 'AUTHENTICATE') loggedIn.add(connection)
        if (name === 'ID' && loggedIn.has(connection)) identified.add(connection)
        if (name === 'SELECT' && !identified.has(connection))
          return { tagged: 'NO SELECT Unsafe Login. Please contact kefu@188.com' }
        return undefined
      },
    }
    running.accounts.start(running.account)
    await running.settled()
  })
})

suite('connections', () => {
  test('the server goes away and comes back: OK all the time, nothing lost, nothing twice', async (t) => {
    const running = await watchingAccounts(t, {}, ({ server }) => fill(server, 'INBOX', 2))
    for (let n = 1; n <= 5; n += 1) {
      running.server.append('ann', 'INBOX', letter(`n${n}`))
      running.server.dropConnections()
      await until('connected', () => running.server.connections.length > 0)
    }
    await running.tells([1, 2, 3, 4, 5].map((n) => `received n${n} INBOX`))
    assert.deepEqual(running.listener.statuses, [])
  })

  test('a reset in the middle of a FETCH', async (t) => {
    const running = await watchingAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '5' } })
    let resets = 0
    running.server.hooks = {
      command({ name, text }) {
        if (name !== 'UID FETCH' || !text.includes('BODYSTRUCTURE') || resets >= 3) return undefined
        resets += 1
        return {
          lines: ['* 1 FETCH (UID 1 FLAGS (\\Seen) BODY[HEADER.FIELDS (X)] {500}', 'Subject: half'],
          close: 'reset',
        }
      },
    }
    for (let n = 1; n <= 12; n += 1) running.server.append('ann', 'INBOX', letter(`n${n}`))
    await running.tells(Array.from({ length: 12 }, (_, n) => `received n${n + 1} INBOX`))
    assert.equal(resets, 3)
  })

  test('IDLE that dies without a word is noticed within its cycle and one deadline', async (t) => {
    const running = await watchingAccounts(t, {
      settings: { MAILROOM_FOLDER_POLL: '300ms', MAILROOM_COMMAND_TIMEOUT: '400ms' },
    })
    const dead = new Set(running.server.connections.map(({ id }) => id))
    running.server.hooks = {
      command: ({ connection }) => (dead.has(connection) ? {} : undefined),
      send: (response, call) => (/EXISTS/.test(response.toString()) && call?.name !== 'SELECT' ? null : response),
    }
    const from = performance.now()
    running.server.append('ann', 'INBOX', letter('n1'))
    await running.tells(['received n1 INBOX'])
    assert(performance.now() - from < 7000)
  })

  test('IDLE that never pushes: the poll finds it', async (t) => {
    const running = await watchingAccounts(t, { capabilities: ['IMAP4rev1', 'IDLE'] })
    // Row 17: not even NOOP tells; STATUS does.
    running.server.hooks = {
      send: (response, call) => (/EXISTS/.test(response.toString()) && call?.name !== 'SELECT' ? null : response),
    }
    running.server.append('ann', 'INBOX', letter('n1'))
    running.server.append('ann', 'INBOX', letter('n2'))
    await running.tells(['received n1 INBOX', 'received n2 INBOX'])
  })

  test('where only SELECT tells of new mail, a call finds what was told a moment ago, and acts once', async (t) => {
    const running = await watchingAccounts(t, {}, ({ server }) => fill(server, 'INBOX', 1))
    const { accounts, server } = running
    const archive = await running.folder('Archive')
    const calls: readonly ((message: MessageRecord, at: Placement) => Promise<unknown>)[] = [
      (message) => accounts.fetchHeaders(message),
      async (message) => buffer(await accounts.streamRaw(message)),
      (message, at) => accounts.setFlags(message, at, { add: ['\\Seen'], remove: [] }),
      (message, at) => accounts.copy(message, at, archive),
      (message, at) => accounts.move(message, at, archive),
      (message) => accounts.remove(message, null),
    ]
    server.hooks = { newsBySelect: true }
    for (const [n, call] of calls.entries()) {
      // Its folder is open before the mail comes.
      await accounts.fetchHeaders(await running.message('m1'))
      server.append('ann', 'INBOX', letter(`n${n}`))
      await until('it is told', async () => (await running.story()).includes(`received n${n} INBOX`))
      const message = await running.message(`n${n}`)
      const [at] = message.placements
      assert(at)
      await call(message, at)
    }
    assert.deepEqual(await running.subjects('Archive'), ['n3', 'n4'])
    assert.equal(server.folder('ann', 'Archive').messages.length, 2)
    assert.deepEqual(await running.subjects('INBOX'), ['m1', 'n0', 'n1', 'n2', 'n3'])
  })

  test('a server that ends the session with every IDLE', async (t) => {
    const running = await watchingAccounts(t, {
      hooks: { command: ({ name }) => (name === 'IDLE' ? { tagged: 'BAD no' } : undefined) },
    })
    running.server.append('ann', 'INBOX', letter('n1'))
    await running.tells(['received n1 INBOX'])
    assert.equal(running.accounts.view(accountId)?.state, 'watching')
  })
})

suite('paused, stopped, removed', () => {
  test('PAUSE closes every socket, RESUME catches up', async (t) => {
    const running = await watchingAccounts(t, {}, ({ server }) => fill(server, 'INBOX', 1))
    await reading(running)
    await running.accounts.pause(accountId)
    await until('no connection', () => running.server.connections.length === 0)
    await answers(reading(running), 'account_unavailable', 5000)
    running.server.append('ann', 'INBOX', letter('n1'))
    await running.accounts.resume(accountId)
    await running.tells(['received n1 INBOX'])
  })

  test('stop ends every socket, while watching, syncing and connecting', async (t) => {
    const running = await openAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '5' } })
    fill(running.server, 'INBOX', 60)
    for (const state of ['connecting', 'syncing', 'watching']) {
      running.server.hooks =
        state === 'connecting'
          ? { greeting: () => null }
          : state === 'syncing'
            ? { command: ({ name }) => (name === 'UID FETCH' ? { delayMs: 100, proceed: true } : undefined) }
            : {}
      running.accounts.start(running.account)
      await running.tagged(state)
      await until('a connection', () => running.server.connections.length > 0)
      await running.accounts.stop(accountId)
      await until(`none left after ${state}`, () => running.server.connections.length === 0, { withinMs: 3000 })
      assert.equal(running.accounts.view(accountId), null)
    }
    await answers(running.accounts.refreshFolders(accountId), 'account_unavailable', 5000)
  })

  test('after stop nothing more is written: another process may own the account', async (t) => {
    const running = await watchingAccounts(t, {}, ({ server }) => fill(server, 'INBOX', 1))
    const { plan } = running.listener
    const planning = Promise.withResolvers<unknown>()
    running.listener.plan = async (...batch) => {
      planning.resolve(null)
      await pause(300)
      return plan(...batch)
    }
    running.server.append('ann', 'INBOX', letter('n1'))
    await planning.promise
    await running.accounts.stop(accountId)
    const story = await running.story()
    await pause(600)
    assert.deepEqual(await running.story(), story)
  })

  test('the account is removed while it is read: no trace, no socket, no error', async (t) => {
    const running = await openAccounts(t, { settings: { MAILROOM_SYNC_BATCH: '5' } })
    fill(running.server, 'INBOX', 100)
    running.accounts.start(running.account)
    await until('half read', async () => (await running.store.messages.count(accountId)) > 20)
    await running.accounts.stop(accountId)
    await running.store.accounts.remove(accountId)
    await until('no connection', () => running.server.connections.length === 0)
    assert.equal(await running.store.messages.count(accountId), 0)
    assert.deepEqual(await running.store.folders.list(accountId), [])
    assert.deepEqual(
      running.warnings.filter(({ message }) => /bug/.test(message)),
      [],
    )
  })

  test('a restart goes on where it was', async (t) => {
    const running = await watchingAccounts(t, {}, ({ server }) => fill(server, 'INBOX', 3))
    await running.accounts.stop(accountId)
    running.server.append('ann', 'INBOX', letter('n1'))
    running.accounts.start(await running.record())
    await running.tells(['received n1 INBOX'])
    assert.equal(running.listener.initialSyncs, 1)
  })

  test('since when it is down survives tries and restarts', async (t) => {
    const running = await watchingAccounts(t)
    const condition = async () => (await running.record()).resume.condition
    assert.equal((await condition())?.is, 'up')
    await running.server.close()
    await until('down', async () => (await condition())?.is === 'down')
    const first = await condition()
    const tries = async () => (await running.record()).resume.attempt
    await until('tried again', async () => (await tries()) >= 2)
    await running.accounts.stop(accountId)
    const before = await tries()
    running.accounts.start(await running.record())
    await until('tried after the restart', async () => (await tries()) > before)
    assert.deepEqual(await condition(), first)
    const [place] = await running.store.accounts.places({ condition: 'down', sinceUntil: first?.since })
    assert.deepEqual([place?.id, place?.condition], [accountId, first])
  })
})

suite('commands', () => {
  test('while connecting they wait for the connection', async (t) => {
    const running = await openAccounts(t, {
      hooks: {
        command: ({ name }) =>
          name === 'LOGIN' || name === 'AUTHENTICATE' ? { delayMs: 300, proceed: true } : undefined,
      },
    })
    running.accounts.start(running.account)
    const folders = await running.accounts.refreshFolders(accountId)
    assert.equal(folders.length, 6)
  })

  test('while it waits for its next try they say when that is', async (t) => {
    const running = await openAccounts(t, { settings: { MAILROOM_BACKOFF_FIRST: '30s', MAILROOM_BACKOFF_MAX: '30s' } })
    const down = { ...running.account, port: 1 }
    await running.store.accounts.edit(accountId, { port: 1 })
    running.accounts.start(down)
    await running.tagged('waiting')
    await answers(running.accounts.refreshFolders(accountId), 'account_unavailable', 5000)
  })

  test('a server that does not answer them: timeout, and the next one is served', async (t) => {
    const running = await watchingAccounts(t, { settings: { MAILROOM_COMMAND_TIMEOUT: '2s' } }, ({ server }) => {
      fill(server, 'INBOX', 1)
      fill(server, 'Archive', 1, 'a')
    })
    let swallowed = 0
    running.server.hooks = {
      command({ text }) {
        if (!text.includes('BODY.PEEK[HEADER]') || swallowed > 0) return undefined
        swallowed += 1
        return {}
      },
    }
    await answers(reading(running), 'timeout', 8000)
    await until('its session is given up', () => running.server.connections.length === 1)
    assert.match((await reading(running)).toString(), /Subject: m1/)
  })

  test('folders are made and removed, mail in them read; the command connection is closed when idle', async (t) => {
    const running = await watchingAccounts(t, { settings: { MAILROOM_COMMAND_IDLE_CLOSE: '100ms' } }, ({ server }) =>
      fill(server, 'INBOX', 1),
    )
    const made = await running.accounts.createFolder(accountId, 'Projects/Ünïcode')
    assert.equal(made.path, 'Projects/Ünïcode')
    await answers(running.accounts.createFolder(accountId, 'Projects/Ünïcode'), 'conflict', 2000)
    running.server.append('ann', 'Projects/Ünïcode', letter('in there'))
    await running.accounts.syncFolder(accountId, 'Projects/Ünïcode')
    assert.deepEqual(await running.subjects('Projects/Ünïcode'), ['in there'])
    const found = await running.accounts.searchBody(await running.folder('INBOX'), 'hello')
    assert.deepEqual(await found.ids(), [(await running.message('m1')).id])
    await running.accounts.deleteFolder(accountId, 'Projects/Ünïcode')
    assert.equal(await running.store.folders.byPath(accountId, 'Projects/Ünïcode'), null)
    await until('one connection', () => running.server.connections.length === 1)
  })
})

test('500 messages arrive at once while commands are under way', async (t) => {
  const running = await watchingAccounts(t, { capabilities: fullCapabilities }, ({ server }) =>
    fill(server, 'INBOX', 1),
  )
  for (let n = 1; n <= 500; n += 1) running.server.append('ann', 'INBOX', letter(`n${n}`))
  const asked = Array.from({ length: 10 }, () => reading(running))
  for (const header of await Promise.all(asked)) assert.match(header.toString(), /Subject: m1/)
  await until('all told', async () => (await running.told()).length >= 500)
  assert.equal((await running.told()).length, 500)
})
