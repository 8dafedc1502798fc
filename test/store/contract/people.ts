/** Developers, users, and the accounts of users. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AccountStatus } from '../../../engine/store/records.ts'
import { newId } from '../../../engine/store/ids.ts'
import { rejectsWith, type Subject } from './mailbox.ts'
import { accountRecord, developerRecord, epochStart, userRecord } from './records.ts'

const all = { limit: 100, offset: 0 }

export function developersContract({ store }: Subject): void {
  describe('developers', () => {
    test('are found by id and by API key', async () => {
      const before = await store.developers.count()
      const developer = developerRecord()
      await store.developers.create(developer)
      assert.deepEqual(await store.developers.get(developer.id), developer)
      assert.deepEqual(await store.developers.byKey(developer.apiKey), developer)
      assert.equal(await store.developers.count(), before + 1)
      assert.deepEqual(await store.developers.several([newId(), developer.id]), [developer])
    })

    test('the first one is that with the least id', async () => {
      const oldest = { ...developerRecord(), id: '0'.repeat(24) }
      await store.developers.create(developerRecord())
      await store.developers.create(oldest)
      await store.developers.create(developerRecord())
      assert.deepEqual(await store.developers.first(), oldest)
    })

    test('unknown ones are null, and editing them does nothing', async () => {
      assert.equal(await store.developers.get(newId()), null)
      assert.equal(await store.developers.byKey('nobody'), null)
      await store.developers.edit(newId(), { sealedSecret: 'x' })
    })

    test('an API key is had once', async () => {
      const developer = developerRecord()
      await store.developers.create(developer)
      await rejectsWith(store.developers.create(developerRecord({ apiKey: developer.apiKey })), 'conflict')
      assert.deepEqual(await store.developers.byKey(developer.apiKey), developer)
    })

    test('a brand is replaced as a whole', async () => {
      const developer = developerRecord()
      await store.developers.create(developer)
      await store.developers.edit(developer.id, { brand: { name: 'Ada', logo: null, color: '#112233' } })
      const brand = { name: null, logo: 'https://cdn.example.com/a.svg', color: null }
      await store.developers.edit(developer.id, { brand })
      assert.deepEqual(await store.developers.get(developer.id), { ...developer, brand })
    })

    test('callback URL and secret are set and taken away', async () => {
      const developer = developerRecord()
      await store.developers.create(developer)
      await store.developers.edit(developer.id, { statusCallbackUrl: 'https://a.example.com/' })
      await store.developers.edit(developer.id, { sealedSecret: 'other' })
      const expected = { ...developer, statusCallbackUrl: 'https://a.example.com/', sealedSecret: 'other' }
      assert.deepEqual(await store.developers.get(developer.id), expected)
      await store.developers.edit(developer.id, { statusCallbackUrl: null })
      assert.equal((await store.developers.get(developer.id))?.statusCallbackUrl, null)
    })
  })
}

export function usersContract({ store }: Subject): void {
  describe('users', () => {
    test('belong to one developer', async () => {
      const user = userRecord(newId())
      await store.users.create(user)
      assert.deepEqual(await store.users.get(user.developerId, user.id), user)
      assert.equal(await store.users.get(newId(), user.id), null)
      assert.equal(await store.users.get(user.developerId, newId()), null)
    })

    test('are listed oldest first, in pages', async () => {
      const developerId = newId()
      const [second, third, first] = [5, 7, 3].map((age) => userRecord(developerId, { createdAt: epochStart + age }))
      assert(first && second && third)
      for (const user of [second, third, first]) await store.users.create(user)
      assert.deepEqual(await store.users.list(developerId, {}, all), [first, second, third])
      assert.deepEqual(await store.users.list(developerId, {}, { limit: 1, offset: 1 }), [second])
      assert.deepEqual(await store.users.list(developerId, {}, { limit: 5, offset: 3 }), [])
      assert.deepEqual(await store.users.list(newId(), {}, all), [])
      assert.deepEqual([await store.users.count(developerId), await store.users.count(newId())], [3, 0])
    })

    test('are found by their own addresses and those of their accounts, without case', async () => {
      const developerId = newId()
      const users = [1, 2].map((age) =>
        userRecord(developerId, { emailAddresses: ['shared@x.com', `own${age}@x.com`], createdAt: epochStart + age }),
      )
      for (const user of users) await store.users.create(user)
      const [first, second] = users
      assert(first && second)
      await store.accounts.create(accountRecord(second, { email: 'Account@X.com' }))
      await store.accounts.create(accountRecord(second, { email: 'shared@x.com' }))
      const found = async (email: string) => store.users.list(developerId, { email }, all)
      assert.deepEqual(await found('OWN1@x.COM'), [first])
      assert.deepEqual(await found('account@x.com'), [second])
      assert.deepEqual(await found('shared@x.com'), [first, second])
      assert.deepEqual(await store.users.list(developerId, { email: 'shared@x.com' }, { limit: 1, offset: 1 }), [
        second,
      ])
      assert.deepEqual(await found('wn1@x.com'), [])
      assert.deepEqual(await store.users.list(newId(), { email: 'shared@x.com' }, all), [])
    })

    test('of all developers are found by parts of their names and addresses', async () => {
      const name = newId()
      const make = async (firstName: string, lastName: string, email: string) => {
        const user = userRecord(newId(), { firstName, lastName, emailAddresses: [email] })
        await store.users.create(user)
        return user
      }
      const users = [await make(`Ada${name}`, 'Byron', 'a@x.com'), await make('', '', `100%.${name}@X.com`)] as const
      const [ada, other] = users
      const found = async (words: readonly string[], limit = 9) =>
        (await store.users.search(words, limit)).map(({ id }) => id)
      assert.deepEqual(await found([name]), [ada.id, other.id].sort())
      assert.deepEqual(await found([name.toUpperCase(), 'BYR']), [ada.id])
      assert.deepEqual(await found([`0%.${name}@x`]), [other.id])
      assert.deepEqual(await found([`0..${name}`]), [])
      assert.equal((await found([name], 1)).length, 1)
    })

    test('are filtered by the status of their accounts', async () => {
      const developerId = newId()
      const make = async (age: number, ...statuses: AccountStatus[]) => {
        const user = userRecord(developerId, { createdAt: epochStart + age, emailAddresses: ['a@x.com'] })
        await store.users.create(user)
        for (const status of statuses) await store.accounts.create(accountRecord(user, { status }))
        return user
      }
      const [none, ok, both, disabled] = [
        await make(1),
        await make(2, 'OK'),
        await make(3, 'DISABLED', 'OK'),
        await make(4, 'DISABLED'),
      ]
      const list = async (status: AccountStatus) => store.users.list(developerId, { status }, all)
      assert.deepEqual(await list('OK'), [ok, both])
      assert.deepEqual(await list('DISABLED'), [both, disabled])
      const filter = { status: 'DISABLED', email: 'a@x.com' } as const
      assert.deepEqual(await store.users.list(developerId, filter, { limit: 1, offset: 1 }), [disabled])
      assert.deepEqual(await store.users.list(developerId, { email: 'a@x.com' }, all), [none, ok, both, disabled])
    })

    test('an edit changes what it names, and the addresses they are found by', async () => {
      const user = userRecord(newId(), { emailAddresses: ['old@x.com'] })
      await store.users.create(user)
      const patch = { firstName: 'Grace', emailAddresses: ['new@x.com'], statusCallbackUrl: 'https://a.example.com/' }
      const edited = { ...user, ...patch }
      assert.deepEqual(await store.users.edit(user.id, patch), edited)
      assert.deepEqual(await store.users.get(user.developerId, user.id), edited)
      assert.deepEqual(await store.users.list(user.developerId, { email: 'new@x.com' }, all), [edited])
      assert.deepEqual(await store.users.list(user.developerId, { email: 'old@x.com' }, all), [])
      assert.deepEqual(await store.users.edit(user.id, {}), edited)
      await store.users.edit(user.id, { statusCallbackUrl: null })
      assert.equal((await store.users.get(user.developerId, user.id))?.statusCallbackUrl, null)
      assert.equal(await store.users.edit(newId(), { firstName: 'x' }), null)
    })

    test('addresses added at the same time are all there, each once, after the first', async () => {
      const user = userRecord(newId(), { emailAddresses: ['first@x.com'] })
      await store.users.create(user)
      const added = ['a', 'b', 'c', 'd', 'e', 'a'].map((name) => `${name}@x.com`)
      await Promise.all(added.map((email) => store.users.addAddress(user.id, email)))
      const stored = await store.users.get(user.developerId, user.id)
      assert(stored)
      assert.equal(stored.emailAddresses[0], 'first@x.com')
      assert.deepEqual([...stored.emailAddresses.slice(1)].sort(), [...new Set(added)].sort())
      for (const email of added) assert.deepEqual(await store.users.list(user.developerId, { email }, all), [stored])
      assert.deepEqual(await store.users.addAddress(user.id, 'first@x.com'), stored)
      assert.equal(await store.users.addAddress(newId(), 'x@x.com'), null)
    })

    test('addresses added, removed and put first at the same time: none of the changes is lost', async () => {
      const names = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}@x.com`)
      const user = userRecord(newId(), { emailAddresses: names })
      await store.users.create(user)
      const without = (email: string) => (list: readonly string[]) => list.filter((one) => one !== email)
      await Promise.all([
        ...['a@x.com', 'c@x.com', 'e@x.com'].map((email) => store.users.editAddresses(user.id, without(email))),
        store.users.editAddresses(user.id, (list) => ['d@x.com', ...without('d@x.com')(list)]),
        store.users.addAddress(user.id, 'f@x.com'),
      ])
      const stored = { ...user, emailAddresses: ['d@x.com', 'b@x.com', 'f@x.com'] }
      assert.deepEqual(await store.users.get(user.developerId, user.id), stored)
      for (const email of stored.emailAddresses) {
        assert.deepEqual(await store.users.list(user.developerId, { email }, all), [stored])
      }
      assert.deepEqual(await store.users.list(user.developerId, { email: 'c@x.com' }, all), [])
      assert.deepEqual(await store.users.editAddresses(user.id, () => []), { ...user, emailAddresses: [] })
      assert.deepEqual(await store.users.addAddress(user.id, 'g@x.com'), { ...user, emailAddresses: ['g@x.com'] })
      assert.equal(await store.users.editAddresses(newId(), () => []), null)
    })

    test('come with their account, or not at all', async () => {
      const user = userRecord(newId())
      const account = accountRecord(user)
      await store.users.createWithAccount(user, account)
      assert.deepEqual(await store.users.get(user.developerId, user.id), user)
      assert.deepEqual(await store.accounts.listByUser(user.id), [account])
      assert.deepEqual(await store.users.list(user.developerId, { email: account.email }, all), [user])

      const other = userRecord(newId())
      await rejectsWith(store.users.createWithAccount(other, accountRecord(other, { id: account.id })), 'conflict')
      assert.equal(await store.users.get(other.developerId, other.id), null)
      const late = accountRecord(other)
      await rejectsWith(store.users.createWithAccount({ ...other, id: user.id }, late), 'conflict')
      assert.equal(await store.accounts.get(late.id), null)
    })
  })
}
