/** What is started with the engine: accounts whose user is there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Store } from '../../../engine/store/port.ts'
import { allSlots } from '../../../engine/store/slots.ts'
import { accountId } from './stage.ts'
import { openAccounts } from './running.ts'

/** A process was killed between the account and its user, `ageMs` ago. */
function orphaned(ageMs: number): (store: Store) => Store {
  return (store) => ({
    ...store,
    users: { ...store.users, several: () => Promise.resolve([]) },
    accounts: {
      ...store.accounts,
      page: async (after, limit) =>
        (await store.accounts.page(after, limit)).map((account) => ({ ...account, createdAt: Date.now() - ageMs })),
    },
  })
}

test('an account with its user is started', async (t) => {
  const { accounts } = await openAccounts(t)
  await accounts.gained(allSlots)
  assert.notEqual(accounts.view(accountId), null)
})

test('an account without its user is not started, and stays while its user may be on the way', async (t) => {
  const { accounts, store } = await openAccounts(t, { wrap: orphaned(60_000) })
  await accounts.gained(allSlots)
  assert.equal(accounts.view(accountId), null)
  assert.notEqual(await store.accounts.get(accountId), null)
})

test('an account that was left without its user is removed', async (t) => {
  const { accounts, store } = await openAccounts(t, { wrap: orphaned(2 * 3_600_000) })
  await accounts.gained(allSlots)
  assert.equal(accounts.view(accountId), null)
  assert.equal(await store.accounts.get(accountId), null)
})
