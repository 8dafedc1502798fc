/** A mail server that was away: the first account that reaches it wakes the others that wait for it. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import type { Hooks } from '../../support/imap-server/index.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { accountId, type Stage } from './stage.ts'
import { bobId, createBob, watchingAccounts } from './running.ts'

test('all watch as soon as one is back, however long they would have waited', async (t) => {
  const settings = { MAILROOM_BACKOFF_FIRST: '1h', MAILROOM_BACKOFF_MAX: '1h' }
  const running = await watchingAccounts(t, { settings })
  const bob = await createBob(running)
  running.server.hooks = { command: () => ({ close: 'reset' }) }
  running.accounts.start(bob)
  const isIn = (id: string, tag: string) => running.accounts.view(id)?.tags.includes(tag)
  running.accounts.wake(accountId)
  await until('both wait', () => isIn(bobId, 'waiting') && isIn(accountId, 'waiting'))
  running.server.hooks = {}
  running.accounts.wake(accountId)
  await until('both watch', () => isIn(accountId, 'watching') && isIn(bobId, 'watching'), { withinMs: 10_000 })
})

test('a session that comes back asks for the list of folders once, and reads what has changed', async (t) => {
  const settings = { MAILROOM_FOLDER_POLL: '1h' }
  const prepare = ({ server }: Stage): void => void server.append('ann', 'Archive', mail({ to: 'ann', subject: 'old' }))
  const running = await watchingAccounts(t, { settings }, prepare)
  await running.settled()
  const { server } = running
  const idling = () => server.connections.some((one) => one.idling)
  await until('it listens', idling)
  const before = server.log.length
  server.dropConnections('ann')
  server.append('ann', 'INBOX', mail({ to: 'ann', subject: 'new' }))
  server.append('ann', 'Archive', mail({ to: 'ann', subject: 'filed' }))
  await running.tells(['received new INBOX', 'received filed Archive'])
  await until('it listens again', idling)
  const asked = server.log.slice(before).flatMap(({ line }) => /^C: \w+ (LIST|NOOP|STATUS)/.exec(line)?.[1] ?? [])
  assert.deepEqual(asked, ['LIST'])
})

/** Holds the answers of the logins to come; `next` waits for one, and lets it go. */
function holdLogins(): { readonly hooks: Hooks; readonly next: () => Promise<void> } {
  const held: (() => void)[] = []
  return {
    hooks: {
      send: async (response, call) => {
        const isLogin = /^(?:AUTHENTICATE|LOGIN)$/.test(call?.name ?? '') && / OK /.test(response.toString())
        if (isLogin) await new Promise<void>((resolve) => held.push(resolve))
        return response
      },
    },
    next: async () => {
      await until('an answer is held', () => held.length > 0)
      held.shift()?.()
    },
  }
}

/** ann comes back while bob's login holds the only place: her mail in INBOX is told. */
async function comeBack(t: TestContext, often: string) {
  const settings = { MAILROOM_START_CONCURRENCY: '1', MAILROOM_FOLDER_POLL: often }
  const running = await watchingAccounts(t, { settings })
  const bob = await createBob(running)
  const { server } = running
  const { hooks, next } = holdLogins()
  server.hooks = hooks
  server.dropConnections('ann')
  server.append('ann', 'INBOX', mail({ to: 'ann', subject: 'new' }))
  server.append('ann', 'Archive', mail({ to: 'ann', subject: 'filed' }))
  const logins = (): number => server.log.filter(({ line }) => /^C: \w+ (?:AUTHENTICATE|LOGIN)/.test(line)).length
  const before = logins()
  await until('ann logs in', () => logins() === before + 1)
  running.accounts.start(bob)
  await until('bob waits', () => running.accounts.view(bobId)?.tags.includes('queued'))
  await next()
  await running.tells(['received new INBOX'])
  await until('ann listens', () => server.connections.some((one) => one.idling))
  await until('bob logs in', () => logins() === before + 2)
  assert.equal(running.accounts.view(accountId)?.state, 'watching')
  return { running, next }
}

suite('other folders of an account that comes back', { concurrency: true }, () => {
  test('are read when those who log in before have done so', async (t) => {
    const { running, next } = await comeBack(t, '1h')
    assert.deepEqual(await running.story(), ['received new INBOX'])
    await next()
    await running.tells(['received new INBOX', 'received filed Archive'])
  })

  test('are read after MAILROOM_FOLDER_POLL at the latest', async (t) => {
    const { running } = await comeBack(t, '2s')
    await running.tells(['received new INBOX', 'received filed Archive'])
  })

  test('are read at once when there is mail or a call', async (t) => {
    const { running } = await comeBack(t, '1h')
    running.server.append('ann', 'INBOX', mail({ to: 'ann', subject: 'newer' }))
    await running.tells(['received new INBOX', 'received newer INBOX', 'received filed Archive'])
  })
})
