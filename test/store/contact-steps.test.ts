/** A contact's sums and the parts of the accounts that counted them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { ContactDelta, StoredContact } from '../../engine/store/records.ts'
import { contactMerge, plainContact, withoutAccount } from '../../engine/store/rows.ts'

const delta = fc.record({
  userId: fc.constant('user'),
  email: fc.constant('Ann@x.com'),
  name: fc.constantFrom('', 'One', 'Two'),
  key: fc.constant(''),
  total: fc.integer({ min: 0, max: 1 }),
  direct: fc.integer({ min: 0, max: 1 }),
  indirect: fc.integer({ min: -1, max: 1 }),
  receivedAt: fc.integer({ min: 0, max: 5 }),
})
const history = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), delta), { maxLength: 12 })

function fold(from: StoredContact | null, steps: readonly (readonly [string, ContactDelta])[]): StoredContact | null {
  return steps.reduce<StoredContact | null>((contact, [account, one]) => contactMerge(account)(contact, one), from)
}

function without(contact: StoredContact | null, ...accounts: readonly string[]): StoredContact | null {
  return accounts.reduce<StoredContact | null>((left, id) => left && withoutAccount(left, id), contact)
}

function plain(contact: StoredContact | null) {
  return contact && plainContact(contact)
}

describe('a contact', () => {
  test('without all accounts but one is what this one counted', () => {
    fc.assert(
      fc.property(history, (steps) => {
        const alone = steps.filter(([account]) => account === 'b')
        assert.deepEqual(plain(without(fold(null, steps), 'a', 'c')), plain(fold(null, alone)))
      }),
    )
  })

  test('without one of several is the sum of the others, and goes on from there', () => {
    fc.assert(
      fc.property(history, history, (before, later) => {
        const kept = (steps: typeof before) => steps.filter(([account]) => account !== 'a')
        const left = fold(without(fold(null, before), 'a'), kept(later))
        const wanted = fold(null, [...kept(before), ...kept(later)])
        // which of two names is the newer one is told of a part, not of each message
        assert.deepEqual(plain(left && { ...left, name: '' }), plain(wanted && { ...wanted, name: '' }))
      }),
    )
  })

  test('without an account that did not count it is the very same', () => {
    const contact = fold(null, [['a', oneDelta]])
    assert(contact)
    assert.equal(withoutAccount(contact, 'b'), contact)
  })

  test('of before accounts were told apart keeps what it had', () => {
    const had = { totalCount: 7, directCount: 2, indirectCount: 5, lastReceivedAt: 3 }
    const old: StoredContact = { id: 'i', userId: 'user', email: 'ann@x.com', name: 'Ann', ...had }
    assert.equal(withoutAccount(old, 'a'), old)
    const more = fold(old, [
      ['a', { ...oneDelta, receivedAt: 9, name: 'New' }],
      ['b', { ...oneDelta, receivedAt: 8 }],
    ])
    assert.deepEqual([more?.totalCount, more?.name, more?.lastReceivedAt], [9, 'New', 9])
    assert.deepEqual(plain(without(more, 'a')), { ...old, totalCount: 8, indirectCount: 6, lastReceivedAt: 8 })
    assert.deepEqual(plain(without(more, 'a', 'b')), old)
  })
})

describe('a contact without one of its accounts', () => {
  const seen = (account: string, name: string, receivedAt: number) =>
    [account, { ...oneDelta, name, receivedAt }] as const

  test('has the newest name that is left, whichever account counted first', () => {
    const steps = [seen('a', 'Gone', 9), seen('b', 'Old', 1), seen('c', 'New', 5), seen('d', '', 7)]
    for (const order of [steps, steps.toReversed()]) {
      const left = without(fold(null, order), 'a')
      assert.deepEqual([left?.name, left?.lastReceivedAt, left?.totalCount], ['New', 7, 3])
    }
    assert.equal(without(fold(null, [seen('a', 'Gone', 9), seen('b', '', 1)]), 'a')?.name, '')
  })

  test('keeps what no account is known to have counted, if it is of one kind only', () => {
    for (const kind of ['totalCount', 'directCount', 'indirectCount'] as const) {
      const contact = fold(null, [seen('a', 'Ann', 1)])
      assert(contact)
      const left = withoutAccount({ ...contact, [kind]: contact[kind] + 2 }, 'a')
      const { totalCount, directCount, indirectCount } = left ?? assert.fail(kind)
      const rest = { totalCount: 0, directCount: 0, indirectCount: 0, [kind]: 2 }
      assert.deepEqual({ totalCount, directCount, indirectCount }, rest)
    }
  })
})

describe('what others call a contact', () => {
  const named = (name: string, receivedAt: number) => ['a', { ...oneDelta, name, receivedAt }] as const

  test('is the name until the contact writes, and never after', () => {
    assert.equal(fold(null, [named('By others', 0), named('Own', 4), named('Again', 0)])?.name, 'Own')
    assert.equal(fold(null, [named('By others', 0), named('Again', 0)])?.name, 'By others')
    assert.equal(fold(null, [named('', 3), named('By others', 0)])?.name, 'By others')
  })

  test('an empty or an older name takes nothing away', () => {
    assert.equal(fold(null, [named('Own', 3), named('', 5)])?.name, 'Own')
    assert.equal(fold(null, [named('New', 5), named('Old', 3)])?.name, 'New')
    assert.equal(fold(null, [named('One', 5), named('Same time', 5)])?.name, 'Same time')
  })

  test('is no mail from the contact', () => {
    assert.equal(fold(null, [named('By others', 0)])?.lastReceivedAt, 0)
    assert.equal(fold(null, [named('Own', 4), named('By others', 0)])?.lastReceivedAt, 4)
  })
})

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
