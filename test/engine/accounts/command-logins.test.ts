/** The login of the command connection while an older session watches: what it meets is true of the account. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { AppError, isAppError, type ErrorCode } from '../../../engine/errors.ts'
import type { HookAnswer } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { accountId, fill, letter } from './stage.ts'
import { watchingWing, type Wing } from './wing.ts'

/** The account as it is usual: one session that sits in IDLE, and no command connection. */
async function idleWing(t: TestContext, settings: Readonly<Record<string, string>> = {}): Promise<Wing> {
  const quiet = { MAILROOM_FOLDER_POLL: '1h', MAILROOM_COMMAND_IDLE_CLOSE: '100ms', ...settings }
  const wing = await watchingWing(t, { settings: quiet }, ({ server }) => fill(server, 'INBOX', 1))
  await until('only IDLE', () => wing.server.connections.length === 1 && wing.server.connections[0]?.idling === true)
  return wing
}

async function refusal(wing: Wing): Promise<AppError> {
  const message = await wing.message('m1')
  const error = await wing.accounts.fetchHeaders(accountId, message).then(
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
const oldest = ({ server }: Wing): number | undefined => server.connections[0]?.id

suite('a changed password, while the older IDLE lives', () => {
  test('the first call says so, and so does the account; none logs in before the next try is due', async (t) => {
    const wing = await idleWing(t, { MAILROOM_BACKOFF_AUTH: '1m' })
    const before = oldest(wing)
    wing.server.setPassword('ann', 'other')
    const from = wing.server.accepted
    assertRetry(await refusal(wing), 'account_unavailable', 55_000, 60_000)
    const { status, statusMessage, resume } = await wing.record()
    assert.deepEqual([status, resume.strikes], ['OK', 1])
    assert.match(statusMessage ?? '', /rejected the login/)
    assert(resume.retryAt !== null && resume.retryAt > Date.now() + 55_000)
    for (let n = 0; n < 5; n += 1) {
      const error = await refusal(wing)
      assertRetry(error, 'account_unavailable', 55_000, 60_000)
      assert.match(error.message, /rejected the login/)
    }
    assert.equal(wing.server.accepted - from, 1, 'one login')
    wing.server.append('ann', 'INBOX', letter('still heard'))
    await wing.tells(['received still heard INBOX'])
    assert.equal(oldest(wing), before)
  })

  test('the third rejection makes it DISABLED, told once, without any further call', async (t) => {
    const wing = await idleWing(t, { MAILROOM_BACKOFF_AUTH: '200ms' })
    wing.server.setPassword('ann', 'other')
    const from = wing.server.accepted
    await refusal(wing)
    await wing.tagged('disabled')
    await until('stored', async () => (await wing.record()).status === 'DISABLED')
    assert.deepEqual(wing.listener.statuses, ['DISABLED'])
    assert.equal(wing.server.accepted - from, 3, 'three logins')
    assertRetry(await refusal(wing), 'account_disabled', 60_000, 3_600_000)
    await until('no session', () => wing.server.connections.length === 0)
    assert.match((await wing.record()).statusMessage ?? '', /rejected the login/)
    wing.server.setPassword('ann', 'secret')
    wing.accounts.wake(accountId)
    await wing.tagged('watching')
    assert.match((await wing.accounts.fetchHeaders(accountId, await wing.message('m1'))).toString(), /Subject: m1/)
    await until('OK', async () => (await wing.record()).status === 'OK')
    assert.deepEqual(wing.listener.statuses, ['DISABLED', 'OK'])
  })

  test('mail in another folder meets it too, and counts once', async (t) => {
    const wing = await idleWing(t, { MAILROOM_BACKOFF_AUTH: '1m', MAILROOM_FOLDER_POLL: '200ms' })
    const before = oldest(wing)
    wing.server.setPassword('ann', 'other')
    wing.server.append('ann', 'Archive', letter('elsewhere'))
    await until('told', async () => (await wing.record()).statusMessage !== null)
    assert.equal((await wing.record()).resume.strikes, 1)
    assert.equal(oldest(wing), before)
    assertRetry(await refusal(wing), 'account_unavailable', 50_000, 60_000)
    assert.equal((await wing.record()).resume.strikes, 1)
  })

  test('the right password again: the next try takes it all back, and calls are served', async (t) => {
    const wing = await idleWing(t, { MAILROOM_BACKOFF_AUTH: '500ms' })
    const before = oldest(wing)
    wing.server.setPassword('ann', 'other')
    await refusal(wing)
    wing.server.setPassword('ann', 'secret')
    await until('taken back', async () => (await wing.record()).statusMessage === null)
    const { status, resume } = await wing.record()
    assert.deepEqual([status, resume.strikes, resume.retryAt], ['OK', 0, null])
    assert.match((await wing.accounts.fetchHeaders(accountId, await wing.message('m1'))).toString(), /Subject: m1/)
    assert.deepEqual(wing.listener.statuses, [])
    assert.equal(oldest(wing), before)
  })

  test('a command connection that is open already serves on', async (t) => {
    const wing = await watchingWing(t, {}, ({ server }) => fill(server, 'INBOX', 1))
    const message = await wing.message('m1')
    await wing.accounts.fetchHeaders(accountId, message)
    wing.server.setPassword('ann', 'other')
    assert.match((await wing.accounts.fetchHeaders(accountId, message)).toString(), /Subject: m1/)
    assert.equal((await wing.record()).statusMessage, null)
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
      const wing = await idleWing(t, { MAILROOM_BACKOFF_FIRST: '1h', MAILROOM_BACKOFF_MAX: '1h' })
      const before = oldest(wing)
      wing.server.hooks = {
        command: (call) => (call.name === 'LOGIN' || call.name === 'AUTHENTICATE' ? answer : undefined),
      }
      const from = wing.server.accepted
      assertRetry(await refusal(wing), 'account_unavailable', 1000, 3_600_000)
      const { status, statusMessage, resume } = await wing.record()
      assert.deepEqual([status, resume.strikes], ['OK', 0])
      assert.match(statusMessage ?? '', why)
      const { retryAfterMs } = await refusal(wing)
      assert(retryAfterMs !== null && Math.abs((resume.retryAt ?? 0) - Date.now() - retryAfterMs) < 2000)
      assert.equal(wing.server.accepted - from, 1, 'one login')
      wing.server.hooks = {}
      wing.server.append('ann', 'INBOX', letter('still heard'))
      await wing.tells(['received still heard INBOX'])
      assert.equal(oldest(wing), before)
      assert.deepEqual(wing.listener.statuses, [])
    })
  }

  test('a refused connection: said at once, and taken back when there is room again', async (t) => {
    const wing = await idleWing(t)
    const before = oldest(wing)
    await wing.store.accounts.edit(accountId, { port: 1 })
    assertRetry(await refusal(wing), 'account_unavailable', 1000, 5000)
    assert.match((await wing.record()).statusMessage ?? '', /connection refused/)
    await wing.store.accounts.edit(accountId, { port: wing.server.port })
    await until('taken back', async () => (await wing.record()).statusMessage === null)
    assert.match((await wing.accounts.fetchHeaders(accountId, await wing.message('m1'))).toString(), /Subject: m1/)
    assert.equal(oldest(wing), before)
  })

  test('what the store did says nothing of the login', async (t) => {
    let away = false
    const wing = await watchingWing(
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
    await until('only IDLE', () => wing.server.connections.length === 1)
    away = true
    assert.equal((await refusal(wing)).code, 'store_unavailable')
    away = false
    assert.deepEqual([(await wing.record()).statusMessage, wing.accounts.view(accountId)?.next], [null, null])
  })
})
