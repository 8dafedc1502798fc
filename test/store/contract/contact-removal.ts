/** An email account that is removed takes what it counted out of its user's contacts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isAppError } from '../../../engine/errors.ts'
import type { Store } from '../../../engine/store/port.ts'
import type { ContactDelta, ContactRecord, UserRecord } from '../../../engine/store/records.ts'
import { createMailbox, emptyBatch, listed, type Mailbox, type Subject } from './mailbox.ts'
import { epochStart } from './records.ts'

const page = { limit: 5000, offset: 0 }

/** A delta but for its user. */
type Counted = Omit<ContactDelta, 'userId'>

function received(email: string, key: string, age = 0, name = ''): Counted {
  return { email, name, key: `${key}:r`, total: 1, direct: 0, indirect: 1, receivedAt: epochStart + age }
}

function count(mailbox: Mailbox, deltas: readonly Counted[]): Promise<unknown> {
  const contacts = deltas.map((delta) => ({ ...delta, userId: mailbox.user.id }))
  return mailbox.apply('INBOX', { contacts })
}

/** What is told of a user's contacts, but for whose they are; every way of reading tells the same. */
async function told(store: Store, { id }: UserRecord): Promise<unknown[]> {
  const all = await store.contacts.list(id, 'total_count', 'desc', page)
  const plain = ({ email, name, totalCount, directCount, indirectCount, lastReceivedAt }: ContactRecord) => ({
    ...{ email, name, totalCount, directCount, indirectCount, lastReceivedAt },
  })
  const sorted = (some: readonly ContactRecord[]) => some.toSorted((one, other) => (one.email < other.email ? -1 : 1))
  for (const sort of ['direct_count', 'indirect_count'] as const)
    assert.deepEqual(sorted(await store.contacts.list(id, sort, 'asc', page)), sorted(all))
  assert.deepEqual(sorted(await store.contacts.search(id, '', page)), sorted(all))
  for (const contact of all.slice(0, 10)) assert.deepEqual(await store.contacts.get(id, contact.id), contact)
  return sorted(all).map(plain)
}

const kinds = [
  { suffix: 'r', total: 1, direct: 0, indirect: 1 },
  { suffix: 'd', total: 0, direct: 1, indirect: 0 },
] as const

const anyDelta: fc.Arbitrary<Counted> = fc
  .record({
    email: fc.constantFrom('ann@x.com', 'Bob@x.com', 'cy@y.org'),
    name: fc.constantFrom('', 'One', 'Two'),
    message: fc.integer({ min: 1, max: 6 }),
    kind: fc.constantFrom(...kinds),
    age: fc.integer({ min: 0, max: 9 }),
  })
  .map(({ email, name, message, kind: { suffix, ...counts }, age }) => ({
    ...{ email, name, key: `m${message}:${suffix}`, ...counts, receivedAt: epochStart + age },
  }))

/** Batches of two accounts, in the order in which they come. */
const anyHistory = fc.array(
  fc.record({ removed: fc.boolean(), deltas: fc.array(anyDelta, { minLength: 1, maxLength: 4 }) }),
  { maxLength: 8 },
)

/** Two accounts of one user, and one of another. */
async function pair(store: Store) {
  const folders = ['INBOX']
  const going = await createMailbox(store, { folders })
  const staying = await createMailbox(store, { folders, user: going.user })
  return { going, staying, alone: await createMailbox(store, { folders }) }
}

