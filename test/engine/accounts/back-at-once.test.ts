/** A mail server that was away: the first account that reaches it wakes the others that wait for it. */
import { test } from 'node:test'
import { sealCredential } from '../../../engine/secrets/seal.ts'
import { until } from '../../support/until.ts'
import { accountId, sealer } from './stage.ts'
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
