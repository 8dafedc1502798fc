/** The command connection: a call that finds it renewed, or its login waiting for other work of the account. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { isAppError } from '../../../engine/errors.ts'
import { createCommands } from '../../../engine/accounts/commands/index.ts'
import { createLink, type Link, notBegun } from '../../../engine/accounts/link.ts'
import { openSession } from '../../../engine/accounts/session/index.ts'
import { createImapServer } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { openTest } from '../../support/imap-server/session.ts'
import { openAccounts } from './running.ts'
import { accountId, fill, openStage } from './stage.ts'

async function linked(t: TestContext, waitMs = 5000) {
  const server = await createImapServer({ users: { ann: { password: 'secret' } } })
  t.after(() => server.close())
  const link = createLink({
    login: (signal) =>
      openSession(
        {
          ...{ server: server.host, port: server.port, useSsl: false, username: 'ann', auth: { password: 'secret' } },
          ...{
            allowPrivate: true,
            plaintext: 'private',
            connectTimeoutMs: 5000,
            loginTimeoutMs: 5000,
            commandTimeoutMs: 5000,
          },
        },
        signal,
      ),
    idleCloseMs: 60_000,
    waitMs,
  })
  t.after(() => link.close())
  return link
}

/** Runs a command after so many ms of IDLE. */
function commandAfter(link: Link, ms: number) {
  const { promise: underWay, resolve } = Promise.withResolvers<undefined>()
  const begun = link.run(async (session) => {
    resolve(undefined)
    await session.idle(ms, new AbortController().signal)
    await session.noop()
    return 'answered'
  })
  return { begun, underWay }
}

test('an attempt that is ended when its login has just succeeded closes the session', async (t) => {
  const running = await openAccounts(t)
  const { accounts, server, deps } = running
  const counted = deps.metrics.imapLogins.inc.bind(deps.metrics.imapLogins)
  const stopped = Promise.withResolvers<undefined>()
  t.mock.method(deps.metrics.imapLogins, 'inc', (labels: { readonly outcome: string }) => {
    counted(labels)
    void accounts.stop(accountId).then(stopped.resolve as () => void)
  })
  accounts.start(running.account)
  await stopped.promise
  await until('the session is closed', () => server.connections.length === 0)
})

suite('a link that is closed', () => {
  test('closes a session whose login ends later', async (t) => {
    const server = await createImapServer({ users: { ann: { password: 'secret' } } })
    t.after(() => server.close())
    const [asked, free] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
    const link = createLink({
      login: async () => {
        asked.resolve(undefined)
        const session = await openTest(t, server)
        await free.promise
        return session
      },
      idleCloseMs: 60_000,
      waitMs: 5000,
    })
    const begun = link.run((session) => session.noop())
    await asked.promise
    await link.close()
    free.resolve(undefined)
    await assert.rejects(begun, notBegun)
    await until('the session is closed', () => server.connections.length === 0)
  })

  test('waits for the answer to a command', async (t) => {
    const link = await linked(t)
    const { begun, underWay } = commandAfter(link, 100)
    await underWay
    await link.close()
    assert.equal(await begun, 'answered')
  })

  test('tells work that had not begun so, and long work that it was renewed', async (t) => {
    const link = await linked(t)
    const { begun, underWay } = commandAfter(link, 60_000)
    const waiting = link.run((session) => session.noop())
    const outcomes = Promise.allSettled([begun, waiting])
    await underWay
    await link.close()
    const [first, second] = await outcomes
    for (const outcome of [first, second]) {
      assert(outcome.status === 'rejected')
      const { reason } = outcome as { readonly reason: unknown }
      assert(isAppError(reason, 'account_unavailable'), String(reason))
      assert.equal(reason.retryAfterMs, 1000)
      assert.match(reason.message, /being renewed/)
    }
    assert(second.status === 'rejected' && notBegun(second.reason))
    assert(first.status === 'rejected' && !notBegun(first.reason))
    const late: unknown = await link.run(() => Promise.resolve()).catch((error: unknown) => error)
    assert(notBegun(late))
  })
})

suite('work that may take longer than others', () => {
  test('is waited for once it has begun, and its turn no longer than that of others', async (t) => {
    const link = await linked(t, 300)
    await link.run((session) => session.noop())
    const work = Promise.withResolvers<string>()
    const long = link.run(() => work.promise, 'api', 60_000)
    let begun = false
    const behind = link.run(() => Promise.resolve((begun = true)), 'api', 60_000)
    await assert.rejects(behind, { code: 'timeout', message: /busy with other work/ })
    work.resolve('done')
    assert.equal(await long, 'done')
    await assert.rejects(
      link.run(() => new Promise(() => undefined), 'api', 100),
      { code: 'timeout', message: /did not answer within 0 s/ },
    )
    assert.equal(begun, false)
  })
})

test('a write succeeds although its folder is not read in the time of the call', async (t) => {
  const waitMs = 3000
  const stage = await openStage(t, { settings: { MAILROOM_COMMAND_TIMEOUT: `${waitMs}ms` } })
  fill(stage.server, 'INBOX', 1)
  const { state, session, readAll } = await stage.work()
  await readAll()
  const link = createLink({ login: () => Promise.resolve(session), idleCloseMs: 60_000, waitMs })
  // The time that the command itself takes does not count, so that both deadlines are as close as they can be.
  const sync = { ...stage.deps, now: () => 0 }
  const { setFlags } = createCommands({ sync, live: () => Promise.resolve({ state, link }) })
  const message = await stage.message('m1')
  const flags = await setFlags(message, message.placements[0] ?? assert.fail(), { add: ['\\Seen'], remove: [] })
  assert.deepEqual(flags, ['\\Seen'])
})
