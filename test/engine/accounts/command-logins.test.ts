/** The login of the command connection while an older session watches: what it meets is true of the account. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { AppError, isAppError, type ErrorCode } from '../../../engine/errors.ts'
import type { HookAnswer } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { createAnother, openAccounts, watchingAccounts, type Running } from './running.ts'

/** The account as it is usual: one session that sits in IDLE, and no command connection. */
async function idleAccounts(t: TestContext, settings: Readonly<Record<string, string>> = {}): Promise<Running> {
  const quiet = { MAILROOM_FOLDER_POLL: '1h', MAILROOM_COMMAND_IDLE_CLOSE: '100ms', ...settings }
  const running = await watchingAccounts(t, { settings: quiet }, ({ server }) => fill(server, 'INBOX', 1))
  await until(
    'only IDLE',
    () => running.server.connections.length === 1 && running.server.connections[0]?.idling === true,
  )
  return running
}

async function refusal(running: Running): Promise<AppError> {
  const message = await running.message('m1')
  const error = await running.accounts.fetchHeaders(message).then(
    () => new Error('it was answered'),
    (reason: unknown) => reason,
  )
  assert(isAppError(error), String(error))
  return error
}

function assertRetry(error: AppError, code: ErrorCode, atLeastMs: number, atMostMs: number): void {
  assert.equal(error.code, code)
  assert.equal(error.status, 503)
  const { retryAfterMs } = error
  assert(retryAfterMs !== null && retryAfterMs >= atLeastMs && retryAfterMs <= atMostMs, `${retryAfterMs} ms`)
}

/** The session that watches. */
const oldest = ({ server }: Running): number | undefined => server.connections[0]?.id

suite('a changed password, while the older IDLE lives', () => {
  test('the first call says so, and so does the account; none logs in before the next try is due', async (t) => {
    const running = await idleAccounts(t, { MAILROOM_BACKOFF_AUTH: '1m' })
    const before = oldest(running)
    running.server.setPassword('ann', 'other')
    const from = running.server.accepted
    assertRetry(await refusal(running), 'account_unavailable', 55_000, 60_000)
    const { status, statusMessage, resume } = await running.record()
    assert.deepEqual([status, resume.strikes], ['OK', 1])
    assert.match(statusMessage ?? '', /rejected the login/)
    assert(resume.retryAt !== null && resume.retryAt > Date.now() + 55_000)
    for (let n = 0; n < 5; n += 1) {
      const error = await refusal(running)
      assertRetry(error, 'account_unavailable', 55_000, 60_000)
      assert.match(error.message, /rejected the login/)
    }
    assert.equal(running.server.accepted - from, 1, 'one login')
    running.server.append('ann', 'INBOX', letter('still heard'))
    await running.tells(['received still heard INBOX'])
    assert.equal(oldest(running), before)
  })

  const rejections: readonly (readonly [string, HookAnswer])[] = [
    ['words without a code', { tagged: 'NO LOGIN failed. Invalid login/password for user id ann' }],
    ['words that ask for another try', { tagged: 'NO Invalid user name or password. Please try again' }],
    ['after a pause', { tagged: 'NO [AUTHENTICATIONFAILED] No', delayMs: 3000 }],
    ['and the end of the connection', { tagged: 'NO [AUTHENTICATIONFAILED] No', close: 'end' }],
    ['and BYE', { lines: ['* BYE Too many failures'], tagged: 'NO Login incorrect', close: 'end' }],
  ]
  for (const [name, answer] of rejections) {
    test(`rejected: ${name}`, async (t) => {
      const running = await idleAccounts(t, { MAILROOM_BACKOFF_AUTH: '1m' })
      running.server.hooks = {
        command: (call) => (call.name === 'LOGIN' || call.name === 'AUTHENTICATE' ? answer : undefined),
      }
      const from = Date.now()
      assertRetry(await refusal(running), 'account_unavailable', 50_000, 60_000)
      assert(Date.now() - from < 5000)
      const { statusMessage, resume } = await running.record()
      assert.equal(resume.strikes, 1)
      assert.match(statusMessage ?? '', /rejected the login/)
    })
  }

  test('the third rejection makes it DISABLED, told once, without any further call', async (t) => {
    const running = await idleAccounts(t, { MAILROOM_BACKOFF_AUTH: '200ms' })
    running.server.setPassword('ann', 'other')
    const from = running.server.accepted
    await refusal(running)
    await running.tagged('disabled')
    await until('stored', async () => (await running.record()).status === 'DISABLED')
    assert.deepEqual(running.listener.statuses, ['DISABLED'])
    assert.equal(running.server.accepted - from, 3, 'three logins')
    assertRetry(await refusal(running), 'account_disabled', 60_000, 3_600_000)
    await until('no session', () => running.server.connections.length === 0)
    assert.match((await running.record()).statusMessage ?? '', /rejected the login/)
    running.server.setPassword('ann', 'secret')
    running.accounts.wake(accountId)
    await running.tagged('watching')
    assert.match((await running.accounts.fetchHeaders(await running.message('m1'))).toString(), /Subject: m1/)
    await until('OK', async () => (await running.record()).status === 'OK')
    assert.deepEqual(running.listener.statuses, ['DISABLED', 'OK'])
  })

  test('mail in another folder needs no login', async (t) => {
    const running = await idleAccounts(t, { MAILROOM_FOLDER_POLL: '200ms' })
    const before = running.server.accepted
    running.server.setPassword('ann', 'other')
    running.server.append('ann', 'Archive', letter('elsewhere'))
    await running.tells(['received elsewhere Archive'])
    assert.equal(running.server.accepted, before)
    assert.equal((await running.record()).resume.strikes, 0)
  })

  test('the right password again: the next try takes it all back, and calls are served', async (t) => {
    const running = await idleAccounts(t, { MAILROOM_BACKOFF_AUTH: '500ms' })
    const before = oldest(running)
    running.server.setPassword('ann', 'other')
    await refusal(running)
    running.server.setPassword('ann', 'secret')
    await until('taken back', async () => (await running.record()).statusMessage === null)
    const { status, resume } = await running.record()
    assert.deepEqual([status, resume.strikes, resume.retryAt], ['OK', 0, null])
    assert.match((await running.accounts.fetchHeaders(await running.message('m1'))).toString(), /Subject: m1/)
    assert.deepEqual(running.listener.statuses, [])
    assert.equal(oldest(running), before)
  })

  test('a command connection that is open already serves on', async (t) => {
    const running = await watchingAccounts(t, {}, ({ server }) => fill(server, 'INBOX', 1))
    const message = await running.message('m1')
    await running.accounts.fetchHeaders(message)
    running.server.setPassword('ann', 'other')
    assert.match((await running.accounts.fetchHeaders(message)).toString(), /Subject: m1/)
    assert.equal((await running.record()).statusMessage, null)
  })
})

