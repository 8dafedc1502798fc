/** A mail server that was away: the first account that reaches it wakes the others that wait for it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sealCredential } from '../../../engine/secrets/seal.ts'
import { mail } from '../../support/mail.ts'
import { until } from '../../support/until.ts'
import { accountId, sealer, type Stage } from './stage.ts'
import { watchingAccounts } from './running.ts'

const bobId = 'e'.repeat(24)

test('all watch as soon as one is back, however long they would have waited', async (t) => {
  const settings = { MAILROOM_BACKOFF_FIRST: '1h', MAILROOM_BACKOFF_MAX: '1h' }
  const running = await watchingAccounts(t, { settings })
  running.server.addUser('bob')
  const sealedCredential = sealCredential(sealer, bobId, { kind: 'password', password: 'secret' })
  const names = { id: bobId, label: 'bob::mail', email: 'bob@mail.example', username: 'bob' }
  const bob = { ...running.account, ...names, sealedCredential }
  await running.store.accounts.create(bob)
  running.server.hooks = { command: () => ({ close: 'reset' }) }
  running.accounts.start(bob)
  const isIn = (id: string, tag: string) => running.accounts.view(id)?.tags.includes(tag)
  running.accounts.wake(accountId)
  await until('both wait', () => isIn(bobId, 'waiting') && isIn(accountId, 'waiting'))
  running.server.hooks = {}
  const failure = async () => (await running.store.accounts.get(bobId))?.resume.lastError?.class
  await until('the failure is stored', async () => (await failure()) === 'network')
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
