/** What is stored of an account's chart: told once, also when the answer is lost, and only by the account's owner. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createReports } from '../../../engine/accounts/actors.ts'
import type { ChangeListener } from '../../../engine/accounts/types.ts'
import { AppError, isAppError } from '../../../engine/errors.ts'
import { silentLogger } from '../../../engine/observe/log.ts'
import { outboxId, urlChannelId } from '../../../engine/store/ids.ts'
import type { AccountStore, Store } from '../../../engine/store/port.ts'
import { freshResume } from '../../../engine/store/rows.ts'
import { outboxRecord } from '../../store/contract/records.ts'
import { accountRecord, userRecord } from '../../support/records.ts'
import { openTestStore } from '../../support/test-store.ts'

const away = new AppError('store_unavailable', 'the answer is lost')

async function open(t: TestContext, wrap: (real: AccountStore) => Partial<AccountStore> = () => ({})) {
  const { store, remove } = await openTestStore()
  t.after(remove)
  const user = userRecord('d'.repeat(24))
  await store.users.create(user)
  const made = accountRecord(user)
  await store.accounts.create(made)
  const account = await store.accounts.claim(made.id)
  assert(account)
  const told: string[] = []
  const channelId = urlChannelId(account.developerId, 'https://x.example/status')
  const listener: ChangeListener = {
    plan: () => Promise.resolve([]),
    planOld: () => Promise.resolve([]),
    readAhead: () => Promise.resolve(),
    planStatus: (of, { version }) =>
      Promise.resolve([
        outboxRecord(
          { id: channelId, developerId: of.developerId },
          {
            id: outboxId(channelId, `status:${version}`),
            accountId: of.id,
            webhookId: null,
            kind: 'status',
            url: 'https://x',
          },
        ),
      ]),
    stored: () => undefined,
    statusStored: (id) => void told.push(id),
    initialSyncDone: () => Promise.resolve(),
  }
  const state = { epoch: account.epoch }
  const wrapped: Store = { ...store, accounts: { ...store.accounts, ...wrap(store.accounts) } }
  const report = createReports({ store: wrapped, listener, log: silentLogger }, () => state.epoch)
  const say = (status: 'OK' | 'DISABLED', message: string | null) =>
    report({ accountId: account.id, status, message, resume: freshResume })
  return { store, account, told, say, state }
}

test('a change of status is stored with its callback, which is told', async (t) => {
  const { store, account, told, say } = await open(t)
  await say('DISABLED', 'no')
  await say('DISABLED', 'still no')
  await say('OK', null)
  assert.equal((await store.accounts.get(account.id))?.statusVersion, 2)
  const rows = await store.outbox.list({ accountId: account.id }, { limit: 9, offset: 0 })
  assert.deepEqual(
    told,
    rows.map(({ channelId }) => channelId),
  )
  assert.equal(told.length, 2)
})

test('one whose answer is lost is told by the repeat', async (t) => {
  let lost = 0
  const { store, account, told, say } = await open(t, (real) => ({
    transition: async (step) => {
      const after = await real.transition(step)
      if ((lost += 1) === 1) throw away
      return after
    },
  }))
  await assert.rejects(say('DISABLED', 'no'), (error) => error === away)
  assert.deepEqual(told, [])
  await say('DISABLED', 'no')
  assert.equal(told.length, 1)
  assert.equal((await store.accounts.get(account.id))?.statusVersion, 1)
  await say('DISABLED', 'no')
  assert.equal(told.length, 1)
})

test('and also when the account is back before the repeat', async (t) => {
  let lost = 0
  const { store, account, told, say } = await open(t, (real) => ({
    transition: async (step) => {
      const after = await real.transition(step)
      if ((lost += 1) === 1) throw away
      return after
    },
  }))
  await assert.rejects(say('DISABLED', 'no'), (error) => error === away)
  await say('OK', null)
  assert.equal((await store.accounts.get(account.id))?.statusVersion, 2)
  assert.equal(told.length, 1)
})

test('who was taken over has no word any more', async (t) => {
  const { store, account, told, say, state } = await open(t)
  await store.accounts.claim(account.id)
  await say('OK', 'late')
  await say('DISABLED', 'late')
  const stored = await store.accounts.get(account.id)
  assert.deepEqual([stored?.status, stored?.statusMessage, stored?.statusVersion], ['OK', null, 0])
  assert.deepEqual(told, [])
  state.epoch += 1
  await say('DISABLED', 'now')
  assert.equal((await store.accounts.get(account.id))?.statusMessage, 'now')
  await store.accounts.remove(account.id)
  await say('OK', null)
})

test('a claim of our own between reading and writing: the report is repeated', async (t) => {
  let claims = 0
  const { store, account, told, say, state } = await open(t, (real) => ({
    transition: async (step) => {
      if ((claims += 1) === 1) state.epoch = (await real.claim(step.accountId))?.epoch ?? state.epoch
      return real.transition(step)
    },
  }))
  await assert.rejects(say('DISABLED', 'no'), (error) => isAppError(error, 'lease_lost'))
  await say('DISABLED', 'no')
  assert.equal((await store.accounts.get(account.id))?.status, 'DISABLED')
  assert.equal(told.length, 1)
})
