/**
 * Whether IDLE is trusted: a host once it has pushed to one of its accounts; until then INBOX is asked, and so it is in
 * an account that is not pushed to. And how often folders are polled.
 */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { fullCapabilities, type Hooks } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { letter } from './stage.ts'
import { bobId, createBob, watchingAccounts, type Running } from './running.ts'

/** No poll comes in between. */
const pace = { MAILROOM_FOLDER_POLL: '1m', MAILROOM_INBOX_POLL: '300ms', MAILROOM_COMMAND_IDLE_CLOSE: '100ms' }

/** When a user's connections sent such a command, of all since the start. */
function count({ server }: Running, name: string, user = 'ann'): number {
  const own = new Set(server.connections.flatMap((one) => (one.user === user ? [one.id] : [])))
  const pattern = new RegExp(`^C: \\S+ ${name}\\b`)
  return server.log.filter(({ connection, line }) => own.has(connection) && pattern.test(line)).length
}

async function isAsked(running: Running, user = 'ann'): Promise<void> {
  const before = count(running, 'NOOP', user)
  await until(`${user} is asked`, () => count(running, 'NOOP', user) >= before + 2)
}

async function isNotAsked(t: TestContext, running: Running, user = 'ann'): Promise<void> {
  // One that is due may still come.
  await pause(300)
  const before = count(running, 'NOOP', user)
  await pause(1200)
  assert.equal(count(running, 'NOOP', user), before, t.name)
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** In the middle of an IDLE: what is told at its beginning or end is no push. */
async function inTheMiddle({ server }: Running): Promise<void> {
  let looks = 0
  const isIdling = (): boolean => server.connections.some(({ user, idling }) => user === 'ann' && idling)
  await until('the middle of an IDLE', () => (looks = isIdling() ? looks + 1 : 0) >= 5)
}

async function isHeard(running: Running, subject: string): Promise<void> {
  running.server.append('ann', 'INBOX', letter(subject))
  await until('heard', async () => (await running.subjects('INBOX')).includes(subject))
}

/** Mail that is pushed in the middle of an IDLE, until one was: the questions leave little time for it here. */
async function isTrusted(running: Running): Promise<void> {
  await until('trusted', async () => {
    await inTheMiddle(running)
    await isHeard(running, `pushed after ${count(running, 'NOOP')}`)
    const before = count(running, 'NOOP')
    await pause(900)
    return count(running, 'NOOP') <= before + 1
  })
}

/** bob is on the same host. */
async function startBob(running: Running): Promise<void> {
  running.accounts.start(await createBob(running))
  const read = async () => (await running.store.accounts.get(bobId))?.resume.initialSyncAt !== null
  await until('bob is read', read)
}

const silences: readonly (readonly [string, Hooks])[] = [
  ['tells when IDLE ends', { silentIdle: 'late' }],
  ['tells with NOOP', { silentIdle: 'never' }],
  [
    'tells by STATUS alone',
    {
      silentIdle: 'never',
      send: (response, call) => (/EXISTS/.test(response.toString()) && call?.name !== 'SELECT' ? null : response),
    },
  ],
]

suite('a server that pushes nothing', { concurrency: true }, () => {
  for (const [name, hooks] of silences) {
    test(`and ${name}: asked from the start, for ever, and mail is heard without a poll`, async (t) => {
      const running = await watchingAccounts(t, { hooks, settings: pace })
      await isAsked(running)
      for (const subject of ['one', 'two', 'three']) await isHeard(running, subject)
      await isAsked(running)
    })
  }

  test('because it has no IDLE: asked, whatever others push', async (t) => {
    const capabilities = fullCapabilities.filter((name) => name !== 'IDLE')
    const running = await watchingAccounts(t, { capabilities, settings: pace })
    await isAsked(running)
    await isHeard(running, 'one')
    await isAsked(running)
  })
})

suite('a host', { concurrency: true }, () => {
  test('is trusted from its first push on: by all its accounts, and those to come', async (t) => {
    const running = await watchingAccounts(t, { settings: pace })
    await startBob(running)
    await isAsked(running)
    await isAsked(running, 'bob')
    await isTrusted(running)
    await isNotAsked(t, running)
    await isNotAsked(t, running, 'bob')
    await running.accounts.stop(bobId)
    const bob = await running.store.accounts.get(bobId)
    assert(bob)
    running.accounts.start(bob)
    await until('bob watches', () => running.accounts.view(bobId)?.tags.includes('watching'))
    await isNotAsked(t, running, 'bob')
  })

  test('that pushes to some only: an account is asked once a poll has found what was not pushed', async (t) => {
    const settings = { ...pace, MAILROOM_FOLDER_POLL: '400ms' }
    const running = await watchingAccounts(t, { settings })
    await isTrusted(running)
    running.server.hooks = { silentIdle: 'never' }
    await isHeard(running, 'found by a poll')
    await isAsked(running)
    running.server.hooks = {}
    await isTrusted(running)
  })
})

test('folders are polled at twice the distance each time nothing happens, and soon after mail or a call', async (t) => {
  const settings = { ...pace, MAILROOM_FOLDER_POLL: '200ms', MAILROOM_INBOX_POLL: '1h' }
  const running = await watchingAccounts(t, { settings })
  const seen = count(running, 'LIST')
  await pause(6000)
  // At 0.2, 0.6, 1.4, 3.0, 5.6 s …: not thirty.
  const quiet = count(running, 'LIST') - seen
  assert(quiet >= 2 && quiet <= 8, `${quiet} polls`)
  const before = count(running, 'LIST')
  await isHeard(running, 'one')
  await until('a poll', () => count(running, 'LIST') > before, { withinMs: 1500 })
  await pause(4000)
  const later = count(running, 'LIST')
  await running.accounts.syncFolder(running.account.id, 'INBOX')
  await until('a poll after a call', () => count(running, 'LIST') > later, { withinMs: 1500 })
})
