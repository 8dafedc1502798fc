import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  countsAsReceived,
  isSentByUser,
  maxOtherContacts,
  otherContacts,
  receivedContact,
  repliedContact,
  type CountedMessage,
} from '../../../engine/messages/contacts.ts'
import { parseAddresses } from '../../../engine/messages/addresses.ts'
import type { SpecialUse } from '../../../engine/store/records.ts'

const owner = { userId: 'user', ownAddresses: ['Me@Example.com'] }

function from(text: string): CountedMessage {
  const none = { sender: [], replyTo: [], to: [], cc: [], bcc: [], returnPath: [] }
  return { id: 'mid', facts: { addresses: { ...none, from: parseAddresses(text) }, receivedAt: 7 } }
}

test('a received message counts once for its sender', () => {
  assert.deepEqual(receivedContact(owner, null, from('Ann <Ann@X.org>')), [
    { userId: 'user', email: 'ann@x.org', name: 'Ann', key: 'mid:r', total: 1, direct: 0, indirect: 1, receivedAt: 7 },
  ])
})

test('own mail, unwanted folders and mail without a sender count nothing', () => {
  assert.deepEqual(receivedContact(owner, '\\Inbox', from('me@example.COM')), [])
  assert.deepEqual(receivedContact(owner, null, from('Mailer Daemon')), [])
  assert.deepEqual(receivedContact(owner, null, from('')), [])
  for (const role of ['\\Sent', '\\Drafts', '\\Junk', '\\Trash'] as SpecialUse[]) {
    assert.equal(countsAsReceived(role), false)
    assert.deepEqual(receivedContact(owner, role, from('ann@x.org')), [])
  }
  for (const role of [null, '\\Inbox', '\\All', '\\Archive', '\\Flagged', '\\Important'] as (SpecialUse | null)[]) {
    assert.equal(receivedContact(owner, role, from('ann@x.org')).length, 1)
  }
})

test('a reply counts for the sender of the answered message, under the answered message', () => {
  assert.deepEqual(repliedContact(owner, from('Ann <Ann@X.org>')), [
    { userId: 'user', email: 'ann@x.org', name: 'Ann', key: 'mid:d', total: 0, direct: 1, indirect: 0, receivedAt: 7 },
  ])
  assert.deepEqual(repliedContact(owner, from('Me <me@example.com>')), [])
})

const people = (text: string, others: Partial<Record<'to' | 'cc' | 'bcc' | 'replyTo', string>>): CountedMessage => {
  const message = from(text)
  const lists = Object.entries(others).map(([field, list]) => [field, parseAddresses(list)] as const)
  return {
    ...message,
    facts: { ...message.facts, addresses: { ...message.facts.addresses, ...Object.fromEntries(lists) } },
  }
}

test('everybody else whom a message names counts once, whatever the fields: total alone, and nothing was received', () => {
  const letter = people('Ann <Ann@X.org>, Zoe <zoe@x.org>', {
    to: 'Bob <bob@x.org>, me@example.com, BOB@X.ORG',
    cc: 'ann@x.org, Cy <cy@x.org>, nobody',
    bcc: 'dan@x.org',
    replyTo: 'list@x.org',
  })
  const others = otherContacts(owner, '\\Inbox', letter)
  assert.deepEqual(
    others.map(({ email, name }) => [email, name]),
    [
      ['zoe@x.org', 'Zoe'],
      ['bob@x.org', 'Bob'],
      ['cy@x.org', 'Cy'],
      ['dan@x.org', ''],
    ],
  )
  assert.deepEqual(others[1], {
    userId: 'user',
    email: 'bob@x.org',
    name: 'Bob',
    key: 'mid:o',
    total: 1,
    direct: 0,
    indirect: 0,
    receivedAt: 0,
  })
})

test('mail that the user sent counts for its recipients, never for its sender; drafts, junk and rubbish for nobody', () => {
  const emails = (role: SpecialUse | null, sender: string) =>
    otherContacts(owner, role, people(sender, { to: 'bob@x.org' })).map(({ email }) => email)
  assert.deepEqual(emails('\\Sent', 'me@example.com'), ['bob@x.org'])
  assert.deepEqual(emails('\\Sent', 'alias@example.com'), ['bob@x.org'])
  assert.deepEqual(emails('\\All', 'me@example.com'), ['bob@x.org'])
  for (const role of ['\\Drafts', '\\Junk', '\\Trash'] as SpecialUse[]) {
    for (const sender of ['me@example.com', 'ann@x.org']) assert.deepEqual(emails(role, sender), [])
  }
})

test('no more than so many of one message', () => {
  const many = Array.from({ length: maxOtherContacts + 5 }, (_, index) => `p${index}@x.org`).join(', ')
  const found = otherContacts(owner, null, people('ann@x.org', { to: many }))
  assert.equal(found.length, maxOtherContacts)
})

test('who wrote it', () => {
  assert.equal(isSentByUser(owner, '\\Sent', from('anybody@x.org')), true)
  assert.equal(isSentByUser(owner, '\\All', from('ME@example.com')), true)
  assert.equal(isSentByUser(owner, '\\Drafts', from('me@example.com')), false)
  assert.equal(isSentByUser(owner, null, from('ann@x.org')), false)
})
