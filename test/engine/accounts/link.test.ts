/** The command connection: what a call is told when the connection is renewed under it. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { isAppError } from '../../../engine/errors.ts'
import { createLink, notBegun } from '../../../engine/accounts/link.ts'
import { openSession } from '../../../engine/accounts/session/index.ts'
import { createImapServer } from '../../support/imap-server/index.ts'

async function linked(t: TestContext) {
  const server = await createImapServer({ users: { ann: { password: 'secret' } } })
  t.after(() => server.close())
  const link = createLink({
    login: (_priority, signal) =>
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
    waitMs: 5000,
  })
  t.after(() => link.close())
  return link
}

suite('a link that is closed', () => {
  test('tells work that had not begun so, and work under way that it was renewed', async (t) => {
    const link = await linked(t)
    const under = Promise.withResolvers<undefined>()
    const begun = link.run('api', async (session) => {
      under.resolve(undefined)
      await session.idle(60_000, new AbortController().signal)
      await session.noop()
    })
    const waiting = link.run('api', (session) => session.noop())
    const outcomes = Promise.allSettled([begun, waiting])
    await under.promise
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
    const late: unknown = await link.run('api', () => Promise.resolve()).catch((error: unknown) => error)
    assert(notBegun(late))
  })
})
