/**
 * Servers with neither CONDSTORE nor LIST-STATUS: each folder is asked by STATUS, and flags that others change are
 * found by comparing the newest messages.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { plainCapabilities, type Hooks } from '../../support/imap-server/index.ts'
import { until } from '../../support/until.ts'
import { fill, letter } from './stage.ts'
import { watchingAccounts, type Running } from './running.ts'

/** Nothing is told of flags but to FETCH, and of new mail nothing but to STATUS and SELECT. */
const secretive: Hooks = {
  newsBySelect: true,
  send: (response, call) =>
    /^\* \d+ FETCH \((?:UID \d+ )?FLAGS/.test(response.toString('latin1')) && !/FETCH|STORE/.test(call?.name ?? '')
      ? null
      : response,
}
const settings = {
  MAILROOM_FOLDER_POLL: '500ms',
  MAILROOM_FOLDER_POLL_COLD: '2h',
  MAILROOM_FOLDER_LIST: '2h',
  MAILROOM_FLAG_COMPARE: '2h',
}
const hourMs = 3_600_000

/** An hour after the initial sync: no folder has changed lately. */
async function anHourLater(t: TestContext): Promise<Running> {
  let later = 0
  const options = { capabilities: plainCapabilities, hooks: secretive, settings, now: () => Date.now() + later }
  const running = await watchingAccounts(t, options, ({ server }) => {
    for (let n = 1; n <= 10; n += 1) server.createFolder('ann', `Project ${n}`)
    fill(server, 'Project 9', 2, 'p')
    fill(server, 'INBOX', 2)
  })
  later = hourMs
  return running
}

test('mail in a folder that has been quiet for long is heard of with the next poll', async (t) => {
  const running = await anHourLater(t)
  running.server.append('ann', 'Project 9', letter('elsewhere'))
  await running.tells(['received elsewhere Project 9'])
})

test('while many folders are asked for INBOX is heard, and its mail told', async (t) => {
  const options = { capabilities: plainCapabilities, settings: { ...settings, MAILROOM_INBOX_POLL: '1h' } }
  const running = await watchingAccounts(t, options, ({ server }) => {
    for (let n = 1; n <= 40; n += 1) server.createFolder('ann', `Project ${n}`)
  })
  const { server } = running
  server.hooks = { command: ({ name }) => (name === 'STATUS' ? { delayMs: 100, proceed: true } : undefined) }
  const asked = (name: string): number => server.log.filter(({ line }) => line.includes(` ${name} `)).length
  const from = asked('STATUS "Project')
  await until('a poll begins', () => asked('STATUS "Project') > from)
  server.append('ann', 'INBOX', letter('meanwhile'))
  await running.tells(['received meanwhile INBOX'])
  assert(asked('STATUS "Project') < from + 20, 'before the poll ends')
})

for (const [path, subject] of [
  ['INBOX', 'm1'],
  ['Project 9', 'p1'],
] as const) {
  test(`a flag that another client sets in ${path} is heard of with the polls`, async (t) => {
    const running = await anHourLater(t)
    for (const flag of ['\\Flagged', '\\Answered']) {
      running.server.setFlags('ann', path, 1, [flag])
      await until('heard', async () => (await running.message(subject)).placements[0]?.flags.includes(flag), {
        withinMs: 10_000,
      })
    }
    assert.equal((await running.told()).length, 2)
  })
}