export function contactRemovalContract({ store }: Subject): void {
  describe('contacts of an account that is removed', () => {
    test('are left as the other account alone would have counted them', async () => {
      await fc.assert(
        fc.asyncProperty(anyHistory, anyHistory, async (before, after) => {
          const { going, staying, alone } = await pair(store)
          for (const { removed, deltas } of before) {
            await count(removed ? going : staying, deltas)
            if (!removed) await count(alone, deltas)
          }
          await store.accounts.remove(going.account.id)
          assert.deepEqual(await told(store, staying.user), await told(store, alone.user))
          for (const { deltas } of after) {
            await count(staying, deltas)
            await count(alone, deltas)
          }
          assert.deepEqual(await told(store, staying.user), await told(store, alone.user))
        }),
        { numRuns: 15 },
      )
    })

    test('are gone when no other account knows them, and answer nothing of accounts while they are there', async () => {
      const { going, staying } = await pair(store)
      await count(going, [received('own@x.com', 'm1'), received('both@x.com', 'm2', 9, 'Newest')])
      await count(staying, [received('both@x.com', 'm3', 5, 'Older')])
      const contacts = await store.contacts.list(going.user.id, 'total_count', 'desc', page)
      const fields = 'directCount email id indirectCount lastReceivedAt name totalCount userId'
      for (const contact of contacts) assert.equal(Object.keys(contact).sort().join(' '), fields)
      const own = contacts.find(({ email }) => email === 'own@x.com') ?? assert.fail('it is not there')
      await store.accounts.remove(going.account.id)
      assert.equal(await store.contacts.get(going.user.id, own.id), null)
      assert.deepEqual(await store.contacts.search(going.user.id, 'own@', page), [])
      const counts = { totalCount: 1, directCount: 0, indirectCount: 1, lastReceivedAt: epochStart + 5 }
      assert.deepEqual(await told(store, going.user), [{ email: 'both@x.com', name: 'Older', ...counts }])
      await store.accounts.remove(staying.account.id)
      assert.deepEqual(await told(store, going.user), [])
    })

    test('are counted once when the mailbox is added again, under a new id or the old one', async () => {
      const { going, staying } = await pair(store)
      const mail = [1, 2, 3].map((number) => received('ann@x.com', `m${number}`, number, 'Ann'))
      await count(staying, mail.slice(0, 1))
      await count(going, mail)
      const once = await told(store, going.user)
      await store.accounts.remove(going.account.id)
      const again = await createMailbox(store, { folders: ['INBOX'], user: going.user })
      await count(again, mail)
      assert.deepEqual(await told(store, going.user), once)
      await store.accounts.remove(again.account.id)
      await store.accounts.create({ ...going.account, epoch: 0 })
      await store.accounts.claim(going.account.id)
      await store.folders.reconcile(going.account.id, 1, [listed('INBOX')], true)
      await count(going, mail)
      await count(going, mail)
      assert.deepEqual(await told(store, going.user), once)
    })

    test('stay as they are when the removal is repeated, also at the same time and beside another one', async () => {
      const { going, staying, alone } = await pair(store)
      const third = await createMailbox(store, { folders: ['INBOX'], user: going.user })
      const mail = Array.from({ length: 30 }, (_, number) => received(`p${number % 7}@x.com`, `m${number}`, number))
      for (const mailbox of [going, staying, third, alone]) await count(mailbox, mail)
      const gone = [going.account.id, third.account.id, going.account.id, third.account.id]
      await Promise.all(gone.map((id) => store.accounts.remove(id)))
      for (const id of gone) await store.accounts.remove(id)
      assert.deepEqual(await told(store, staying.user), await told(store, alone.user))
    })

    test('go in steps, however many there are', async () => {
      const { going, staying, alone } = await pair(store)
      const mail = Array.from({ length: 1200 }, (_, number) => received(`p${number}@x.com`, `m${number}`))
      const shared = mail.filter((_, number) => number % 2 === 0)
      await count(going, mail)
      await count(staying, shared)
      await count(alone, shared)
      await store.accounts.remove(going.account.id)
      assert.deepEqual(await told(store, staying.user), await told(store, alone.user))
    })

    test('are exact when the other account counts them at the same time', async () => {
      const { going, staying, alone } = await pair(store)
      const people = Array.from({ length: 12 }, (_, number) => `p${number}@x.com`)
      const mail = (round: number) => people.map((email) => received(email, `${round} ${email}`, round))
      for (let round = 0; round < 3; round += 1) await count(going, mail(round))
      const counting = async (mailbox: Mailbox): Promise<void> => {
        for (let round = 0; round < 10; round += 1) await count(mailbox, mail(round))
      }
      await Promise.all([counting(staying), store.accounts.remove(going.account.id)])
      await counting(alone)
      assert.deepEqual(await told(store, staying.user), await told(store, alone.user))
    })

    test('are gone although an owner takes the account over and counts them while it is removed', async () => {
      const { id } = (await createMailbox(store)).account
      const account = (await store.accounts.get(id)) ?? assert.fail('it is not there')
      const own = async (round: number): Promise<void> => {
        const claimed = await store.accounts.claim(id)
        if (claimed === null) return
        const [folder] = await store.folders.reconcile(id, claimed.epoch, [listed('INBOX')], true)
        if (folder === undefined) return
        const contacts = [{ ...received(`p${round}@x.com`, `m${round}`), userId: account.userId }]
        const batch = { ...emptyBatch(claimed, folder.id, folder.cursor), contacts }
        await store.sync.apply(batch)
      }
      const owning = async (): Promise<void> => {
        for (let round = 0; round < 6; round += 1) {
          await own(round).catch((error: unknown) => assert(isAppError(error, 'lease_lost'), String(error)))
        }
      }
      await own(0)
      await Promise.all([owning(), store.accounts.remove(id)])
      assert.equal(await store.accounts.get(id), null)
      assert.deepEqual(await store.contacts.list(account.userId, 'total_count', 'desc', page), [])
    })
  })
}
