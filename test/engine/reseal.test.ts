/** A changed MAILROOM_SECRET: everything that is sealed is sealed anew, in as many calls as it takes. */
import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { reseal } from '../../engine/sealed-store.ts'
import { createSealer } from '../../engine/secrets/seal.ts'
import type { Store } from '../../engine/store/port.ts'
import { accountRecord, developerRecord, userRecord } from '../support/records.ts'
import { openTestStore } from '../support/test-store.ts'
import { webhookRecord } from '../store/contract/records.ts'

const [before, after] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const former = createSealer(before)
const sealer = createSealer(after, [before])
const accounts = 5

async function stage(t: TestContext): Promise<Store> {
  const { store, remove } = await openTestStore()
  t.after(remove)
  const developer = developerRecord({ id: 'd1' })
  await store.developers.create({ ...developer, sealedSecret: former.seal('api secret', 'd1') })
  const user = userRecord('d1')
  await store.users.create(user)
  for (let index = 0; index < accounts; index += 1) {
    const account = accountRecord(user, { id: `a${index}` })
    await store.accounts.create({ ...account, sealedCredential: former.seal(`password ${index}`, account.id) })
  }
  await store.webhooks.create(
    webhookRecord('d1', { id: 'w1', userId: user.id, sealedSecrets: former.seal('[]', 'w1') }),
  )
  await store.providers.put({
    developerId: 'd1',
    consumerKey: 'key',
    sealedSecret: former.seal('client secret', 'd1:key'),
    shownSecret: 'cli[...]ret',
    type: 'GMAIL_OAUTH2',
    createdAt: 1,
  })
  return store
}

async function plain(store: Store): Promise<unknown[]> {
  const only = createSealer(after)
  const [provider] = await store.providers.list('d1')
  const found = await Promise.all(Array.from({ length: accounts }, (_, index) => store.accounts.get(`a${index}`)))
  return [
    only.open((await store.developers.get('d1'))?.sealedSecret ?? '', 'd1'),
    only.open((await store.webhooks.get('w1'))?.sealedSecrets ?? '', 'w1'),
    only.open(provider?.sealedSecret ?? '', 'd1:key'),
    ...found.map((account) => only.open(account?.sealedCredential ?? '', account?.id ?? '')),
  ]
}

suite('sealing anew', () => {
  test('goes on where it was cut short, and ends when nothing is left of the former key', async (t) => {
    const store = await stage(t)
    const first = await reseal({ store, sealer }, 3)
    assert.deepEqual(first, {
      resealed: 3,
      left: accounts,
      done: false,
      keys: { [sealer.keyId]: 3, [former.keyId]: accounts },
    })
    const rest = await reseal({ store, sealer }, 100)
    assert.deepEqual([rest.resealed, rest.done], [accounts, true])
    const passwords = Array.from({ length: accounts }, (_, index) => `password ${index}`)
    assert.deepEqual(await plain(store), ['api secret', '[]', 'client secret', ...passwords])
    assert.deepEqual(await reseal({ store, sealer }, 100), {
      resealed: 0,
      left: 0,
      done: true,
      keys: { [sealer.keyId]: accounts + 3 },
    })
  })

  test('a credential that changes meanwhile is not written over', async (t) => {
    const store = await stage(t)
    const fresh = former.seal('a new password', 'a0')
    let changed = false
    const sealed: Store['sealed'] = {
      ...store.sealed,
      async account(id, from, to) {
        if (id === 'a0' && !changed) {
          changed = true
          await store.accounts.edit('a0', { sealedCredential: fresh })
        }
        return store.sealed.account(id, from, to)
      },
    }
    const answer = await reseal({ store: { ...store, sealed }, sealer }, 100)
    assert.deepEqual([answer.done, answer.keys[former.keyId]], [false, 1])
    assert.equal((await store.accounts.get('a0'))?.sealedCredential, fresh)
    assert.equal((await reseal({ store, sealer }, 100)).done, true)
    assert.equal((await plain(store))[3], 'a new password')
  })

  test('without the key that sealed a value nothing is called done', async (t) => {
    const store = await stage(t)
    await assert.rejects(reseal({ store, sealer: createSealer(after) }, 100), /MAILROOM_SECRET_OLD/)
    assert.equal(former.open((await store.developers.get('d1'))?.sealedSecret ?? '', 'd1'), 'api secret')
  })
})