suite('a server that takes no further connection, while the older IDLE lives', () => {
  const answers: readonly (readonly [string, HookAnswer, RegExp])[] = [
    [
      'connection limit',
      { tagged: 'NO [LIMIT] Maximum number of connections from user+IP exceeded' },
      /no further connection/,
    ],
    ['unavailable', { tagged: 'NO [UNAVAILABLE] Temporary authentication failure' }, /cannot check logins now/],
    ['cut', { close: 'reset' }, /connection to the mail server was lost/],
    ['throttled', { tagged: 'NO Request is throttled. Suggested Backoff Time: 60000 milliseconds' }, /slow down/],
  ]
  for (const [name, answer, why] of answers) {
    test(`${name}: the status says so, OK and without a strike; calls say when`, async (t) => {
      const running = await idleAccounts(t, { MAILROOM_BACKOFF_FIRST: '1h', MAILROOM_BACKOFF_MAX: '1h' })
      const before = oldest(running)
      running.server.hooks = {
        command: (call) => (call.name === 'LOGIN' || call.name === 'AUTHENTICATE' ? answer : undefined),
      }
      const from = running.server.accepted
      assertRetry(await refusal(running), 'account_unavailable', 1000, 3_600_000)
      const { status, statusMessage, resume } = await running.record()
      assert.deepEqual([status, resume.strikes], ['OK', 0])
      assert.match(statusMessage ?? '', why)
      const { retryAfterMs } = await refusal(running)
      assert(retryAfterMs !== null && Math.abs((resume.retryAt ?? 0) - Date.now() - retryAfterMs) < 2000)
      assert.equal(running.server.accepted - from, 1, 'one login')
      running.server.hooks = {}
      running.server.append('ann', 'INBOX', letter('still heard'))
      await running.tells(['received still heard INBOX'])
      assert.equal(oldest(running), before)
      assert.deepEqual(running.listener.statuses, [])
    })
  }

  test('a refused connection: said at once, and taken back when there is room again', async (t) => {
    const running = await idleAccounts(t)
    const before = oldest(running)
    await running.store.accounts.edit(accountId, { port: 1 })
    assertRetry(await refusal(running), 'account_unavailable', 1000, 5000)
    assert.match((await running.record()).statusMessage ?? '', /connection refused/)
    await running.store.accounts.edit(accountId, { port: running.server.port })
    await until('taken back', async () => (await running.record()).statusMessage === null)
    assert.match((await running.accounts.fetchHeaders(await running.message('m1'))).toString(), /Subject: m1/)
    assert.equal(oldest(running), before)
  })

  test('what the store did says nothing of the login', async (t) => {
    let away = false
    const running = await watchingAccounts(
      t,
      {
        settings: { MAILROOM_FOLDER_POLL: '1h', MAILROOM_COMMAND_IDLE_CLOSE: '100ms' },
        wrap: (store) => ({
          ...store,
          accounts: {
            ...store.accounts,
            get: (id) =>
              away ? Promise.reject(new AppError('store_unavailable', 'the store is away')) : store.accounts.get(id),
          },
        }),
      },
      ({ server }) => fill(server, 'INBOX', 1),
    )
    await until('only IDLE', () => running.server.connections.length === 1)
    away = true
    assert.equal((await refusal(running)).code, 'store_unavailable')
    away = false
    assert.deepEqual([(await running.record()).statusMessage, running.accounts.view(accountId)?.next], [null, null])
  })
})

test('a call hurries the login of an account that waits for its turn at the host', async (t) => {
  // Six begin at once, the others 2.4 s apart.
  const running = await openAccounts(t, { settings: { MAILROOM_LOGINS_PER_MINUTE: '30' } })
  const { account, accounts } = running
  for (let n = 10; n < 20; n += 1) accounts.start(await createAnother(running, String(n).repeat(12), `other${n}`))
  accounts.start(account)
  await running.tagged('queued')
  const asked = Date.now()
  const folders = await accounts.refreshFolders(accountId)
  assert(folders.some(({ path }) => path === 'INBOX'))
  const ms = Date.now() - asked
  assert(ms < 7000, `answered after ${ms} ms`)
})
