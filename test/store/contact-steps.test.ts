/** What an account counts of a contact, and the sum over accounts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { splitContact, summed, withDelta } from '../../engine/store/contacts.ts'
import { contactId } from '../../engine/store/ids.ts'
import type { ContactDelta, StoredContact } from '../../engine/store/records.ts'

const oneDelta: ContactDelta = {
  userId: 'user',
  email: 'ann@x.com',
  name: '',
  key: '',
  total: 1,
  direct: 0,
  indirect: 1,
  receivedAt: 1,
}

function fold(account: string, ...deltas: readonly Partial<ContactDelta>[]): StoredContact {
  const all = deltas.map((delta) => ({ ...oneDelta, ...delta }))
  const contact = all.reduce<StoredContact | null>((stored, delta) => withDelta(account, stored, delta), null)
  return contact ?? assert.fail('no delta')
}

const named = (name: string, receivedAt: number) => ({ name, receivedAt })

describe('a contact', () => {
  test('is the sum of what its accounts have counted, under the newest name, whichever counted first', () => {
    const parts = [
      fold('a', named('Old', 1), { direct: 1, total: 0, indirect: 0 }),
      fold('b', named('New', 5)),
      fold('c', named('', 7)),
    ] as const
    const id = contactId('user', 'ann@x.com')
    const counts = { totalCount: 3, directCount: 1, indirectCount: 3, lastReceivedAt: 7 }
    const sum = { id, userId: 'user', email: 'ann@x.com', name: 'New', ...counts }
    const [first, second, third] = parts
    assert.deepEqual(summed([first, second, third]), sum)
    assert.deepEqual(summed([third, second, first]), sum)
    assert.equal(summed([third]).name, '')
  })

  test('of a store that kept sums is split by account; what no account is known for goes to the oldest', () => {
    const [one, other] = [fold('a', named('A', 2)), fold('b', named('B', 3), named('B', 4))]
    const sums = summed([one, other])
    const byAccount = [one, other].map(
      ({ accountId, name, totalCount, directCount, indirectCount, lastReceivedAt }) => {
        return { accountId, name, totalCount, directCount, indirectCount, lastReceivedAt }
      },
    )
    assert.deepEqual(splitContact({ ...sums, byAccount }, 'a'), [one, other])
    const more = { ...sums, totalCount: 8, byAccount }
    assert.deepEqual(
      splitContact(more, 'a').map(({ accountId, totalCount }) => [accountId, totalCount]),
      [
        ['a', 6],
        ['b', 2],
      ],
    )
    assert.deepEqual(splitContact(sums, 'c'), [{ ...sums, accountId: 'c' }])
    assert.deepEqual(splitContact(sums, null), [])
  })
})

describe('what others call a contact', () => {
  test('is the name until the contact writes, and never after', () => {
    assert.equal(fold('a', named('By others', 0), named('Own', 4), named('Again', 0)).name, 'Own')
    assert.equal(fold('a', named('By others', 0), named('Again', 0)).name, 'By others')
    assert.equal(fold('a', named('', 3), named('By others', 0)).name, 'By others')
  })

  test('an empty or an older name takes nothing away', () => {
    assert.equal(fold('a', named('Own', 3), named('', 5)).name, 'Own')
    assert.equal(fold('a', named('New', 5), named('Old', 3)).name, 'New')
    assert.equal(fold('a', named('One', 5), named('Same time', 5)).name, 'Same time')
  })

  test('is no mail from the contact', () => {
    assert.equal(fold('a', named('By others', 0)).lastReceivedAt, 0)
    assert.equal(fold('a', named('Own', 4), named('By others', 0)).lastReceivedAt, 4)
  })
})
