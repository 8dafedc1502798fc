/** A new account is logged in to once: it goes on with the session of its trial login. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { until } from '../../support/until.ts'
import type { Store } from '../../../engine/store/port.ts'
import { accountId, letter, type StageOptions } from './stage.ts'
import { openAccounts, type Running } from './running.ts'

const loginsOf = ({ server }: Running): number =>
  server.log.filter(({ line }) => /^C: \w+ (?:AUTHENTICATE|LOGIN)/.test(line)).length

async function tried(
  t: TestContext,
  prepare: (running: Running) => void = () => undefined,
  options: StageOptions = {},
): Promise<Running> {
  const running = await openAccounts(t, options)
  prepare(running)
  const { accounts, account } = running
  const password = { kind: 'password', password: 'secret' } as const
  const result = await accounts.probe(account.developerId, account, password, { staysOpen: true })
  assert(result.ok)
  return running
}

test('its session reads and watches, with its lines in the log of the account', async (t) => {
  const running = await tried(t)
  const { accounts, account, server } = running
  accounts.start(account)
  await running.settled()
  server.append('ann', 'INBOX', letter('new'))
  await running.tells(['received new INBOX'])
  assert.equal(loginsOf(running), 1)
  const lines = accounts.wire(accountId)?.lines() ?? []
  const ofMailbox = lines.flatMap(({ connection, line }) => (connection === null ? [] : [line]))
  for (const said of ['AUTHENTICATE PLAIN ***', 'SELECT "INBOX"'])
    assert(
      ofMailbox.some((line) => line.includes(said)),
      ofMailbox.join('\n'),
    )
})

test('of many messages the log has the first answers and the number of the others', async (t) => {
  const running = await tried(t, ({ server }) => {
    for (let mail = 1; mail <= 20; mail += 1) server.append('ann', 'INBOX', letter(`old ${mail}`))
  })
  const { accounts, account } = running
  accounts.start(account)
  await running.settled()
  const lines =
    accounts
      .wire(accountId)
      ?.lines()
      .map(({ line }) => line) ?? []
  const fetched = lines.filter((line) => / FETCH \(UID \d+ .*\*\*\*/.test(line))
  const more = lines.findIndex((line) => line === '< * 15 more FETCH responses')
  assert.equal(fetched.length, 5, lines.join('\n'))
  assert.match(lines[more + 1] ?? '', /^< \w+ OK/)
})

test('a connection that comes later knows the names that this session was told', async (t) => {
  const running = await tried(t, ({ server }) => {
    server.createFolder('ann', 'R&D')
    server.hooks = { send: (response) => Buffer.from(response.toString('latin1').replace('R&-D', 'R&D'), 'latin1') }
  })
  const { accounts, account, server } = running
  accounts.start(account)
  await until('it is listed', async () => (await running.store.folders.byPath(accountId, 'R&D')) !== null)
  await accounts.deleteFolder(accountId, 'R&D').catch(() => undefined)
  assert(server.log.some(({ line }) => line.endsWith('DELETE "R&D"')))
})

test('a session that has ended meanwhile is not gone on with', async (t) => {
  const running = await tried(t)
  const { accounts, account, server } = running
  server.dropConnections('ann')
  await until('it is gone', () => server.connections.length === 0)
  accounts.start(account)
  await running.settled()
  assert.equal(loginsOf(running), 2)
})

test('an attempt that is ended while it claims the account closes the session', async (t) => {
  const asked = Promise.withResolvers<undefined>()
  const held = Promise.withResolvers<undefined>()
  const wrap = (store: Store): Store => {
    const claim = async (id: string) => {
      asked.resolve(undefined)
      await held.promise
      return store.accounts.claim(id)
    }
    return { ...store, accounts: { ...store.accounts, claim } }
  }
  const { accounts, account, server } = await tried(t, undefined, { wrap })
  accounts.start(account)
  await asked.promise
  await accounts.pause(accountId)
  held.resolve(undefined)
  await until('its session is closed', () => server.connections.length === 0, { withinMs: 5000 })
})

test('another password, or another account, logs in by itself', async (t) => {
  const running = await tried(t)
  const { accounts, account } = running
  accounts.start({ ...account, id: 'f'.repeat(24) })
  const changed = { ...account, port: account.port + 1 }
  await running.store.accounts.edit(accountId, { port: changed.port })
  accounts.start(changed)
  await running.tagged('waiting')
  assert.equal(loginsOf(running), 1)
})
